"""Parse a response: fields, Location, Retry-After, content coding. Pure; the input is not trusted."""

import math
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, urljoin

from robots_core.origin import URL_LIMIT, OtherScheme, Target, read_target
from robots_core.robots.access import (
    BODY_LIMIT,
    Access,
    Cause,
    Fetched,
    Lifetime,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
    media_type,
    readable_part,
)
from robots_core.times import read_retry_after

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
try:
    import brotli
except ImportError:  # the extra `brotli`
    brotli = None

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

FIELD_LIMIT = 1024
"""Bytes of the longest field value that is kept; values are stored, shown and sent back."""

LONGEST_WAIT = 24 * 60 * 60
"""Seconds of the longest Retry-After that is respected."""

ENCODED_SHARE = 4
"""How many bytes may be received for each byte of a file that is read."""

BODY_BYTES = ENCODED_SHARE * BODY_LIMIT
"""How much may be received for the body of a robots.txt."""

READ_BYTES = 16 * 1024
"""How much of a body is decoded at once."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses whose Location is followed."""

ZSTD_BOUNDS: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: 23}
"""Windows of at most 8 MiB are allocated."""

_CODING_ERRORS = (zlib.error, zstd.ZstdError, *(() if brotli is None else (brotli.error,)))

_SCHEME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-."

# Characters that a request target may contain (RFC 3986 3.3, 3.4); `%` too, since it may be encoded already.
_TARGET_SAFE = "/?%:@!$&'()*+,;="


class Unreadable(Exception):
    """The response is not valid HTTP; the text says what is wrong."""


def field(headers: Headers, name: bytes) -> str | None:
    """The first field of that name; None if there is none, or if it is too long or not printable."""
    return next((readable(value) for value in _values(headers, name)), None)


def listed(headers: Headers, name: bytes) -> str | None:
    """All fields of that name, joined into one list (RFC 9110 5.3); None as for `field`."""
    values = list(_values(headers, name))
    return readable(b", ".join(values)) if values else None


def readable(value: bytes) -> str | None:
    """A field value as text if it is printable ISO 8859-1, so that `text.encode("latin-1")` is the value again."""
    text = value.strip(b" \t").decode("latin-1")
    return text if 0 < len(text) <= FIELD_LIMIT and text.isprintable() else None


def as_field(text: str) -> bytes | None:
    """The field value that `readable` reads as this text; None if there is none."""
    try:
        value = text.encode("latin-1")
    except UnicodeEncodeError:
        return None
    return value if readable(value) == text else None


def _values(headers: Headers, name: bytes) -> Iterable[bytes]:
    return (value for key, value in headers if key.lower() == name)


def is_challenge(headers: Headers) -> bool:
    """Whether the response says that it is a challenge for people instead of the requested file (spec Q9)."""
    return (field(headers, b"cf-mitigated") or "").lower() == "challenge"


def sets_cookie(headers: Headers) -> bool:
    """Whether the response sets a cookie."""
    return any(key.lower() == b"set-cookie" for key, _ in headers)


def is_html(headers: Headers) -> bool:
    """Whether the response is an HTML page, by its Content-Type."""
    return media_type(field(headers, b"content-type") or "") in ("text/html", "application/xhtml+xml")


def read_validators(headers: Headers) -> Validators:
    """The validators, which make the next request conditional (RFC 9110 8.8)."""
    return Validators(etag=field(headers, b"etag"), last_modified=field(headers, b"last-modified"))


def read_lifetime(headers: Headers) -> Lifetime:
    """The fields about the freshness of the response (RFC 9111 4.2)."""
    return Lifetime(
        cache_control=listed(headers, b"cache-control"),
        expires=field(headers, b"expires"),
        date=field(headers, b"date"),
        age=field(headers, b"age"),
    )


