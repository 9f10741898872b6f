"""One request and its response on a connection of their own: HTTP/1.1, parsed by httptools, within limits."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from app.fetch.response import READ_BYTES, Body, Headers, Unreadable
from robots_core.robots.access import Cause

HEAD_BYTES = 128 * 1024
"""How much may be received before the head of the final response is complete, interim responses (1xx) included."""

PIECES_LIMIT = 65_536
"""How many pieces a body may arrive in: a chunk of one byte costs as much to read as one of a thousand."""

_VERSIONS = ("1.0", "1.1", "1.2", "2.0")
"""The last two are what some servers write in HTTP/1.1."""

_SIZE_LINE = 16 * 1024
"""Bytes of the longest line with a chunk's size, extensions included."""

_HEXADECIMAL = b"0123456789abcdefABCDEF"
_TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The characters of a field name (RFC 9110 5.6.2)."""

_VERIFICATION = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed",
    19: "the certificate chain ends with a certificate that is self-signed and not trusted",
    20: "the certificate is of an authority that is not trusted, or an intermediate certificate is missing",
    21: "the certificate is of an authority that is not trusted, or an intermediate certificate is missing",
    23: "the certificate is revoked",
    62: "the certificate is for another host name",
    64: "the certificate is for another address",
}
"""What the codes of OpenSSL's X509_verify_cert mean."""

BodyOf = Callable[[int, Headers], Body | None]
"""The body to read after a head with this status and these fields; None to read none. Raises Unreadable."""


class Exchange(asyncio.BufferedProtocol):
    """Sends `request` at `begin`, reads the head of the response and the body that `body_of` returns, and closes.

    `closed` is set once the connection is closed. `failure` then says why the response is not complete, None if it is,
    and `detail` what is wrong with it.
    `status` is None unless there was a head, and `body` if none was read. An instance is for one connection.
    """

    def __init__(self, request: bytes, body_of: BodyOf) -> None:
        self.closed = asyncio.Event()
        self.failure: Cause | None = None
        self.detail: str | None = None
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.body: Body | None = None
        self._request = request
        self._body_of = body_of
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._head = bytearray()
        self._received = 0
        self._pieces = 0
        self._has_head = False
        self._framing: _Framing = _UntilClose()
        self._over = False

    def begin(self) -> None:
        """Send the request, unless the connection is over already."""
        if not (self._over or self.closed.is_set()):
            self._transport.write(self._request)

    # asyncio calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport does not derive from it
        self._parser = HttpResponseParser(self)
        # What servers send and clients accept: lines that end with LF alone, a length beside chunks, control characters
        # in fields, and another version. No other client shares the connection, so none can be sent a part of this.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True,
            lenient_chunked_length=True,
            lenient_headers=True,
            lenient_version=True,
        )

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._over:
            return
        try:
            self._receive(self._buffer[:nbytes])
        except HttpParserUpgrade:
            self._end(Cause.BAD_RESPONSE, "the response switches to another protocol")
        except (HttpParserError, Unreadable) as error:
            self._end(Cause.BAD_RESPONSE, str(error))
        if nbytes == READ_BYTES and not self._over:
            # There may be more. uvloop would pass on up to 32 buffers before other tasks run.
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._resume)

    def eof_received(self) -> None:
        self._end_of_file()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            self._end_of_file()  # without close_notify, TLS does not call eof_received
        elif isinstance(exc, ssl.SSLError):
            self._end(Cause.TLS, tls_detail(exc))  # with TLS 1.3, a client that is refused learns it here
        else:
            self._end(Cause.CONNECTION, "the connection was reset")
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
        while not self._has_head and (end := end_of_head(self._head, searched)):
            head, searched = _repaired(bytes(self._head[:end])), 0
            del self._head[:end]
            self._parser.feed_data(head)

    def _begin_body(self) -> Body | None:
        """Find out how the body ends, and whether it is read; the parser has read the head."""
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        if status < 200 or version not in _VERSIONS:
            raise Unreadable(f"the response has status {status} and is of HTTP/{version}")
        codings = {it.strip() for value in self._values(b"transfer-encoding") for it in value.split(b",")}
        codings -= {b"identity", b""}  # of RFC 2616; to repeat `chunked` changes nothing either
        if codings - {b"chunked"}:
            raise Unreadable("the response has a transfer coding that was not requested")
        self.status = status
        lengths = self._values(b"content-length")
        if codings:
            self._framing = _Chunked()
        elif status == 204 or lengths:
            self._framing = _Length(0 if status == 204 else int(lengths[0]))
        return self._body_of(status, self.headers)

    def _values(self, name: bytes) -> list[bytes]:
        return [value.strip().lower() for key, value in self.headers if key.lower() == name]

    def _read_body(self, body: Body, data: memoryview | bytearray) -> None:
        arrived, pieces = self._framing.feed(bytes(data))
        body.feed(arrived)
        self._pieces += max(1, pieces)
        if body.truncated or self._framing.complete:
            self._end(None)
        elif self._pieces > PIECES_LIMIT or self._received > HEAD_BYTES + body.most_bytes:
            raise Unreadable("the body has more pieces, or more framing, than a file needs")

    def _end_of_file(self) -> None:
        if self._received == 0:
            self._end(Cause.CONNECTION, "the connection was closed without a response")
        elif self.body is not None and isinstance(self._framing, _UntilClose):
            self._end(None)
        else:
            self._end(Cause.BAD_RESPONSE, "the connection was closed in the middle of the response")

    def _end(self, failure: Cause | None, detail: str | None = None) -> None:
        """Close the connection; only the first failure counts."""
        if not self._over:
            self._over, self.failure, self.detail = True, failure, detail
            self._transport.abort()

    def _resume(self) -> None:
        if not self._over:
            self._transport.resume_reading()


