"""The fetch queue: how many fetches run at once, how many wait and for whom, and how slow ones make room for others."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from app.loop.admission import Admission
from robots_core.robots.access import Busy

PROMPT = 0.2
"""The share of its time after which a fetch counts as slow: nearly all have ended by then."""


@dataclass(slots=True)
class _Held:
    slot: ExitStack
    slow: bool = False
    abandoned: bool = False


class FetchQueue:
    """Admits `concurrency` fetches at once and lets `waiting` more wait, each for `timeout` seconds in all.

    The callers that they are for share the time of the slots (Admission), so one caller's thousand new origins delay
    those of another by one fetch each, and do not keep them out.

    A fetch that takes longer than PROMPT of its time gives its slot to the next one and counts as slow from then on, so
    that origins that stall, however many, do not delay fetches from origins that respond. If there are `slow` slow
    fetches already, it is abandoned instead, which says nothing about its origin.
    """

    def __init__(self, *, timeout: float, concurrency: int, slow: int, waiting: int) -> None:
        self._timeout = timeout
        self._slots = Admission(concurrency, waiting, self.busy)
        self._slow_limit = slow
        self._slow = 0
        self._admitted = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    @property
    def in_flight(self) -> int:
        """The number of fetches that run, slow ones included."""
        return self._admitted - self.waiting

    @property
    def slow(self) -> int:
        """The number of slow fetches."""
        return self._slow

    @property
    def waiting(self) -> int:
        """The number of fetches that wait for a slot."""
        return self._slots.waiting

    @asynccontextmanager
    async def slot(self, caller: str = "") -> AsyncIterator[float]:
        """Wait for a slot and hold it during the block, which gets its deadline (the event loop's time).

        `caller` says for whom: an API key, or an address.

        Raises TimeoutError in the block at the deadline, and Busy if the queue is full or closed, or if no slot was
        free before the deadline: the origin was not asked, so nothing was learned about it.
        """
        if self._closing:
            raise self.busy()
        deadline = asyncio.get_running_loop().time() + self._timeout
        self._admitted += 1
        self._idle.clear()
        try:
            slot = await self._slots.acquire(caller, deadline)
            async with self._holding(_Held(slot), deadline):
                yield deadline
        finally:
            self._admitted -= 1
            if self._admitted == 0:
                self._idle.set()

    def busy(self) -> Busy:
        """The error of a fetch that could not be made now."""
        # By then every fetch that runs or waits now has ended.
        return Busy(math.ceil(self._timeout))

    async def aclose(self) -> None:
        """Admit no more fetches, and wait for those that were admitted, `timeout` seconds at most."""
        self._closing = True
        await self._idle.wait()

    @asynccontextmanager
    async def _holding(self, held: _Held, deadline: float) -> AsyncIterator[None]:
        limit = asyncio.timeout_at(deadline)
        prompt = asyncio.get_running_loop().call_later(self._timeout * PROMPT, self._make_room, held, limit)
        try:
            async with limit:
                yield
        except TimeoutError:
            if held.abandoned:
                raise self.busy() from None
            raise
        finally:
            prompt.cancel()
            if held.slow:
                self._slow -= 1
            held.slot.close()

    def _make_room(self, held: _Held, limit: asyncio.Timeout) -> None:
        if self._slow < self._slow_limit:
            self._slow += 1
            held.slow = True
            held.slot.close()
        elif not limit.expired():
            held.abandoned = True
            limit.reschedule(asyncio.get_running_loop().time())
