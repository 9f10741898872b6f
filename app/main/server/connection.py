"""Bounds for one client connection, on top of uvicorn's protocol for httptools.

uvicorn with httptools bounds neither the size of a head nor the time it takes, waits forever for clients that send or
read nothing, and queues every pipelined request. It appends trailer fields to the header fields, and accepts requests
with two Host fields or none. uvicorn with h11 bounds heads and trailers at 64 KiB, drops trailer fields and requires
one Host; but it bounds neither time nor unread answers, so it would need a subclass of its own. A reverse proxy keeps
all of these bounds, but not every instance has one in front.

Upstream: https://github.com/Kludex/uvicorn/issues/157 (limits; closed) and
https://github.com/Kludex/uvicorn/pull/3125 (one Host field). We know of no issue about trailers with httptools.

`HttpToolsProtocol` is not a documented interface, so pyproject.toml pins uvicorn's minor version. Apart from asyncio's
callbacks, this module uses these names of it:

- `on_header`, `on_headers_complete`, `on_body`, `on_message_complete`: httptools calls them; only here can a message be
  refused while it is parsed;
- `send_400_response`, `on_response_complete`, `shutdown`: uvicorn calls them at the three events that end a request;
- `app`, `app_state`, `connections`, `cycle`, `pipeline`, `parser`, `flow`, `headers`, `url`, `server_state`: the state
  that these callbacks read;
- `_unsupported_upgrade_warning`: it logs two lines for every Upgrade field, and no setting turns that off.
"""

import asyncio
import random
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NoReturn, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.problems import MEDIA_TYPE, Problem
from app.main.server.connection_limits import OverloadedApp, UnreadAnswers, max_connections

HEAD_LIMIT = 64 * 1024
"""Bytes of the longest head: the longest URL with every byte of it escaped, and a browser's cookies.

Chunk headers and trailers may have as many bytes between two pieces of a body.
"""

HEAD_SECONDS = 10.0
"""Seconds in which a head has to arrive, from its first byte or from the start of the connection."""

PIPELINED = 32
"""Requests that may wait behind the one being answered; a connection with more is closed after these."""

REST_SECONDS = 3.0
"""Seconds to wait for the rest of a request that has been answered already, or whose process is stopping."""

FIRST_REQUEST_SECONDS = 1.0
"""Seconds that a stopping process waits for a first request, or for one whose head has begun to arrive."""

READ_SECONDS = 60.0
"""Seconds in which a client has to read some of the answers that wait for it."""


STOPPING = "stopping"
"""The name of an asyncio.Event in the state that the application's lifespan yields; set when the server stops."""


class _HeadRefused(Exception):
    """Raised in a callback of the parser, which turns it into an error of its own."""


class _TooManyPipelined(Exception):
    """A client that pipelines has to be ready to send requests again (RFC 9112 9.3.2)."""


