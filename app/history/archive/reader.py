"""Read the archive behind the history of the store, without delaying anything else; charged to quotas as long work."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from app.history.archive.archive import Archive, ArchivedPast
from app.history.versions import Version
from app.loop.background import in_daemon_thread
from app.loop.request import SPENT
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin

ARCHIVE_READ_TIME: Final = 5.0
"""Seconds for one read."""

ARCHIVE_READS: Final = 4
"""Reads at once. One that takes too long counts until its thread ends, so that an archive that hangs takes no more."""

_TOO_SLOW: Final = "the archive cannot be read: it takes too long"

T = TypeVar("T")


class ArchiveReader:
    """Versions of the archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._room = asyncio.Semaphore(ARCHIVE_READS)
        self._overdue: set[asyncio.Future[Any]] = set()

    def past(self, origin: Origin) -> "PastReader":
        """The versions of an origin; what is read of the index is held for the next question."""
        return PastReader(self, self._archive.past(origin))

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` reads in a thread. Raises StoreDown if it cannot, or not in ARCHIVE_READ_TIME."""
        if len(self._overdue) == ARCHIVE_READS:
            raise StoreDown(_TOO_SLOW)  # at once, or a batch of questions would wait for each of them
        reading: asyncio.Future[tuple[T, float]] | None = None
        try:
            async with asyncio.timeout(ARCHIVE_READ_TIME):
                await self._room.acquire()
                reading = asyncio.ensure_future(in_daemon_thread("archive", partial(_timed, work)))
                reading.add_done_callback(self._end)
                found, seconds = await asyncio.shield(reading)
        except TimeoutError:
            if reading is not None:
                self._overdue.add(reading)
                reading.add_done_callback(self._overdue.discard)
            raise StoreDown(_TOO_SLOW) from None
        except OSError as error:
            raise StoreDown(f"the archive cannot be read: {error}") from error
        spent = SPENT.get()
        if spent is not None:
            spent(seconds)
        return found

    def _end(self, reading: asyncio.Future[Any]) -> None:
        self._room.release()
        if not reading.cancelled():
            reading.exception()  # it was raised where the read is awaited, if that still waits


class PastReader:
    """Versions of one origin; every method raises StoreDown if they cannot be read in ARCHIVE_READ_TIME."""

    def __init__(self, reader: ArchiveReader, past: ArchivedPast) -> None:
        self._reader = reader
        self._past = past

    async def at(self, at: float) -> Version | None:
        """The version in use at the instant `at` (Unix seconds); the same object if the last question had it, too."""
        return await self._reader.run(lambda: self._past.at(at))

    async def by_id(self, name: str) -> Version | None:
        """The newest version whose digest begins with `name`, None if there is none."""
        return await self._reader.run(lambda: self._past.by_id(name))

    async def around(self, version: Version) -> tuple[Version | None, int | None]:
        """The version before this one, and when the next one was first seen (Unix seconds)."""
        return await self._reader.run(lambda: self._past.around(version))


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result of `work`, and the CPU seconds that this thread took for it."""
    begun = time.thread_time()
    return work(), time.thread_time() - begun
