"""Errors as application/problem+json (RFC 9457): how each exception is answered."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from math import ceil, isfinite
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic_core import PydanticCustomError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from app.api.answers.http_caching import NO_STORE
from app.api.problem_types import PROBLEMS
from app.auth.quotas import QuotaExceeded
from app.decisions.bundle_rows import NothingKnown
from app.decisions.cached_files import NoVersion
from app.decisions.question import BadQuestion
from app.files.validation import unknown_name
from app.loop.admission import Overloaded
from app.loop.request import REQUEST_ID
from app.overrides.redis_overrides import ChangedMeanwhile, ManyOverrides
from app.overrides.replica import FromFile
from app.store.guarded_client import StoreDown
from robots_core.robots.access import Busy
from robots_core.times import instant

MEDIA_TYPE = "application/problem+json"

UNKNOWN_MEMBER: Final = "unknown_member"
"""The type of `unknown_member` among pydantic's errors."""

QUOTED = 200
"""Characters of a caller's value, or of a member's name, that an error quotes."""


class Problem(HTTPException):
    """An error answer: `slug` names its type for programs, `detail` says what is wrong and what to do.

    `retry_after` are the seconds after which to ask again: a member of the problem object, and the header Retry-After.
    `extra` are further members, such as the parameter and its value. It is an HTTPException because FastAPI lets only
    those through while it reads a body.
    """

    def __init__(
        self,
        slug: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        *,
        retry_after: int | None = None,
        **extra: object,
    ) -> None:
        if retry_after is not None:
            headers = {**(headers or {}), "Retry-After": str(retry_after)}
            extra["retry_after"] = retry_after
        super().__init__(PROBLEMS[slug].status, detail, headers)
        self.slug = slug
        self.extra = extra

    @property
    def text(self) -> str:
        """The problem object as JSON."""
        members = {
            "type": PROBLEMS[self.slug].urn,
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": self.detail,
            **self.extra,
        }
        # ASCII only: a quoted value may hold a lone surrogate, which UTF-8 cannot encode.
        return json.dumps(members)

    def response(self) -> Response:
        """The problem as the HTTP response."""
        return Response(self.text, self.status_code, {"Cache-Control": NO_STORE, **(self.headers or {})}, MEDIA_TYPE)


def bad_value(parameter: str, value: object, detail: str, slug: str | None = None) -> Problem:
    """422 for an invalid value. `parameter` says where it is; the default slug is derived from it."""
    kind = slug or f"bad-{parameter.partition('[')[0]}"
    return Problem(kind, detail, parameter=parameter, value=_quotable(value))


def problem_of(error: Exception) -> Problem:
    """How an error is answered, or stands in place of an item's answer."""
    if isinstance(error, Problem):
        return error
    make = next((make for kind, make in _PROBLEM_OF.items() if isinstance(error, kind)), None)
    return unexpected(REQUEST_ID.get() or "") if make is None else make(error)


def install(app: FastAPI) -> None:
    """Answer the errors in HANDLED of `app` as problems."""
    for kind in HANDLED:
        app.add_exception_handler(kind, answer)


async def answer(request: Request, error: Exception) -> Response:
    """Answer one of the errors in HANDLED."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)  # only the access log sees it
    if isinstance(error, HTTPException) and not isinstance(error, Problem):
        error = _problem_of_http(request, error)
    return problem_of(error).response()


def invalid(errors: Sequence[Any]) -> Problem:
    """422 for the first of pydantic's errors, or for an unknown member: a missing one may be what it means."""
    first = next((error for error in errors if error["type"] == UNKNOWN_MEMBER), errors[0])
    place = first["loc"]
    if first["type"] == UNKNOWN_MEMBER:
        name = first["ctx"]["name"]
        return bad_value(_parameter_name((*place, name)), first["input"][name], first["msg"], "bad-request")
    parameter = _parameter_name(place)
    more = len(errors) - 1
    detail = f"{parameter}: {first['msg']}" + (f" (and {more} more)" if more else "") + "."
    value = None if first["type"] == "missing" else _quotable(first.get("input"))
    return Problem("bad-request", detail, parameter=parameter, value=value)


def unknown_member(name: str, known: Collection[str]) -> PydanticCustomError:
    """The error of a model's validator for a member that is not one of the `known`."""
    # The text is a value of the template: it may have braces, which a template would read.
    return PydanticCustomError(UNKNOWN_MEMBER, "{text}", {"name": name, "text": unknown_name("member", name, known)})


def unknown_item_member(name: str, value: object, known: Collection[str]) -> Problem:
    """422 for a member of an item that is not one of the `known`."""
    return bad_value(_cut(name), value, unknown_name("member", name, known), "bad-request")


