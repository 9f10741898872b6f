"""Read the archive behind the history of the store, without delaying anything else."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from app.archive.archive import Archive
from app.history.versions import Version
from app.loop.background import in_daemon_thread
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin

ARCHIVE_READ_TIME: Final = 5.0
"""Seconds for one read."""

ARCHIVE_READS: Final = 4
"""Reads at once. One that takes too long counts until its thread ends, so that an archive that hangs takes no more."""

_TOO_SLOW: Final = "the archive cannot be read: it takes too long"

T = TypeVar("T")


class ArchiveReader:
    """Versions of the archive; every method raises StoreDown if it cannot be read in ARCHIVE_READ_TIME."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._room = asyncio.Semaphore(ARCHIVE_READS)
        self._overdue = 0

    async def at(self, origin: Origin, at: float) -> Version | None:
        """The version in use at the instant `at` (Unix seconds), None if there is none."""
        return await self._read(lambda: self._archive.at(origin, at))

    async def by_id(self, origin: Origin, name: str) -> Version | None:
        """The newest version whose digest begins with `name`, None if there is none."""
        return await self._read(lambda: self._archive.by_id(origin, name))

    async def around(self, origin: Origin, version: Version) -> tuple[Version | None, int | None]:
        """The version before this one, and when the next one was first seen (Unix seconds)."""
        return await self._read(lambda: self._archive.around(origin, version))

    async def _read(self, work: Callable[[], T]) -> T:
        if self._overdue == ARCHIVE_READS:
            raise StoreDown(_TOO_SLOW)  # at once, or a batch of questions would wait for each of them
        reading: asyncio.Future[T] | None = None
        try:
            async with asyncio.timeout(ARCHIVE_READ_TIME):
                await self._room.acquire()
                reading = asyncio.ensure_future(in_daemon_thread("archive", work))
                reading.add_done_callback(self._end)
                return await asyncio.shield(reading)
        except TimeoutError:
            if reading is not None:
                self._overdue += 1
                reading.add_done_callback(self._end_overdue)
            raise StoreDown(_TOO_SLOW) from None
        except OSError as error:
            raise StoreDown(f"the archive cannot be read: {error}") from error

    def _end(self, reading: asyncio.Future[Any]) -> None:
        self._room.release()
        if not reading.cancelled():
            reading.exception()  # it was raised where the read is awaited, if that still waits

    def _end_overdue(self, _reading: asyncio.Future[Any]) -> None:
        self._overdue -= 1
