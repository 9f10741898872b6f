"""Long work in stretches: hostile files make slow decisions, and others want their answers meanwhile."""

import asyncio
import time

STRETCH = 0.005
"""Seconds after which who has many items to work on lets others have a turn."""


class YieldBudget:
    """How long one has been at work without a break."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + STRETCH

    def is_over(self) -> bool:
        """Whether it is time to let others work."""
        return time.monotonic() > self._ends

    async def next(self) -> None:
        """Let others work, and begin anew."""
        await asyncio.sleep(0)
        self._ends = time.monotonic() + STRETCH
