"""Where the log of an archive has an origin's spans: found by instant or by digest, in pieces of bounded size.

The index can be rebuilt from the log. A piece is a file of lines of JSON, one for each span. A span is in the piece
of the month of its last fetch, `index/<two digits>/<SHA-256 of the origin>/<month>.ndjson`. Once that has PIECE lines,
further ones are in a piece of the day, `<month>/<day>.ndjson`, then of the hour and of the minute. A span is never in a
piece of less time than it lasts, so one that covers an instant is in a piece of that instant or in the next. Spans
that are not in the month's piece are in one of `by-digest/`, too.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from math import inf
from typing import Annotated, Final

import msgspec

from app.cache.byte_lru import BoundedDict, ByteLRU
from app.cache.codec import WholeSeconds
from app.cache.freshness import DAY, HOUR, KEEP, MINUTE
from app.history.archive.files import ArchiveFiles
from app.history.archive.span import ArchiveSpan, Sha256
from app.history.periods import Period, after_own_fetches
from app.history.versions import FAILURE_DIGESTS
from robots_core.dates import END_OF_TIME

INDEX: Final = "index"
"""The folder of the index."""

PIECE: Final = 500
"""Lines of a piece that a process writes before it goes on in pieces of shorter times."""

REMEMBERED_PIECES: Final = 100_000
"""Pieces whose lines a process counts. One that was forgotten takes PIECE more of them."""

HELD_PLACES: Final = 16_384
"""Lines of pieces that are held while questions about one origin are answered."""

_LEVELS: Final = (("%Y-%m", inf), ("%d", DAY), ("%H", HOUR), ("%M", MINUTE))
"""How the pieces of a level are named, and the seconds that a span in them may last."""

_BY_DIGEST: Final = "by-digest"
_FAILED: Final = frozenset(map(bytes.hex, FAILURE_DIGESTS))
_DIGITS: Final = 3  # of the digest, which name a piece of that folder
_LINES: Final = ".ndjson"


class Place(msgspec.Struct, frozen=True):
    """A span, and where its line is: `size` bytes from `at`, in the file `log`.

    `own_until` is when the service itself last found it; None if only callers did.
    """

    digest: Sha256
    first_seen: WholeSeconds
    last_seen: WholeSeconds
    log: str
    at: Annotated[int, msgspec.Meta(ge=0)]
    size: Annotated[int, msgspec.Meta(ge=0)]
    own_until: WholeSeconds | None

    def fits(self, span: ArchiveSpan) -> bool:
        """Whether the place is that of this span."""
        return (self.digest, self.first_seen, self.last_seen) == (span.digest, span.first_seen, span.last_seen)


def place_of(span: ArchiveSpan, log: str, at: int, size: int) -> Place:
    """The place of a span whose line is there."""
    return Place(span.digest, span.first_seen, span.last_seen, log, at, size, span.own_until)


class IndexWriter:
    """Adds spans to the index."""

    def __init__(self, files: ArchiveFiles) -> None:
        self._files = files
        self._lines: BoundedDict[str, int] = BoundedDict(REMEMBERED_PIECES)

    def add(self, spans: Iterable[tuple[str, Place]]) -> None:
        """Note where these spans are, each with the key of its origin; raises OSError."""
        pieces: dict[str, list[bytes]] = defaultdict(list)
        for origin, place in spans:
            for name in self._names(origin, place):
                pieces[name].append(msgspec.json.encode(place) + b"\n")
        self._files.append({name: b"".join(lines) for name, lines in pieces.items()})

    def _names(self, origin: str, place: Place) -> list[str]:
        names = _names_at(origin, place.last_seen)
        lasts, level = place.last_seen - place.first_seen, 0
        while level + 1 < len(names) and lasts <= _LEVELS[level + 1][1] and self._lines.get(names[level], 0) >= PIECE:
            level += 1
        self._lines[names[level]] = self._lines.get(names[level], 0) + 1
        return [names[level], _name_by_digest(origin, place.digest)] if level else [names[0]]


class IndexReader:
    """Finds an origin's spans. Every method raises OSError. What was read is held for the next question."""

    def __init__(self, files: ArchiveFiles, origin: str) -> None:
        """`origin` is an origin's key."""
        self.origin = origin
        self._files = files
        self._folder = _folder(origin)
        self._pieces: ByteLRU[str, Sequence[Place]] = ByteLRU(HELD_PLACES)
        self._children: dict[str, list[str]] = {}

    def covering(self, at: float) -> Iterator[Place]:
        """The spans that may cover an instant (Unix seconds), and others."""
        # One that was noted every week ends soon after; one of failed fetches in between, within KEEP.
        later = [(at, at + KEEP / 2, at + KEEP), *((at, at + longest) for _, longest in _LEVELS[1:])]
        for level, instants in enumerate(later):
            for name in dict.fromkeys(_names_at(self.origin, instant)[level] for instant in instants):
                if self._has(name):
                    yield from self._read(name)

    def nearest(self, at: float, wanted: Callable[[Place], bool], *, later: bool) -> Iterator[Place]:
        """The spans in pieces away from an instant (Unix seconds), up to a piece with one that is wanted.

        The first are those of the instant's minute, the last those of the earliest or the latest month. All spans of a
        piece are there, and those of the pieces of longer times that it is a part of.
        """
        return self._nearest(self._folder, _stems(at), wanted, later=later)

    def with_digest(self, name: str) -> Iterator[Place]:
        """The spans whose digest begins with `name`, eight or more hexadecimal digits."""
        pieces = [_name_by_digest(self.origin, name)]
        pieces += [f"{self._folder}/{child}" for child in self._list(self._folder) if child.endswith(_LINES)]
        for piece in pieces:
            yield from (place for place in self._read(piece) if place.digest.startswith(name))

    def places(self, span: ArchiveSpan) -> Iterator[Place]:
        """The places of this span."""
        for name in _names_at(self.origin, span.last_seen):
            yield from (place for place in self._read(name) if place.fits(span))

    def _nearest(
        self, folder: str, stems: Sequence[str], wanted: Callable[[Place], bool], *, later: bool
    ) -> Generator[Place, None, bool]:
        children = self._list(folder)
        for stem in sorted({child.removesuffix(_LINES) for child in children}, reverse=not later):
            if not stem[:1].isdigit() or (stems and (stem < stems[0] if later else stem > stems[0])):
                continue
            found = False
            if stem + _LINES in children:
                for place in self._read(f"{folder}/{stem}{_LINES}"):
                    found |= wanted(place)
                    yield place
            if stem in children:
                below = stems[1:] if stems and stem == stems[0] else ()
                found |= yield from self._nearest(f"{folder}/{stem}", below, wanted, later=later)
            if found:
                return True
        return False

    def _has(self, name: str) -> bool:
        folder, _, child = name.rpartition("/")
        return (folder == self._folder or self._has(folder)) and child in self._list(folder)

    def _list(self, folder: str) -> list[str]:
        children = self._children.get(folder)
        if children is None:
            children = self._children[folder] = self._files.children(folder)
        return children

    def _read(self, name: str) -> Iterator[Place]:
        held = self._pieces.get(name)
        if held is not None:
            yield from held
            return
        places: list[Place] = []
        for line in self._files.lines(name):
            place = read_place(line.data)
            if place is not None:
                if len(places) < HELD_PLACES:
                    places.append(place)
                yield place
        if len(places) < HELD_PLACES:
            self._pieces.put(name, places, len(places) + 1)


