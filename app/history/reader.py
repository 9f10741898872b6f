"""The history of an origin, including its current version."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from app.cache.robots_cache import RobotsCache
from app.history.versions import History, with_current
from robots_core.origin import Origin


class HistoryStore(Protocol):
    """Where versions that have ended are kept."""

    async def read(self, origin: Origin) -> History:
        """The versions that have ended. Bounded in time; raises only StoreDown."""


class HistoryReader:
    """Reads current versions from the cache, and earlier ones from the store if there is one."""

    def __init__(self, cache: RobotsCache, store: HistoryStore | None, clock: Callable[[], float]) -> None:
        self._cache = cache
        self._store = store
        self._clock = clock

    async def read(self, origin: Origin) -> History:
        """All versions, the oldest first and the current one last; nothing is fetched. Raises StoreDown."""
        # The cache first: a version that ends in between may not have been written yet.
        current = await self._cache.last_found(origin)
        ended = () if self._store is None else await self._store.read(origin)
        # In a thread, since the current version has to be compressed.
        return ended if current is None else await asyncio.to_thread(with_current, ended, current, self._clock())
