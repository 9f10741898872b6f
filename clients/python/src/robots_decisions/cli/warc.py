"""The robots.txt files of a WARC or ARC file, as `PUT /v1/robots` takes them; redirects are followed in the files."""

import base64
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import BufferedIOBase, BufferedReader, BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import ChunkedDataReader, DecompressingBufferedReader
from warcio.exceptions import ArchiveLoadFailed

from robots_decisions.cli.entries import URL_LIMIT
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.instants import read_instant

FILE_BYTES = 512_001
"""Bytes of a file that matter: the service reads one less, and sees by the last that there are more."""

RAW_BYTES = 2_000_000
"""Bytes of a body that are read from a record: the file in its content coding, and the framing of its chunks."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_REDIRECTS = 5
"""Redirects that are followed (RFC 9309 2.3.1.2)."""

FOLLOWED_WITHIN = 3600.0
"""Seconds after a redirect in which its target was fetched because of it."""

HEADER_BYTES = 1024 * 1024
"""Bytes of the header of a record and of the response in it, at most, and of their lines: the library has no bound."""

MOST_WAITING = 100_000
"""Redirects whose target has not come yet."""

REDIRECTED_BYTES = 64 * 1024 * 1024
"""Bytes of bodies that are sent for redirects, at most, beyond those that the files have."""

_READ = frozenset(
    {
        "age",
        "cache-control",
        "cf-mitigated",
        "content-encoding",
        "content-type",
        "date",
        "expires",
        "retry-after",
    }
)
"""The fields that the service reads."""

_GZIP = b"\x1f\x8b"
_ERRORS = (ArchiveLoadFailed, OSError, EOFError, zlib.error, ValueError)


class Copy(NamedTuple):
    """A response for the robots.txt of `url`: the JSON to send, and the record that it is from."""

    url: str
    message: dict[str, Any]
    place: str


class _Asked(NamedTuple):
    """A robots.txt that a crawler asked for, and the redirects so far."""

    url: str
    date: str
    redirects: int = 0


class WarcFiles:
    """Files, or `-` for standard input.

    `counts` has what is not sent: "unchanged", "unfollowed", "unreadable", "repeated".
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._waiting: dict[str, list[_Asked]] = {}
        self._waits = 0
        self._room = REDIRECTED_BYTES
        self._file: BufferedIOBase | None = None
        self._done = 0
        self.counts: Counter[str] = Counter()

    @property
    def size(self) -> int | None:
        """Bytes of all files; None if one has no size."""
        try:
            return None if "-" in self._names else sum(Path(name).stat().st_size for name in self._names)
        except OSError:
            return None

    @property
    def position(self) -> int:
        """Bytes that were read so far, of files with a size."""
        return self._done + (0 if self._file is None or not self._file.seekable() else self._file.tell())

    def copies(self) -> Iterator[Copy | None]:
        """The responses for robots.txt files, and None for each record without one. Raise Failed."""
        for name in self._names:
            number = 0
            try:
                with ExitStack() as stack:
                    self._file = stack.enter_context(_open(name))
                    for record in _whole_records(self._file):
                        number += 1
                        yield from self._read(record, f"{name}, record {number}")
                        yield None
                    self._done, self._file = self.position, None
            except _ERRORS as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
                reason = " ".join(reason.split()) or type(error).__name__
                raise Failed(f"Cannot read {name}: {reason[:300]}. It was read up to record {number}.") from None
        self.counts["unfollowed"] += self._waits

    def _read(self, record: Any, place: str) -> Iterator[Copy]:
        url = _normal(record.rec_headers.get_header("WARC-Target-URI") or "")
        if record.rec_type not in ("response", "revisit", "resource") or url is None:
            return
        date = record.rec_headers.get_header("WARC-Date") or ""
        waited = self._waiting.pop(url, ())
        self._waits -= len(waited)
        asked = [it for it in waited if self._is_of(it, date)]
        if urlsplit(url)[2:4] == ("/robots.txt", ""):
            asked.append(_Asked(url, date))
        if not asked:
            return
        status = _status(record)
        if record.rec_type == "revisit" or status == 304:
            self.counts["unchanged"] += len(asked)
        elif status is None:
            self.counts["unreadable"] += len(asked)
        elif status in REDIRECTS:
            self._follow(asked, url, record.http_headers.get_header("Location"))
        else:
            message = _message(record, status)
            size = len(message["robots_base64"])
            self._room += size
            for one in asked:
                if one.redirects:
                    if size > self._room:
                        self.counts["repeated"] += 1
                        continue
                    self._room -= size
                final = {"final_url": url} if one.redirects else {}
                yield Copy(one.url, {**message, "observed_at": one.date, **final}, place)

    def _is_of(self, asked: _Asked, date: str) -> bool:
        """Whether what was fetched at `date` was fetched because of a redirect."""
        first, then = read_instant(asked.date), read_instant(date)
        is_of = first is not None and then is not None and 0 <= then - first <= FOLLOWED_WITHIN
        self.counts["unfollowed"] += not is_of
        return is_of

    def _follow(self, asked: Sequence[_Asked], url: str, location: str | None) -> None:
        target = None if location is None else _target(url, location.strip())
        for one in asked:
            if target is not None and one.redirects < MOST_REDIRECTS and self._waits < MOST_WAITING:
                self._waits += 1
                self._waiting.setdefault(target, []).append(one._replace(redirects=one.redirects + 1))
            else:
                self.counts["unfollowed"] += 1


