"""What the store is to be told of origins, once it is back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from app.cache.ordering import Purged
from app.origin import Origin
from app.redis.background import background
from app.redis.guarded_client import StoreDown

LIMIT = 10_000
"""Origins that are remembered; beyond, the oldest is told of when this process is next asked about it."""

PAUSE = 1.0
"""Seconds between two attempts while the store is down."""


class Outbox:
    """Origins of which this process learnt something, or that it purged, while the store was down.

    `deliver` tells the store of an origin, and of the purge that goes before, and raises StoreDown while it cannot.
    """

    def __init__(self, deliver: Callable[[Origin, Purged | None], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._owed: dict[Origin, Purged | None] = {}
        self._owing = asyncio.Event()

    def add(self, origin: Origin, purged: Purged | None = None) -> None:
        """Tell the store of the origin later; a purge that is owed already stays owed, unless this one replaces it."""
        purged = purged or self.purged(origin)
        self._owed.pop(origin, None)
        self._owed[origin] = purged
        if len(self._owed) > LIMIT:
            del self._owed[next(iter(self._owed))]
        self._owing.set()

    def purged(self, origin: Origin) -> Purged | None:
        """The purge of the origin that the store has not been told of."""
        return self._owed.get(origin)

    @asynccontextmanager
    async def delivering(self, pause: float = PAUSE) -> AsyncIterator[None]:
        """While the block lasts, tell the store what it missed, every so many seconds until it takes it."""
        async with background(self._keep_delivering(pause)):
            yield

    async def _keep_delivering(self, pause: float) -> None:
        while True:
            await self._owing.wait()
            await asyncio.sleep(pause)
            with suppress(StoreDown):
                for origin, purged in list(self._owed.items()):
                    await self._deliver(origin, purged)
                    if self._owed.get(origin, purged) is purged:  # else it was purged again meanwhile
                        self._owed.pop(origin, None)
            if not self._owed:
                self._owing.clear()
