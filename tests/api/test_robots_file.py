"""`/v1/robots`: get, refresh and purge the cached file."""

from dataclasses import asdict

import pytest

from app.api.answers.file_schema import RobotsFileOut
from app.api.long_work import SMALL_FILE
from robots_core.lint.linter import lint
from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.robots_txt import RobotsTxt
from tests.api.service import counted, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

BODY = b"Host: h\nUser-agent: a\nCrawl-delay: 5\nUser-agent: b\nDissallow: /\xff\n<script>\nSitemap: http://h/s.xml\n"


async def test_cached_file_is_returned_whole(store_url: str) -> None:
    async with serve(text(200, BODY, {"Content-Type": "text/html"})) as origin, running(store_url) as service:
        response = await service.client.get("/v1/robots", params={"url": f"{origin.url}/any/page"})
        assert response.status_code == 200
        answer = response.json()
        assert (answer["robots"]["url"], answer["robots"]["status"]) == (f"{origin.url}/robots.txt", 200)
        assert answer["text"] == BODY.decode("utf-8", "replace")
        assert answer["groups"] == [
            {
                "agents": ["a", "b"],
                "line": 2,
                "rules": [{"directive": "disallow", "pattern": "/\ufffd", "line": 5}],
                "members": [{"key": "crawl-delay", "value": "5", "line": 3}],
                "declared": {
                    "crawl_delays": [{"seconds": 5, "line": 3, "capped": False}],
                    "request_rates": [],
                    "visit_times": [],
                },
                "usage": None,
            }
        ]
        assert answer["sitemaps"] == ["http://h/s.xml"]
        assert [extension["key"] for extension in answer["extensions"]] == ["host"]
        codes = {warning["code"] for warning in answer["warnings"]}
        assert {"not-text-plain", "typo-key", "non-utf8", "rate-between-agents", "deprecated"} <= codes


async def test_as_text_returns_bytes_that_no_browser_runs(store_url: str) -> None:
    async with serve(text(200, BODY, {"Content-Type": "text/html"})) as origin, running(store_url) as service:
        response = await service.client.get("/v1/robots", params={"url": origin.url, "as": "text"})
        assert response.content == BODY
        assert response.headers["content-type"].startswith("text/plain")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in response.headers["content-security-policy"]


@pytest.mark.parametrize(("status", "outcome"), [(404, "unavailable"), (503, "unreachable")])
async def test_without_a_file_the_facts_say_why(store_url: str, status: int, outcome: str) -> None:
    async with serve(text(status)) as origin, running(store_url) as service:
        answer = (await service.client.get("/v1/robots", params={"url": origin.url})).json()
        assert (answer["text"], answer["groups"], answer["robots"]["outcome"]) == (None, [], outcome)
        raw = await service.client.get("/v1/robots", params={"url": origin.url, "as": "text"})
        assert raw.status_code == 404
        assert outcome in raw.json()["detail"]


async def test_invalid_input_is_named(store_url: str) -> None:
    async with running(store_url) as service:
        bad_url = await service.client.get("/v1/robots", params={"url": "gopher://h/"})
        assert (bad_url.status_code, bad_url.json()["parameter"]) == (422, "url")
        bad_form = await service.client.get("/v1/robots", params={"url": "http://h/", "as": "pdf"})
        assert (bad_form.status_code, bad_form.json()["parameter"]) == (422, "as")


RATES = b"""User-agent: *
Crawl-delay: 7200
Request-rate: 1/20 0800-1200
Request-rate: 1/5
Request-rate: nonsense
Visit-time: 0600-0900
Content-Signal: ai-train=no
Content-Usage: /a train-ai=n
Content-Usage: train-ai=y
"""


