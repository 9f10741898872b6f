"""Parsing of a response: fields, Location, Retry-After, content coding. Pure, and the input is not trusted."""

import math
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Protocol, TypeAlias
from urllib.parse import quote, urljoin

from app.origin import URL_LIMIT, OtherScheme, Target, read_target
from app.robots.access import BODY_LIMIT, Lifetime, Validators

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

FIELD_LIMIT = 1024
"""Bytes of the longest field value that is kept: values are stored, shown, and sent back."""

LONGEST_WAIT = 24 * 60 * 60
"""Seconds of the longest Retry-After that is believed."""

# What may stand in a request target as it is (RFC 3986 3.3, 3.4); `%` too, for what is encoded already.
_TARGET_SAFE = "/?%:@!$&'()*+,;="


class Unreadable(Exception):
    """The response makes no sense as HTTP; the text says where."""


def field(headers: Headers, name: bytes) -> str | None:
    """The first field of that name, or None for none, or one too long or with anything in it that does not print."""
    return next((readable(value) for value in _values(headers, name)), None)


def listed(headers: Headers, name: bytes) -> str | None:
    """All fields of that name as the one list they mean (RFC 9110 5.3), or None as for `field`."""
    values = list(_values(headers, name))
    return readable(b", ".join(values)) if values else None


def readable(value: bytes) -> str | None:
    """A field value as text, if all of it prints in ISO 8859-1: `text.encode("latin-1")` is the value again."""
    text = value.strip(b" \t").decode("latin-1")
    return text if 0 < len(text) <= FIELD_LIMIT and text.isprintable() else None


def _values(headers: Headers, name: bytes) -> Iterable[bytes]:
    return (value for key, value in headers if key.lower() == name)


def read_validators(headers: Headers) -> Validators:
    """What makes the next request conditional (RFC 9110 8.8)."""
    return Validators(etag=field(headers, b"etag"), last_modified=field(headers, b"last-modified"))


def read_lifetime(headers: Headers) -> Lifetime:
    """What the server says of the response's freshness (RFC 9111 4.2)."""
    return Lifetime(
        cache_control=listed(headers, b"cache-control"),
        expires=field(headers, b"expires"),
        date=field(headers, b"date"),
        age=field(headers, b"age"),
    )


def read_retry_after(headers: Headers, now: float) -> int | None:
    """Seconds from `now` (Unix time) that Retry-After asks for, LONGEST_WAIT at most (RFC 9110 10.2.3).

    None for no field, one that cannot be read, and a moment gone by.
    """
    value = field(headers, b"retry-after")
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return min(int(value), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(value)
        wait = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return math.ceil(min(wait, LONGEST_WAIT)) if wait >= 0 else None


def read_location(base: Target, headers: Headers) -> Target | None:
    """Where a redirect from `base` leads, its path percent-encoded; None for a scheme other than http(s) (spec A9).

    User-info and fragment are dropped. Bytes beyond ASCII are UTF-8 if they are valid, else ISO 8859-1; in the path
    they are kept as they were. Unreadable for no Location, several that differ, or one that is not a URL that
    all clients read alike: a file may well be there, so nothing was learnt.
    """
    written = {value.strip(b" \t") for value in _values(headers, b"location")}
    if len(written) != 1:
        raise Unreadable(f"the redirect has {len(written)} Locations")
    data = written.pop()
    if not 0 < len(data) <= URL_LIMIT:
        raise Unreadable(f"the redirect has a Location of {len(data)} bytes")
    encoding = "utf-8" if _is_utf8(data) else "latin-1"
    try:
        target = read_target(urljoin(base.url, data.decode(encoding)))
    except OtherScheme:
        return None
    except ValueError as error:  # BadUrl, or urljoin's own for brackets in the wrong places
        raise Unreadable(f"the redirect's Location cannot be read: {error}") from error
    return Target(target.origin, quote(target.path, safe=_TARGET_SAFE, encoding=encoding))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class Decoder(Protocol):
    """A content coding undone piece by piece."""

    def feed(self, data: bytes, room: int) -> bytes:
        """At most `room` (1 or more) decoded bytes of what has come; after `room` of them it is not called again."""

    def finished(self) -> bool:
        """Whether the data may end here."""


class _Identity:
    def feed(self, data: bytes, room: int) -> bytes:
        return data[:room]

    def finished(self) -> bool:
        return True


class _Gzip:
    """One gzip member after another (RFC 1952 2.2); what follows them and is no member, as padding, is ignored."""

    _START = 0x1F

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._begun = False
        self._over = False

    def feed(self, data: bytes, room: int) -> bytes:
        decoded = bytearray()
        while data and len(decoded) < room and not self._over:
            if self._member is None:
                if self._begun and data[0] != self._START:
                    self._over = True
                    break
                self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
                self._begun = True
            decoded += self._member.decompress(data, room - len(decoded))
            data = self._member.unconsumed_tail
            if self._member.eof:
                data, self._member = self._member.unused_data, None
        return bytes(decoded)

    def finished(self) -> bool:
        return self._member is None


class _Deflate:
    """zlib's format (RFC 9110 8.4.1.2), or the bare deflate that some servers take it for; told apart by the header."""

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


_DECODERS: dict[str, type[_Identity] | type[_Gzip] | type[_Deflate]] = {
    "identity": _Identity,
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
}

ACCEPT_ENCODING = b"gzip, deflate"


def decoder(headers: Headers) -> Decoder:
    """What undoes the response's Content-Encoding; Unreadable for a coding that was not asked for.

    One coding at most: inside a second one, a few bytes can stand for any amount of work that yields nothing, and no
    cap on what comes out would ever be met.
    """
    written = b",".join(_values(headers, b"content-encoding")).decode("latin-1").lower()
    codings = [coding for part in written.split(",") if (coding := part.strip()) not in ("", "identity")]
    if not codings:
        return _Identity()
    if len(codings) > 1 or codings[0] not in _DECODERS:
        raise Unreadable(f"the content coding {written[:200]!r} was not asked for")
    return _DECODERS[codings[0]]()


class Body:
    """A robots.txt as it comes in: decoded, and complete as soon as one byte more than BODY_LIMIT is known."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._kept = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next piece as it was sent; Unreadable for one that is not of the coding."""
        if self.truncated:
            return
        try:
            self._kept += self._decoder.feed(piece, BODY_LIMIT + 1 - len(self._kept))
        except zlib.error as error:
            raise Unreadable(f"the body is not in its content coding: {error}") from error

    @property
    def truncated(self) -> bool:
        """Whether there is more of it than is read (spec A24)."""
        return len(self._kept) > BODY_LIMIT

    def read(self) -> bytes:
        """What is kept of it, once it has all come; Unreadable if the coding says that there should be more."""
        if not self.truncated and not self._decoder.finished():
            raise Unreadable("the body ends in the middle of its content coding")
        return bytes(self._kept[:BODY_LIMIT])
