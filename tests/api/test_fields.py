"""`POST /v1/allowed?fields=`: answers with the members that the caller names, as a batch and as a stream."""

import json
from typing import Any

import pytest

from app.api.answers.schema import AnswerOut
from app.api.stream import LINES
from tests.api.service import Service, running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\nContent-Signal: ai-train=no\nSitemap: https://h.example/s.xml\n"
MEMBERS = tuple(AnswerOut.model_fields)


async def ask(service: Service, items: list[Any], query: str, media_type: str) -> list[dict[str, Any]]:
    path, headers = f"/v1/allowed{query}", {"content-type": media_type}
    lines = media_type == LINES
    content = "\n".join(map(json.dumps, items)) if lines else json.dumps({"items": items})
    response = await service.client.post(path, content=content, headers=headers)
    assert response.status_code == 200, response.text
    answers: list[dict[str, Any]]
    answers = [json.loads(line) for line in response.text.splitlines()] if lines else response.json()["answers"]
    return answers


@pytest.mark.parametrize("media_type", ["application/json", LINES])
async def test_every_member_can_be_asked_for(store_url: str, media_type: str) -> None:
    async with serve(text(200, RULES)) as site, serve(text(503)) as down, running(store_url) as service:
        items = [
            {"url": f"{site.url}/private/a", "agent": "ExampleBot", "purpose": ["ai-train"]},
            {"url": f"{site.url}/a", "agent": "ExampleBott"},
            {"url": f"{down.url}/a", "agent": "ExampleBot"},
        ]
        await ask(service, items, "", media_type)
        expected = await ask(service, items, "", media_type)
        assert not set(MEMBERS).difference(*expected, {"notes", "edge"})
        for name in MEMBERS:
            found = await ask(service, items, f"?fields={name}", media_type)
            assert found == [{name: it[name]} if name in it else {} for it in expected], name
        found = await ask(service, items, "?fields=rate,verdict,rule,verdict", media_type)
        assert [list(it) for it in found] == [["verdict", "rule", "rate"]] * 3  # in the order of an answer


@pytest.mark.parametrize("media_type", ["application/json", LINES])
async def test_a_problem_is_complete(store_url: str, media_type: str) -> None:
    async with running(store_url) as service:
        [answer] = await ask(service, [{"url": "ftp://h/", "agent": "a"}], "?fields=verdict", media_type)
        assert answer["problem"]["parameter"] == "url"


@pytest.mark.parametrize("path", ["/v1/allowed?fields=verdikt", "/v1/allowed?fields=rule,verdikt"])
async def test_an_unknown_member_is_refused_with_the_nearest(store_url: str, path: str) -> None:
    async with running(store_url) as service:
        for media_type in ("application/json", LINES):
            response = await service.client.post(path, content="{}", headers={"content-type": media_type})
            problem = response.json()
            assert (response.status_code, problem["parameter"], problem["value"]) == (422, "fields", "verdikt")
            assert "Did you mean 'verdict'?" in problem["detail"]
        empty = (await service.client.post("/v1/allowed?fields=", json={"items": []})).json()
        assert "The members are url, agent" in empty["detail"]


async def test_a_get_has_no_fields(store_url: str) -> None:
    async with running(store_url) as service:
        response = await service.client.get("/v1/allowed?url=http://h/&agent=a&fields=verdict")
        assert (response.status_code, response.json()["parameter"]) == (422, "fields")
