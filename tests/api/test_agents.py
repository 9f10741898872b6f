"""`GET /v1/agents`, and the categories of crawlers in tests."""

from typing import Any

import pytest

from tests.api.service import running, slug

pytestmark = pytest.mark.usefixtures("store_client")


async def test_known_crawlers_are_listed_with_their_facts(store_url: str) -> None:
    async with running(store_url) as service:
        agents = {it["token"]: it for it in (await service.client.get("/v1/agents")).json()["agents"]}
        assert len(agents) > 60
        assert agents["Googlebot-Image"] == {
            "token": "Googlebot-Image",
            "operator": "Google",
            "category": "search",
            "documentation": "https://developers.google.com/search/docs/crawling-indexing/google-common-crawlers",
            "crawl_delay": False,
            "dialect": "google",
            "recheck": "rfc9309",
            "profile": None,
            "chain": ["googlebot-image", "googlebot"],
            "star": True,
            "star_delay": False,
            "policy": False,
            "exempt": False,
            "own": False,
            "source": "G-OLD",
            "source_date": "2026-11-21",
        }
        assert (agents["ClaudeBot"]["crawl_delay"], agents["GPTBot"]["crawl_delay"]) == (True, None)
        training = (await service.client.get("/v1/agents?category=ai-training")).json()["agents"]
        assert {it["token"] for it in training} == {
            token for token, it in agents.items() if it["category"] == "ai-training"
        }


async def test_unknown_category_is_refused_with_the_known_ones(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get("/v1/agents?category=ai")
        assert (response.status_code, slug(response)) == (422, "bad-category")
        assert "ai-training" in response.json()["detail"]
        test = {"robots": "", "urls": ["https://h.example/"], "agents": ["a", "@ai"]}
        response = await service.client.post("/v1/test", json=test)
        assert (response.status_code, response.json()["parameter"]) == (422, "agents[1]")
        assert "ai-training" in response.json()["detail"]


async def test_category_stands_for_its_crawlers_in_a_test(store_url: str) -> None:
    robots = "User-agent: *\nAllow: /\n\nUser-agent: GPTBot\nDisallow: /\n"
    test: dict[str, Any] = {"robots": robots, "urls": ["https://h.example/"], "agents": ["@ai-training", "FooBot"]}
    async with running(store_url) as service:
        training = (await service.client.get("/v1/agents?category=ai-training")).json()["agents"]
        rows = (await service.client.post("/v1/test", json=test)).json()["rows"]
        assert [row["agent"] for row in rows] == [*(it["token"] for it in training), "FooBot"]
        assert {row["agent"] for row in rows if not row["allowed"]} == {"GPTBot"}
        many = {**test, "agents": ["@other"] * 10_000}
        response = await service.client.post("/v1/test", json=many)
        assert (response.status_code, slug(response)) == (422, "too-many-rows")
