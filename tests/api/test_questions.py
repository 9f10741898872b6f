"""Every route reads a question by the models of `app.decisions.question`, and each item of many alone."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.api import json_bodies
from app.api.json_bodies import read_item
from app.api.problems import Problem, problem_of
from app.api.questions import question_of, read_all
from app.api.routes.permits import PermitIn
from app.decisions.evaluate import Question
from app.decisions.question import AGENTS, Asking, BadQuestion, QuestionIn
from robots_core.agents.directory import builtin_directory
from robots_core.purposes.policy import PurposePolicy
from tests.api.service import running
from tests.origins import serve, text

ADDED = "added_in_one_place"

# Runs in an interpreter of its own, whose app.decisions.question has one more parameter.
PROGRAM = """
import asyncio, importlib.util, json, sys
from pathlib import Path

spec = importlib.util.find_spec("app.decisions.question")
source = Path(spec.origin).read_text(encoding="utf-8")
line = "    purpose: Purposes = None\\n"
assert source.count(line) == 1
module = importlib.util.module_from_spec(spec)
sys.modules["app.decisions.question"] = module
added = f'    {sys.argv[1]}: str | None = Field(None, description="A new parameter.")\\n'
exec(compile(source.replace(line, line + added), spec.origin, "exec"), module.__dict__)

from app.main.service import create
from app.main.settings import Settings
from tests.api.asgi_client import request

app = create(Settings(redis_url="redis://unused"))


async def asked():
    question = {"url": "nonsense", "agent": "a", sys.argv[1]: "x"}
    page = {"url": "nonsense", "agents": ["a"], sys.argv[1]: "x"}
    query = f"url=nonsense&agent=a&{sys.argv[1]}=x".encode()
    ndjson = ((b"content-type", b"application/x-ndjson"),)
    async with app.router.lifespan_context(app):
        return [
            await request(app, "GET", "/v1/allowed", query),
            await request(app, "GET", "/v1/check", query),
            await request(app, "POST", "/v1/allowed", body=json.dumps({"items": [question]}).encode()),
            await request(app, "POST", "/v1/allowed", body=json.dumps(question).encode(), headers=ndjson),
            await request(app, "POST", "/v1/permits", body=json.dumps(question).encode()),
            await request(app, "POST", "/v1/permits/batch", body=json.dumps({"items": [question]}).encode()),
            await request(app, "POST", "/v1/indexing", body=json.dumps(page).encode()),
        ]

