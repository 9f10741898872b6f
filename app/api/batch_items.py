"""The items of a batch: their schema, the questions they ask, and the JSON of their results."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, ConfigDict, FailFast, Field

from app.agents.directory import AgentDirectory
from app.api.encoding import AnswerEncoder, encode_problem
from app.api.json_bodies import RequestModel, as_list, validated
from app.api.middleware.answer_room import HeldAnswers
from app.api.parameters import (
    AGENTS,
    AS_OF_TEXT,
    AT_TEXT,
    DIALECT_TEXT,
    MAX_AGE_LIMIT,
    MAX_AGE_TEXT,
    WAIT,
    WAIT_LIMIT,
    WAIT_TEXT,
)
from app.api.params import agent_from, dialect_from, instant_from, past_from, target_from
from app.api.problems import Problem, bad_value, busy, no_version, store_down, unexpected
from app.api.purposes import Purposes, asked_policy
from app.decide import NoVersion
from app.evaluate import Decision, Question
from app.observability.logs import REQUEST_ID
from app.purposes.policy import PurposePolicy
from app.redis.guarded_client import StoreDown
from app.robots.access import Busy

NO_POLICY = PurposePolicy()
"""The policy of a caller without purposes of its own."""

_Several: TypeAlias = Annotated[list[str], Field(min_length=1, max_length=AGENTS)]

Agents: TypeAlias = Annotated[
    list[str],
    FailFast(),
    BeforeValidator(as_list, json_schema_input_type=str | _Several),
    Field(min_length=1, max_length=AGENTS, description="A product token or a User-Agent header, or several in order."),
]
"""One agent, or several in order of preference."""


class ItemIn(RequestModel):
    """One question. Its members mean the same as the parameters of `GET /v1/allowed`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    url: str = Field(description="The page's URL, absolute, http or https, at most 16 KiB.")
    agent: Agents
    dialect: str | None = Field(None, description=DIALECT_TEXT)
    at: str | None = Field(None, description=AT_TEXT)
    as_of: str | None = Field(None, description=AS_OF_TEXT)
    max_age: float | None = Field(None, ge=0, le=MAX_AGE_LIMIT, description=MAX_AGE_TEXT)
    wait: float | None = Field(None, ge=0, le=WAIT_LIMIT, description=WAIT_TEXT)
    purpose: Purposes = None


def question_of(
    item: object,
    known: AgentDirectory,
    now: Callable[[], datetime],
    max_age: float | None = None,
    wait: float = WAIT,
    purposes: PurposePolicy = NO_POLICY,
    caller: str = "",
) -> Question:
    """Read an item of parsed JSON that a `caller` asks. `max_age`, `wait` and `purposes` are its defaults.

    Raises Problem. `now` is the clock that tells the past from the future.
    """
    if type(item) is dict and len(item) == 2:
        url, agent = item.get("url"), item.get("agent")
        if type(url) is str and type(agent) is str:  # most items: skip pydantic
            reader = agent_from((agent,), known)
            policy = asked_policy(None, purposes)
            dialect = dialect_from(None, reader)
            return Question(target_from(url), reader, dialect, None, max_age, wait, policy, None, caller)
    if not isinstance(item, dict):
        raise bad_value("item", item, "An item must be an object with the members url and agent.")
    fields = validated(ItemIn, item, "item")
    reader = agent_from(fields.agent, known)
    return Question(
        target=target_from(fields.url),
        agent=reader,
        dialect=dialect_from(fields.dialect, reader),
        at=instant_from(fields.at),
        max_age=max_age if fields.max_age is None else fields.max_age,
        wait=wait if fields.wait is None else fields.wait,
        policy=asked_policy(fields.purpose, purposes),
        as_of=None if fields.as_of is None else past_from(fields.as_of, now()),
        caller=caller,
    )


def encode_result(result: Decision | Exception, encode: Callable[[Decision], bytes]) -> bytes:
    """The JSON of an item's result: an answer, or a problem in its place."""
    return encode(result) if isinstance(result, Decision) else encode_problem(_problem(result))


def holding(encoder: AnswerEncoder, held: HeldAnswers) -> Callable[[Decision], bytes]:
    """A function that encodes an answer and holds it until it is sent. It raises Busy if too much is held."""
    return lambda decision: held.hold(encoder.encode(decision))


def _problem(error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case Busy():
            return busy(error, retry_after=error.retry_after)
        case NoVersion():
            return no_version(error)
        case StoreDown():
            return store_down(error, retry_after=1)
        case _:
            return unexpected(REQUEST_ID.get() or "")