_DECODER: Final = msgspec.json.Decoder(Place)


def read_place(line: bytes) -> Place | None:
    """The place in this line, None if it cannot be read."""
    try:
        return _DECODER.decode(line)
    except (ValueError, RecursionError):
        return None


def in_use(places: Iterable[Place], at: int) -> Place | None:
    """The span in use at an instant (Unix seconds) among spans in any order, as app.history.versions.in_order does."""
    begun = (it for it in places if it.first_seen <= at)
    periods = (Period(it.first_seen, it.last_seen, it.own_until, it.digest in _FAILED, it) for it in begun)
    found = [it for it in after_own_fetches(periods) if it.first_seen <= at]
    # The last one seen by then; of several, the one that began last.
    latest = max(found, key=lambda it: (min(it.last_seen, at), it.first_seen, it.last_seen, it.of.digest), default=None)
    return None if latest is None else latest.of


def _folder(origin: str) -> str:
    name = sha256(origin.encode()).hexdigest()
    return f"{INDEX}/{name[:2]}/{name}"


def _stems(at: float) -> list[str]:
    """What names an instant at each level: its month, day, hour and minute in UTC."""
    when = datetime.fromtimestamp(min(at, END_OF_TIME), UTC)
    return [when.strftime(form) for form, _ in _LEVELS]


def _names_at(origin: str, at: float) -> list[str]:
    """The pieces of an instant, from the month's to the minute's."""
    folder, stems = _folder(origin), _stems(at)
    return [f"{folder}/{'/'.join(stems[:level])}{_LINES}" for level in range(1, len(stems) + 1)]


def _name_by_digest(origin: str, digest: str) -> str:
    return f"{_folder(origin)}/{_BY_DIGEST}/{digest[:_DIGITS]}{_LINES}"
