"""Publishing invalidations: at once if they are rare, and many in one message if they are not.

Every process receives every message. With a message for each fetch, and thousands of fetches a second in a fleet, every
process would spend a large part of a processor on receiving them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from app.cache.invalidation import MESSAGE_ORIGINS, Event, encode
from app.loop.background import BackgroundTask, Surviving, cancel_and_wait
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin

GATHERING_SECONDS = 0.5
"""Seconds after a message in which further changes wait for the next one."""


class InvalidationPublisher:
    """Publishes the invalidations of one process. `send` publishes a message, and raises StoreDown."""

    def __init__(
        self, send: Callable[[bytes], Awaitable[object]], name: str, *, window: float = GATHERING_SECONDS
    ) -> None:
        """`name` is that of the process; `window`: see GATHERING_SECONDS."""
        self._send = send
        self._name = name
        self._window = window
        self._waiting: dict[str, None] = {}  # keys, which the garbage collector does not visit
        self._task: asyncio.Task[None] | None = None

    async def publish(self, event: Event, origin: Origin) -> None:
        """Publish the event, or note it for the next message; raises StoreDown if that fails now.

        A purge is published at once: an operator waits for it.
        """
        if event is Event.CHANGED and self._task is not None and not self._task.done():
            self._waiting[origin.key] = None
            if len(self._waiting) >= MESSAGE_ORIGINS:
                await self._flush()
            return
        if event is Event.CHANGED:
            self._task = asyncio.create_task(self._publish_later(), name=BackgroundTask.PUBLISHER)
        await self._send(encode(self._name, event, origin.key))

    async def aclose(self) -> None:
        """Publish what waits, if the store accepts it."""
        if self._task is not None:
            await cancel_and_wait([self._task])
        with suppress(StoreDown):
            await self._flush()

    async def _publish_later(self) -> None:
        """At the end of each window, publish what has come in it; end after one in which nothing came."""
        while True:
            await asyncio.sleep(self._window)
            if not self._waiting:
                return
            # If it fails, other processes trust their older copies until their time is over.
            with Surviving(BackgroundTask.PUBLISHER), suppress(StoreDown):
                await self._flush()

    async def _flush(self) -> None:
        keys = list(self._waiting)
        self._waiting.clear()
        if keys:
            await self._send(encode(self._name, Event.CHANGED, *keys))
