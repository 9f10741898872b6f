"""`POST /v1/test`: the same engine on a pasted file."""

import base64
from typing import Any

import pytest

from tests.api.service import running
from tests.robots.cases import rows

pytestmark = pytest.mark.usefixtures("store_client")


async def trial(store_url: str, **body: Any) -> dict[str, Any]:
    async with running(store_url) as service:
        response = await service.client.post("/v1/test", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


async def test_every_verdict_case_by_the_route(store_url: str) -> None:
    async with running(store_url) as service:
        for case in rows("verdict-cases.jsonl"):
            robots = base64.b64encode(case["robots"].encode()).decode()
            body = {
                "robots_base64": robots,
                "urls": [case["url"]],
                "agents": [case["agent"]],
                "dialects": [case["dialect"]],
            }
            [row] = (await service.client.post("/v1/test", json=body)).json()["rows"]
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


async def test_without_dialects_each_agent_reads_as_it_does(store_url: str) -> None:
    answer = await trial(store_url, robots="", urls=["http://h/"], agents=["Googlebot", "SeznamBot", "FooBot"])
    assert [row["dialect"] for row in answer["rows"]] == ["google", "seznam", "rfc9309"]


async def test_a_row_shows_the_line_as_written_and_the_file_its_sitemaps_and_warnings(store_url: str) -> None:
    robots = "Sitemap: http://h/s.xml\nUser-agent: *\n  Dissallow:/é # why\n"
    answer = await trial(store_url, robots=robots, urls=["http://h/é"], agents=["FooBot"], at="2026-11-21T18:30:00Z")
    [row] = answer["rows"]
    assert row["rule"] == {"directive": "disallow", "pattern": "/é", "line": 3, "text": "Dissallow:/é"}
    assert row["url"] == "http://h/é"
    assert "robots" not in row
    assert "sitemaps" not in row
    assert answer["sitemaps"] == ["http://h/s.xml"]
    assert [(warning["code"], warning["line"]) for warning in answer["warnings"]] == [("typo-key", 3)]


async def test_lone_surrogates_in_a_pasted_file_are_octets_like_others(store_url: str) -> None:
    async with running(store_url) as service:
        content = b'{"robots": "User-agent: *\\nDisallow: /\\ud800", "urls": ["http://h/x"], "agents": ["a"]}'
        response = await service.client.post("/v1/test", content=content, headers={"content-type": "application/json"})
        assert response.status_code == 200
        assert response.json()["rows"][0]["allowed"] is True


async def test_a_file_past_the_limit_is_read_as_a_fetched_one_would_be(store_url: str) -> None:
    robots = "User-agent: *\n" + "#" * 512_000 + "\nDisallow: /"
    answer = await trial(store_url, robots=robots, urls=["http://h/"], agents=["a"])
    assert answer["rows"][0]["allowed"] is True
    assert "file-truncated" in [warning["code"] for warning in answer["warnings"]]