class _Framing(Protocol):
    """How the bytes behind the head become the body, and when it is `complete` (RFC 9112 6.3)."""

    complete: bool

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """The next part of the body, and of how many pieces it was put together. Raises Unreadable."""


class _UntilClose:
    complete = False

    def feed(self, data: bytes) -> tuple[bytes, int]:
        return data, 1


class _Length:
    """A body of a known length; what follows it is of another response, which was not asked for."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.complete = length == 0

    def feed(self, data: bytes) -> tuple[bytes, int]:
        data = data[: self._left]
        self._left -= len(data)
        self.complete = self._left == 0
        return data, 1


class _Chunked:
    """Chunks (RFC 9112 7.1). Blanks and extensions behind a size are ignored, and so are trailers.

    Apart from httptools, which refuses a blank before or after the `;` of an extension.
    """

    def __init__(self) -> None:
        self.complete = False
        self._left = 0  # bytes of the chunk
        self._line = b""  # the part of a size line that has arrived
        self._after = False  # whether the line end behind a chunk's bytes comes next

    def feed(self, data: bytes) -> tuple[bytes, int]:
        pieces, at = [], 0
        while at < len(data) and not self.complete:
            if self._left:
                pieces.append(data[at : at + self._left])
                at += len(pieces[-1])
                self._left -= len(pieces[-1])
                self._after = self._left == 0
                continue
            end = data.find(b"\n", at) + 1
            self._line += data[at : end or len(data)]
            if len(self._line) > _SIZE_LINE:
                raise Unreadable("a chunk size has too many bytes")
            if not end:
                break
            at, line, self._line = end, self._line, b""
            self._begin(line)
        return b"".join(pieces), len(pieces)

    def _begin(self, line: bytes) -> None:
        if self._after:
            if line.strip(b"\r\n"):
                raise Unreadable("a chunk is longer than its size")
            self._after = False
            return
        size = line.partition(b";")[0].strip()
        if not 1 <= len(size) <= 16 or size.translate(None, _HEXADECIMAL):
            raise Unreadable("a chunk has no size")
        self._left = int(size, 16)
        self.complete = self._left == 0


def tls_detail(error: ssl.SSLError) -> str:
    """Why TLS failed, in words that depend on neither the host nor its certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _VERIFICATION.get(getattr(error, "verify_code", 0), "the certificate is not valid")
    reason = (getattr(error, "reason", None) or "").replace("_", " ").lower()
    return f"TLS failed: {reason}" if reason else "TLS failed"


def end_of_head(data: bytearray, start: int) -> int:
    """Where the first empty line after `start` ends, 0 if there is none. A line may end with LF alone."""
    found = ((data.find(ending, start), len(ending)) for ending in (b"\n\r\n", b"\n\n"))
    return min((at + size for at, size in found if at >= 0), default=0)


def _repaired(head: bytes) -> bytes:
    """The head as the parser takes it: without harmless flaws for which it would refuse the whole (spec A33).

    Raises Unreadable for a NUL.
    """
    if b"\0" in head:
        raise Unreadable("a field has a NUL")
    lines = [line + b"\n" for line in head.split(b"\n")[:-1]]  # it ends with an empty line
    # A server may send an empty line before the status line (RFC 9112 2.2).
    first = next((place for place, line in enumerate(lines) if line.strip(b"\r\n")), 0) + 1
    return b"".join([*lines[:first], *_with_one_length(_valid_fields(lines[first:]))])


def _valid_fields(lines: Sequence[bytes]) -> list[bytes]:
    """The lines without fields that have no valid name, and without blanks before a colon (RFC 9112 5.1)."""
    kept, keep = [], True
    for line in lines:
        if line[:1] in (b" ", b"\t"):  # it continues the line before
            kept += [line] if keep else []
            continue
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t")
        keep = not line.strip(b"\r\n") or (colon != b"" and name != b"" and not name.translate(None, _TOKEN))
        if keep:
            kept.append(name + colon + value)
    return kept


def _with_one_length(lines: list[bytes]) -> list[bytes]:
    """The lines with one Content-Length if it repeats one value, in several fields or a list.

    The parser refuses every repetition; one with several values is left for it to refuse.
    """
    lengths = [line for line in lines if line[:15].lower() == b"content-length:"]
    if len(lengths) < 2 and not any(b"," in line for line in lengths):
        return lines
    values = {value.strip() for line in lengths for value in line[15:].split(b",")}
    if len(values) != 1:
        return lines
    others = [line for line in lines if line[:15].lower() != b"content-length:"]
    return [b"Content-Length: %b\r\n" % values.pop(), *others]