async def test_rates_and_usage_are_listed_as_declared(store_url: str) -> None:
    async with serve(text(200, RATES)) as origin, running(store_url) as service:
        answer = (await service.client.get("/v1/robots", params={"url": origin.url})).json()
    [group] = answer["groups"]
    declared = group["declared"]
    assert declared["crawl_delays"] == [{"seconds": 7200, "line": 2, "capped": True}]
    assert [(rate["interval"], rate["window"], rate["line"]) for rate in declared["request_rates"]] == [
        (20, {"start": "08:00", "end": "12:00"}, 3),
        (5, None, 4),
    ]
    assert declared["visit_times"] == [{"start": "06:00", "end": "09:00", "line": 6}]
    assert group["usage"] == {
        "paths": [
            {"path": "/a", "content_usage": {"train-ai": "n"}},
            {"path": "*", "content_usage": {"train-ai": "y"}},
        ],
        "content_signal": {"ai-train": "no"},
        "ai_training": [],
    }
    assert (answer["reader"], answer["dialect"]) == (None, "rfc9309")


async def test_reader_has_the_schedule_of_its_dialect(store_url: str) -> None:
    async with serve(text(200, RATES)) as origin, running(store_url) as service:
        query = {"url": origin.url, "agent": "SeznamBot/4.0"}
        answer = (await service.client.get("/v1/robots", params=query)).json()
    reader = answer["reader"]
    assert (answer["dialect"], reader["agent"], reader["group"]["token"]) == ("seznam", "SeznamBot", "*")
    spans = [(span["start"], span["end"], span["rate"]["interval"]) for span in reader["schedule"]]
    assert spans == [("00:00", "08:00", 5), ("08:00", "12:00", 10), ("12:00", "24:00", 5)]
    assert reader["visits"] == [{"start": "06:00", "end": "09:00"}]
    assert (reader["crawl_delay"]["seconds"], reader["crawl_delay"]["capped"]) == (7200, True)
    assert reader["usage"]["content_signal"] == {"ai-train": "no"}


@pytest.mark.parametrize(
    ("agent", "policy", "exempt"),
    [("Google-Extended", True, False), ("Google-Read-Aloud", False, True), ("Googlebot", False, False)],
)
async def test_reader_marks_policy_and_exempt_agents(store_url: str, agent: str, policy: bool, exempt: bool) -> None:
    async with serve(text(200, "")) as origin, running(store_url) as service:
        query = {"url": origin.url, "agent": agent}
        reader = (await service.client.get("/v1/robots", params=query)).json()["reader"]
    assert (reader["policy"], reader["exempt"]) == (policy, exempt)
    assert (reader["group"], reader["schedule"], reader["visits"], reader["usage"]) == (None, [], None, None)


async def test_a_dialect_groups_the_file_as_it_reads_it(store_url: str) -> None:
    body = "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /\n"
    async with serve(text(200, body)) as origin, running(store_url) as service:
        for dialect, groups in (("rfc9309", 1), ("seznam", 2)):
            query = {"url": origin.url, "dialect": dialect}
            answer = (await service.client.get("/v1/robots", params=query)).json()
            assert (answer["dialect"], len(answer["groups"])) == (dialect, groups)


async def test_as_facts_returns_the_fetch_without_the_file(store_url: str) -> None:
    async with serve(text(200, BODY)) as origin, running(store_url) as service:
        answer = (await service.client.get("/v1/robots", params={"url": origin.url, "as": "facts"})).json()
    assert list(answer) == ["robots", "version"]
    assert (answer["robots"]["outcome"], answer["robots"]["source"]) == ("successful", "fetched")


# Refresh and purge, for operators.

OLD, NEW = "User-agent: *\nDisallow: /old\n", "User-agent: *\nDisallow: /new\n"


async def test_refresh_fetches_a_fresh_file_again(store_url: str) -> None:
    async with serve(text(200, OLD), text(200, NEW)) as origin, running(store_url) as service:
        assert (await service.allowed(f"{origin.url}/new"))["verdict"] == "allow"
        response = await service.client.post("/v1/robots/refresh", params={"url": f"{origin.url}/any"})
        assert response.status_code == 200
        facts = response.json()["robots"]
        assert (facts["url"], facts["status"], facts["source"]) == (f"{origin.url}/robots.txt", 200, "fetched")
        assert (await service.allowed(f"{origin.url}/new"))["verdict"] == "disallow"
        assert len(origin.requests) == 2


