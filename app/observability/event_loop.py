"""How late the event loop is: what everything that waits in this process waits longer for."""

import asyncio
from collections.abc import Callable

SAMPLE_EVERY = 0.1
"""Seconds between two samples: a stop that is longer shows as one sample, up to this much shorter than it was."""


async def sample_lag(observe: Callable[[float], None], *, every: float = SAMPLE_EVERY) -> None:
    """Tell `observe`, again and again, how many seconds after its time a timer of the loop was called."""
    now = asyncio.get_running_loop().time
    while True:
        due = now() + every
        await asyncio.sleep(every)
        observe(max(0.0, now() - due))
