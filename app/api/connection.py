"""One connection of a caller: uvicorn's own, and bounds for all that a caller can make it hold or wait for.

uvicorn with httptools reads a head without an end, however slowly it comes, waits for ever for a client that says
nothing, or that reads nothing, and queues as many requests as are sent ahead of their answers. It appends trailer
fields, however many, to the header fields, and accepts requests with two Host fields, or none.

uvicorn with h11 (`http="h11"`) does some of this by itself: heads, chunk headers and trailers end at 64 KiB, trailer
fields are dropped, exactly one Host is required, and requests ahead are read one by one. It bounds no time either, but
for a connection that is idle after an answer.
"""

import asyncio
import re
import resource
from functools import cache
from http import HTTPStatus
from typing import NoReturn, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.problems import MEDIA_TYPE, Problem

HEAD_LIMIT = 64 * 1024
"""Octets of the longest head: the longest URL with every octet of it escaped, and a browser's cookies.

Bytes of chunked framing that bring no piece of the body, trailers among them, are bounded by as many."""

HEAD_SECONDS = 10.0
"""Seconds within which a head has to be there as a whole, from the connection's begin or the head's."""

PIPELINED = 32
"""How many requests may wait behind the one that is answered; a connection with more is closed after these."""

REST_SECONDS = 3.0
"""Seconds for which the rest of a request is waited for that is answered already, or whose process ends."""

FIRST_SECONDS = 1.0
"""Seconds for which a process that ends waits for a first request, or for one whose head has begun to arrive."""

READ_SECONDS = 60.0
"""Seconds within which a client has to read some of the answers that wait for it."""

UNREAD_LIMIT = 128 * 1024 * 1024
"""Bytes of answers that wait for their readers, of all connections of the process together.

Past it, the connections that have read nothing for the longest time are closed. A connection holds the body that was
sent last, and 64 KiB.
"""

FILES = 65_536
"""File descriptors that a process asks for, as far as the system lets it."""

FILES_KEPT = 2048
"""Those kept for fetches, names and the store: a fetch that finds none free would tell it as its origin's fault."""

MOST_CONNECTIONS = 10_000

_ALWAYS = frozenset({"/healthz", "/metrics"})


