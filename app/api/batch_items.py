"""The items of a batch: what each of them may say, the question that it asks, and what there is in its place."""

import time
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, ConfigDict, FailFast, Field

from app.api.encoding import AnswerEncoder, encode_problem
from app.api.json_bodies import RequestModel, validated
from app.api.parameters import AGENTS, MOST_AGE, MOST_WAIT, WAIT
from app.api.params import agent_from, dialect_from, instant_from, target_from
from app.api.problems import Problem, bad_value, busy
from app.decide import Decider
from app.evaluate import Decision, Question
from app.robots.access import Busy

Found: TypeAlias = Decision | Problem
"""What comes of an item."""


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Several: TypeAlias = Annotated[list[str], Field(min_length=1, max_length=AGENTS)]

Agents: TypeAlias = Annotated[
    list[str],
    FailFast(),
    BeforeValidator(_as_list, json_schema_input_type=str | _Several),
    Field(
        min_length=1, max_length=AGENTS, description="A product token, a whole User-Agent header, or several in order."
    ),
]
"""The agents of a question, or the one."""


class ItemIn(RequestModel):
    """One question: its members mean what the parameters of `GET /v1/allowed` do."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    url: str = Field(description="The page's URL, absolute, http or https, at most 16 KiB.")
    agent: Agents
    dialect: str | None = Field(None, description="rfc9309, google, seznam, draft1996 or v2; by agent.")
    at: str | None = Field(None, description="RFC 3339 instant that rates are asked for; now.")
    max_age: float | None = Field(None, ge=0, le=MOST_AGE, description="Seconds: the oldest copy that will do.")
    wait: float | None = Field(None, ge=0, le=MOST_WAIT, description="Seconds that a cold fetch may hold the answer.")


def question_of(item: object, max_age: float | None = None, wait: float = WAIT) -> Question:
    """The question of an item that was JSON; raises Problem. `max_age` and `wait` are for those that say none."""
    if type(item) is dict and len(item) == 2:
        url, agent = item.get("url"), item.get("agent")
        if type(url) is str and type(agent) is str:  # as nearly all are
            who = agent_from((agent,))
            return Question(target_from(url), who, dialect_from(None, who), None, max_age, wait)
    if not isinstance(item, dict):
        raise bad_value("item", item, "An item is an object with the members url and agent.")
    asked = validated(ItemIn, item, "item")
    who = agent_from(asked.agent)
    return Question(
        target=target_from(asked.url),
        agent=who,
        dialect=dialect_from(asked.dialect, who),
        at=instant_from(asked.at),
        max_age=max_age if asked.max_age is None else asked.max_age,
        wait=wait if asked.wait is None else asked.wait,
    )


def after_waiting(question: Question, begun: float) -> Question:
    """The question as it is now, when it was asked at the instant `begun` of the monotonic clock.

    What is left of its `wait`; and what was fetched since will do, however new a copy was wanted. So a batch that
    asks for a new copy with every item has one fetched, and not one for each.
    """
    since = time.monotonic() - begun
    max_age = None if question.max_age is None else question.max_age + since
    return question._replace(wait=max(0.0, question.wait - since), max_age=max_age)


async def answer_to(decider: Decider, question: Question) -> Found:
    """The answer to a question that may have to wait."""
    try:
        return await decider.decide(question)
    except Busy as error:
        return busy(error, retry_after=error.retry_after)


def encode_item(found: Found, encoder: AnswerEncoder) -> bytes:
    """The JSON in an item's place: its answer, or its problem."""
    return encode_problem(found) if isinstance(found, Problem) else encoder.encode(found)
