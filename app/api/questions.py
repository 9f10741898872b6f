"""The parameters of a question as a query, and its decision: for the routes that decide one question."""

from collections.abc import Mapping
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, Field, ValidationError

from app.api.middleware.auth import caller_of
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
from app.api.problems import invalid
from app.api.purposes import NamedPurposes, asked_policy, caller_policy
from app.api.routing import query_of
from app.api.services import Services, services_of
from app.evaluate import Decision, Question

URL_TEXT = "The page's URL, absolute, http or https, at most 16 KiB."
AGENT_TEXT = "A product token or a User-Agent header; repeat it for several: the first that has a group counts."
"""Descriptions of the two parameters that say what is asked."""


class QuestionQuery(BaseModel):
    """The parameters of a question."""

    url: str = Field(description=URL_TEXT)
    agent: list[str] = Field(min_length=1, max_length=AGENTS, description=AGENT_TEXT)
    dialect: str | None = Field(None, description=DIALECT_TEXT)
    at: str | None = Field(None, description=AT_TEXT)
    as_of: str | None = Field(None, description=AS_OF_TEXT)
    max_age: float | None = Field(None, ge=0, le=MAX_AGE_LIMIT, description=MAX_AGE_TEXT)
    wait: float = Field(WAIT, ge=0, le=WAIT_LIMIT, description=WAIT_TEXT)
    purpose: NamedPurposes = None


Query = TypeVar("Query", bound=BaseModel)


def read_query(request: Request, model: type[Query], otherwise: Mapping[str, object] | None = None) -> Query:
    """Parse the parameters; the last of a repeated one counts, except for `agent` and `purpose`. Raises Problem.

    `otherwise` has values for parameters that the query lacks.
    """
    values = query_of(request, model.__pydantic_fields__, ("agent", "purpose"))
    if otherwise is not None:
        values = {**otherwise, **values}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise invalid([{**it, "loc": ("query", *it["loc"])} for it in error.errors()]) from None


async def decide(request: Request, query: QuestionQuery) -> Decision:
    """Decide the question of a request. Raises Problem, and what the Decider raises."""
    services = services_of(request)
    return await services.decider.decide(question_of(request, query, services))


def question_of(request: Request, query: QuestionQuery, services: Services) -> Question:
    """The question of a request. Raises Problem."""
    agent = agent_from(query.agent, services.agents())
    return Question(
        target=target_from(query.url),
        agent=agent,
        dialect=dialect_from(query.dialect, agent),
        at=instant_from(query.at),
        max_age=query.max_age,
        wait=query.wait,
        policy=asked_policy(query.purpose, caller_policy(request)),
        as_of=None if query.as_of is None else past_from(query.as_of, services.now()),
        caller=caller_of(request.scope),
    )
