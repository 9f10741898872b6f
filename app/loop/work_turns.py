"""Turns of the event loop for long work, so that short requests are answered promptly however much work there is.

Batches, streams, tests and the like work in slices, and all of them together get one slice in a turn: a decision from
memory, or a health check, waits for one slice and not for as many as there are requests. Work that waits too long for
its first turn is refused. It has cost nearly nothing by then, and clients that ask again at once have waited as well.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from app.loop.admission import Refused, ignore, refusal

BUDGET = 0.005
"""Seconds of work after which other tasks get to run."""

FIRST_TURN_SECONDS = 4.0
"""Seconds that a new request waits for its first turn, or up to half of it less; then it is refused."""

LATE = 1.0
"""Seconds that the oldest work waits for a turn, or the event loop's timers are late, in an overloaded process."""


class WorkTurns:
    """Gives turns of the event loop to long work, one at a time and in the order of the calls."""

    def __init__(self, refused: Refused = ignore) -> None:
        """`refused` is called with "turns" for each request that is refused."""
        self._lock = asyncio.Lock()  # first come, first served
        self._busy = refusal("turns", refused)
        self._numbers = count()
        self._waiting: dict[int, float] = {}  # since when, the oldest first
        self._lags = deque((0.0, 0.0), maxlen=2)

    async def first(self) -> "YieldBudget":
        """Wait for the first turn of a request; the budget is for all its work. Raises Overloaded."""
        try:
            # Requests that came together are not refused together: so many answers would take a long turn.
            async with asyncio.timeout(FIRST_TURN_SECONDS * random.uniform(0.5, 1.0)):  # noqa: S311
                await self.next()
        except TimeoutError:
            raise self._busy() from None
        return YieldBudget(self)

    async def next(self) -> None:
        """Return in a turn in which no other long work runs."""
        async with self.turn():
            pass

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Run the block in a turn in which no other long work runs; what is ready runs before the next one."""
        number = next(self._numbers)
        self._waiting[number] = time.monotonic()
        try:
            await self._lock.acquire()
        finally:
            del self._waiting[number]
        try:
            yield
            await asyncio.sleep(0)
        finally:
            self._lock.release()

    def note_lag(self, seconds: float) -> None:
        """Note how late a timer of the event loop was."""
        self._lags.append(seconds)

    def is_late(self) -> bool:
        """Whether this process has so much to do that it should begin no new work.

        One late timer is not enough: a single long turn, of which nothing is left, delays one.
        """
        if min(self._lags) > LATE:
            return True
        oldest = next(iter(self._waiting.values()), None)
        return oldest is not None and time.monotonic() - oldest > LATE


class YieldBudget:
    """The time that a request may work before other tasks get to run.

    Its tasks may share it: all of them wait for one turn together, so that a request with many tasks takes no more
    turns than another.
    """

    def __init__(self, turns: WorkTurns) -> None:
        self._turns = turns
        self._ends = time.monotonic() + BUDGET
        self._waiting = asyncio.Lock()

    def is_over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() > self._ends

    async def next(self) -> None:
        """Wait for the next turn, then start again with a full budget; another task's turn meanwhile counts as well."""
        ends = self._ends
        async with self._waiting:
            if self._ends == ends:
                await self._turns.next()
                self._ends = time.monotonic() + BUDGET
