"""`POST /v1/indexing` with a URL: crawling, indexing and purposes, each with its source (spec H13 to H16)."""

from pathlib import Path
from typing import Any

import pytest

from app.auth.keys import new_key
from tests.api.service import Service, running, slug
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

ROBOTS = "User-agent: *\nDisallow: /closed\nContent-Signal: search=yes, ai-train=yes\n"
NOINDEX = {"name": "X-Robots-Tag", "value": "noindex"}


async def post(service: Service, **page: Any) -> dict[str, Any]:
    response = await service.client.post("/v1/indexing", json={"agents": ["ExampleBot"], **page})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_noindex_of_a_closed_page_is_reported_as_never_read(store_url: str) -> None:
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        answer = await post(service, url=f"{origin.url}/closed", headers=[NOINDEX])
        assert (answer["crawl"], answer["index"], answer["archive"], answer["follow"]) == (False, False, False, True)
        assert (answer["verdict"], answer["reason"]) == ("disallow", "rule")
        assert answer["decided_by"] == {
            "crawl": {"where": "robots.txt", "agent": None, "rule": "disallow: /closed", "line": 2},
            "index": {"where": "header 1", "agent": None, "rule": "noindex"},
            "archive": {"where": "header 1", "agent": None, "rule": "noindex"},
        }
        assert [note["code"] for note in answer["notes"]] == ["noindex-unreachable"]
        assert {purpose["state"] for purpose in answer["purposes"].values()} == {"no"}
        answer = await post(service, url=f"{origin.url}/open", headers=["noindex"])
        assert (answer["crawl"], answer["index"], answer["notes"]) == (True, False, [])


async def test_page_and_file_are_combined_and_the_source_is_named(store_url: str) -> None:
    headers = [{"name": "Content-Usage", "value": "train-ai=n"}, {"name": "Server", "value": "x"}, "nosnippet"]
    html = "<meta name=tdm-policy content=https://h.example/p><meta name=robots content=noai>"
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        answer = await post(service, url=f"{origin.url}/open", headers=headers, html=html)
        assert answer["purposes"] == {
            "search": {
                "state": "yes",
                "source": {"where": "robots.txt", "agent": None, "rule": "content-signal", "line": 3},
            },
            "ai-input": {"state": "unstated", "source": None},
            "ai-train": {
                "state": "no",
                "source": {"where": "header 1", "agent": None, "rule": "content-usage: train-ai=n"},
            },
        }
        assert (answer["snippet"], answer["decided_by"]["snippet"]["where"]) == (False, "header 3")
        assert answer["tdm_policy"] == "https://h.example/p"


async def test_rules_are_pending_until_their_instant(store_url: str) -> None:
    headers = ["unavailable_after: 27 Jun 2015 15:00 PST"]
    async with running(store_url) as service:
        before = await post(service, headers=headers, at="2015-06-27T22:59:59Z")
        assert (before["index"], before["pending"]) == (True, ["unavailable_after:2015-06-27T23:00:00Z"])
        after = await post(service, headers=headers, at="2015-06-27T23:00:00Z")
        assert (after["index"], after["pending"], after["implied"]) == (False, [], ["noindex", "noarchive"])
        now = await post(service, headers=headers)
        assert (now["index"], now["at"]) == (False, "2026-11-21T18:30:00Z")
        assert (now["crawl"], now["verdict"], now["reason"]) == (None, None, None)


async def test_file_that_cannot_be_fetched_gives_no_permission_to_crawl(store_url: str) -> None:
    async with serve(text(503, "")) as origin, running(store_url) as service:
        answer = await post(service, url=f"{origin.url}/p", headers=["noindex"])
        assert (answer["crawl"], answer["verdict"], answer["notes"]) == (False, "defer", [])


