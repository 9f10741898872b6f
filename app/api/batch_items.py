"""The items of a batch: their schema, the questions they ask, and the JSON of their results."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, ConfigDict, FailFast, Field

from app.agents.directory import AgentDirectory
from app.api.encoding import AnswerEncoder, encode_problem
from app.api.json_bodies import RequestModel, as_list, validated
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
from app.api.problems import Problem, bad_value, busy, no_version, store_down
from app.api.purposes import Purposes, asked_policy
from app.decide import Decider, NoVersion
from app.evaluate import Decision, Question
from app.purposes.policy import PurposePolicy
from app.redis.guarded_client import StoreDown
from app.robots.access import Busy

NO_POLICY = PurposePolicy()
"""The policy of a caller without purposes of its own."""

ItemResult: TypeAlias = Decision | Problem
"""The result of an item."""


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
    purposes: Purposes = None


def question_of(
    item: object,
    known: AgentDirectory,
    now: Callable[[], datetime],
    max_age: float | None = None,
    wait: float = WAIT,
    caller: PurposePolicy = NO_POLICY,
) -> Question:
    """Read an item of parsed JSON. `max_age`, `wait` and the purposes of `caller` are its defaults. Raises Problem.

    `now` is the clock that tells the past from the future.
    """
    if type(item) is dict and len(item) == 2:
        url, agent = item.get("url"), item.get("agent")
        if type(url) is str and type(agent) is str:  # most items: skip pydantic
            reader = agent_from((agent,), known)
            policy = asked_policy(None, caller)
            return Question(target_from(url), reader, dialect_from(None, reader), None, max_age, wait, policy)
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
        policy=asked_policy(fields.purposes, caller),
        as_of=None if fields.as_of is None else past_from(fields.as_of, now()),
    )


def after_waiting(question: Question, begun: float) -> Question:
    """A question of the instant `begun` (monotonic clock), with the time that has passed since then.

    Its `wait` shrinks by that time and its `max_age` grows by it, so every copy fetched since is fresh enough. A batch
    that wants a fresh copy for every item fetches each file once, not once per item.
    """
    since = time.monotonic() - begun
    max_age = None if question.max_age is None else question.max_age + since
    return question._replace(wait=max(0.0, question.wait - since), max_age=max_age)


async def answer_to(decider: Decider, question: Question) -> ItemResult:
    """Decide a question, fetching if needed; Busy becomes a problem, and so does a past that cannot be read."""
    try:
        return await decider.decide(question)
    except Busy as error:
        return busy(error, retry_after=error.retry_after)
    except NoVersion as error:
        return no_version(error)
    except StoreDown as error:
        return store_down(error, retry_after=1)


async def answers_about_past(decider: Decider, questions: Sequence[Question]) -> Sequence[ItemResult]:
    """Decide questions about the past of one origin, whose history is read once."""
    try:
        found = await decider.decide_past(questions)
    except StoreDown as error:
        return [store_down(error, retry_after=1)] * len(questions)
    return [no_version(it) if isinstance(it, NoVersion) else it for it in found]


def encode_item(result: ItemResult, encoder: AnswerEncoder) -> bytes:
    """The JSON of an item's result: an answer, or a problem in its place."""
    return encode_problem(result) if isinstance(result, Problem) else encoder.encode(result)
