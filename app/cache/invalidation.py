"""What processes tell each other: an origin has a new snapshot, or was purged. One channel, one subscription each.

News saves time and is never relied on: whoever misses some learns the same from the store, when his trust in what he
remembers is over.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType

from app.origin import BadUrl, Origin, read_target
from app.redis.background import cancel_and_wait
from app.redis.connect import Subscriber
from app.redis.failures import FAILURES

CHANNEL = "robots:news"

LONGEST_MESSAGE = 512
"""Octets of a message that is looked at; a host name has 253."""

QUIET = 5.0
"""Seconds of silence after which the server is asked whether it is there; after as many more it is given up."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before a new attempt to subscribe: doubling, and from the start again once one has held for the longest."""


_log = logging.getLogger(__name__)


class Event(StrEnum):
    """What can be told of an origin."""

    CHANGED = "changed"
    PURGED = "purged"


def write(teller: str, word: Event, origin: Origin) -> bytes:
    """The message in which the process called `teller` says so."""
    return f"{teller} {word} {origin.key}".encode()


def read(message: object, listener: str) -> tuple[Event, Origin] | None:
    """What another process said; None for the listener's own words, and for anything that is no message of ours."""
    if not isinstance(message, bytes) or len(message) > LONGEST_MESSAGE or not message.isascii():
        return None
    parts = message.decode().split(" ")
    if len(parts) != 3 or parts[0] == listener or parts[1] not in list(Event):
        return None
    try:
        origin = read_target(parts[2]).origin
    except BadUrl:
        return None
    return (Event(parts[1]), origin) if origin.key == parts[2] else None


class InvalidationListener:
    """Listens for as long as its block lasts, and subscribes again, ever more slowly, where that ends.

    `hear` is called with what other processes tell. `missed` is called whenever a subscription begins: whatever was
    told before it has gone unheard. Anyone who reaches the server can write into the channel, so that a message can
    at worst cause a question to the store.
    """

    def __init__(
        self,
        subscribe: Callable[[], Subscriber],
        listener: str,
        hear: Callable[[Event, Origin], None],
        missed: Callable[[], None],
        *,
        quiet: float = QUIET,
    ) -> None:
        """`subscribe` makes a new subscriber; `listener` is this process's own name; `quiet`: see QUIET."""
        self._subscribe = subscribe
        self._listener = listener
        self._hear = hear
        self._missed = missed
        self._quiet = quiet
        self._up = False
        self._task: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        """Whether news is heard now."""
        return self._up

    async def __aenter__(self) -> "InvalidationListener":
        self._task = asyncio.create_task(self._keep_listening())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            await cancel_and_wait([self._task])

    async def _keep_listening(self) -> None:
        now = asyncio.get_running_loop().time
        pause = FIRST_PAUSE
        while True:
            began = now()
            try:
                await self._listen()
            except FAILURES as error:
                _log.warning("No news of other processes is heard: %s: %s", type(error).__name__, error)
            if now() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            # Not all processes at the same moment: they lost the server at the same moment.
            await asyncio.sleep(pause * (0.5 + random.random() / 2))  # noqa: S311 - no secret
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _listen(self) -> None:
        subscriber = self._subscribe()
        try:
            async with asyncio.timeout(self._quiet):
                await subscriber.subscribe(CHANNEL)
            silent = False
            while True:
                message = await subscriber.get_message(timeout=self._quiet)
                if message is not None:
                    self._take(message)
                    # Messages that are read already are handed out without a pause, and a flood of them would let
                    # nobody else run. The server cuts off a listener who lags too far behind.
                    await asyncio.sleep(0)
                elif not silent:
                    async with asyncio.timeout(self._quiet):
                        await subscriber.ping()
                # The first answer is that to the subscription, or else this is no server that could tell any news.
                if not self._up or (message is None and silent):
                    raise ConnectionError("the server does not answer, or not as it should")
                silent = message is None
        finally:
            self._up = False
            await subscriber.aclose()

    def _take(self, message: dict[str, object]) -> None:
        if message["type"] == "subscribe":
            # Also when the client has subscribed anew by itself. Not before: what is told until here is not heard.
            self._up = True
            self._missed()
        elif message["type"] == "message":
            told = read(message["data"], self._listener)
            if told is not None:
                self._hear(*told)
