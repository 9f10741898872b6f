"""Answers on every route say how the agent was read, where that may surprise."""

import json
from typing import Any

import pytest

from app.cli.formatting import answer_lines, row_lines
from tests.api.service import running
from tests.origins import serve, text

pytestmark = pytest.mark.usefixtures("store_client")

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
ROBOTS = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.01\n"

ASKED = [
    ({"agent": BROWSER}, ["agent-unnamed"]),
    ({"agent": "MJ12bot", "dialect": "google"}, ["agent-never-named"]),
    ({"agent": "Mozilla"}, None),
    ({"agent": "MJ12bot"}, None),
]


def codes(answer: dict[str, Any]) -> list[str] | None:
    notes = answer.get("notes")
    return None if notes is None else [note["code"] for note in notes]


@pytest.mark.parametrize(("asked", "expected"), ASKED)
async def test_every_route_that_decides_has_the_notes(
    store_url: str, asked: dict[str, str], expected: list[str] | None
) -> None:
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        client, item = service.client, {"url": f"{origin.url}/a", **asked}
        # Encoded afresh, and from the cache.
        first, answer = [(await client.get("/v1/allowed", params=item)).json() for _ in range(2)]
        assert codes(first) == codes(answer) == expected
        assert codes((await client.get("/v1/allowed", params={**item, "explain": "true"})).json()) == expected
        batch = (await client.post("/v1/allowed", json={"items": [item, item]})).json()["answers"]
        ndjson = {"Content-Type": "application/x-ndjson"}
        stream = await client.post("/v1/allowed", content=json.dumps(item) + "\n", headers=ndjson)
        permit = (await client.post("/v1/permits", json=item)).json()
        assert [codes(it) for it in (*batch, json.loads(stream.text), permit)] == [expected] * 4
        check = await client.get("/v1/check", params=item)
        assert check.headers.get("robots-notes") == (None if expected is None else expected[0])
        dialects = [asked["dialect"]] if "dialect" in asked else []
        test = {"robots": ROBOTS, "urls": [item["url"]], "agents": [asked["agent"]], "dialects": dialects}
        (row,) = (await client.post("/v1/test", json=test)).json()["rows"]
        assert codes(row) == expected
        page = {"agents": [asked["agent"]], "headers": ["noindex"]} | ({"dialect": dialects[0]} if dialects else {})
        assert codes((await client.post("/v1/indexing", json=page)).json()) == (expected or [])
        shown = [line.split()[1] for line in answer_lines(answer) if line.startswith("note")]
        assert shown == [f"{code}:" for code in expected or []]


async def test_deferred_answers_have_notes_too(store_url: str) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        answer = (await service.client.get("/v1/allowed", params={"url": origin.url, "agent": BROWSER})).json()
        assert (answer["verdict"], codes(answer)) == ("defer", ["agent-unnamed"])


async def test_guesses_and_names_share_no_encoded_answer(store_url: str) -> None:
    async with serve(text(200, ROBOTS)) as origin, running(store_url) as service:
        for agent, expected in ((BROWSER, ["agent-unnamed"]), ("Mozilla", None), (BROWSER, ["agent-unnamed"])):
            answer = (await service.client.get("/v1/allowed", params={"url": origin.url, "agent": agent})).json()
            assert (answer["agent"], codes(answer)) == ("Mozilla", expected)


def test_rows_of_a_test_show_their_notes() -> None:
    row = {
        "url": "http://h/",
        "agent": "A",
        "dialect": "rfc9309",
        "verdict": "allow",
        "rule": None,
        "partial": False,
        "rate": None,
        "next_rate": None,
        "explanation": {"summary": ""},
        "notes": [{"code": "agent-unnamed", "message": "Which?"}],
    }
    assert list(row_lines(row))[1:] == ["  note      agent-unnamed: Which?"]
