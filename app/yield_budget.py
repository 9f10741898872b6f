"""Pause long work regularly: hostile files make slow decisions, and other requests must be answered meanwhile."""

import asyncio
import time

BUDGET = 0.005
"""Seconds of work after which other tasks get to run."""


class YieldBudget:
    """The time that a task, or several that share it, may work before others get to run."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + BUDGET
        self._next = asyncio.Lock()

    def is_over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() > self._ends

    async def next(self) -> None:
        """Let other tasks run, then start again with a full budget. Tasks that share it go on one after another."""
        async with self._next:
            await asyncio.sleep(0)
            self._ends = time.monotonic() + BUDGET