print(json.dumps({"document": app.openapi(), "answers": [answer.body.decode() for answer in asyncio.run(asked())]}))
"""


def test_a_parameter_is_added_in_one_place() -> None:
    """It is then taken by every route that decides questions, and stands in the OpenAPI document."""
    root = Path(__file__).parents[2]
    arguments = [sys.executable, "-c", PROGRAM, ADDED]
    found = json.loads(subprocess.run(arguments, cwd=root, check=True, capture_output=True, text=True).stdout)
    paths, schemas = found["document"]["paths"], found["document"]["components"]["schemas"]
    for path in ("/v1/allowed", "/v1/check"):
        assert ADDED in [it["name"] for it in paths[path]["get"]["parameters"]]
    for model in ("QuestionIn", "PermitIn", "IndexingIn"):
        assert schemas[model]["properties"][ADDED]["description"] == "A new parameter."
    assert len(found["answers"]) == 7
    for answer in found["answers"]:  # not "unknown"
        assert "urn:robots-decisions:problem:bad-url" in answer
        assert ADDED not in answer


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ASKING = Asking(builtin_directory(), lambda: NOON, PurposePolicy())


def asked(items: Sequence[object]) -> list[tuple[int, Question | Exception]]:
    return list(read_all(items, lambda item: question_of(item, ASKING)))


def item(number: int) -> dict[str, Any]:
    return {"url": f"http://h/{number}", "agent": "ExampleBot"}


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_items_are_read_in_their_order(count: int) -> None:
    results = asked(list(map(item, range(count))))
    assert [number for number, _ in results] == list(range(count))
    assert [it.target.path for _, it in results if isinstance(it, Question)] == [f"/{at}" for at in range(count)]


WRONG: list[tuple[object, str, str]] = [
    (5, "item", "An item must be an object with the members url and agent."),
    ([], "item", "An item must be an object with the members url and agent."),
    (["url", "agent"], "item", "An item must be an object with the members url and agent."),
    ("http://h/", "item", "An item must be an object with the members url and agent."),
    (None, "item", "An item must be an object with the members url and agent."),
    ({}, "url", "url: Field required (and 1 more)."),
    ({"url": "http://h/"}, "agent", "agent: Field required."),
    ({"url": 5, "agent": "a"}, "url", "url: Input should be a valid string."),
    ({"url": "http://h/", "agent": 5}, "agent", "agent: Input should be a valid string."),
    ({"url": "http://h/", "agent": None}, "agent", "agent: Input should be a valid string."),
    ({"url": "http://h/", "agent": {"a": 1}}, "agent", "agent: Input should be a valid string."),
    ({"url": "http://h/", "agent": ["a", 5]}, "agent[1]", "agent[1]: Input should be a valid string."),
    ({"url": "http://h/", "agent": []}, "agent", "agent: List should have at least 1 item after validation, not 0."),
    (
        {"url": "http://h/", "agent": ["a"] * (AGENTS + 1)},
        "agent",
        f"agent: List should have at most {AGENTS} items after validation, not {AGENTS + 1}.",
    ),
    (
        {"url": "http://h/", "agent": "a", "purpose": "ads"},
        "purpose[0]",
        "purpose[0]: Input should be 'search', 'ai-input' or 'ai-train'.",
    ),
    ({"url": "http://h/", "agent": "a", "wait": "5"}, "wait", "wait: Input should be a valid number."),
    ({"url": "http://h/", "agent": "a", "wait": 61}, "wait", "wait: Input should be less than or equal to 60."),
    ({"url": "http://h/", "agnet": "a"}, "agnet", "Unknown member 'agnet'. Did you mean 'agent'?"),
    ({"url": "http://h/", "agent": "()"}, "agent", "the agent '()' holds no product token outside comments"),
    ({"url": "nonsense", "agent": "a"}, "url", "'nonsense' is not an absolute URL"),
    ({"url": "http://h/", "agent": "a", "dialect": "x"}, "dialect", "Unknown dialect 'x'. Choose one of: rfc9309"),
    ({"url": "http://h/", "agent": "a", "at": "noon"}, "at", "'noon' is not an RFC 3339 instant"),
    (
        {"url": "http://h/", "agent": "a", "as_of": "2998-01-01T00:00:00Z"},
        "as_of",
        "'2998-01-01T00:00:00Z' is in the",
    ),
]


@pytest.mark.parametrize(("wrong", "parameter", "detail"), WRONG)
def test_a_wrong_item_fails_alone(wrong: object, parameter: str, detail: str) -> None:
    at = 3
    items: list[object] = [*map(item, range(at)), wrong, *map(item, range(at + 1, 10))]
    results = asked(items)
    assert [number for number, it in results if not isinstance(it, Question)] == [at]
    error = results[at][1]
    assert isinstance(error, Exception)
    assert error.__traceback__ is None
    problem = problem_of(error)
    assert (problem.status_code, problem.extra["parameter"]) == (422, parameter)
    assert problem.detail.startswith(detail)


@pytest.mark.parametrize("url", ["http://h/a?b#c", "nonsense", ""])
@pytest.mark.parametrize("agent", ["ExampleBot", "Mozilla/5.0 (compatible; Googlebot/2.1)", "*", "()", ""])
def test_what_is_not_validated_is_read_alike(url: str, agent: str) -> None:
    """Most items are two strings, in which the model would find nothing wrong."""

    def read(item: object) -> Question:
        return read_item(QuestionIn, item).question(ASKING)

    item = {"url": url, "agent": agent}
    [(_, short)], [(_, validated)] = asked([item]), read_all([item], read)
    if isinstance(validated, BadQuestion):
        assert isinstance(short, BadQuestion)
        assert (short.parameter, short.value, str(short)) == (validated.parameter, validated.value, str(validated))
    else:
        assert short == validated


def test_pydantic_does_not_see_an_item_with_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would make an error for each."""
    seen: list[object] = []
    monkeypatch.setattr(json_bodies, "validated", lambda *_: seen.append(1))
    hostile = {**item(0), **{f"k{at}": at for at in range(60_000)}}
    [(_, error)] = asked([hostile])
    assert isinstance(error, Problem)
    assert error.detail.startswith("Unknown member 'k0'. The members are url, agent,")
    assert seen == []


def test_a_permit_and_an_item_take_the_same_members() -> None:
    """But for instants: a slot is for now."""
    assert QuestionIn.model_fields.keys() - PermitIn.model_fields.keys() == {"at", "as_of"}
    with pytest.raises(Problem, match="Unknown member 'at'"):
        read_item(PermitIn, {**item(0), "at": "2026-01-01T00:00:00Z"})


@pytest.mark.usefixtures("store_client")
async def test_an_item_that_fails_unexpectedly_is_a_500_in_its_place(
    store_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read_target = sys.modules["app.decisions.question"].read_target

    def broken(url: str) -> object:
        if url.endswith("/broken"):
            raise RuntimeError("a defect")
        return read_target(url)

    monkeypatch.setattr("app.decisions.question.read_target", broken)
    async with serve(text(200, "User-agent: *\nAllow: /\n")) as origin, running(store_url) as service:
        items = [{"url": f"{origin.url}/{name}", "agent": "a"} for name in ("x", "broken", "y")]
        batch = (await service.client.post("/v1/allowed", json={"items": items})).json()["answers"]
        permits = (await service.client.post("/v1/permits/batch", json={"items": items})).json()["permits"]
        lines = await service.client.post(
            "/v1/allowed",
            content="".join(json.dumps(it) + "\n" for it in items),
            headers={"Content-Type": "application/x-ndjson"},
        )
        for answers in (batch, permits, list(map(json.loads, lines.text.splitlines()))):
            assert [it.get("verdict") for it in answers] == ["allow", None, "allow"]
            problem = answers[1]["problem"]
            assert (problem["status"], problem["type"]) == (500, "urn:robots-decisions:problem:internal-server-error")
            assert problem["request_id"]
    logged = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert [str(error) for error in logged] == ["a defect"] * 3
