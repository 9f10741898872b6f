"""One request and its response on a connection of their own: HTTP/1.1, parsed by httptools, within limits."""

import asyncio
from collections.abc import Callable
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from app.fetch.response import BODY_BYTES, READ_BYTES, Body, Headers, Unreadable
from robots_core.robots.access import Cause

HEAD_BYTES = 128 * 1024
"""How much may be received before the head of the final response is complete, interim responses (1xx) included."""

PIECES_LIMIT = 65_536
"""How many pieces a body may arrive in: a chunk of one byte costs as much to read as one of a thousand."""

BodyOf = Callable[[int, Headers], Body | None]
"""The body to read after a head with this status and these fields; None to read none. Raises Unreadable."""


class Exchange(asyncio.BufferedProtocol):
    """Sends `request` once connected, reads the head of the response and the body that `body_of` returns, and closes.

    `closed` is set once the connection is closed. `failure` then says why the response is not complete, None if it is.
    `status` is None unless there was a head, and `body` if none was read. An instance is for one connection.
    """

    def __init__(self, request: bytes, body_of: BodyOf) -> None:
        self.closed = asyncio.Event()
        self.failure: Cause | None = None
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.body: Body | None = None
        self._request = request
        self._body_of = body_of
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._head = bytearray()
        self._received = 0
        self._arrived: list[bytes] = []
        self._pieces = 0
        self._has_head = False
        self._until_close = False
        self._complete = False
        self._over = False

    # asyncio calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport does not derive from it
        self._parser = HttpResponseParser(self)
        # What servers send and clients accept: lines that end with LF alone, a length beside chunks, and control
        # characters in fields. No other client shares the connection, so none can be sent a part of this response.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_chunked_length=True, lenient_headers=True
        )
        self._transport.write(self._request)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._over:
            return
        try:
            self._receive(self._buffer[:nbytes])
        except (HttpParserError, HttpParserUpgrade, Unreadable):
            self._end(Cause.BAD_RESPONSE)
        if nbytes == READ_BYTES and not self._over:
            # There may be more. uvloop would pass on up to 32 buffers before other tasks run.
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._resume)

    def eof_received(self) -> None:
        self._end_of_file()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            self._end_of_file()  # without close_notify, TLS does not call eof_received
        else:
            self._end(Cause.CONNECTION)
        del self._parser, self._transport  # which refer to this object
        self.closed.set()

    # httptools calls these, which raise nothing.

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # else it is a trailer
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if not 100 <= status < 200 or status == 101:
            self._has_head = True
        elif not self._has_head:
            self.headers.clear()

    def on_body(self, body: bytes) -> None:
        if not self._complete:  # else it is of another response, which was not asked for
            self._arrived.append(body)

    def on_message_complete(self) -> None:
        self._complete = self._has_head

    # What was received.

    def _receive(self, data: memoryview) -> None:
        self._received += len(data)
        if self.body is not None:
            self._read_body(self.body, data)
            return
        self._read_head(data)
        if self._has_head:
            self.body = self._begin_body()
            if self.body is None:
                self._end(None)
            else:
                self._read_body(self.body, self._head)
        elif self._received > HEAD_BYTES:
            raise Unreadable(f"the head has more than {HEAD_BYTES} bytes")

    def _read_head(self, data: memoryview) -> None:
        # Collected here, because httptools would copy a field again for each piece of it that arrives.
        searched = max(0, len(self._head) - len(b"\n\r"))
        self._head += data
        while not self._has_head and (end := _end_of_head(self._head, searched)):
            head, searched = _with_one_length(bytes(self._head[:end])), 0
            del self._head[:end]
            self._parser.feed_data(head)

    def _begin_body(self) -> Body | None:
        """Find out how the body ends, and whether it is read; the parser has read the head."""
        status, codings = self._parser.get_status_code(), self._values(b"transfer-encoding")
        if status < 200 or self._parser.get_http_version() not in ("1.0", "1.1") or codings not in ([], [b"chunked"]):
            raise Unreadable("the response is not of HTTP/1.1, or has a transfer coding that was not requested")
        if any(b"\0" in value for _, value in self.headers):
            raise Unreadable("a field has a NUL")
        self.status = status
        self._until_close = not codings and not self._values(b"content-length")
        return self._body_of(status, self.headers)

    def _values(self, name: bytes) -> list[bytes]:
        return [value.strip().lower() for key, value in self.headers if key.lower() == name]

    def _read_body(self, body: Body, data: memoryview | bytearray) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserError:
            if not self._complete:  # else it is about what follows the response
                raise
        arrived, self._arrived = self._arrived, []
        body.feed(b"".join(arrived))
        self._pieces += max(1, len(arrived))
        if body.truncated or self._complete:
            self._end(None)
        elif self._pieces > PIECES_LIMIT or self._received > HEAD_BYTES + BODY_BYTES:
            raise Unreadable("the body has more pieces, or more framing, than a file needs")

    def _end_of_file(self) -> None:
        if self._received == 0:
            self._end(Cause.CONNECTION)
        else:
            self._end(None if self._until_close else Cause.BAD_RESPONSE)

    def _end(self, failure: Cause | None) -> None:
        """Close the connection; only the first failure counts."""
        if not self._over:
            self._over, self.failure = True, failure
            self._transport.abort()

    def _resume(self) -> None:
        if not self._over:
            self._transport.resume_reading()


def _end_of_head(data: bytearray, start: int) -> int:
    """Where the first empty line after `start` ends, 0 if there is none. A line may end with LF alone."""
    found = ((data.find(ending, start), len(ending)) for ending in (b"\n\r\n", b"\n\n"))
    return min((at + size for at, size in found if at >= 0), default=0)


def _with_one_length(head: bytes) -> bytes:
    """The head with one Content-Length if it repeats one value, in several fields or a list (spec A33).

    The parser refuses every repetition; one with several values is left for it to refuse.
    """
    lines = head.splitlines(keepends=True)
    lengths = [line for line in lines if line[:15].lower() == b"content-length:"]
    if len(lengths) < 2 and not any(b"," in line for line in lengths):
        return head
    values = {value.strip() for line in lengths for value in line[15:].split(b",")}
    if len(values) != 1:
        return head
    others = [line for line in lines if line[:15].lower() != b"content-length:"]
    return b"".join((others[0], b"Content-Length: %b\r\n" % values.pop(), *others[1:]))