def _open(name: str) -> BufferedIOBase:
    return BufferedReader(open(sys.stdin.fileno(), "rb", 0, closefd=False)) if name == "-" else Path(name).open("rb")


class _BoundedReader(DecompressingBufferedReader):  # type: ignore[misc] # which has no types
    """Reads no more than `room` bytes by lines, which is how headers are read."""

    room = HEADER_BYTES

    def readline(self, length: int | None = None) -> bytes:
        """A line. Raise ValueError if there is no room for it."""
        line: bytes = super().readline(self.room + 1 if length is None else min(length, self.room + 1))
        self.room -= len(line)
        if self.room < 0:
            raise ValueError(f"a header is longer than {HEADER_BYTES} bytes")
        return line


def _whole_records(file: BufferedIOBase) -> Iterator[Any]:
    """The records of a file. Raises one of _ERRORS if it is damaged, or ends within a record."""
    records, record = ArchiveIterator(file, arc2warc=True), None
    reader = records.reader = _BoundedReader(records.fh)
    while True:
        before = record
        reader.room = HEADER_BYTES
        try:
            record = next(records, None)
        except _ERRORS:
            raise
        except Exception as error:  # the library fails in many ways where it finds no field
            raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
        if record is None:
            break
        yield record
    # The library takes the end of the file for the end of the record.
    if before is not None and getattr(before.raw_stream, "limit", 0) > 0:
        raise EOFError("it ends within a record")


def _normal(url: str) -> str | None:
    """The URL without its fragment and default port, its host in lower case; None if it is not one of HTTP, or longer
    than the service takes."""
    if len(url) > URL_LIMIT:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not host:
        return None
    literal = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}[parts.scheme]
    authority = literal if port in (None, default) else f"{literal}:{port}"
    return f"{parts.scheme}://{authority}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")


def _target(url: str, location: str) -> str | None:
    """Where a redirect leads, as `_normal` has it."""
    try:
        return _normal(urljoin(url, location))
    except ValueError:
        return None


def _status(record: Any) -> int | None:
    if record.rec_type == "resource":  # without a header; there was something to store
        return 200
    text = "" if record.http_headers is None else record.http_headers.get_statuscode()
    return int(text) if text.isascii() and text.isdigit() and len(text) == 3 else None


def _message(record: Any, status: int) -> dict[str, Any]:
    """The members that say what was received; the body in its content coding, which the service decodes."""
    body = _payload(record)
    headers = []
    for name, value in _fields(record):
        lower = name.lower()
        # Some crawlers store the decoded body, and leave the field.
        is_decoded = lower == "content-encoding" and "gzip" in value.lower() and not body.startswith(_GZIP)
        if lower in _READ and not is_decoded and _is_latin(value):
            headers.append([name, value])
    encoded = any(name.lower() == "content-encoding" for name, _ in headers)
    return {
        "status": status,
        "headers": headers,
        "robots_base64": base64.b64encode(body if encoded else body[:FILE_BYTES]).decode(),
        "truncated": record.rec_headers.get_header("WARC-Truncated") is not None,
    }


def _fields(record: Any) -> Sequence[tuple[str, str]]:
    if record.http_headers is not None:
        return list(record.http_headers.headers)
    return [("Content-Type", record.rec_headers.get_header("Content-Type") or "")]


def _payload(record: Any) -> bytes:
    raw = bytearray()
    while len(raw) < RAW_BYTES and (piece := record.raw_stream.read(RAW_BYTES - len(raw))):
        raw += piece
    fields = record.http_headers
    if fields is None or (fields.get_header("Transfer-Encoding") or "").strip().lower() != "chunked":
        return bytes(raw)
    body: bytes = ChunkedDataReader(BytesIO(raw)).read()  # which returns what is not chunked as it is
    return body


def _is_latin(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
