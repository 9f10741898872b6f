"""`POST /v1/indexing`: spec H by the route."""

import json
from typing import Any

import pytest

from app.api.meta_tags import CHUNK, MetaReader
from tests.api.service import running
from tests.robots.cases import rows

pytestmark = pytest.mark.usefixtures("store_client")


async def asked(store_url: str, status: int = 200, **page: Any) -> dict[str, Any]:
    async with running(store_url) as service:
        response = await service.client.post("/v1/indexing", json=page)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer


async def test_every_tag_case_by_the_route(store_url: str) -> None:
    async with running(store_url) as service:
        for case in rows("tag-cases.jsonl"):
            metas = [{"name": name, "content": content} for name, content in case["metas"]]
            page = {"agents": case["agents"], "headers": case["headers"], "metas": metas, "html": None}
            answer = (await service.client.post("/v1/indexing", json=page)).json()
            sources = answer.pop("sources")
            assert answer == {**case["expect"], "rules": sorted(case["expect"]["rules"])}, case["id"]
            assert bool(sources) is any(value not in (None, []) for value in answer.values()), case["id"]


async def test_h9_a_crawler_reads_what_is_addressed_to_those_it_falls_back_to(store_url: str) -> None:
    answer = await asked(store_url, agents=["Googlebot-News/2.1"], headers=["googlebot: noindex", "bingbot: nofollow"])
    assert answer["rules"] == ["noindex"]
    assert answer["sources"] == [{"where": "header 1", "agent": "googlebot", "rule": "noindex"}]


async def test_a_page_is_read_for_its_meta_tags_wherever_they_stand(store_url: str) -> None:
    html = (
        "<META NAME=Robots CONTENT='NOINDEX, max-snippet:20'><title><meta name=robots content=noarchive></title>"
        "<!-- <meta name=robots content=nofollow> --><script>'<meta name=robots content=nofollow>'</script>"
        "<body><p><meta name=examplebot content=nosnippet><meta name=robots><meta charset=utf-8>"
    )
    answer = await asked(store_url, agents=["ExampleBot"], html=html)
    assert answer["rules"] == ["noindex", "nosnippet"]
    assert [source["where"] for source in answer["sources"]] == ["meta 1", "meta 2"]


@pytest.mark.parametrize(
    "html", ["", " ", "<", "<div>" * 100_000, "<a b='" * 100_000, "\0", "<meta name=\xff content=\xff>"]
)
async def test_hostile_markup_is_read_like_any_other(store_url: str, html: str) -> None:
    async with running(store_url) as service:
        content = json.dumps({"agents": ["a"], "html": html})
        headers = {"content-type": "application/json"}
        response = await service.client.post("/v1/indexing", content=content, headers=headers)
        assert (response.status_code, response.json()["rules"]) == (200, [])


async def test_what_is_too_much_is_refused(store_url: str) -> None:
    await asked(store_url, 413, agents=["a"], headers=["noindex," * 1000] * 20)
    await asked(store_url, 422, agents=["a"], headers=["n" * 9000])
    await asked(store_url, 422, agents=["a"], headers=[""] * 101)
    assert (await asked(store_url, 422, agents=["a", "/"]))["parameter"] == "agents[1]"


@pytest.mark.parametrize("before", range(0, 40, 3))
async def test_meta_tags_are_found_wherever_a_page_is_cut(before: int) -> None:
    tag = '<meta name="robots" content="noindex, \u00e9\U0001f577">'
    html = "x" * (CHUNK - before) + tag + "<p>" + "y" * CHUNK + tag
    reader = MetaReader()
    steps = sum(1 for _ in reader.read(html))
    assert reader.metas == [("robots", "noindex, \u00e9\U0001f577")] * 2
    assert steps == 3
    assert reader.size == sum(len(name) + len(content) for name, content in reader.metas)


async def test_a_page_of_meta_tags_is_given_up_when_they_are_too_many(store_url: str) -> None:
    html = '<meta name="robots" content="x">' * 30_000
    async with running(store_url) as service:
        response = await service.client.post("/v1/indexing", json={"agents": ["a"], "html": html})
    assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (413, "too-large")
