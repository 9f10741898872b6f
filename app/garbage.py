"""When Python's garbage collector runs: often over young objects, and over all objects in quiet moments.

A collection of the oldest generation visits every object that could be part of a cycle, and stops the process for as
long: 40 ms at the start of the service, and longer the more it holds. What it finds is next to nothing, since what the
service holds has no cycles, and is freed when its last reference goes. So the collector never begins one by itself. One
runs in a quiet moment, and what it leaves is frozen: the next one visits only what came since.

What is frozen and becomes part of a cycle later is never freed. In a quiet moment hardly anything is under way, and
LEAST keeps the number of moments small.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from app.background import background

LEAST, MOST = 300.0, 3600.0
"""Seconds between two full collections: none sooner, and one at the latest, however busy the process is."""

QUIET = 0.05
"""The share of a processor that a quiet process takes at most, in one second."""

_NEVER = 1_000_000_000  # collections of the middle generation; there are some thousand a day


def collect() -> None:
    """Collect all that came since the last time, and freeze what is left."""
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def collected_when_quiet(
    *,
    least: float = LEAST,
    most: float = MOST,
    look: float = 1.0,
    worked: Callable[[], float] = time.process_time,
) -> AsyncIterator[None]:
    """While the block lasts, collect all generations in quiet moments only.

    `look`: seconds between two looks at `worked`, the processor time that the process has taken, in seconds.
    """
    before = gc.get_threshold()
    collect()
    gc.set_threshold(before[0], before[1], _NEVER)
    try:
        async with background(_collect(least, most, look, worked)):
            yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def _collect(least: float, most: float, look: float, worked: Callable[[], float]) -> None:
    now = asyncio.get_running_loop().time
    collected_at = now()
    while True:
        begun, before = now(), worked()
        await asyncio.sleep(look)
        quiet = worked() - before <= QUIET * (now() - begun)
        waited = now() - collected_at
        if waited >= most or (quiet and waited >= least):
            collect()
            collected_at = now()
