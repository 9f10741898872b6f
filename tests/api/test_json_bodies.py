"""JSON bodies are bounded before they are parsed, and large ones are parsed off the event loop."""

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from app.api import json_bodies
from app.api.json_bodies import SMALL_BODY, TOKENS_LIMIT, read_item, read_json, validated
from app.api.problems import QUOTED, Problem, invalid
from app.api.routes.batch import BatchIn
from app.api.routes.indexing import IndexingIn, MetaIn
from app.api.routes.overrides import OverrideIn
from app.api.routes.permits import OutcomeIn, PermitIn, PermitsIn
from app.api.trials.reading import SimulatedOutcomeIn, TrialIn
from app.decisions.question import QuestionIn, QuestionNowIn
from tests.api.asgi_client import JSON_ROUTES, Answer, request
from tests.api.service import running
from tests.operator_token import TOKEN_HEADER

MODELS = [
    BatchIn,
    QuestionIn,
    IndexingIn,
    MetaIn,
    OverrideIn,
    OutcomeIn,
    PermitIn,
    PermitsIn,
    SimulatedOutcomeIn,
    TrialIn,
]
MANY = TOKENS_LIMIT // 4


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["unknown", None])
def test_many_invalid_members_create_few_errors(
    monkeypatch: pytest.MonkeyPatch, model: type[BaseModel], name: str | None
) -> None:
    """Any JSON: unknown members, and lists and objects in place of other types."""
    members: dict[str, Any] = {f"k{at}": at for at in range(MANY)}
    if name is None:
        members |= {field: list(range(MANY)) for field in model.model_fields}
    counted: list[int] = []

    def refused(errors: Sequence[Any]) -> Problem:
        counted.append(len(errors))
        return invalid(errors)

    monkeypatch.setattr(json_bodies, "invalid", refused)
    with pytest.raises(Problem):
        read_item(model, members) if issubclass(model, QuestionNowIn) else validated(model, members)
    assert sum(counted) <= 3 * len(model.model_fields) + 1


def test_the_first_unknown_member_is_named() -> None:
    with pytest.raises(Problem) as raised:
        read_item(QuestionIn, {"url": "http://h/", "agent": "a", **{f"k{at}": at for at in range(100)}})
    assert raised.value.extra == {"parameter": "k0", "value": 0}
    assert raised.value.detail.startswith("Unknown member 'k0'. The members are url, agent, dialect,")


def test_alias_is_found_among_many_unknown_members() -> None:
    with pytest.raises(Problem) as raised:
        validated(SimulatedOutcomeIn, {"for": "3d", "status": 503, **{f"k{at}": at for at in range(100)}})
    assert raised.value.extra["parameter"] == "k0"


@pytest.mark.parametrize(
    "value",
    [
        ["a" * 1000],
        [["b"] * 1000] * 10,
        {"c" * 1000: 1},
        {f"k{at}": {"d": "e" * 1000} for at in range(1000)},
        "f" * 1000,
        [10**4000],
    ],
)
def test_error_quotes_the_beginning_of_a_value(value: object) -> None:
    with pytest.raises(Problem) as raised:
        read_item(QuestionIn, {"url": "http://h/", "agent": "a", "max_age": value})
    quoted = raised.value.extra["value"]
    assert isinstance(quoted, str)
    written = value if isinstance(value, str) else json.dumps(value)
    assert quoted == written[:QUOTED] + "…"


def test_error_quotes_the_beginning_of_a_member_name() -> None:
    with pytest.raises(Problem) as raised:
        read_item(QuestionIn, {"url": "http://h/", "agent": "a", "k" * 100_000: 1})
    assert len(raised.value.text) < 2000


TOO_MUCH = [
    b'{"items":[' + b"{}," * 300_000 + b"{}]}",
    b"{" + b",".join(b'"k%d":1' % at for at in range(100_000)) + b"}",
    b"[" * (SMALL_BODY + 1),
    b'["' + b'","' * 100_000 + b'"]',
    b'{"a":"' + b"\\\\" * SMALL_BODY + b'","b":[' + b"1," * 100_000 + b"1]}",
    b'"' * 4 * SMALL_BODY + b"," * SMALL_BODY,
]
JUST_LONG = [
    b'{"robots":"' + b"a, [b] {c}\\n" * 50_000 + b'"}',
    b'{"robots":"' + b'say \\"x\\", \\\\' * 50_000 + b'"}',
    b'{"robots":"' + b"\\\\" * 500_000 + b'"}',
    b"{}" + b" " * 500_000,
]


@pytest.mark.parametrize("body", TOO_MUCH)
def test_too_many_tokens_are_refused_before_parsing(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_bodies, "from_json", None)
    with pytest.raises(Problem) as raised:
        read_json(body)
    assert raised.value.status_code == 413
    assert "65536" in raised.value.detail


@pytest.mark.parametrize("body", JUST_LONG)
def test_long_string_is_one_token(body: bytes) -> None:
    assert read_json(body) == json.loads(body)


async def ask(store_url: str, method: str, path: str, body: bytes) -> Answer:
    async with running(store_url) as service:
        fields = {"Content-Type": "application/json", **TOKEN_HEADER}
        headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
        return await request(service.app, method, path, body=body, headers=headers)


@pytest.mark.parametrize(("method", "path"), JSON_ROUTES)
@pytest.mark.usefixtures("store_client")
async def test_every_route_bounds_its_body(store_url: str, method: str, path: str) -> None:
    answer = await ask(store_url, method, path, TOO_MUCH[1])
    assert (answer.status, answer.json["type"].rpartition(":")[2]) == (413, "too-large")


@pytest.mark.parametrize(("method", "path"), JSON_ROUTES)
@pytest.mark.usefixtures("store_client")
async def test_large_body_is_parsed_off_the_event_loop(
    store_url: str, method: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed_in: list[str] = []

    def noted(text: bytes, what: str = "The request body") -> Any:
        parsed_in.append(threading.current_thread().name)
        return read_json(text, what)

    monkeypatch.setattr(json_bodies, "read_json", noted)
    for size in (SMALL_BODY, SMALL_BODY + 1):
        answer = await ask(store_url, method, path, b"{}".ljust(size))
        assert answer.status == 422
    assert parsed_in == [threading.current_thread().name, "json_0"]
