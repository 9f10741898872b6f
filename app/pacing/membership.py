"""The rank of each process in its fleet, agreed on through the store, for times when the store is down."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from app.loop.background import BackgroundTask, periodically
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script

ANNOUNCE_INTERVAL = 3.0
"""Seconds between two announcements, after which all others have seen a new process."""

MEMBERS_KEY: Final = "robots:pace:fleet"

_ANNOUNCE: Final = Script.load(__package__, "announce.lua", GONE_AFTER=round(5 * ANNOUNCE_INTERVAL))


class Rank(NamedTuple):
    """The number of a process, from 0, and the size `of` its fleet."""

    number: int
    of: int


class FleetMembership:
    """The rank of the process called `name`, as of the last announcement that reached the store; None before that.

    If the store no longer has the last announcement, or did not answer since, it may have been emptied, or be as it was
    before: `on_loss` is called.
    """

    def __init__(self, store: GuardedClient, name: str, on_loss: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._on_loss = on_loss
        self._announced_at: int | None = None
        self._failed = False
        self._name = name
        self.rank: Rank | None = None

    def running(self) -> AbstractAsyncContextManager[None]:
        """Announce this process to the fleet for as long as the block lasts."""
        return periodically(BackgroundTask.MEMBERSHIP, self.announce, ANNOUNCE_INTERVAL, at_once=True)

    async def announce(self) -> None:
        """Announce this process and read its rank; without the store, the last rank stays."""
        try:
            reply = await _ANNOUNCE.run(self._store, [MEMBERS_KEY], self._name)
        except StoreDown:
            self._failed = True
            return
        match reply:
            case [int(number), int(of), int(before), int(now)]:
                self.rank = Rank(number, of) if 0 <= number < of else None
                lost = self._announced_at is not None and (self._failed or before < self._announced_at)
                self._announced_at, self._failed = now, False
                if lost:
                    self._on_loss()
            case _:
                self.rank = None
