"""`POST /v1/test`: decisions by a pasted file."""

import base64
from typing import Any

import pytest

from tests.api.service import running
from tests.origins import serve, text
from tests.robots.cases import rows

pytestmark = pytest.mark.usefixtures("store_client")


async def trial(store_url: str, **body: Any) -> dict[str, Any]:
    async with running(store_url) as service:
        response = await service.client.post("/v1/test", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


async def test_every_verdict_case_through_the_route(store_url: str) -> None:
    async with running(store_url) as service:
        for case in rows("verdict-cases.jsonl"):
            robots = base64.b64encode(case["robots"].encode()).decode()
            body = {
                "robots_base64": robots,
                "urls": [case["url"]],
                "agents": [case["agent"]],
                "dialects": [case["dialect"]],
            }
            answer = (await service.client.post("/v1/test", json=body)).json()
            [row] = answer["rows"]
            rule = row["rule"] and row["rule"]["text"]
            assert (row["allowed"], rule, row["dialect"]) == (case["allowed"], case["rule"], case["dialect"]), case[
                "id"
            ]


async def test_rows_are_dialect_within_agent_within_url(store_url: str) -> None:
    answer = await trial(
        store_url,
        robots="User-agent: *\nDisallow: /x",
        urls=["http://h/x", "http://h/y"],
        agents=["A", "B"],
        dialects=["google", "draft1996"],
    )
    order = [(row["url"][-1], row["agent"], row["dialect"]) for row in answer["rows"]]
    assert order == [(u, a, d) for u in "xy" for a in "AB" for d in ("google", "draft1996")]
    assert [row["allowed"] for row in answer["rows"]] == [False] * 4 + [True] * 4


async def test_without_dialects_each_agent_uses_its_own(store_url: str) -> None:
    answer = await trial(store_url, robots="", urls=["http://h/"], agents=["Googlebot", "SeznamBot", "FooBot"])
    assert [row["dialect"] for row in answer["rows"]] == ["google", "seznam", "rfc9309"]


async def test_answer_has_lines_sitemaps_and_warnings(store_url: str) -> None:
    robots = "Sitemap: http://h/s.xml\nUser-agent: *\n  Dissallow:/é # why\n"
    answer = await trial(store_url, robots=robots, urls=["http://h/é"], agents=["FooBot"], at="2026-11-21T18:30:00Z")
    [row] = answer["rows"]
    assert row["rule"] == {"directive": "disallow", "pattern": "/é", "line": 3, "text": "Dissallow:/é"}
    assert row["url"] == "http://h/é"
    assert "robots" not in row
    assert "sitemaps" not in row
    assert answer["sitemaps"] == ["http://h/s.xml"]
    assert [(warning["code"], warning["line"]) for warning in answer["warnings"]] == [("typo-key", 3)]


async def test_groups_of_a_pasted_file_are_as_those_of_a_site(store_url: str) -> None:
    robots = "User-agent: a\nUser-agent: b\nDisallow: /x\nCrawl-delay: 2\n\nUser-agent: *\nAllow: /\n"
    asked = {"robots": robots, "agents": ["a"]}
    async with running(store_url) as service, serve(text(200, robots)) as origin:
        urls = [f"{origin.url}/x"]
        held = (await service.client.get("/v1/robots", params={"url": urls[0]})).json()["groups"]
        pasted = await service.client.post("/v1/test", json={**asked, "urls": urls, "groups": True})
        plain = await service.client.post("/v1/test", json={**asked, "urls": urls})
    assert pasted.json()["groups"] == held
    assert [group["line"] for group in held] == [1, 6]
    assert "groups" not in plain.json()


async def test_lone_surrogates_in_a_pasted_file_are_bytes(store_url: str) -> None:
    async with running(store_url) as service:
        content = b'{"robots": "User-agent: *\\nDisallow: /\\ud800", "urls": ["http://h/x"], "agents": ["a"]}'
        response = await service.client.post("/v1/test", content=content, headers={"content-type": "application/json"})
        assert response.status_code == 200
        assert response.json()["rows"][0]["allowed"] is True


async def test_pasted_file_is_truncated_like_a_fetched_one(store_url: str) -> None:
    robots = "User-agent: *\n" + "#" * 512_000 + "\nDisallow: /"
    answer = await trial(store_url, robots=robots, urls=["http://h/"], agents=["a"])
    assert answer["rows"][0]["allowed"] is True
    assert "file-truncated" in [warning["code"] for warning in answer["warnings"]]


@pytest.mark.parametrize("outcome", [None, {"status": 503, "for": "1h"}, {"status": 200}])
async def test_a24_the_part_of_a_longer_file_is_judged_as_such(store_url: str, outcome: dict[str, Any] | None) -> None:
    body = {"robots": "User-agent: *\nDisallow: /a\nAllow: /a/b", "urls": ["http://h/a/b"], "agents": ["a"]}
    whole = (await trial(store_url, **body, outcome=outcome))["rows"][0]
    answer = await trial(store_url, **body, outcome=outcome, truncated=True)
    [row] = answer["rows"]
    assert (whole["rule"]["line"], whole["partial"]) == (3, False)
    assert (row["rule"]["line"], row["partial"]) == (2, True)  # the last line may go on
    assert "file-truncated" in [warning["code"] for warning in answer["warnings"]]
    assert outcome is None or row["robots"]["truncated"] is True


ROBOTS = "User-agent: *\nDisallow: /private/\n"
NO_COPY = {"had_copy": False}


@pytest.mark.parametrize(
    ("outcome", "verdict", "reason"),
    [
        ({"status": 503, "for": "3d"}, "disallow", "rule"),
        ({"status": 503, "for": "31d"}, "defer", "unreachable"),
        ({"status": 503, **NO_COPY}, "defer", "unreachable"),
        ({"status": 429, "retry_after": 600, **NO_COPY}, "defer", "unreachable"),
        ({"cause": "timeout", **NO_COPY}, "defer", "unreachable"),
        ({"cause": "dns", **NO_COPY}, "defer", "unreachable"),
        ({"cause": "tls", **NO_COPY}, "defer", "unreachable"),
        ({"cause": "challenge", **NO_COPY}, "defer", "challenge"),
        ({"cause": "redirect_loop"}, "allow", "unavailable"),
        ({"cause": "cookie_loop"}, "allow", "unavailable"),
        ({"cause": "blocked_address"}, "disallow", "blocked_address"),
        ({"status": 401}, "allow", "unavailable"),
        ({"status": 403}, "allow", "unavailable"),
        ({"status": 404}, "allow", "unavailable"),
        ({"status": 410}, "allow", "unavailable"),
        ({"status": 200}, "disallow", "rule"),
    ],
)
async def test_simulated_outcome_is_judged_like_a_fetch(
    store_url: str, outcome: dict[str, Any], verdict: str, reason: str
) -> None:
    answer = await trial(store_url, robots=ROBOTS, urls=["http://h/private/"], agents=["a"], outcome=outcome)
    [row] = answer["rows"]
    assert (row["verdict"], row["reason"]) == (verdict, reason)
    assert (row["retry_at"] is not None) is (verdict == "defer")


async def test_simulated_outage_has_facts_and_a_timeline(store_url: str) -> None:
    answer = await trial(
        store_url,
        robots=ROBOTS,
        urls=["http://h/private/", "http://h/"],
        agents=["a"],
        at="2026-11-21T18:30:00Z",
        outcome={"status": 503, "for": "3d"},
    )
    row, other = answer["rows"]
    facts = row["robots"]
    assert (facts["stale"], facts["cause"], facts["failing_since"]) == (True, "server_error", "2026-11-18T18:30:00Z")
    assert facts["recheck_at"] > "2026-11-21T18:30:00Z"
    assert [(turn["verdict"], turn["stale"]) for turn in row["timeline"]] == [("disallow", True), ("defer", False)]
    assert [turn["verdict"] for turn in other["timeline"]] == ["allow", "defer"]
    assert row["timeline"][0]["after"] == 0
    assert 28 * 86_400 < row["timeline"][1]["after"] < 30 * 86_400


async def test_simulation_uses_the_settings_of_the_service(store_url: str) -> None:
    body = {"robots": ROBOTS, "urls": ["http://h/"], "agents": ["a"], "outcome": {"status": 403}}
    async with running(store_url, on_forbidden="deny") as service:
        [row] = (await service.client.post("/v1/test", json=body)).json()["rows"]
    assert (row["verdict"], row["reason"]) == ("disallow", "forbidden")


async def test_simulated_copy_ages_by_the_agents_recheck_model(store_url: str) -> None:
    answer = await trial(
        store_url, robots=ROBOTS, urls=["http://h/"], agents=["a", "SeznamBot"], outcome={"status": 503}
    )
    ages = [row["robots"]["age"] / 86_400 for row in answer["rows"]]
    assert ages[0] < 1.1
    assert ages[1] > 9


@pytest.mark.parametrize(
    ("outcome", "parameter"),
    [
        ({}, "outcome"),
        ({"status": 302}, "outcome.status"),
        ({"status": 503, "for": "3 moons"}, "outcome.for"),
        ({"status": 503, "for": -1}, "outcome.for"),
        ({"status": 503, "for": "61d"}, "outcome.for"),
        ({"status": 404, "retry_after": 5}, "outcome.retry_after"),
        ({"status": 503.5}, "outcome.status"),
        ({"cause": "boredom"}, "outcome.cause"),
    ],
)
async def test_invalid_outcome_is_named(store_url: str, outcome: dict[str, Any], parameter: str) -> None:
    body = {"robots": "", "urls": ["http://h/"], "agents": ["a"], "outcome": outcome}
    async with running(store_url) as service:
        response = await service.client.post("/v1/test", json=body)
    assert response.status_code == 422
    assert response.json()["parameter"] == parameter


@pytest.mark.parametrize("status", [*range(200, 207), 226, 300, 304, 400, 401, 404, 410, 429, 451, 500, 503, 599])
async def test_simulated_status_gives_the_facts_of_a_fetch(store_url: str, status: int) -> None:
    async with serve(text(status, ROBOTS)) as origin, running(store_url) as service:
        url = f"{origin.url}/private/"
        fetched = await service.allowed(url)
        outcome = {"status": status, "had_copy": False}
        body = {"robots": ROBOTS, "urls": [url], "agents": ["ExampleBot"], "outcome": outcome}
        [row] = (await service.client.post("/v1/test", json=body)).json()["rows"]
    assert (row["verdict"], row["reason"]) == (fetched["verdict"], fetched["reason"])
    for fact in ("outcome", "status", "cause", "stale"):
        assert row["robots"][fact] == fetched["robots"][fact], fact


async def test_origins_of_a_simulation_are_bounded(store_url: str) -> None:
    body = {
        "urls": [f"http://h{number}/" for number in range(9)],
        "agents": ["a"],
        "outcome": {"cause": "blocked_address", "for": "60d"},
    }
    async with running(store_url) as service:
        response = await service.client.post("/v1/test", json=body)
    assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (422, "too-many-origins")
