"""The history of an origin, including its current version."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from app.cache.robots_cache import RobotsCache
from app.history.archive.reader import ArchiveReader, PastReader
from app.history.versions import History, Version, with_current
from robots_core.origin import Origin


class HistoryStore(Protocol):
    """Where versions that have ended are kept."""

    async def read(self, origin: Origin) -> History:
        """The versions that have ended. Bounded in time; raises only StoreDown."""


class HistoryReader:
    """Reads current versions from the cache, earlier ones from the store, and those before them from the archive."""

    def __init__(
        self,
        cache: RobotsCache,
        store: HistoryStore,
        clock: Callable[[], float],
        archive: ArchiveReader | None = None,
    ) -> None:
        self._cache = cache
        self._store = store
        self._clock = clock
        self._archive = archive

    def archived(self, origin: Origin) -> "ArchivedVersions":
        """The versions of an origin that the archive has, to ask several questions about."""
        return _NOTHING if self._archive is None else self._archive.past(origin)

    async def read(self, origin: Origin) -> History:
        """All versions, the oldest first and the current one last; nothing is fetched. Raises StoreDown."""
        # The cache first: a version that ends in between may not have been written yet.
        current = await self._cache.last_found(origin)
        ended = await self._store.read(origin)
        # In a thread, since the current version has to be compressed.
        return ended if current is None else await asyncio.to_thread(with_current, ended, current, self._clock())


class _NothingArchived:
    """What is known without an archive."""

    async def at(self, _at: float) -> None:
        return None

    async def by_id(self, _name: str) -> None:
        return None

    async def around(self, _version: Version) -> tuple[None, None]:
        return None, None


_NOTHING: Final = _NothingArchived()

ArchivedVersions: TypeAlias = PastReader | _NothingArchived
"""Reads the versions of an origin that only the archive still has."""
