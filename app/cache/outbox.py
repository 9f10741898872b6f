"""What is delivered to the store once it is available again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from app.cache.byte_lru import BoundedDict
from app.cache.ordering import Purged
from app.loop.background import BackgroundTask, Surviving, repeatedly
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin

OUTBOX_LIMIT = 10_000
"""Origins in the outbox; beyond that, the oldest is delivered when this process is next asked about it."""

DELIVERY_PAUSE = 1.0
"""Seconds between two attempts while the store is down."""


class Outbox:
    """Origins that this process has fetched or purged while the store was down.

    `deliver` writes an origin to the store, after the purge if there was one; it raises StoreDown while it cannot.
    """

    def __init__(self, deliver: Callable[[Origin, Purged | None], Awaitable[None]]) -> None:
        self._deliver = deliver
        self._pending: BoundedDict[Origin, Purged | None] = BoundedDict(OUTBOX_LIMIT)
        self._has_pending = asyncio.Event()

    def add(self, origin: Origin, purged: Purged | None = None) -> None:
        """Deliver the origin later; a pending purge is kept unless this one replaces it."""
        self._pending[origin] = purged or self.purged(origin)
        self._has_pending.set()

    def purged(self, origin: Origin) -> Purged | None:
        """The purge of the origin that the store does not have yet."""
        return self._pending.get(origin)

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        """While the block lasts, deliver what is pending, until the store accepts it."""
        async with repeatedly(BackgroundTask.DELIVERIES, self._deliver_pending):
            yield

    async def _deliver_pending(self) -> None:
        await self._has_pending.wait()
        await asyncio.sleep(DELIVERY_PAUSE)
        for origin, purged in list(self._pending.items()):
            # An origin that fails unexpectedly is not delivered: the process gives it to the store when it is next
            # asked about it.
            with Surviving(BackgroundTask.DELIVERIES, origin.key):
                try:
                    await self._deliver(origin, purged)
                except StoreDown:
                    return
            if self._pending.get(origin, purged) is purged:  # else it was purged again meanwhile
                self._pending.pop(origin, None)
        if not self._pending:
            self._has_pending.clear()
