"""Backoffs by origin, as processes of the last release keep them. Remove with the next release.

A pool that is stored as another key than the origin's (`PaceKey.stored_pool`) takes over the origin's backoff, and a
backoff from a pool is written under the origin, too.
"""

from collections.abc import Callable

from app.cache.byte_lru import BoundedDict
from app.pacing.redis_pacer import RedisPacer
from app.pacing.slots import PaceKey
from app.store.guarded_client import StoreDown

READ_EVERY = 3.0
"""Seconds after which the backoff of an origin is read again."""


class OriginBackoffs:
    """The backoffs of origins; `steady` is a clock that is never set."""

    def __init__(self, store: RedisPacer, steady: Callable[[], float]) -> None:
        self._store = store
        self._steady = steady
        self._read_at: BoundedDict[str, float] = BoundedDict()

    async def left(self, key: PaceKey, origin: str) -> float:
        """Seconds left of the origin's backoff; 0 if the pool is stored as it, or if it was read of late."""
        now = self._steady()
        if origin in ("", key.stored_pool) or now < self._read_at.get(origin, -READ_EVERY) + READ_EVERY:
            return 0.0
        self._read_at[origin] = now
        try:
            return await self._store.backoff_left(PaceKey(origin, key.agent))
        except StoreDown:
            return 0.0

    async def note(self, key: PaceKey, origin: str, seconds: float, reporter: str | None) -> None:
        """Tell processes of the last release that the pool's backoff has so many seconds left."""
        if origin in ("", key.stored_pool):
            return
        try:
            await self._store.back_off(PaceKey(origin, key.agent), seconds, reporter)
        except StoreDown:
            return
