"""Pause long work regularly: hostile files make slow decisions, and other requests must be answered meanwhile."""

import asyncio
import time

BUDGET = 0.005
"""Seconds of work after which other tasks get to run."""


class YieldBudget:
    """The time that a task may work before it lets others run."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + BUDGET

    def is_over(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() > self._ends

    async def next(self) -> None:
        """Let other tasks run, then start again with a full budget."""
        await asyncio.sleep(0)
        self._ends = time.monotonic() + BUDGET
