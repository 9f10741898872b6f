"""Invalidations between processes: an origin has a new snapshot, or was purged. One channel, one subscription each.

Invalidations are an optimisation. A process that misses one reads the same from the store once it no longer trusts its
memory.

They are published at once if they are rare, and many in one message if they are not. Every process receives every
message: with one for each fetch, and thousands of fetches a second in a fleet, every process would spend a large part
of a processor on receiving them.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

from redis.asyncio.client import PubSub

from app.loop.background import BackgroundTask, Surviving, background, cancel_and_wait
from app.store.failures import FAILURES
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin, read_key

CHANNEL = "robots:news"

MESSAGE_ORIGINS = 200
"""Origins that one message names at most."""

LONGEST_MESSAGE = 512 + MESSAGE_ORIGINS * 320
"""Bytes of the longest message that is read; the key of an origin has at most 320."""

QUIET_SECONDS = 5.0
"""Seconds of silence after which the server is pinged; after as many more the connection is given up."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the next attempt to subscribe: they double, and start over after a subscription that lasted."""

GATHERING_SECONDS = 0.5
"""Seconds after a message in which further changes wait for the next one."""

_log = logging.getLogger(__name__)


class Event(StrEnum):
    """What happened to an origin in another process."""

    CHANGED = "changed"
    PURGED = "purged"


def encode(sender: str, event: Event, *keys: str) -> bytes:
    """The message that a process publishes about the origins with these keys; `sender` is its name."""
    return " ".join([sender, event, *keys]).encode()


def decode(message: object, own_name: str) -> tuple[Event, Sequence[Origin]] | None:
    """The event of another process, and the origins that it is about.

    None for this process's own messages, and for anything that is not a message.
    """
    if not isinstance(message, bytes) or len(message) > LONGEST_MESSAGE or not message.isascii():
        return None
    sender, *parts = message.decode().split(" ")
    if not 2 <= len(parts) <= 1 + MESSAGE_ORIGINS or sender == own_name or parts[0] not in list(Event):
        return None
    origins = [read_key(key) for key in parts[1:]]
    known = [origin for origin in origins if origin is not None]
    return (Event(parts[0]), known) if len(known) == len(origins) else None


@dataclass(eq=False)
class InvalidationListener:
    """Listens for the invalidations of other processes, and subscribes again when a subscription ends.

    `subscriber` makes a new one, and `own_name` is this process's name. `on_event` is called with each event, and
    `on_gap` whenever a subscription begins: events before that were missed. `quiet`: see QUIET_SECONDS. `connected`:
    whether there is a subscription now. Anyone who reaches the server can write into the channel, so a message can at
    worst cause a lookup in the store.
    """

    subscriber: Callable[[], Awaitable[PubSub]]
    own_name: str
    on_event: Callable[[Event, Origin], None]
    on_gap: Callable[[], None]
    quiet: float = QUIET_SECONDS
    connected: bool = field(default=False, init=False)

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Listen while the block lasts."""
        return background(BackgroundTask.INVALIDATIONS, self._keep_listening)

    async def _keep_listening(self) -> None:
        now = asyncio.get_running_loop().time
        pause = FIRST_PAUSE
        while True:
            began = now()
            with Surviving(BackgroundTask.INVALIDATIONS):
                try:
                    await self._listen()
                except FAILURES as error:
                    _log.warning(
                        "Invalidations of other processes are not received: %s: %s", type(error).__name__, error
                    )
            if now() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            # Spread out, because all processes lost the server at the same moment.
            await asyncio.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311 - not a secret
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _listen(self) -> None:
        async with asyncio.timeout(self.quiet):
            subscriber = await self.subscriber()
        try:
            async with asyncio.timeout(self.quiet):
                await subscriber.subscribe(CHANNEL)
            silent = False
            while True:
                message = await subscriber.get_message(timeout=self.quiet)
                if message is not None:
                    self._handle(message)
                    # Messages that have been read already are returned without suspending, so a flood of them would
                    # block the event loop. The server disconnects a subscriber that lags too far behind.
                    await asyncio.sleep(0)
                elif not silent:
                    async with asyncio.timeout(self.quiet):
                        await subscriber.ping()
                # The first answer must be that to the subscription, or this is not a server that could send events.
                if not self.connected or (message is None and silent):
                    raise ConnectionError("the server sent no valid answer")
                silent = message is None
        finally:
            self.connected = False
            await subscriber.aclose()  # type: ignore[no-untyped-call]

    def _handle(self, message: dict[str, object]) -> None:
        if message["type"] == "subscribe":
            # redis-py may also have subscribed again by itself. Events until now have been missed.
            self.connected = True
            self.on_gap()
        elif message["type"] == "message":
            decoded = decode(message["data"], self.own_name)
            if decoded is not None:
                event, origins = decoded
                for origin in origins:
                    with Surviving(BackgroundTask.INVALIDATIONS, origin.key):
                        self.on_event(event, origin)


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