def retry_after(headers: Headers, now: float) -> int | None:
    """Seconds from `now` (Unix time) that Retry-After asks for, LONGEST_WAIT at most.

    None for no field, an invalid one, and an instant that has passed.
    """
    wait = read_retry_after(field(headers, b"retry-after") or "", now)
    return None if wait is None or wait < 0 else math.ceil(min(wait, LONGEST_WAIT))


def read_location(base: Target, headers: Headers) -> Target | None:
    """Where a redirect from `base` leads, its path percent-encoded; None for a scheme other than http(s) (spec A9).

    User-info and fragment are dropped. Bytes beyond ASCII are read as UTF-8 if they are valid, else as ISO 8859-1; the
    path keeps them as they are. Raises Unreadable for no Location, several that differ, or one that clients would read
    differently: there may be a file, so nothing was learned.
    """
    written = {value.strip(b" \t") for value in _values(headers, b"location")}
    if len(written) != 1:
        raise Unreadable(f"the redirect has {len(written)} Locations")
    data = written.pop()
    if not 0 < len(data) <= URL_LIMIT:
        raise Unreadable(f"the redirect has a Location of {len(data)} bytes")
    if _is_ambiguous(data):
        raise Unreadable("the redirect has a Location that clients read differently")
    try:
        location, encoding = data.decode(), "utf-8"
    except UnicodeDecodeError:
        location, encoding = data.decode("latin-1"), "latin-1"
    try:
        target = read_target(urljoin(base.url, location))
    except OtherScheme:
        return None
    except ValueError as error:  # BadUrl, or urljoin's own for brackets in the wrong places
        raise Unreadable("the redirect has an invalid Location") from error
    return Target(target.origin, as_request_target(target.path, encoding))


def as_request_target(path: str, encoding: str = "utf-8") -> str:
    """The path and query of a URL as a request sends them: percent-encoded, unless they are already."""
    return quote(path, safe=_TARGET_SAFE, encoding=encoding, errors="replace")


def _is_ambiguous(location: bytes) -> bool:
    """Whether clients take the Location for different URLs."""
    path = location.partition(b"#")[0].partition(b"?")[0]
    if b"\\" in path:  # which browsers read as a slash
        return True
    scheme, colon, rest = path.partition(b":")
    if not colon or scheme.strip(_SCHEME):
        return path.startswith(b"//") and path[2:3] in (b"", b"/")
    if scheme.lower() in (b"http", b"https"):
        # Without an authority, it is no http URL (RFC 9110 4.2.1), but some clients take the path for one.
        return not rest.startswith(b"//") or rest[2:3] in (b"", b"/")
    return b"." in scheme or rest[:1].isdigit()  # a host and its port


class Decoder(Protocol):
    """Decodes a content coding piece by piece."""

    def feed(self, data: bytes, room: int) -> bytes:
        """Decode the next bytes, to at most `room` (1 or more); not called again once it has returned `room` bytes."""

    def finished(self) -> bool:
        """Whether the data is complete."""


class _Plain:
    """Bytes as they are, or gzip: the first two bytes say which, since servers label either as the other.

    One gzip member after another is read (RFC 1952 2.2); anything else after them, such as padding, is ignored.
    """

    _MAGIC = b"\x1f\x8b"

    def __init__(self) -> None:
        self._is_gzip: bool | None = None
        self._member: zlib._Decompress | None = None
        self._over = False

    def feed(self, data: bytes, room: int) -> bytes:
        if self._is_gzip is None and data:
            self._is_gzip = data[:2] == self._MAGIC[: len(data)]  # no file begins with this control character
        if not self._is_gzip:
            return data[:room]
        decoded = bytearray()
        while data and len(decoded) < room and not self._over:
            if self._member is None:
                if data[0] != self._MAGIC[0]:
                    self._over = True
                    break
                self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
            decoded += self._member.decompress(data, room - len(decoded))
            data = self._member.unconsumed_tail
            if self._member.eof:
                data, self._member = self._member.unused_data, None
        return bytes(decoded)

    def finished(self) -> bool:
        return self._member is None


