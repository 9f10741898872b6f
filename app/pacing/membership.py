"""The rank of each process in its fleet, agreed on through the store, for times when the store is down."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from app.loop.background import BackgroundTask, periodically
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script

ANNOUNCE_INTERVAL = 3.0
"""Seconds between two announcements, after which all others have seen a new process."""

AGREED_AFTER = 3 * ANNOUNCE_INTERVAL
"""Seconds for which a list of members must stay the same before it counts alone.

A store that was emptied has a new list for each process that finds it.
"""

MAX_LISTS = 8
"""Lists that a process goes by at once, at most."""

MEMBERS_KEY: Final = "robots:pace:fleet"
KNOWN_KEY: Final = f"robots:pace:{{{MEMBERS_KEY}}}:known"
"""In the hash slot of MEMBERS_KEY."""

_ANNOUNCE: Final = Script.load(__package__, "announce.lua", GONE_AFTER=round(5 * ANNOUNCE_INTERVAL))


class Rank(NamedTuple):
    """The number of a process, from 0, and the size `of` its fleet."""

    number: int
    of: int


class FleetMembership:
    """The ranks of the process called `name`: a slot is its own only if it is by all of them.

    Processes learn one after the other that the list of members has changed, and an outage may begin meanwhile. So a
    process goes by a new list and by those before it, until all members know the new one. Any two processes then have
    a list in common, by which no slot is of both.

    `ranks` is None until the store has answered once, and empty until the process goes by a list that all know, unless
    it is the first process of its fleet. Without the store, the last ranks stay.

    If the store no longer has the last announcement, or did not answer since, it may have been emptied, or be as it was
    before: `on_loss` is called.
    """

    def __init__(
        self,
        store: GuardedClient,
        name: str,
        on_loss: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._on_loss = on_loss
        self._monotonic = monotonic
        self._announced_at: int | None = None
        self._failed = False
        self._name = name
        self._list = b""
        self._list_since = 0.0
        self.ranks: tuple[Rank, ...] | None = None

    def running(self) -> AbstractAsyncContextManager[None]:
        """Announce this process to the fleet for as long as the block lasts."""
        return periodically(BackgroundTask.MEMBERSHIP, self.announce, ANNOUNCE_INTERVAL, at_once=True)

    async def announce(self) -> None:
        """Announce this process and read its rank; again at once if the list is new, to say that it is known."""
        known = self._list
        await self._announce()
        if self._list != known:
            await self._announce()

    async def _announce(self) -> None:
        try:
            reply = await _ANNOUNCE.run(self._store, [MEMBERS_KEY, KNOWN_KEY], self._name, self._list)
        except StoreDown:
            self._failed = True
            return
        match reply:
            case [int(number), int(of), int(before), int(now), bytes(members), int(agreed)]:
                self._follow(members, Rank(number, of), bool(agreed))
                lost = self._announced_at is not None and (self._failed or before < self._announced_at)
                self._announced_at, self._failed = now, False
                if lost:
                    self._on_loss()
            case _:
                self.ranks = ()

    def _follow(self, members: bytes, rank: Rank, agreed: bool) -> None:
        ranks, now = self.ranks or (), self._monotonic()
        if not 0 <= rank.number < rank.of or len(ranks) > MAX_LISTS:
            ranks, self._list = (), b""
        elif members != self._list:
            self._list, self._list_since = members, now
            is_first = self.ranks is None and rank.of == 1
            ranks = (*ranks, rank) if ranks or is_first else ()
        elif agreed and now - self._list_since >= AGREED_AFTER:
            ranks = (rank,)
        self.ranks = ranks
