"""The archive of versions: what was in use at an instant, which text a version has; synchronous, by threads."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import accumulate, chain, islice
from typing import Final, NamedTuple

from app.cache.freshness import DAY, KEEP
from app.history.archive.files import ArchiveFiles
from app.history.archive.index import INDEX, IndexReader, IndexWriter, Place, in_use, place_of
from app.history.archive.span import ArchiveSpan, read_span
from app.history.versions import Version
from robots_core.origin import Origin

SEEN_EVERY: Final = 7 * DAY
"""Seconds after which a file that does not change is noted as seen again; less than KEEP, so that no gap opens."""

SPANS_AT_ONCE: Final = 1000
"""Spans that are added at once to an index that is rebuilt."""

LOG, OBJECTS = "spans", "objects"
"""The folders of an archive, with that of the index."""

_DIGITS: Final = frozenset("0123456789abcdef")


class Damage(NamedTuple):
    """A fault of an archive: the file, and what is wrong with it."""

    name: str
    fault: str


class Archive:
    """Versions by origin, instant and id. Every method raises OSError if the files cannot be read or written."""

    def __init__(self, files: ArchiveFiles) -> None:
        self._files = files
        self._index = IndexWriter(files)

    def write(self, found: Sequence[tuple[ArchiveSpan, bytes | None]], process: str, day: str) -> None:
        """Keep these spans and their files; to write one twice does no harm. `process` names the log's file."""
        self._files.put(
            {object_name(span.body): body for span, body in found if span.body is not None and body is not None}
        )
        name = f"{LOG}/{day}/{process}.ndjson"
        lines = [span.line() for span, _ in found]
        log, at = self._files.append({name: b"".join(lines)})[name]
        ends = accumulate(map(len, lines), initial=at)
        self._index.add(
            (span.origin, place_of(span, log, begin, len(line) - 1))
            for (span, _), line, begin in zip(found, lines, ends, strict=False)
        )

    def past(self, origin: Origin) -> "ArchivedPast":
        """The versions of an origin; what is read of the index is held for the next question."""
        return ArchivedPast(self._files, origin)

    def lacks(self, span: ArchiveSpan) -> bool:
        """Whether another content, or none, is in use at the end of this span."""
        place = _in_use(IndexReader(self._files, span.origin), span.last_seen)
        return place is None or place.digest != span.digest or place.last_seen < span.first_seen

    def verify(self) -> Iterator[Damage | None]:
        """Check every line and every file: for each, None or what is wrong with it."""
        index = IndexReader(self._files, "")
        for name in self._files.names(LOG):
            for number, line in enumerate(self._files.lines(name), 1):
                span = read_span(line.data)
                if span is not None and span.origin != index.origin:  # most lines are of the origin of the line before
                    index = IndexReader(self._files, span.origin)
                fault = "the line cannot be read" if span is None else self._fault(span, index)
                yield None if fault is None else Damage(f"{name}:{number}", fault)
        for name in self._files.names(OBJECTS):
            same = sha256(self._files.read(name) or b"").hexdigest() == name.rpartition("/")[2]
            yield None if same else Damage(name, "its bytes have another SHA-256")

    def exists(self) -> bool:
        """Whether there is a log of spans."""
        return any(True for _ in self._files.names(LOG))

    def rebuild(self) -> int:
        """Rebuild the index from the log; return the number of spans."""
        logs = list(self._files.names(LOG))  # first, so that the index is kept if it cannot be listed
        self._files.clear(INDEX)
        index, count = IndexWriter(self._files), 0
        for name in logs:
            written = self._written(name)
            while batch := list(islice(written, SPANS_AT_ONCE)):
                index.add(batch)
                count += len(batch)
        return count

    def _written(self, name: str) -> Iterator[tuple[str, Place]]:
        for log, at, data in self._files.lines(name):
            span = read_span(data)
            if span is not None:
                yield span.origin, place_of(span, log, at, len(data))

    def _fault(self, span: ArchiveSpan, index: IndexReader) -> str | None:
        """What is wrong with a span of the log. Whether its file is damaged is not said here."""
        body = b"" if span.body is None else self._files.read(object_name(span.body))
        if body is None:
            return f"the file {object_name(span.body or '')} is missing"
        is_whole = span.body in (None, sha256(body).hexdigest())
        if is_whole and span.version(body) is None:
            return "it does not fit its file"
        places = index.places(span)
        leads_there = any(_read_span(self._files, place, span.origin) == span for place in places)
        return None if leads_there else "the index lacks it: rebuild the index"


class ArchivedPast:
    """The versions of one origin. Every method raises OSError."""

    def __init__(self, files: ArchiveFiles, origin: Origin) -> None:
        self._files = files
        self._key = origin.key
        self._index = IndexReader(files, origin.key)
        self._latest: tuple[Place, Version | None] | None = None

    def at(self, at: float) -> Version | None:
        """The version in use at the instant `at` (Unix seconds): the last one seen by then, at most KEEP before.

        It is the same object as that of the question before if it is the same version.
        """
        found = _in_use(self._index, at)
        return None if found is None or at > found.last_seen + KEEP else self._read(found)

    def by_id(self, name: str) -> Version | None:
        """The newest version whose digest begins with `name`, eight or more hexadecimal digits."""
        if not 8 <= len(name) <= 64 or not _DIGITS.issuperset(name):
            return None  # it would name another file of the index
        found = max(self._index.with_digest(name), key=lambda place: place.last_seen, default=None)
        return None if found is None else self._read(found)

    def around(self, version: Version) -> tuple[Version | None, int | None]:
        """The version before this one, and when the next one was first seen (Unix seconds)."""
        own, begun = version.digest.hex(), version.first_seen

        def precedes(place: Place) -> bool:
            return place.digest != own and place.first_seen < begun

        def follows(place: Place) -> bool:
            return place.digest != own and place.first_seen > begun

        earlier = filter(precedes, self._index.nearest(begun, precedes, later=False))
        later = filter(follows, self._index.nearest(begun, follows, later=True))
        before = max(earlier, key=lambda place: (place.first_seen, place.last_seen), default=None)
        following = min((place.first_seen for place in later), default=None)
        return None if before is None else self._read(before), following

    def _read(self, place: Place) -> Version | None:
        if self._latest is None or self._latest[0] != place:
            self._latest = place, self._version_at(place)
        return self._latest[1]

    def _version_at(self, place: Place) -> Version | None:
        span = _read_span(self._files, place, self._key)
        if span is None:
            return None
        body = b"" if span.body is None else self._files.read(object_name(span.body))
        return None if body is None else span.version(body)


def _in_use(index: IndexReader, at: float) -> Place | None:
    """The span in use at an instant, however long ago its last fetch was."""
    now = int(at)
    earlier = index.nearest(at, lambda place: place.last_seen <= now, later=False)
    return in_use(chain(earlier, index.covering(at)), now)


def object_name(body: str) -> str:
    """The name of the file with this SHA-256."""
    return f"{OBJECTS}/{body[:2]}/{body}"


def _read_span(files: ArchiveFiles, place: Place, origin: str) -> ArchiveSpan | None:
    """The span of the origin with this key at a place of the log, None if it is not there. Raises OSError."""
    span = read_span(files.part(place.log, place.at, place.size))
    return span if span is not None and span.origin == origin and place.fits(span) else None
