"""The history of an origin, including its current version."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from app.cache.robots_cache import RobotsCache
from app.history.versions import History, Version, with_current
from robots_core.origin import Origin


class HistoryStore(Protocol):
    """Where versions that have ended are kept."""

    async def read(self, origin: Origin) -> History:
        """The versions that have ended. Bounded in time; raises only StoreDown."""


class VersionArchive(Protocol):
    """Where versions are kept that are no longer in the store. Bounded in time; every method raises only StoreDown."""

    async def at(self, origin: Origin, at: float) -> Version | None:
        """The version in use at the instant `at` (Unix seconds)."""

    async def by_id(self, origin: Origin, name: str) -> Version | None:
        """The newest version whose digest begins with `name`."""

    async def around(self, origin: Origin, version: Version) -> tuple[Version | None, int | None]:
        """The version before this one, and when the next one was first seen (Unix seconds)."""


class HistoryReader:
    """Reads current versions from the cache, earlier ones from the store, and those before them from the archive."""

    def __init__(
        self,
        cache: RobotsCache,
        store: HistoryStore,
        clock: Callable[[], float],
        archive: VersionArchive | None = None,
    ) -> None:
        self._cache = cache
        self._store = store
        self._clock = clock
        self._archive = archive

    async def archived_at(self, origin: Origin, at: float) -> Version | None:
        """The archive's version in use at an instant (Unix seconds); raises StoreDown."""
        return None if self._archive is None else await self._archive.at(origin, at)

    async def archived_by_id(self, origin: Origin, name: str) -> Version | None:
        """The archive's newest version whose digest begins with `name`; raises StoreDown."""
        return None if self._archive is None else await self._archive.by_id(origin, name)

    async def archived_around(self, origin: Origin, version: Version) -> tuple[Version | None, int | None]:
        """The archive's version before this one, and when its next one was first seen; raises StoreDown."""
        return (None, None) if self._archive is None else await self._archive.around(origin, version)

    async def read(self, origin: Origin) -> History:
        """All versions, the oldest first and the current one last; nothing is fetched. Raises StoreDown."""
        # The cache first: a version that ends in between may not have been written yet.
        current = await self._cache.last_found(origin)
        ended = await self._store.read(origin)
        # In a thread, since the current version has to be compressed.
        return ended if current is None else await asyncio.to_thread(with_current, ended, current, self._clock())
