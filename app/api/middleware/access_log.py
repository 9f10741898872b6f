"""Request ids, answers to unexpected errors, and one log line per request."""

import logging
import re
from collections.abc import Callable, Iterable
from itertools import count
from secrets import token_hex

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.caller import caller_of
from app.api.problems import Problem, unexpected
from app.loop.request import REQUEST_ID, TRACE_ID
from app.observability.logs import log_request
from app.observability.metrics import Metrics

LONGEST_PATH = 200
"""Characters of a path that are logged."""

SEGMENTS = 2
"""Segments of a path that are logged if no route matched: `/v1/permits`, but not the permit that follows."""

QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes of probes and scrapes, which are logged only if they fail: there are 20 a minute."""

_REQUEST_ID_PATTERN = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_TRACEPARENT_PATTERN = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]*)?")
"""A field of W3C Trace Context: version, trace, parent, flags, and what later versions add."""

_log = logging.getLogger(__name__)


class AccessLog:
    """The outermost middleware: it sees every answer as it is sent, and answers every exception that nothing else
    handles, and the problems that other middleware raises.

    The request id is the caller's X-Request-ID if that is well-formed, else a new one. The answer carries it, and so
    does every line logged for the request. A line also has the id of the trace: of that which this process records, or
    that the caller's `traceparent` names. The access line holds the path template of the route and the id of the API
    key, but neither URLs nor agents nor permits, which are private to the caller.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        monotonic: Callable[[], float],
        *,
        access_log: bool,
        log_client: bool = True,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._monotonic = monotonic
        self._access_log = access_log
        self._log_client = log_client
        # Ids must be unique, not secret, so a counter is enough.
        self._process = token_hex(6)
        self._count = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = self._monotonic()
        given, trace_id = _ids(scope["headers"])
        request_id = given or f"{self._process}-{next(self._count):x}"
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
        trace_token = TRACE_ID.set(trace_id) if trace_id is not None and TRACE_ID.get() is None else None
        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:  # noqa: BLE001 - nothing is swallowed: it is logged with its traceback, and answered
            problem = error if isinstance(error, Problem) else unexpected(request_id)
            if problem is not error:
                _log.exception("unexpected error in %s %s", scope["method"], _path(scope))
            # If the answer has begun, it cannot be replaced: returning early makes the server close the connection.
            if status is None:
                await problem.response()(scope, receive, send_with_id)
        finally:
            self._note(scope, status, self._monotonic() - begun, deferred=deferred)
            REQUEST_ID.reset(token)
            if trace_token is not None:
                TRACE_ID.reset(trace_token)

    def _note(self, scope: Scope, status: int | None, seconds: float, *, deferred: bool) -> None:
        route = getattr(scope.get("route"), "path", "")
        if status is not None:
            self._metrics.answered(route, scope["method"], status, deferred=deferred)
        key = caller_of(scope).key
        if key is not None and status is not None:
            self._metrics.key_used(key.id, status)
        if self._access_log and not (route in QUIET and status == 200):
            client = scope.get("client") if self._log_client else None
            address = None if client is None else client[0]
            log_request(scope["method"], _path(scope), status, seconds, None if key is None else key.id, address)


def _ids(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str | None, str | None]:
    """The caller's ids of the request and of its trace, if they are well-formed."""
    request_id = trace_id = None
    for name, value in headers:
        if name == b"x-request-id" and request_id is None:
            request_id = value.decode("ascii") if _REQUEST_ID_PATTERN.fullmatch(value) else ""
        elif name == b"traceparent":
            trace_id = _trace_id(value)
    return request_id or None, trace_id


def _trace_id(value: bytes) -> str | None:
    found = _TRACEPARENT_PATTERN.fullmatch(value)
    if found is None or found[1] == b"ff" or not found[2].strip(b"0"):
        return None
    return found[2].decode("ascii")


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
