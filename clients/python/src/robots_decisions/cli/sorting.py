"""Sorts more records than memory has room for: sorted runs go to temporary files, which are merged."""

import hashlib
import heapq
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from robots_decisions.cli.failures import Failed

RUN_BYTES = 64 * 1024 * 1024
"""Memory of the records that are sorted at once, about."""

RUNS = 32
"""Files that are merged at once, at most."""

_OVERHEAD = 48  # bytes of memory of a record, besides its own


class Sorter:
    """Sorts records: bytes that end with a line break and have no other."""

    def __init__(self, run_bytes: int = RUN_BYTES) -> None:
        self._run_bytes = run_bytes
        self._records: list[bytes] = []
        self._size = 0
        self._runs: list[IO[bytes]] = []
        self._hash = hashlib.sha256()
        self.count = 0

    def add(self, record: bytes) -> None:
        """Add a record. Raise Failed if there is no room for temporary files."""
        self._records.append(record)
        self._size += len(record) + _OVERHEAD
        self.count += 1
        if self._size > self._run_bytes:
            self._spill()

    @property
    def digest(self) -> str:
        """What differs if the records, which are added in the same order, differ."""
        whole = self._hash.copy()
        whole.update(b"".join(self._records))
        return whole.hexdigest()

    def sorted(self) -> Iterator[bytes]:
        """All records in order, once."""
        self._records.sort()
        yield from heapq.merge(*self._runs, self._records) if self._runs else self._records
        for run in self._runs:
            run.close()

    def _spill(self) -> None:
        self._hash.update(b"".join(self._records))
        self._records.sort()
        if len(self._runs) == RUNS:
            merged = written(heapq.merge(*self._runs))
            for run in self._runs:
                run.close()
            self._runs = [merged]
        self._runs.append(written(self._records))
        self._records, self._size = [], 0


def written(records: Iterable[bytes]) -> IO[bytes]:
    """A temporary file with the records, which has no name and so is gone with the process. Raise Failed."""
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as what reads it
        file.writelines(records)
        file.seek(0)
    except OSError as error:
        raise Failed(f"Cannot write a temporary file in {tempfile.gettempdir()}: {error.strerror}.") from None
    return file
