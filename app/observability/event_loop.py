"""Event loop lag: the delay that is added to everything this process waits for."""

import asyncio
from collections.abc import Callable

SAMPLE_EVERY = 0.1
"""Seconds between two samples. A longer stall shows as one sample, at most this much too short."""


async def sample_lag(observe: Callable[[float], None], *, every: float = SAMPLE_EVERY) -> None:
    """Call `observe` with the delay of a timer of the event loop, in seconds, after `every` seconds."""
    now = asyncio.get_running_loop().time
    due = now() + every
    await asyncio.sleep(every)
    observe(max(0.0, now() - due))
