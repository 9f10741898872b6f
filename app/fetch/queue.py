"""The fetch queue: how many fetches run at once, how many wait and for whom, and how slow ones make room for others."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from app.robots.access import Busy

PROMPT = 0.2
"""The share of its time after which a fetch counts as slow: nearly all have ended by then."""


_Line: TypeAlias = deque[asyncio.Future[bool]]
"""The waiting fetches of a caller. The result is whether a fetch has a slot; without one it has lost its place."""


@dataclass(slots=True)
class _Slot:
    slow: bool = False
    abandoned: bool = False


class FetchQueue:
    """Admits `concurrency` fetches at once and lets `waiting` more wait, each for `timeout` seconds in all.

    The callers that they are for take turns, each in the order of its fetches. In a full queue, a caller with fewer
    waiting fetches takes the place of the last one of the caller with most. So one caller's thousand new origins delay
    those of another by one fetch each, and do not keep them out.

    A fetch that takes longer than PROMPT of its time gives its slot to the next one and counts as slow from then on, so
    that origins that stall, however many, do not delay fetches from origins that respond. If there are `slow` slow
    fetches already, it is abandoned instead, which says nothing about its origin.
    """

    def __init__(self, *, timeout: float, concurrency: int, slow: int, waiting: int) -> None:
        self._timeout = timeout
        self._free = concurrency
        self._slow_limit = slow
        self._slow = 0
        self._waiting_limit = waiting
        self._waiting = 0
        self._lines: dict[str, _Line] = {}  # by caller; the first is the next
        self._admitted = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    @property
    def in_flight(self) -> int:
        """The number of fetches that run, slow ones included."""
        return self._admitted - self._waiting

    @property
    def slow(self) -> int:
        """The number of slow fetches."""
        return self._slow

    @property
    def waiting(self) -> int:
        """The number of fetches that wait for a slot."""
        return self._waiting

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
            await self._wait(caller, deadline)
            async with self._holding_slot(deadline):
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

    async def _wait(self, caller: str, deadline: float) -> None:
        if self._free > 0:
            self._free -= 1
            return
        if self._waiting >= self._waiting_limit:
            self._displace(caller)
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(caller, deque()).append(turn)
        self._waiting += 1
        admitted = False
        try:
            async with asyncio.timeout_at(deadline):
                admitted = await turn
        except TimeoutError:
            raise self.busy() from None
        finally:
            self._leave(caller, turn, admitted=admitted)
        if not admitted:
            raise self.busy()

    def _leave(self, caller: str, turn: asyncio.Future[bool], *, admitted: bool) -> None:
        if not turn.cancelled():
            if turn.result() and not admitted:
                self._release()  # cancelled before it could use the slot
            return
        line = self._lines.get(caller)
        if line is not None and turn in line:
            line.remove(turn)
            self._waiting -= 1
            if not line:
                del self._lines[caller]

    def _displace(self, caller: str) -> None:
        """Remove the last fetch of the caller with the most, or raise Busy if no other has more."""
        own = len(self._lines.get(caller, ()))
        longest = max(self._lines, key=lambda it: len(self._lines[it]), default=caller)
        if longest == caller or len(self._lines[longest]) <= own + 1:
            raise self.busy()
        turn = self._lines[longest].pop()
        self._waiting -= 1
        if not turn.cancelled():
            turn.set_result(False)

    def _release(self) -> None:
        """Give a slot to the next caller's first fetch."""
        while self._lines:
            caller = next(iter(self._lines))
            line = self._lines.pop(caller)
            turn = line.popleft()
            self._waiting -= 1
            if line:
                self._lines[caller] = line  # behind the others
            if not turn.cancelled():
                turn.set_result(True)
                return
        self._free += 1

    @asynccontextmanager
    async def _holding_slot(self, deadline: float) -> AsyncIterator[None]:
        slot = _Slot()
        limit = asyncio.timeout_at(deadline)
        prompt = asyncio.get_running_loop().call_later(self._timeout * PROMPT, self._make_room, slot, limit)
        try:
            async with limit:
                yield
        except TimeoutError:
            if slot.abandoned:
                raise self.busy() from None
            raise
        finally:
            prompt.cancel()
            if slot.slow:
                self._slow -= 1
            else:
                self._release()

    def _make_room(self, slot: _Slot, limit: asyncio.Timeout) -> None:
        if self._slow < self._slow_limit:
            self._slow += 1
            slot.slow = True
            self._release()
        elif not limit.expired():
            slot.abandoned = True
            limit.reschedule(asyncio.get_running_loop().time())