async def test_policy_of_a_key_is_enforced_and_all_purposes_are_answered(store_url: str, tmp_path: Path) -> None:
    key, lines = new_key("a")
    keys = tmp_path / "keys.toml"
    keys.write_text(f'{lines}purposes = ["ai-train"]\nenforce = true\n')
    robots = "User-agent: *\nContent-Signal: search=yes, ai-train=no\n"
    async with serve(text(200, robots)) as origin, running(store_url, api_keys_file=keys) as service:
        page: dict[str, Any] = {"agents": ["ExampleBot"], "url": f"{origin.url}/p"}
        answer = (await service.client.post("/v1/indexing", json=page, headers={"X-API-Key": key})).json()
        assert (answer["crawl"], answer["reason"]) == (False, "usage")
        assert answer["decided_by"] == {"crawl": {"where": "policy", "agent": None, "rule": "ai-train"}}
        assert answer["purposes"]["ai-train"]["source"]["rule"] == "content-signal"
        page["headers"] = ["noindex"]
        answer = (await service.client.post("/v1/indexing", json=page, headers={"X-API-Key": key})).json()
        assert (answer["crawl"], answer["index"], answer["notes"]) == (False, False, [])
        states = {name: it["state"] for name, it in answer["purposes"].items()}
        assert states == {"search": "yes", "ai-input": "unstated", "ai-train": "no"}


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ({"url": "ftp://h.example/"}, "bad-url"),
        ({"url": ""}, "bad-url"),
        ({"at": "yesterday"}, "bad-at"),
        ({"dialect": "latin"}, "bad-dialect"),
        ({"agents": ["("]}, "bad-agents"),
        ({"headers": [{"name": "x"}]}, "bad-request"),
        ({"wait": False}, "bad-request"),
        ({"headers": [7]}, "bad-request"),
    ],
)
async def test_bad_input_is_named(store_url: str, page: dict[str, Any], problem: str) -> None:
    async with running(store_url) as service:
        response = await service.client.post("/v1/indexing", json={"agents": ["a"], **page})
        assert (response.status_code, slug(response)) == (422, problem)


PAGE = """<html><head><base href=/shop/><meta name=robots content="nofollow">
<link rel=stylesheet href=a.css><link rel=stylesheet href=/closed/b.css>
<script src=//cdn.example/c.js></script></head>"""


async def test_page_that_the_service_fetches_is_read_with_what_it_loads(store_url: str) -> None:
    page = text(200, PAGE, {"Content-Type": "text/html", "X-Robots-Tag": "noindex"})
    async with serve(text(200, ROBOTS), page) as origin, running(store_url, pace_floor=0.0) as service:
        answer = await post(service, url=f"{origin.url}/open", fetch=True)
        version = answer["version"]
        assert version
        assert answer["rules"] == ["nofollow", "noindex"]
        assert answer["decided_by"]["index"]["where"] == "header 1"
        assert answer["page"] == {
            "url": f"{origin.url}/open",
            "outcome": "read",
            "detail": "",
            "loads": [
                {"url": f"{origin.url}/shop/a.css", "verdict": "allow", "line": None, "version": version},
                {"url": f"{origin.url}/closed/b.css", "verdict": "disallow", "line": 2, "version": version},
            ],
            "other_origins": 1,
        }
        assert [request.split()[1] for request in origin.requests] == [b"/robots.txt", b"/open"]
        assert b"User-Agent: RobotsDecisions/" in origin.requests[1]


async def test_page_that_is_closed_to_the_service_is_not_fetched(store_url: str) -> None:
    rules = "User-agent: RobotsDecisions\nDisallow: /\n\nUser-agent: *\nDisallow: /closed\n"
    async with serve(text(200, rules)) as origin, running(store_url) as service:
        answer = await post(service, url=f"{origin.url}/open", fetch=True)
        assert answer["crawl"] is True
        assert answer["page"]["outcome"] == "disallowed"
        assert answer["page"]["detail"] == "It is closed to RobotsDecisions by line 2 of robots.txt."
        assert len(origin.requests) == 1


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://169.254.169.254/latest/meta-data", "http://[::1]/"])
async def test_page_at_an_address_that_is_refused_is_not_fetched(url: str, store_url: str) -> None:
    async with running(store_url) as service:
        answer = await post(service, url=url, fetch=True)
        assert answer["page"]["detail"] == "It is at an address that is not on the public internet."


async def test_file_that_is_no_page_has_its_headers_read_alone(store_url: str) -> None:
    image = text(200, PAGE, {"Content-Type": "image/png", "X-Robots-Tag": "noindex"})
    async with serve(text(200, ROBOTS), image) as origin, running(store_url, pace_floor=0.0) as service:
        answer = await post(service, url=f"{origin.url}/a.png", fetch=True)
        assert (answer["rules"], answer["page"]["loads"]) == (["noindex"], [])


@pytest.mark.parametrize("sent", [{}, {"url": "https://www.example.com/", "headers": ["noindex"]}])
async def test_page_is_either_fetched_or_sent(sent: dict[str, Any], store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.post("/v1/indexing", json={"agents": ["a"], "fetch": True, **sent})
        assert response.status_code == 422
        assert response.json()["parameter"] == "fetch"
