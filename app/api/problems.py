"""Errors as application/problem+json (RFC 9457): one table from what went wrong to what the caller is told."""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from app.origin import BadUrl
from app.robots.access import Busy
from app.robots.agents import BadAgent

MEDIA_TYPE = "application/problem+json"


class Problem(HTTPException):
    """What the caller is told: `slug` names the kind for programs, `detail` says for people what was wrong.

    `extra` are further members of the problem object, such as the parameter and the value. An HTTPException, since
    that is what FastAPI lets through when one is raised while it reads a body.
    """

    def __init__(
        self, status: int, slug: str, detail: str, headers: Mapping[str, str] | None = None, **extra: object
    ) -> None:
        super().__init__(status, detail, headers)
        self.slug = slug
        self.extra = extra

    def response(self) -> Response:
        """The problem as the HTTP response."""
        body = {
            "type": f"urn:robots-decisions:problem:{self.slug}",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": self.detail,
            **self.extra,
        }
        # ASCII only: a value that is quoted back may hold a lone surrogate, which no UTF-8 can.
        return Response(json.dumps(body), self.status_code, self.headers, MEDIA_TYPE)


def bad_value(parameter: str, value: object, detail: str) -> Problem:
    """422 for a value that cannot be read: `parameter` says where it stood."""
    return Problem(422, f"bad-{parameter.partition('[')[0]}", detail, parameter=parameter, value=_shown(value))


def install(app: FastAPI) -> None:
    """Answer every error of `app` as a problem."""
    handlers: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
        Problem: _problem,
        BadUrl: _bad_url,
        BadAgent: _bad_agent,
        Busy: _busy,
        RequestValidationError: _invalid,
        HTTPException: _http,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def _problem(_request: Request, error: Problem) -> Response:
    return error.response()


async def _bad_url(request: Request, error: BadUrl) -> Response:
    return bad_value("url", request.query_params.get("url"), str(error)).response()


async def _bad_agent(request: Request, error: BadAgent) -> Response:
    return bad_value("agent", request.query_params.get("agent"), str(error)).response()


async def _busy(_request: Request, error: Busy) -> Response:
    return Problem(503, "busy", str(error), {"Retry-After": str(error.retry_after)}).response()


async def _invalid(_request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    parameter = _place(first["loc"])
    more = len(error.errors()) - 1
    detail = f"{parameter}: {first['msg']}" + (f" (and {more} more)" if more else "") + "."
    value = None if first["type"] == "missing" else _shown(first.get("input"))
    return Problem(422, "bad-request", detail, parameter=parameter, value=value).response()


async def _http(_request: Request, error: HTTPException) -> Response:
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return Problem(422, "bad-request", "The request's body is no JSON in UTF-8.").response()
    slug = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return Problem(error.status_code, slug, str(error.detail), error.headers).response()


def unexpected(request_id: str) -> Problem:
    """500, for what nobody foresaw: what it was is in the log, under that id."""
    detail = "The service made a mistake; its log says which, under this request id."
    return Problem(500, "internal-server-error", detail, request_id=request_id)


def _place(location: tuple[int | str, ...]) -> str:
    """`("body", "urls", 2)` -> `urls[2]`."""
    place = ""
    for part in location[1:] or location:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    return place


def _shown(value: object) -> object:
    """A value to quote back, bounded."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 200 else text[:200] + "…"


def documented(*statuses: int) -> Mapping[int | str, dict[str, Any]]:
    """The problems a route may answer with, for the OpenAPI document."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }
