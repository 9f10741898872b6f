"""Sorted records in batches, which of them are done, and those that are put off."""

import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from robots_decisions.cli.entries import Line, line_of

BATCH_LINES, BATCH_BYTES = 500, 512 * 1024
"""Lines of a batch, and bytes of their records, at most: a batch is one request."""

WAITING_ORIGINS = 16
"""Origins of a batch of lines that were put off, at most: it is answered when the slowest of them is."""

GROUP_BYTES = 2 * 1024 * 1024
"""Memory of batches whose sites are asked about in one request, about."""

_OVERHEAD = 100  # bytes of memory of a record and its place, besides its own

Placed: TypeAlias = tuple[int, bytes]
"""A record, and its place in the sorted order."""


class Batch(NamedTuple):
    """Records in their sorted order, and their places in it."""

    places: Sequence[int]
    records: Sequence[bytes]

    def lines(self) -> list[Line]:
        """Its lines."""
        return list(map(line_of, self.records))

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return sum(map(len, self.records)) + _OVERHEAD * len(self.records)

    def only(self, chosen: Iterable[int]) -> "Batch":
        """The records at these indexes."""
        indexes = list(chosen)
        return Batch([self.places[at] for at in indexes], [self.records[at] for at in indexes])


class Group(NamedTuple):
    """Batches that follow each other, the first record of each of their sites, and bytes of memory, about."""

    batches: Sequence[Batch]
    firsts: Sequence[Placed]
    size: int


def grouped(batches: Iterable[Batch]) -> Iterator[Group]:
    """Batches in groups of up to BATCH_LINES sites and GROUP_BYTES, but for a single batch."""
    together: list[Batch] = []
    firsts: list[Placed] = []
    size = 0
    for batch in batches:
        new, own = list(_firsts(batch)), batch.size
        if together and (size + own > GROUP_BYTES or len(firsts) + len(new) > BATCH_LINES):
            yield Group(together, firsts, size)
            together, firsts, size = [], [], 0
        if firsts and _origin(firsts[-1][1]) == _origin(new[0][1]):
            new = new[1:]
        together.append(batch)
        firsts += new
        size += own
    if together:
        yield Group(together, firsts, size)


def _firsts(batch: Batch) -> Iterator[Placed]:
    """The first record of each origin of a batch, which is sorted."""
    before = None
    last = _origin(batch.records[-1])
    for place, record in zip(*batch, strict=True):
        if before == last:
            return
        origin = _origin(record)
        if origin != before:
            yield place, record
        before = origin


def _origin(record: bytes) -> bytes:
    return record[: record.index(b"\t")]


class PutOff:
    """Records to ask about later, first in, first out. They are in a temporary file, since they may be many."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this
        self._places = array("q")

    def add(self, batch: Batch) -> None:
        """Add the records of a batch. OSError is raised if there is no room."""
        self._file.writelines(batch.records)
        self._places.extend(batch.places)

    def all(self) -> Iterator[Batch]:
        """All records, in batches; none can be added any more."""
        self._file.seek(0)
        return _grouped(zip(self._places, self._file, strict=True), WAITING_ORIGINS)

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


class Ranges:
    """Places in the sorted order that are done, as ranges that are added in any order."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def add(self, start: int, end: int) -> None:
        """Add the places from `start`, and before `end`."""
        self._ends[start] = end

    def gaps(self, count: int) -> Iterator[tuple[int, int]]:
        """The ranges of `count` places that are not done."""
        at = 0
        for start in sorted(self._ends):
            if start > at:
                yield at, start
            at = max(at, self._ends[start])
        if at < count:
            yield at, count


def ranges(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The ranges of ascending places: from a place, and before another."""
    start = at = places[0]
    for place in places[1:]:
        at += 1
        if place != at:
            yield start, at
            start = at = place
    yield start, at + 1


def batches(records: Iterable[bytes], gaps: Iterable[tuple[int, int]]) -> Iterator[Batch]:
    """The sorted records that are in a gap, in batches."""
    return _grouped(_within(enumerate(records), gaps), BATCH_LINES)


def _within(placed: Iterable[Placed], gaps: Iterable[tuple[int, int]]) -> Iterator[Placed]:
    remaining, place = iter(placed), 0
    for begins, ends in gaps:
        yield from islice(remaining, begins - place, ends - place)
        place = ends


def _grouped(placed: Iterable[Placed], origins: int) -> Iterator[Batch]:
    """Records in batches, of at most so many origins each."""
    places: list[int] = []
    records: list[bytes] = []
    size = seen = 0
    before = b""
    for place, record in placed:
        origin = _origin(record)
        if not records or origin != before:
            seen += 1
        if len(records) == BATCH_LINES or size > BATCH_BYTES or seen > origins:
            yield Batch(places, records)
            places, records, size, seen = [], [], 0, 1
        places.append(place)
        records.append(record)
        size += len(record)
        before = origin
    if records:
        yield Batch(places, records)
