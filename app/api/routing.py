"""The routes of the API: what they refuse, how their bodies are parsed, and which ones FastAPI only documents."""

from collections.abc import Callable, Coroutine, Iterator
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.api.json_bodies import body_of, require_json
from app.api.parameters import query_of

RouteHandler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]


class CheckedRoute(APIRoute):
    """A route of FastAPI that refuses query parameters which it does not have, where FastAPI would ignore them.

    `body_of` parses its JSON body, and FastAPI validates it; a body of another type is a 415.
    """

    def get_route_handler(self) -> RouteHandler:
        """FastAPI's handler, given a request whose parameters are known, and whose JSON `body_of` parses."""
        handle = super().get_route_handler()
        known = tuple(_names(self.dependant))

        async def handler(request: Request) -> Response:
            query_of(request, known)
            if self.body_field is None:
                return await handle(request)
            require_json(request)  # FastAPI would take another type for bytes, and answer 422
            return await handle(_JsonRequest(request.scope, request.receive))

        return handler


class DirectRoute(APIRoute):
    """A route whose endpoint takes the Request, and the parameters of its path, and reads the rest itself.

    FastAPI documents it. `DirectRoutes`, before FastAPI's router, calls it.
    """


class _JsonRequest(Request):
    async def json(self) -> Any:
        return await body_of(self)


def api_router(tag: str, route_class: type[APIRoute] = CheckedRoute) -> APIRouter:
    """A module's routes, which stand in the application's list one by one.

    An included router would be asked for each request of every other, and each of its routes twice.
    """
    return APIRouter(
        tags=[tag],
        route_class=route_class,
        generate_unique_id_function=attrgetter("name"),
        strict_content_type=False,  # JSON without a Content-Type is taken; other_sites refuses their pages
    )


def documented_as(model: type[BaseModel], place: FieldInfo | None = None) -> Any:
    """A dependency by which FastAPI documents what a DirectRoute reads itself, from its query or another `place`."""

    def read(value: Annotated[model, place or Query()]) -> None:  # type: ignore[valid-type]
        """Is not called."""

    return Depends(read)


def _names(dependant: Dependant) -> Iterator[str]:
    """The names of the query parameters of an endpoint and of what it depends on."""
    yield from (field.alias for field in dependant.query_params)
    for other in dependant.dependencies:
        yield from _names(other)