class _Deflate:
    """The zlib format (RFC 9110 8.4.1.2), or raw deflate, which some servers send; the header tells them apart."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None
        self._head = b""

    def feed(self, data: bytes, room: int) -> bytes:
        if self._stream is None:
            self._head += data
            if len(self._head) < 2:
                return b""
            wrapped = self._head[0] & 0x0F == 8 and int.from_bytes(self._head[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
            data = self._head
        return self._stream.decompress(data, room) if not self._stream.eof else b""

    def finished(self) -> bool:
        return self._stream.eof if self._stream is not None else not self._head


class _Zstd:
    """One frame after another (RFC 8878 3), with windows of at most 8 MiB (RFC 9659)."""

    def __init__(self) -> None:
        self._frame: zstd.ZstdDecompressor | None = None

    def feed(self, data: bytes, room: int) -> bytes:
        decoded = bytearray()
        while len(decoded) < room and (data or (self._frame is not None and not self._frame.needs_input)):
            if self._frame is None:
                self._frame = zstd.ZstdDecompressor(options=ZSTD_BOUNDS)
            decoded += self._frame.decompress(data, room - len(decoded))
            data = b""
            if self._frame.eof:
                data, self._frame = self._frame.unused_data, None
        return bytes(decoded)

    def finished(self) -> bool:
        return self._frame is None


class _Brotli:
    """Brotli (RFC 7932), with the optional library."""

    def __init__(self) -> None:
        self._stream: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        if self._stream is None:
            self._stream = brotli.Decompressor()
        decoded = bytearray()
        while len(decoded) < room and not self._stream.is_finished():
            piece = self._stream.process(data, output_buffer_limit=room - len(decoded))
            decoded += piece
            data = b""
            if not piece and self._stream.can_accept_more_data():
                break
        return bytes(decoded[:room])

    def finished(self) -> bool:
        return self._stream is None or bool(self._stream.is_finished())


class _Unsupported:
    """A coding that cannot be decoded; an empty body needs no decoder."""

    def __init__(self, text: str) -> None:
        self._text = text

    def feed(self, data: bytes, room: int) -> bytes:  # noqa: ARG002
        if data:
            raise Unreadable(self._text)
        return b""

    def finished(self) -> bool:
        return True


_DECODERS: dict[str, Callable[[], Decoder]] = {"deflate": _Deflate, "zstd": _Zstd}
if brotli is not None:
    _DECODERS["br"] = _Brotli

_PLAIN = frozenset({"", "identity", "gzip", "x-gzip"})

_OTHER_CODINGS = frozenset(
    {
        *("br", "dcb", "dcz", "compress", "x-compress", "exi", "pack200-gzip"),  # the registry of RFC 9110 16.6.1
        *("bzip2", "x-bzip2", "lzma", "xz", "lz4", "snappy"),
    }
)
"""Codings that are not decoded."""

ACCEPT_ENCODING = b"gzip, deflate"


def decoder(headers: Headers) -> Decoder:
    """The decoder for the response's Content-Encoding. A word that is no coding, such as `utf-8`, changes nothing.

    At most one coding: with two, a few bytes can cause any amount of work without output, which no limit on the output
    would stop. The decoder for two, or for one that is not decoded, raises Unreadable once it is fed.
    """
    written = b",".join(_values(headers, b"content-encoding")).decode("latin-1").lower()
    codings = [coding for part in written.split(",") if (coding := part.strip()) not in ("", "identity")]
    known = [coding for coding in codings if coding in _DECODERS or coding in _PLAIN or coding in _OTHER_CODINGS]
    if len(known) > 1:
        return _Unsupported("the body has more than one content coding")
    if not known or known[0] in _PLAIN:
        return _Plain()
    if known[0] in _DECODERS:
        return _DECODERS[known[0]]()
    return _Unsupported(f"the content coding {known[0]} is not supported")


class Body:
    """The decoded body of a robots.txt, or of another file; no more of it is read once it is longer than `limit`."""

    def __init__(self, decoder: Decoder, limit: int = BODY_LIMIT) -> None:
        self._decoder = decoder
        self._limit = limit
        self._kept = bytearray()

    def feed(self, piece: bytes) -> None:
        """Decode the next piece; raises Unreadable if it is not valid in its coding."""
        if self.truncated:
            return
        try:
            self._kept += self._decoder.feed(piece, self._limit + 1 - len(self._kept))
        except _CODING_ERRORS as error:
            raise Unreadable("the body is not valid in its content coding") from error

    @property
    def truncated(self) -> bool:
        """Whether the file is longer than `limit` (spec A24)."""
        return len(self._kept) > self._limit

    @property
    def most_bytes(self) -> int:
        """How much may be received for the body: the file, in its coding, and the framing of its chunks."""
        return ENCODED_SHARE * self._limit

    def first_part(self) -> bytes:
        """The first `limit` bytes once all of it has been fed; raises Unreadable if it is incomplete."""
        return self._whole()[: self._limit]

    def read(self) -> bytes:
        """A robots.txt once all of it has been fed, as far as it is readable; raises Unreadable if it is incomplete."""
        return readable_part(self._whole())

    def _whole(self) -> bytes:
        if not self.truncated and not self._decoder.finished():
            raise Unreadable("the body ends in the middle of its content coding")
        return bytes(self._kept)


def body_of(status: int, headers: Headers, limit: int = BODY_LIMIT) -> Body | None:
    """The body of a file. No other is read, and a part of a file is not the file (spec A7). Raises Unreadable."""
    if not 200 <= status < 300 or status == 206 or is_challenge(headers):
        return None
    return Body(decoder(headers), limit)


def read_access(
    status: int, headers: Headers, body: Body | None, now: float, *, conditional: bool = False
) -> Access | NotModified:
    """What a response says, unless it is a redirect to follow. `body` is from `body_of`, and all of it has been fed.

    `now`: see `retry_after`. `conditional`: the request had validators. Raises Unreadable.
    """
    wait = retry_after(headers, now)
    if is_challenge(headers):
        return Unreachable(Cause.CHALLENGE, status, wait)
    if body is not None:
        content = body.read()
        return Successful(status, content, body.truncated, field(headers, b"content-type"))
    if status == 304 and conditional:
        return NotModified()
    if status == 429:
        return Unreachable(Cause.TOO_MANY_REQUESTS, status, wait)
    page = status in (403, 503) and is_html(headers)
    if 400 <= status < 500:
        return Unavailable(status, Cause.HTML_PAGE if page else None)
    if 500 <= status < 600:
        return Unreachable(Cause.HTML_PAGE if page else Cause.SERVER_ERROR, status, wait)
    return Unreachable(Cause.BAD_RESPONSE, status)


def read_observed(
    status: int, headers: Headers, data: bytes, at: float, final_url: str | None, *, truncated: bool = False
) -> Fetched:
    """What a response says that another client received at `at` (Unix time), as if the fetch had received it.

    `data` is the body as sent, in its content coding. Validators are left out, since no request has them. `truncated`:
    the client kept the first part of a longer file. Raises Unreadable if the body is not valid in its content coding,
    or has more than BODY_BYTES.
    """
    body = body_of(status, headers)
    if body is not None:
        # In pieces, as they come from a socket: many short members of gzip take quadratic time in their length.
        for start in range(0, min(len(data), BODY_BYTES), READ_BYTES):
            body.feed(data[start : start + READ_BYTES])
        if len(data) > BODY_BYTES and not body.truncated:
            raise Unreadable("the body has more bytes than a file needs")
    access = read_access(status, headers, body, at)
    if truncated and isinstance(access, Successful):
        access = replace(access, truncated=True)
    return Fetched(access, final_url, lifetime=read_lifetime(headers))
