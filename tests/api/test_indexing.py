"""`POST /v1/indexing`: spec H through the route."""

import json
from typing import Any

import pytest

from app.api.long_work import SMALL_FILE
from app.api.routes import indexing
from app.api.routes.indexing import HTML_LIMIT
from tests.api.service import counted, running
from tests.loop import work
from tests.robots.cases import rows

JSON = {"content-type": "application/json"}

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


@pytest.mark.parametrize("others", [99, 100, 900])
async def test_h4_robots_tag_behind_many_other_tags_is_read(store_url: str, others: int) -> None:
    html = '<meta name="citation_author" content="A. Author">' * others + '<meta name="robots" content="noindex">'
    answer = await post(store_url, agents=["ExampleBot"], html=html)
    assert (answer["index"], answer["notes"]) == (False, [])
    assert [source["where"] for source in answer["sources"]] == [f"meta {others + 1}"]
    metas = [{"name": "author", "content": "A."}] * others + [{"name": "ExampleBot", "content": "none"}]
    assert (await post(store_url, agents=["ExampleBot"], metas=metas))["rules"] == ["nofollow", "noindex"]


async def test_h4_tags_that_are_not_read_are_said(store_url: str) -> None:
    html = '<meta name="robots" content="all">' * 100 + '<meta name="robots" content="noindex">'
    answer = await post(store_url, agents=["ExampleBot"], html=html)
    assert (answer["index"], [note["code"] for note in answer["notes"]]) == (True, ["tags-unread"])


async def test_tag_that_is_a_pair_is_refused_with_the_form_it_needs(store_url: str) -> None:
    problem = await post(store_url, 422, agents=["a"], metas=[["robots", "noindex"]])
    assert (problem["parameter"], problem["value"]) == ("metas[0]", '["robots", "noindex"]')
    assert "an object with the members name, content" in problem["detail"]


@pytest.mark.parametrize(
    "html", ["", " ", "<", "<div>" * 100_000, "<a b='" * 100_000, "\0", "<meta name=\xff content=\xff>"]
)
async def test_hostile_markup_is_parsed(store_url: str, html: str) -> None:
    async with running(store_url) as service:
        content = json.dumps({"agents": ["a"], "html": html})
        response = await service.client.post("/v1/indexing", content=content, headers=JSON)
        assert (response.status_code, response.json()["rules"]) == (200, [])


async def test_too_many_fields_are_refused(store_url: str) -> None:
    await post(store_url, 413, agents=["a"], headers=["noindex," * 1000] * 20)
    await post(store_url, 422, agents=["a"], headers=["n" * 9000])
    await post(store_url, 422, agents=["a"], headers=[""] * 101)
    assert (await post(store_url, 422, agents=["a", "/"]))["parameter"] == "agents[1]"


async def test_page_with_too_many_meta_tags_is_refused(store_url: str) -> None:
    html = '<meta name="robots" content="x">' * 30_000
    async with running(store_url) as service:
        response = await service.client.post("/v1/indexing", json={"agents": ["a"], "html": html})
    assert (response.status_code, response.json()["type"].rpartition(":")[2]) == (413, "too-large")


async def test_a_page_that_takes_too_long_is_refused(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "metas_json", work.endless)
    async with running(store_url) as service:
        service.app.state.services.long_work._helpers._seconds = 1
        page = {"agents": ["a"], "html": "<p>" * SMALL_FILE}
        response = await service.client.post("/v1/indexing", json=page)
        assert await counted(service, "robots_helper_calls_total", outcome="unanswered") == 1
    assert response.status_code == 413
    assert response.json()["detail"] == "Reading the page takes too long; send its head alone."


@pytest.mark.parametrize("before", [0, SMALL_FILE, HTML_LIMIT - 80])
@pytest.mark.parametrize("mark", [" ", "\u00e9"], ids=["ascii", "accent"])
async def test_a_large_page_is_read_like_a_small_one(store_url: str, before: int, mark: str) -> None:
    html = " " * before + f'<meta name="robots" content="noindex">{mark}<meta name="robots" content="none">'
    async with running(store_url) as service:
        content = json.dumps({"agents": ["a"], "html": html})
        response = await service.client.post("/v1/indexing", content=content, headers=JSON)
        in_helper = await counted(service, "robots_helper_calls_total", outcome="done")
    assert response.status_code == 200
    assert [source["where"] for source in response.json()["sources"]] == ["meta 1", "meta 2"]
    assert in_helper == (before > 0)


async def test_words_without_an_effect_are_noted(store_url: str) -> None:
    html = '<meta name="robots" content="noindex nofollow"><meta property="robots" content="noindex">'
    answer = await post(store_url, agents=["Googlebot"], html=html, headers=["no-index"])
    assert (answer["index"], answer["rules"]) == (True, [])
    assert answer["notes"] == [
        {"code": "tag-unknown", "message": f"No crawler reads {what}, so it has no effect. Write {instead}."}
        for what, instead in (
            ("'no-index' (header 1)", "'noindex'"),
            ("'noindex nofollow' (meta 1)", "'noindex, nofollow'"),
            ("'property=\"robots\"' (meta 2)", 'name="robots"'),
        )
    ]