async def test_failed_refresh_keeps_the_copy(store_url: str) -> None:
    async with serve(text(200, OLD), text(503)) as origin, running(store_url) as service:
        await service.allowed(origin.url)
        service.now += 1
        facts = (await service.client.post("/v1/robots/refresh", params={"url": origin.url})).json()["robots"]
        assert (facts["outcome"], facts["cause"]) == ("successful", "server_error")
        assert facts["failing_since"] is not None


async def test_purged_file_is_fetched_again_and_keeps_its_history(store_url: str) -> None:
    async with serve(text(200, OLD), text(200, NEW)) as origin, running(store_url) as service:
        await service.allowed(origin.url)
        response = await service.client.delete("/v1/robots", params={"url": origin.url})
        assert (response.status_code, response.content) == (204, b"")
        service.now += 60
        assert (await service.allowed(f"{origin.url}/new"))["verdict"] == "disallow"
        listed = (await service.client.get("/v1/robots/history", params={"url": origin.url})).json()
        assert len(listed["versions"]) == 2


async def test_a_purge_that_cannot_be_announced_asks_for_a_retry() -> None:
    async with running("unix:///nonexistent/valkey.sock") as service:
        response = await service.client.delete("/v1/robots", params={"url": "http://h.example/"})
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert response.json()["type"] == "urn:robots-decisions:problem:store-down"


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/robots/refresh"), ("DELETE", "/v1/robots")])
async def test_refresh_and_purge_need_a_url(store_url: str, method: str, path: str) -> None:
    async with running(store_url) as service:
        response = await service.client.request(method, path, params={"url": "gopher://h/"})
        assert (response.status_code, response.json()["parameter"]) == (422, "url")


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/robots/refresh"), ("DELETE", "/v1/robots")])
async def test_only_operators_refresh_and_purge(store_url: str, method: str, path: str) -> None:
    async with serve(text(200, OLD)) as origin, running(store_url) as service:
        anyone = {"Authorization": ""}
        response = await service.client.request(method, path, params={"url": origin.url}, headers=anyone)
        assert response.status_code == 401
        assert origin.requests == []


EVERYTHING = """User-agent: a
User-agent: b
Disallow: /x # why
Allow: /\u00e9"
Crawl-delay: 2
Request-rate: 1/10s 0800-2000
Visit-time: 0900-1000
Content-Usage: ai=n
Content-Signal: search=yes
Noindex: /z

User-agent: *
Disallow:

Host: h.example
Sitemap: http://h/s.xml
Sitemap: http://h/t.xml
Dissallow: /y
"""


@pytest.mark.parametrize("agent", [None, "b"])
async def test_streamed_file_matches_its_schema(store_url: str, agent: str | None) -> None:
    async with serve(text(200, EVERYTHING)) as origin, running(store_url) as service:
        query = {"url": origin.url} | ({} if agent is None else {"agent": agent})
        content = (await service.client.get("/v1/robots", params=query)).json()
    assert RobotsFileOut.model_validate(content).model_dump(mode="json") == content
    groups = [(group["agents"], len(group["rules"]), len(group["members"])) for group in content["groups"]]
    assert groups[:2] == [(["a", "b"], 2, 6), (["*"], 2, 0)]
    assert [
        len(content["groups"][0]["declared"][name]) for name in ("crawl_delays", "request_rates", "visit_times")
    ] == [1] * 3
    assert (len(content["sitemaps"]), len(content["extensions"])) == (2, 2)
    assert content["warnings"]


@pytest.mark.parametrize("truncated", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("size", [SMALL_FILE, SMALL_FILE + 1, 3 * BODY_LIMIT // 2])
async def test_warnings_are_the_same_from_a_helper(store_url: str, size: int, truncated: bool) -> None:
    lines = EVERYTHING.encode() + b"Dissallow: /\xff\n"
    body = (lines * (size // len(lines) + 1))[:size] if truncated else lines.ljust(size, b"#")
    async with serve(text(200, body, {"Content-Type": "text/html"})) as origin, running(store_url) as service:
        content = (await service.client.get("/v1/robots", params={"url": origin.url})).json()
        in_helper = await counted(service, "robots_helper_calls_total", outcome="done")
    expected = lint(RobotsTxt(body), "text/html", origin.url)
    assert content["warnings"] == [asdict(advice) for advice in expected]
    assert in_helper == (size > SMALL_FILE)
