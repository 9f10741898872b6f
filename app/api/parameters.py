"""The parameters of a query: their names, and those that several routes share. `params` parses their values."""

from collections.abc import Callable, Collection, Coroutine, Iterator
from typing import Annotated, Any, TypeAlias

from fastapi import Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from yarl import URL

from app.api.problems import unknown_parameter

RouteHandler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]

AGENTS = 16
"""Agents that one question may name."""

WAIT, WAIT_LIMIT = 10.0, 60
"""Seconds that an answer may wait for a fetch: by default, and at most."""

MAX_AGE_LIMIT = 10**9
"""Seconds of the largest max_age."""

DIALECT_TEXT = "rfc9309, google, seznam, draft1996 or v2; by default the agent's own."
AT_TEXT = "RFC 3339 instant at which rates are evaluated; by default now."
AS_OF_TEXT = "RFC 3339 instant in the past: answer, rates included, from the version stored then; never fetch."
MAX_AGE_TEXT = "Maximum age of the copy in seconds; an older one is fetched again, but not within MIN_REFETCH_SECONDS."
WAIT_TEXT = "Seconds that the answer may wait for a fetch."
"""Descriptions of query parameters and of the members of bodies that mean the same."""

OriginUrl = Annotated[str, Query(description="Any URL of the origin, absolute, http or https.")]
Profile = Annotated[
    str | None,
    Query(description="A fetch profile of AGENTS_FILE, or `default`; by default that of the agent."),
]
ProfileAgents = Annotated[
    list[str] | None,
    Query(min_length=1, max_length=AGENTS, description="The agent whose fetch profile is meant; see GET /v1/allowed."),
]
MaxAge = Annotated[float | None, Query(ge=0, le=MAX_AGE_LIMIT, description=MAX_AGE_TEXT)]
Wait = Annotated[float, Query(ge=0, le=WAIT_LIMIT, description=WAIT_TEXT)]


def query_of(request: Request, known: Collection[str], several: Collection[str] = ()) -> dict[str, object]:
    """The parameters of the request's query; raises Problem (422) for one that is not `known`.

    The last of a repeated one counts; those in `several` are lists.
    """
    # yarl parses a query string as Starlette does, in a third of the time.
    parameters = URL.build(query_string=request.scope["query_string"].decode("latin-1"), encoded=True).query
    values: dict[str, object] = dict(parameters.items())
    for name in values:
        if name not in known:
            raise unknown_parameter(name, parameters[name], known)
    for name in several:
        if name in values:
            values[name] = parameters.getall(name)
    return values


class CheckedRoute(APIRoute):
    """A route of FastAPI that refuses query parameters which it does not have, where FastAPI would ignore them."""

    def get_route_handler(self) -> RouteHandler:
        """FastAPI's handler, given a request whose parameters are known."""
        handle = super().get_route_handler()
        known = tuple(_names(self.dependant))

        async def handler(request: Request) -> Response:
            if request.scope["query_string"]:
                query_of(request, known)
            return await handle(request)

        return handler


def _names(dependant: Dependant) -> Iterator[str]:
    """The names of the query parameters of an endpoint and of what it depends on."""
    yield from (field.alias for field in dependant.query_params)
    for other in dependant.dependencies:
        yield from _names(other)
