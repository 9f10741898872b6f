"""`POST /v1/indexing`: spec H through the route."""

import json
from typing import Any

import pytest

from app.api.meta_tags import CHUNK, MetaReader
from tests.api.service import running
from tests.robots.cases import rows

pytestmark = pytest.mark.usefixtures("store_client")


async def post(store_url: str, status: int = 200, **page: Any) -> dict[str, Any]:
    async with running(store_url) as service:
        response = await service.client.post("/v1/indexing", json=page)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer


async def test_every_tag_case_through_the_route(store_url: str) -> None:
    async with running(store_url) as service:
        for case in rows("tag-cases.jsonl"):
            metas = [{"name": name, "content": content} for name, content in case["metas"]]
            page = {"agents": case["agents"], "headers": case["headers"], "metas": metas, "html": None}
            answer = (await service.client.post("/v1/indexing", json=page)).json()
            expected = {**case["expect"], "rules": sorted(case["expect"]["rules"])}
            found = {name: answer[name] for name in expected}
            assert found == expected, case["id"]
            assert bool(answer["sources"]) is any(value not in (None, []) for value in found.values()), case["id"]


async def test_h9_crawler_obeys_rules_for_its_fallback_agents(store_url: str) -> None:
    answer = await post(store_url, agents=["Googlebot-News/2.1"], headers=["googlebot: noindex", "bingbot: nofollow"])
    assert answer["rules"] == ["noindex"]
    assert answer["sources"] == [{"where": "header 1", "agent": "googlebot", "rule": "noindex"}]


async def test_meta_tags_count_anywhere_in_a_page(store_url: str) -> None:
    html = (
        "<META NAME=Robots CONTENT='NOINDEX, max-snippet:20'><title><meta name=robots content=noarchive></title>"
        "<!-- <meta name=robots content=nofollow> --><script>'<meta name=robots content=nofollow>'</script>"
        "<body><p><meta name=examplebot content=nosnippet><meta name=robots><meta charset=utf-8>"
    )
    answer = await post(store_url, agents=["ExampleBot"], html=html)
    assert answer["rules"] == ["noindex", "nosnippet"]
    assert [source["where"] for source in answer["sources"]] == ["meta 1", "meta 2"]


@pytest.mark.parametrize(
    "html", ["", " ", "<", "<div>" * 100_000, "<a b='" * 100_000, "\0", "<meta name=\xff content=\xff>"]
)
async def test_hostile_markup_is_parsed(store_url: str, html: str) -> None:
    async with running(store_url) as service:
        content = json.dumps({"agents": ["a"], "html": html})
        headers = {"content-type": "application/json"}
        response = await service.client.post("/v1/indexing", content=content, headers=headers)
        assert (response.status_code, response.json()["rules"]) == (200, [])


async def test_too_many_fields_are_refused(store_url: str) -> None:
    await post(store_url, 413, agents=["a"], headers=["noindex," * 1000] * 20)
    await post(store_url, 422, agents=["a"], headers=["n" * 9000])
    await post(store_url, 422, agents=["a"], headers=[""] * 101)
    assert (await post(store_url, 422, agents=["a", "/"]))["parameter"] == "agents[1]"


@pytest.mark.parametrize("before", range(0, 40, 3))
async def test_meta_tags_are_found_across_chunks(before: int) -> None:
    tag = '<meta name="robots" content="noindex, \u00e9\U0001f577">'
    html = "x" * (CHUNK - before) + tag + "<p>" + "y" * CHUNK + tag
    reader = MetaReader()
    steps = sum(1 for _ in reader.read(html))
    assert reader.metas == [("robots", "noindex, \u00e9\U0001f577")] * 2
    assert steps == 3
    assert reader.size == sum(len(name) + len(content) for name, content in reader.metas)


async def test_page_with_too_many_meta_tags_is_refused(store_url: str) -> None:
    html = '<meta name="robots" content="x">' * 30_000
    async with running(store_url) as service:
        response = await service.client.post("/v1/indexing", json={"agents": ["a"], "html": html})
    assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (413, "too-large")
