"""The parameters of queries: how they are read, and those that name an origin's file and say how it is fetched.

`app.decisions.question` has those of a question.
"""

from collections.abc import Collection, Mapping
from typing import Annotated

from fastapi import Query, Request
from pydantic import ValidationError
from yarl import URL

from app.api.json_bodies import M
from app.api.problems import bad_value, invalid, repeated_parameter, unknown_parameter
from app.decisions.question import AGENTS, MAX_AGE_LIMIT, MAX_AGE_TEXT, WAIT_LIMIT, AgentText, UrlText, target_from
from robots_core.agents.directory import AgentDirectory, UnknownProfile
from robots_core.origin import Origin
from robots_core.robots.agents import Agent

_SEVERAL = ("agent", "purpose")
"""The parameters that may be repeated."""

OriginUrl = Annotated[UrlText, Query(description="Any URL of the origin, absolute, http or https.")]
Profile = Annotated[
    str | None,
    Query(description="A fetch profile of AGENTS_FILE, or `default`; by default that of the agent."),
]
ProfileAgents = Annotated[
    list[AgentText] | None,
    Query(min_length=1, max_length=AGENTS, description="The agent whose fetch profile is meant; see GET /v1/allowed."),
]
MaxAge = Annotated[float | None, Query(ge=0, le=MAX_AGE_LIMIT, description=MAX_AGE_TEXT)]
Wait = Annotated[float, Query(ge=0, le=WAIT_LIMIT, description="Seconds that the answer may wait for a fetch.")]


def file_origin_from(url: str, profile: str | None, known: AgentDirectory, agent: Agent | None = None) -> Origin:
    """The origin of a URL with the fetch profile of that name; with the agent's, if there is one, for None."""
    origin = target_from(url).origin
    if profile is None:
        return origin.with_profile(None if agent is None else agent.profile)
    try:
        return origin.with_profile(known.profile(profile))
    except UnknownProfile as error:
        raise bad_value("profile", profile, str(error)) from None


def query_of(request: Request, known: Collection[str]) -> dict[str, object]:
    """The parameters of the request's query, lists for `agent` and `purpose` if they are repeated.

    Raises Problem (422) for a parameter that is not `known`, and for another one that is repeated.
    """
    if not request.scope["query_string"]:
        return {}
    # yarl parses a query string as Starlette does, in a third of the time.
    parameters = URL.build(query_string=request.scope["query_string"].decode("latin-1"), encoded=True).query
    values: dict[str, object] = dict(parameters.items())
    for name in values:
        if name not in known:
            raise unknown_parameter(name, parameters[name], known)
    if len(parameters) > len(values):
        for name in values:
            given = parameters.getall(name)
            if len(given) > 1:
                if name not in _SEVERAL:
                    raise repeated_parameter(name, given[-1], known)
                values[name] = given
    return values


def read_query(request: Request, model: type[M], otherwise: Mapping[str, object] | None = None) -> M:
    """Parse the parameters. Raises Problem.

    `otherwise` has values for parameters that the query lacks.
    """
    values = query_of(request, model.__pydantic_fields__)
    if otherwise is not None:
        values = {**otherwise, **values}
    try:
        return model.model_validate(values, strict=False)  # all values of a query are texts
    except ValidationError as error:
        errors = error.errors(include_url=False)
    raise invalid([{**it, "loc": ("query", *it["loc"])} for it in errors])