class BoundedMessages(HttpToolsProtocol):
    """Bounds heads, chunk framing and pipelines, and applies the rules of RFC 9112 for Host and trailers."""

    _in_head = True  # a head is expected or arriving; otherwise the body of `cycle`
    _head_bytes = 0  # received since the last body ended
    _framing_bytes = 0  # received since the last piece of the body
    _problem: Problem | None = None  # why the head that is being parsed is refused
    _unanswered: Sequence[RequestResponseCycle] = ()  # at most PIPELINED, and those answered since the last head

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        else:
            self._framing_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._head_bytes > HEAD_LIMIT:
            self._refuse(_head_too_large())
        elif not self._in_head and self._framing_bytes > HEAD_LIMIT:
            self._refuse(_trailers_too_large())

    def on_header(self, name: bytes, value: bytes) -> None:
        # The parser reports trailer fields here, too. They must not be merged into the header fields (RFC 9110 6.5.1),
        # where X-API-Key and X-Forwarded-For are trusted. No route uses trailers, so they are dropped.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return
        # One read may exceed the limit with bytes of the body, so measure the fields themselves.
        if self._head_bytes > HEAD_LIMIT and self._head_size() > HEAD_LIMIT:
            self._refuse_head(_head_too_large())
        self._check_version_and_host()
        self._in_head = False
        self._head_bytes = self._framing_bytes = 0
        if len(self.pipeline) >= PIPELINED:
            raise _TooManyPipelined
        super().on_headers_complete()
        self._unanswered = [*(cycle for cycle in self._unanswered if not cycle.response_complete), self.cycle]

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = True
        if not self.transport.is_closing():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a message that cannot be parsed."""
        if self._problem is None and self._in_head and self._head_bytes > HEAD_LIMIT:
            self._problem = _head_too_large()
        self._refuse(self._problem or Problem("bad-http", msg))

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered without the upgrade."""

    def _drop_answers(self) -> None:
        """Let the requests of this connection end: nothing more is written.

        uvicorn tells only the last of several pipelined requests that the connection is lost.
        """
        for cycle in self._unanswered:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _answer_pending(self) -> bool:
        """Whether the last request is still to be answered."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _check_version_and_host(self) -> None:
        """Require HTTP/1.x and exactly one Host field (RFC 9112 3.2), which HTTP/1.0 may omit."""
        version = self.parser.get_http_version()
        if version not in {"1.0", "1.1"}:
            self._refuse_head(Problem("bad-http", f"HTTP/{version} is not supported; use HTTP/1.1."))
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            self._refuse_head(Problem("bad-http", f"The request has {hosts} Host fields; send exactly one."))
        _, absolute, rest = self.url.partition(b"://")
        if absolute and not self.url.startswith(b"/"):
            # The authority of an absolute target replaces Host (RFC 9112 3.2.2).
            authority = re.split(rb"[/?#]", rest, maxsplit=1)[0]
            self.headers[:] = [field for field in self.headers if field[0] != b"host"] + [(b"host", authority)]

    def _refuse_head(self, problem: Problem) -> NoReturn:
        self._problem = problem
        raise _HeadRefused

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse(self, problem: Problem) -> None:
        if self.transport.is_closing():
            return
        if self._answer_pending() and not self.cycle.more_body:
            # The requests before this one were valid: they are answered, then the connection ends.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if not self._answer_pending() or not (self.cycle.response_started or self.pipeline):
            content = problem.text.encode()
            fields = [*self.server_state.default_headers, (b"content-type", MEDIA_TYPE.encode())]
            fields += [(b"content-length", b"%d" % len(content)), (b"connection", b"close")]
            head = b"HTTP/1.1 %d %s\r\n" % (problem.status_code, HTTPStatus(problem.status_code).phrase.encode())
            self.transport.write(head + b"".join(b"%s: %s\r\n" % field for field in fields) + b"\r\n" + content)
        self._drop_answers()
        self.transport.close()


class Connection(BoundedMessages):
    """Bounds the time that a client may take to send and to read, and the connections and unread bytes of a process.

    The bounds are constants of this module and of `connection_limits`; tests use shorter ones.
    """

    head_seconds = HEAD_SECONDS
    rest_seconds = REST_SECONDS
    first_seconds = FIRST_REQUEST_SECONDS
    read_seconds = READ_SECONDS
    limit: int | None = None  # None: max_connections()
    unread = UnreadAnswers()

    _next_is_last = False  # the process is stopping: close after the next answer
    _head_timer: asyncio.TimerHandle | None = None
    _rest_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, max_age: float | None = None, **options: Any) -> None:
        """`max_age` is in seconds: the answer to the first request after it, or up to a tenth before, is the last."""
        super().__init__(*args, **options)
        # Connections that were opened together do not end together.
        self._last_from = None if max_age is None else self.loop.time() + max_age * random.uniform(0.9, 1.0)  # noqa: S311

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        limit = max_connections() if self.limit is None else self.limit
        excess = len(self.connections) - limit
        if excess > limit:
            transport.abort()
        elif excess > 0:
            self.app = OverloadedApp(self.app)
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_timed_out)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._rest_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        self.unread.remove(self.transport)
        self._drop_answers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and self._head_bytes and self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_timed_out)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self._in_head:
            return  # the connection is closing
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if self._next_is_last or (self._last_from is not None and self.loop.time() >= self._last_from):
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_head and self.cycle.response_complete:
            self._start_rest_timer()

    def shutdown(self) -> None:
        stopping = self.app_state.get(STOPPING)
        if stopping is not None:
            stopping.set()
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if not self._answer_pending() and (cycle is None or self._head_bytes):
            # A new connection's request may be on its way: closing would fail it for no reason. An idle connection is
            # closed, which a client has to expect at any time.
            self._next_is_last = True
            self._rest_timer = self.loop.call_later(self.first_seconds, self._close_unless_requested)
            return
        super().shutdown()
        # Complete requests are answered. A client that is still sending one can send it to another process.
        if self._answer_pending() and self.cycle.more_body:
            self._start_rest_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread.add(self.transport, self.transport.get_write_buffer_size())
        self._read_timer = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.unread.remove(self.transport)
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _head_timed_out(self) -> None:
        if self._answer_pending():
            # The client may be waiting for that answer, and is not read from until then.
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_timed_out)
        elif self._head_bytes == 0:
            self.transport.close()
        else:
            detail = f"The request head did not arrive within {self.head_seconds:.0f} s."
            self._refuse(Problem("slow-request", detail))

    def _close_unless_requested(self) -> None:
        self._rest_timer = None
        if not self._answer_pending():
            self.transport.close()

    def _start_rest_timer(self) -> None:
        if self._rest_timer is None:
            self._rest_timer = self.loop.call_later(self.rest_seconds, self._rest_timed_out, self.cycle)

    def _rest_timed_out(self, cycle: object) -> None:
        self._rest_timer = None
        if self.cycle is cycle and not self._in_head:
            self.transport.abort()


def _trailers_too_large() -> Problem:
    detail = f"The chunk headers and trailers are larger than {HEAD_LIMIT} bytes."
    return Problem("head-too-large", detail)


def _head_too_large() -> Problem:
    return Problem("head-too-large", f"The request head is larger than {HEAD_LIMIT} bytes.")
