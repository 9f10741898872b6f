"""Every request has an id, is answered even where the service makes a mistake, and leaves one line in the log."""

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
"""Segments of a path that are logged where no route matched: `/v1/permits`, and not the permit behind it."""

_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")

_log = logging.getLogger(__name__)


class AccessLog:
    """The outermost of all: it sees every answer as it is sent, and every exception that nothing else has a word for.

    The id is X-Request-ID where the caller gives one that can be believed, else a new one; the answer has it, and so
    has every line that is logged meanwhile. Of the request itself, the line has no more than the route's path, with its
    parameters as they are named and not as they were given, and the id of the API key that let it in: the URL that was
    asked about, the agent, and the permit, which holds both, are the caller's own affair.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, monotonic: Callable[[], float], *, access_log: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._monotonic = monotonic
        self._access_log = access_log
        # An id is told to nobody but its caller, and is no secret: it has to be unique, which a counter is at a tenth
        # of the price of random octets.
        self._process = token_hex(6)
        self._count = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = self._monotonic()
        request_id = _given(scope["headers"]) or f"{self._process}-{next(self._count):x}"
        status: int | None = None

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode("ascii"))]
            await send(message)

        token = REQUEST_ID.set(request_id)
        try:
            await self._app(scope, receive, noted)
        except Exception:  # noqa: BLE001 - nothing is swallowed: it is logged with its traceback, and answered
            _log.exception("unexpected error in %s %s", scope["method"], _path(scope))
            # Where the answer has begun, no other can follow: to end without its end makes the server cut it off.
            if status is None:
                await unexpected(request_id).response()(scope, receive, noted)
        finally:
            self._note(scope, status, self._monotonic() - begun)
            REQUEST_ID.reset(token)

    def _note(self, scope: Scope, status: int | None, seconds: float) -> None:
        if status is not None:
            self._metrics.answered(getattr(scope.get("route"), "path", ""), scope["method"], status)
        key = key_of(scope)
        if key is not None and status is not None:
            self._metrics.key_used(key.id, status)
        if self._access_log:
            log_request(scope["method"], _path(scope), status, seconds, None if key is None else key.id)


def _given(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"x-request-id":
            return value.decode("ascii") if _GIVEN_ID.fullmatch(value) else None
    return None


def _path(scope: Scope) -> str:
    """The path of the route; where none was matched, or looked for (401), the beginning of the request's own."""
    route: str | None = getattr(scope.get("route"), "path", None)
    if route is not None:
        return route
    path: str = scope["path"]
    segments = path.split("/", SEGMENTS + 1)
    if len(segments) > SEGMENTS + 1:
        path = "/".join([*segments[: SEGMENTS + 1], "…"])
    return path if len(path) <= LONGEST_PATH else path[:LONGEST_PATH] + "…"