def unknown_parameter(name: str, value: str, known: Collection[str]) -> Problem:
    """422 for a query parameter that is not one of the `known`."""
    if not name:
        detail = "A parameter has no name. Write name=value, and percent-encode '&' and '=' within a value."
    else:
        detail = unknown_name("parameter", name, known) + _url_hint(known)
    return bad_value(_cut(name), value, detail, "bad-request")


def repeated_parameter(name: str, value: str, known: Collection[str]) -> Problem:
    """422 for a single query parameter that is given more than once."""
    return bad_value(name, value, f"Parameter {name!r} is repeated. Give it once.{_url_hint(known)}", "bad-request")


def repeated_member(name: str, value: object) -> Problem:
    """422 for a name that a JSON object has twice."""
    return bad_value(_cut(name), value, f"Member {_cut(name)!r} is repeated. Give it once.", "bad-request")


def _url_hint(known: Collection[str]) -> str:
    return " If it belongs to the page's URL, percent-encode that URL." if "url" in known else ""


def _problem_of_http(request: Request, error: HTTPException) -> Problem:
    """The problem of an error of Starlette or FastAPI."""
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return Problem("bad-request", "The request body is not valid JSON in UTF-8.")
    headers = error.headers
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and "route" in request.scope:
        headers = {**(headers or {}), "Allow": ", ".join(_methods(request))}
    slug = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return Problem(slug, str(error.detail), headers)


def _methods(request: Request) -> Sequence[str]:
    """All methods of the route's path (RFC 9110 10.2.1). FastAPI lists those of the first route that has the path."""
    path = request.scope["route"].path
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path == path]
    methods = {method for route in routes for method in route.methods or ()}
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def unexpected(request_id: str) -> Problem:
    """500 for an exception that nothing handled; the log has it under the request id."""
    detail = "The service failed unexpectedly. Its log has the error under this request id."
    return Problem("internal-server-error", detail, request_id=request_id)


def _parameter_name(location: tuple[int | str, ...]) -> str:
    """`("body", "urls", 2)` -> `urls[2]`. Names of members come from the caller, so they are cut like values."""
    name = ""
    for part in location[1:] or location:
        name += f"[{part}]" if isinstance(part, int) else f".{_cut(part)}" if name else _cut(part)
    return name


def _quotable(value: object) -> object:
    """A value as errors quote it: at most QUOTED characters of its text or JSON, and an ellipsis if it is longer."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= QUOTED else _cut(str(value))
    if isinstance(value, float):
        return value if isfinite(value) else str(value)  # JSON has no infinity and no NaN
    if isinstance(value, bytes):  # a body that is not JSON
        return _cut(value[: QUOTED + 1].decode("utf-8", "replace"))
    if isinstance(value, str):
        return _cut(value)
    beginning = ""
    for piece in json.JSONEncoder(default=str).iterencode(value):  # no more of a large value than is quoted
        beginning += piece
        if len(beginning) > QUOTED:
            break
    return _cut(beginning)


def _cut(text: str) -> str:
    return text if len(text) <= QUOTED else text[:QUOTED] + "…"


def documented(*statuses: int) -> Mapping[int | str, dict[str, Any]]:
    """The problems a route may answer with, for the OpenAPI document."""
    schema = {"$ref": "#/components/schemas/ProblemOut"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def _quota_exceeded(error: QuotaExceeded) -> Problem:
    seconds = max(1, ceil(error.retry_after))
    return Problem("quota-exceeded", f"{error} Try again in {seconds} s.", retry_after=seconds)


def _no_version(error: NoVersion) -> Problem:
    return Problem("no-version", str(error), earliest=None if error.earliest is None else instant(error.earliest))


_PROBLEM_OF: Final[Mapping[type[Exception], Callable[[Any], Problem]]] = {
    BadQuestion: lambda error: bad_value(error.parameter, error.value, str(error)),
    ChangedMeanwhile: lambda error: Problem("edit-conflict", f"{error} Read it again, then retry."),
    FromFile: lambda error: Problem("override-of-file", str(error)),
    ManyOverrides: lambda error: Problem("too-many-overrides", str(error)),
    NothingKnown: lambda error: Problem("no-file", str(error)),
    NoVersion: _no_version,
    Overloaded: lambda error: Problem("overloaded", str(error), retry_after=error.retry_after),
    Busy: lambda error: Problem("busy", str(error), retry_after=error.retry_after),
    QuotaExceeded: _quota_exceeded,
    RequestValidationError: lambda error: invalid(error.errors()),
    StoreDown: lambda error: Problem("store-down", f"The store is unavailable: {error}.", retry_after=1),
}
"""The problem of each error; an error of several kinds has the first."""

HANDLED: Final[tuple[type[Exception], ...]] = (*_PROBLEM_OF, ClientDisconnect, HTTPException)
"""The errors that are answered as a problem; a Problem is an HTTPException."""
