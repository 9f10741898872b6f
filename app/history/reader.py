"""The history of an origin with the version that it has now."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from app.cache.robots_cache import RobotsCache
from app.history.versions import History, with_current
from app.origin import Origin


class HistoryStore(Protocol):
    """Where the versions that have ended are kept."""

    async def read(self, origin: Origin) -> History:
        """The versions that have ended; bounded in time, and raises only StoreDown."""


class HistoryReader:
    """Reads what the files of origins are, from the cache, and what they were, from the store if there is one."""

    def __init__(self, cache: RobotsCache, store: HistoryStore | None, clock: Callable[[], float]) -> None:
        self._cache = cache
        self._store = store
        self._clock = clock

    async def read(self, origin: Origin) -> History:
        """The versions, oldest first and the present one last, without asking the origin; raises StoreDown."""
        # The cache before the store: a version that ends in between may not have been written yet.
        current = await self._cache.last_found(origin)
        ended = () if self._store is None else await self._store.read(origin)
        # In a thread: the current version has to be compressed, and may be large.
        return ended if current is None else await asyncio.to_thread(with_current, ended, current, self._clock())