def allow_files() -> None:
    """Let this process, and those it begins, have more file descriptors than the system gives unasked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@cache
def most_connections() -> int:
    """How many connections are served at once; with as many more, requests are refused, and then connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(soft // 4, (soft - FILES_KEPT) // 2))


class _HeadRefused(Exception):
    """Raised in a callback of the parser, which turns it into an error of its own."""


class _TooManyAhead(Exception):
    """RFC 9112 9.3.2: who sends ahead has to be ready to send again."""


class Unread:
    """What waits for readers that are slow: connections by how long they have read nothing, and their bytes."""

    def __init__(self, limit: int = UNREAD_LIMIT) -> None:
        self._limit = limit
        self._waiting: dict[Connection, int] = {}
        self._total = 0

    def add(self, connection: "Connection", size: int) -> None:
        """Note that so many bytes wait; close whoever has waited longest while that is too much in all."""
        self._waiting[connection] = size
        self._total += size
        while self._total > self._limit:
            slowest = next(iter(self._waiting))
            self.remove(slowest)
            slowest.transport.abort()

    def remove(self, connection: "Connection") -> None:
        """Forget a connection: it has been read from, or it is gone."""
        self._total -= self._waiting.pop(connection, 0)


class Connection(HttpToolsProtocol):
    """What uvicorn makes of each connection. The bounds are the constants of this module; tests have less time."""

    head_seconds = HEAD_SECONDS
    rest_seconds = REST_SECONDS
    first_seconds = FIRST_SECONDS
    read_seconds = READ_SECONDS
    most: int | None = None  # as most_connections
    unread = Unread()

    _last = False  # the process ends, and the next request is answered last
    _in_head = True  # a head is what comes next, or is coming: else the body that belongs to `cycle`
    _head_octets = 0  # what has come of it, or with it
    _framing = 0  # bytes received since the last piece of the body
    _reason: Problem | None = None  # why the head that is being read is refused
    _head_timer: asyncio.TimerHandle | None = None
    _rest_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most = most_connections() if self.most is None else self.most
        excess = len(self.connections) - most
        if excess > most:
            transport.abort()
        elif excess > 0:
            self.app = _Overloaded(self.app)
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._rest_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        self.unread.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_octets += len(data)
        else:
            self._framing += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._in_head:
            if self._framing > HEAD_LIMIT:
                self._refuse(_trailers_too_large())
        elif self._head_octets > HEAD_LIMIT:
            self._refuse(_head_too_large())
        elif self._head_octets and self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser reports trailer fields here, too. They must not be merged into the header fields (RFC 9110 6.5.1),
        # where X-API-Key and X-Forwarded-For are believed; nothing here needs any, so they are dropped.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return
        # A piece of what is received may be larger than the limit, and hold much besides a head.
        if self._head_octets > HEAD_LIMIT and self._head_size() > HEAD_LIMIT:
            self._refuse_head(_head_too_large())
        self._check_host()
        self._in_head = False
        self._head_octets = self._framing = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if len(self.pipeline) >= PIPELINED:
            raise _TooManyAhead
        super().on_headers_complete()
        if self._last:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._framing = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = True
        if not self.transport.is_closing():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read."""
        if self._reason is None and self._in_head and self._head_octets > HEAD_LIMIT:
            self._reason = _head_too_large()
        self._refuse(self._reason or Problem(400, "bad-http", msg))

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: it is answered as if no upgrade had been asked for, and whoever asks fills no log."""

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_head and self.cycle.response_complete:
            self._wait_for_the_rest()

    def shutdown(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if not self._answers() and (cycle is None or self._head_octets):
            # It has been accepted, and its request may be on the way: to close it would fail that for no reason. An
            # idle connection is closed, as a client has to expect at any time.
            self._last = True
            self._rest_timer = self.loop.call_later(self.first_seconds, self._close_unless_asked)
            return
        super().shutdown()
        # Who has asked is answered; who has not asked to the end need not, and asks another process.
        if self._answers() and self.cycle.more_body:
            self._wait_for_the_rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread.add(self, self.transport.get_write_buffer_size())
        self._read_timer = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread.remove(self)
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _answers(self) -> bool:
        """Whether the answer to the last request that came is still to be given."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # there is none before the first request
        return cycle is not None and not cycle.response_complete

    def _check_host(self) -> None:
        """Raise unless the head has the one Host field that RFC 9112 3.2 requires; HTTP/1.0 may have none."""
        version = self.parser.get_http_version()
        if version not in {"1.0", "1.1"}:
            self._refuse_head(Problem(400, "bad-http", f"HTTP/{version} is not served here; use HTTP/1.1."))
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            self._refuse_head(Problem(400, "bad-http", f"The request has {hosts} Host fields; send exactly one."))
        _, absolute, rest = self.url.partition(b"://")
        if absolute and not self.url.startswith(b"/"):
            # The target's authority counts, and Host is ignored (RFC 9112 3.2.2).
            authority = re.split(rb"[/?#]", rest, maxsplit=1)[0]
            self.headers[:] = [field for field in self.headers if field[0] != b"host"] + [(b"host", authority)]

    def _refuse_head(self, problem: Problem) -> NoReturn:
        self._reason = problem
        raise _HeadRefused

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _head_is_late(self) -> None:
        if self._answers():
            # Its turn has not come: nothing more may be read from the client until it is answered.
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)
        elif self._head_octets == 0:
            self.transport.close()
        else:
            self._refuse(
                Problem(408, "slow-request", f"The head of a request was not there in {self.head_seconds:.0f} s.")
            )

    def _close_unless_asked(self) -> None:
        self._rest_timer = None
        if not self._answers():
            self.transport.close()

    def _wait_for_the_rest(self) -> None:
        if self._rest_timer is None:
            self._rest_timer = self.loop.call_later(self.rest_seconds, self._rest_is_late, self.cycle)

    def _rest_is_late(self, cycle: object) -> None:
        self._rest_timer = None
        if self.cycle is cycle and not self._in_head:
            self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        if self.transport.is_closing():
            return
        if self._answers() and not self.cycle.more_body:
            # What cannot be read stands behind requests that were, whose answers are given before the end.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if not self._answers() or not (self.cycle.response_started or self.pipeline):
            content = problem.text.encode()
            fields = [*self.server_state.default_headers, (b"content-type", MEDIA_TYPE.encode())]
            fields += [(b"content-length", b"%d" % len(content)), (b"connection", b"close")]
            head = b"HTTP/1.1 %d %s\r\n" % (problem.status_code, HTTPStatus(problem.status_code).phrase.encode())
            self.transport.write(head + b"".join(b"%s: %s\r\n" % field for field in fields) + b"\r\n" + content)
        self.transport.close()


class _Overloaded:
    """What answers on a connection too many: what the platform asks, and that everybody else is to come back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _ALWAYS:
            detail = "As many connections are open as this process serves; ask again in 1 s."
            problem = Problem(503, "overloaded", detail, {"Retry-After": "1", "Connection": "close"})
            await problem.response()(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _trailers_too_large() -> Problem:
    detail = f"The chunk headers and trailers of the request have more than {HEAD_LIMIT} bytes."
    return Problem(431, "head-too-large", detail)


def _head_too_large() -> Problem:
    return Problem(431, "head-too-large", f"The head of the request has more than {HEAD_LIMIT} octets.")
