"""The history of an origin, including its current version."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from app.cache.robots_cache import RobotsCache
from app.history.versions import History, Version, with_current
from robots_core.origin import Origin


class HistoryStore(Protocol):
    """Where versions that have ended are kept."""

    async def read(self, origin: Origin) -> History:
        """The versions that have ended. Bounded in time; raises only StoreDown."""


class PastVersions(Protocol):
    """An origin's versions that are no longer in the store. Bounded in time; every method raises only StoreDown."""

    async def at(self, at: float, /) -> Version | None:
        """The version in use at the instant `at` (Unix seconds); the same object if the last question had it, too."""

    async def by_id(self, name: str, /) -> Version | None:
        """The newest version whose digest begins with `name`."""

    async def around(self, version: Version, /) -> tuple[Version | None, int | None]:
        """The version before this one, and when the next one was first seen (Unix seconds)."""


class VersionArchive(Protocol):
    """Where versions are kept that are no longer in the store."""

    def past(self, origin: Origin) -> PastVersions:
        """The versions of an origin, to ask several questions about."""


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

    def archived(self, origin: Origin) -> PastVersions:
        """The versions of an origin that the archive has, to ask several questions about."""
        return _NOTHING if self._archive is None else self._archive.past(origin)

    async def read(self, origin: Origin) -> History:
        """All versions, the oldest first and the current one last; nothing is fetched. Raises StoreDown."""
        # The cache first: a version that ends in between may not have been written yet.
        current = await self._cache.last_found(origin)
        ended = await self._store.read(origin)
        # In a thread, since the current version has to be compressed.
        return ended if current is None else await asyncio.to_thread(with_current, ended, current, self._clock())


class _Nothing:
    """What is known without an archive."""

    async def at(self, _at: float, /) -> Version | None:
        return None

    async def by_id(self, _name: str, /) -> Version | None:
        return None

    async def around(self, _version: Version, /) -> tuple[Version | None, int | None]:
        return None, None


_NOTHING: Final = _Nothing()
