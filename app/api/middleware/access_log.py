"""Request ids, answers to unexpected errors, and one log line per request."""

import logging
import re
from collections.abc import Callable, Iterable
from itertools import count
from secrets import token_hex

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.auth import key_of
from app.api.problems import unexpected
from app.observability.logs import REQUEST_ID, log_request
from app.observability.metrics import Metrics

LONGEST_PATH = 200
"""Characters of a path that are logged."""

SEGMENTS = 2
"""Segments of a path that are logged if no route matched: `/v1/permits`, but not the permit that follows."""

_REQUEST_ID_PATTERN = re.compile(rb"[A-Za-z0-9._-]{1,128}")

_log = logging.getLogger(__name__)


class AccessLog:
    """The outermost middleware: it sees every answer as it is sent, and every exception that nothing else handles.

    The request id is the caller's X-Request-ID if that is well-formed, else a new one. The answer carries it, and so
    does every line logged for the request. The access line holds the path template of the route and the id of the API
    key, but neither URLs nor agents nor permits, which are private to the caller.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, monotonic: Callable[[], float], *, access_log: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._monotonic = monotonic
        self._access_log = access_log
        # Ids must be unique, not secret, so a counter is enough.
        self._process = token_hex(6)
        self._count = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = self._monotonic()
        request_id = _valid_id(scope["headers"]) or f"{self._process}-{next(self._count):x}"
        status: int | None = None
        deferred = False

        async def send_with_id(message: Message) -> None:
            nonlocal status, deferred
            if message["type"] == "http.response.start":
                status = message["status"]
                deferred = status == 503 and _says_verdict(message)
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode("ascii"))]
            await send(message)

        token = REQUEST_ID.set(request_id)
        try:
            await self._app(scope, receive, send_with_id)
        except Exception:  # noqa: BLE001 - nothing is swallowed: it is logged with its traceback, and answered
            _log.exception("unexpected error in %s %s", scope["method"], _path(scope))
            # If the answer has begun, it cannot be replaced: returning early makes the server close the connection.
            if status is None:
                await unexpected(request_id).response()(scope, receive, send_with_id)
        finally:
            self._note(scope, status, self._monotonic() - begun, deferred=deferred)
            REQUEST_ID.reset(token)

    def _note(self, scope: Scope, status: int | None, seconds: float, *, deferred: bool) -> None:
        if status is not None:
            route = getattr(scope.get("route"), "path", "")
            self._metrics.answered(route, scope["method"], status, deferred=deferred)
        key = key_of(scope)
        if key is not None and status is not None:
            self._metrics.key_used(key.id, status)
        if self._access_log:
            log_request(scope["method"], _path(scope), status, seconds, None if key is None else key.id)


def _valid_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"x-request-id":
            return value.decode("ascii") if _REQUEST_ID_PATTERN.fullmatch(value) else None
    return None


def _says_verdict(message: Message) -> bool:
    """Whether a 503 is the verdict `defer` of `GET /v1/check`."""
    return any(name.lower() == b"robots-verdict" for name, _ in message.get("headers", ()))


def _path(scope: Scope) -> str:
    """The path template of the route; if none was matched (404, 401), the first segments of the path."""
    route: str | None = getattr(scope.get("route"), "path", None)
    if route is not None:
        return route
    path: str = scope["path"]
    segments = path.split("/", SEGMENTS + 1)
    if len(segments) > SEGMENTS + 1:
        path = "/".join([*segments[: SEGMENTS + 1], "…"])
    return path if len(path) <= LONGEST_PATH else path[:LONGEST_PATH] + "…"
