"""Sorted records in batches, which of them are done, and those that are put off."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from robots_decisions.cli.entries import Line, line_of, origin_in

BATCH_LINES, BATCH_BYTES = 500, 512 * 1024
"""Lines of a batch, and bytes of their records, at most: a batch is one request."""


class Batch(NamedTuple):
    """Records that are next to each other in the sorted order, in which `start` is the place of the first."""

    start: int
    records: Sequence[bytes]

    @property
    def origin(self) -> str:
        """The origin that its first line is about."""
        return origin_in(self.records[0])

    def lines(self) -> list[Line]:
        """Its lines."""
        return list(map(line_of, self.records))


class PutOff:
    """Batches to ask later, first in, first out. They are in a temporary file, since they may be many."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this
        self._sizes: list[tuple[int, int]] = []

    def add(self, batch: Batch) -> None:
        """Add a batch. OSError is raised if there is no room."""
        self._file.writelines(batch.records)
        self._sizes.append((batch.start, len(batch.records)))

    def all(self) -> Iterator[Batch]:
        """All batches; none can be added any more."""
        self._file.seek(0)
        for start, count in self._sizes:
            yield Batch(start, list(islice(self._file, count)))

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


def batches(records: Iterable[bytes], gaps: Iterable[tuple[int, int]]) -> Iterator[Batch]:
    """The sorted records that are in a gap, in batches."""
    remaining, place = iter(records), 0
    for begins, ends in gaps:
        batch: list[bytes] = []
        size = 0
        for at, record in enumerate(islice(remaining, begins - place, ends - place), begins):
            batch.append(record)
            size += len(record)
            if len(batch) == BATCH_LINES or size > BATCH_BYTES:
                yield Batch(at + 1 - len(batch), batch)
                batch, size = [], 0
        place = ends
        if batch:
            yield Batch(ends - len(batch), batch)
