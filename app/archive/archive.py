"""The archive of versions: what was in use at an instant, which text a version has; synchronous, by threads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from app.archive.span import ArchiveSpan, month_of, spans_in
from app.cache.freshness import DAY, KEEP
from app.history.versions import Version, in_order, version_at
from robots_core.origin import Origin

SEEN_EVERY: Final = 7 * DAY
"""Seconds after which a file that does not change is noted as seen again; less than KEEP, so that no gap opens."""

LONGEST_INDEX: Final = 64 * 1024 * 1024
"""Bytes of one origin's spans in a month that are read: a file that changes with each fetch has 3 MB."""

LOG, INDEX, OBJECTS = "spans", "index", "objects"
"""The folders of an archive."""


class ArchiveFiles(Protocol):
    """Where an archive is; see app.archive.folder. Every method raises OSError."""

    def put(self, files: Mapping[str, bytes]) -> None: ...
    def append(self, files: Mapping[str, bytes]) -> None: ...
    def read(self, name: str) -> bytes | None: ...
    def names(self, below: str) -> Iterator[str]: ...
    def clear(self, below: str) -> None: ...


class Damage(NamedTuple):
    """A fault of an archive: the file, and what is wrong with it."""

    name: str
    fault: str


class Archive:
    """Versions by origin, instant and id. Every method raises OSError if the files cannot be read or written."""

    def __init__(self, files: ArchiveFiles) -> None:
        self._files = files

    def write(self, found: Sequence[tuple[ArchiveSpan, bytes | None]], process: str, day: str) -> None:
        """Keep these spans and their files; to write one twice does no harm. `process` names the log's file."""
        self._files.put(
            {object_name(span.body): body for span, body in found if span.body is not None and body is not None}
        )
        self._files.append({f"{LOG}/{day}/{process}.ndjson": b"".join(span.line() for span, _ in found)})
        self._index(span for span, _ in found)

    def spans(self, origin: str, months: Iterable[str]) -> list[ArchiveSpan]:
        """The spans of the origin with this key whose last fetch was in one of these months, as written."""
        found: list[ArchiveSpan] = []
        for month in dict.fromkeys(months):
            data = self._files.read(_index_name(origin, month)) or b""
            found += [span for span in spans_in(data[:LONGEST_INDEX].splitlines()) if span.origin == origin]
        return found

    def at(self, origin: Origin, at: float) -> Version | None:
        """The version in use at the instant `at` (Unix seconds): the last one seen by then, at most KEEP before."""
        # It was noted every SEEN_EVERY while it was in use, so its last note is from before or soon after.
        # Two of these instants are never as far apart as the shortest month is long.
        months = map(month_of, (at - KEEP, at - KEEP / 2, at, at + SEEN_EVERY, at + KEEP))
        spans = self.spans(origin.key, months)
        by_digest = {bytes.fromhex(span.digest): span for span in spans}
        version = version_at(tuple(in_order(map(_bare, spans))), at)
        if version is None:
            return None
        read = self._read(by_digest[version.digest])
        return None if read is None else replace(read, first_seen=version.first_seen, last_seen=version.last_seen)

    def by_id(self, origin: Origin, name: str) -> Version | None:
        """The newest version of the origin whose digest begins with `name`, hexadecimal digits."""
        key = origin.key
        for month in reversed(self.months(key)):
            matching = [span for span in self.spans(key, [month]) if span.digest.startswith(name)]
            if matching:
                return self._read(max(matching, key=lambda span: span.last_seen))
        return None

    def around(self, origin: Origin, version: Version) -> tuple[Version | None, int | None]:
        """The version before this one, and when the next one was first seen (Unix seconds)."""
        months, begun = self.months(origin.key), version.first_seen
        own = month_of(begun)

        def first_found(months: Iterable[str], *, later: bool) -> list[ArchiveSpan]:
            for month in months:
                others = (span for span in self.spans(origin.key, [month]) if span.digest != version.digest.hex())
                found = [span for span in others if (span.first_seen > begun if later else span.first_seen < begun)]
                if found:
                    return found
            return []

        earlier = first_found((month for month in reversed(months) if month <= own), later=False)
        later = first_found((month for month in months if month >= own), later=True)
        before = max(earlier, key=lambda span: (span.first_seen, span.last_seen), default=None)
        following = min((span.first_seen for span in later), default=None)
        return None if before is None else self._read(before), following

    def months(self, origin: str) -> list[str]:
        """The months of which an origin has spans, in order."""
        return [name.rpartition("/")[2].removesuffix(".ndjson") for name in self._files.names(_index_folder(origin))]

    def verify(self) -> Iterator[Damage | None]:
        """Check every line and every file: for each, None or what is wrong with it."""
        for name in self._files.names(LOG):
            for number, line in enumerate((self._files.read(name) or b"").splitlines(), 1):
                fault = self._fault(line)
                yield None if fault is None else Damage(f"{name}:{number}", fault)
        for name in self._files.names(OBJECTS):
            same = sha256(self._files.read(name) or b"").hexdigest() == name.rpartition("/")[2]
            yield None if same else Damage(name, "its bytes have another SHA-256")

    def exists(self) -> bool:
        """Whether there is a log of spans."""
        return any(True for _ in self._files.names(LOG))

    def rebuild(self) -> int:
        """Make the index anew from the log; return the number of spans."""
        logs = list(self._files.names(LOG))  # first, so that the index is kept if it cannot be listed
        self._files.clear(INDEX)
        count = 0
        for name in logs:
            spans = list(spans_in((self._files.read(name) or b"").splitlines()))
            self._index(spans)
            count += len(spans)
        return count

    def _fault(self, line: bytes) -> str | None:
        """What is wrong with a line of the log. Whether its file is damaged is not said here."""
        span = next(spans_in([line]), None)
        if span is None:
            return "the line cannot be read"
        body = b"" if span.body is None else self._files.read(object_name(span.body))
        if body is None:
            return f"the file {object_name(span.body or '')} is missing"
        is_whole = span.body in (None, sha256(body).hexdigest())
        return "it does not fit its file" if is_whole and span.version(body) is None else None

    def _index(self, spans: Iterable[ArchiveSpan]) -> None:
        lines: dict[str, bytes] = {}
        for span in spans:
            name = _index_name(span.origin, span.month)
            lines[name] = lines.get(name, b"") + span.line()
        self._files.append(lines)

    def _read(self, span: ArchiveSpan) -> Version | None:
        body = b"" if span.body is None else self._files.read(object_name(span.body))
        return None if body is None else span.version(body)


def object_name(body: str) -> str:
    """The name of the file with this SHA-256."""
    return f"{OBJECTS}/{body[:2]}/{body}"


def _index_folder(origin: str) -> str:
    name = sha256(origin.encode()).hexdigest()
    return f"{INDEX}/{name[:2]}/{name}"


def _index_name(origin: str, month: str) -> str:
    return f"{_index_folder(origin)}/{month}.ndjson"


def _bare(span: ArchiveSpan) -> Version:
    """The version of a span, without its text."""
    return Version(bytes.fromhex(span.digest), span.first_seen, span.last_seen, b"")
