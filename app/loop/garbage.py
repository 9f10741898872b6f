"""When Python's garbage collector runs: often over young objects, and over all objects in quiet moments.

A collection of the oldest generation visits every object that could be part of a cycle, and stops the process
meanwhile: for 40 ms when the service starts, and longer the more it caches. It frees next to nothing, since cached
objects form no cycles and are freed with their last reference. So the collector never starts one by itself. One runs in
a quiet moment, and the objects that remain are frozen: the next one visits only newer objects.

A frozen object that becomes part of a cycle later is never freed. In a quiet moment hardly any request is in progress,
and LEAST keeps collections rare.

A few objects in a cycle may refer to much memory, such as parsed files. So a full collection also runs whenever the
process has grown by GROWTH, even in the middle of requests, and in quiet moments as long as it is larger by as much
than it was in the smallest one: a moment may be quiet because all requests wait, with what they hold. That one freezes
nothing. The C library keeps freed memory that lies between parts in use; it is then asked to return it to the system:
after hostile batches it was half of the process.

Python starts a collection of young objects when 700 more were allocated than freed. A full cache frees as much as it
allocates, so young objects would come to include everything in it, and their collection would take as long as one of
the oldest generation. Therefore young objects are also collected every YOUNG_EVERY seconds.
"""

import asyncio
import ctypes
import gc
import resource
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.loop.background import BackgroundTask, periodically, repeatedly

LEAST, MOST = 300.0, 3600.0
"""Minimum and maximum seconds between two full collections, however busy the process is."""

GROWTH = 64 * 1024 * 1024
"""Bytes of memory by which the process may grow between two full collections."""

QUIET_EVERY = 30.0
"""Minimum seconds between two full collections in quiet moments of a process that is larger than it was."""

YOUNG_EVERY = 0.25
"""Seconds between two collections of young objects, each of which takes a few milliseconds."""

QUIET_SHARE = 0.05
"""The largest share of a processor that a quiet process uses."""

_STATM = Path("/proc/self/statm")  # on Linux
_NEVER = 1_000_000_000  # collections of the middle generation, of which there are a few thousand a day


def collect() -> None:
    """Collect all objects created since the last call, and freeze those that remain."""
    gc.collect()
    gc.freeze()


def resident_bytes() -> int:
    """The memory that the process has in RAM; 0 where that cannot be read."""
    try:
        return int(_STATM.read_bytes().split()[1]) * resource.getpagesize()
    except (OSError, LookupError, ValueError):
        return 0


def return_free_memory() -> None:
    """Return memory that is free to the system, where the C library can (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@dataclass(kw_only=True)
class GarbageCollection:
    """Full collections in quiet moments, and when the process has grown by GROWTH.

    For `least`, `most`, `quiet_every` and `young_every`, see the constants. `every`: seconds between two checks of
    `cpu_seconds`, the processor time that the process has used, and of `memory`.
    """

    least: float = LEAST
    most: float = MOST
    quiet_every: float = QUIET_EVERY
    young_every: float = YOUNG_EVERY
    every: float = 1.0
    cpu_seconds: Callable[[], float] = time.process_time
    memory: Callable[[], int] = resident_bytes

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Collect while the block lasts. What it has frozen stays so: the interpreter ends sooner."""
        before = gc.get_threshold()
        collect()
        gc.set_threshold(before[0], before[1], _NEVER)
        self._collected_at = asyncio.get_running_loop().time()
        self._quiet_from = self._collected_at  # whence one in a quiet moment is due if the process is larger
        self._resident = self._smallest = self.memory()  # after the last collection, and after any
        try:
            async with (
                periodically(BackgroundTask.COLLECTIONS, _collect_young, self.young_every),
                repeatedly(BackgroundTask.COLLECTIONS, self._collect_if_due),
            ):
                yield
        finally:
            gc.set_threshold(*before)

    async def _collect_if_due(self) -> None:
        """See how much the process works for a while, and collect if that is due."""
        clock = asyncio.get_running_loop().time
        begun, before = clock(), self.cpu_seconds()
        await asyncio.sleep(self.every)
        now = clock()
        quiet = self.cpu_seconds() - before <= QUIET_SHARE * (now - begun)
        waited = now - self._collected_at
        if waited >= self.most or (quiet and waited >= self.least):
            self._collected_at = now
            self._collect(collect)
        elif self.memory() > self._resident + GROWTH:
            self._quiet_from = now
            self._collect(gc.collect)
        elif quiet and now >= self._quiet_from and self.memory() > self._smallest + GROWTH:
            self._quiet_from = now + self.quiet_every
            self._collect(gc.collect)

    def _collect(self, how: Callable[[], object]) -> None:
        how()
        return_free_memory()
        self._resident = self.memory()
        self._smallest = min(self._smallest, self._resident)


async def _collect_young() -> None:
    gc.collect(1)
