"""Full garbage collections run in quiet moments only, and visit no object twice."""

import asyncio
import gc
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count

import psutil
import pytest

from app.loop.garbage import GROWTH, GarbageCollection, resident_bytes
from tests.faults.until import until_so

linux = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is measured and returned on Linux")


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations collected since the test began."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


async def collections_within(number: int, worked: Callable[[], float], *, least: float, most: float) -> list[int]:
    """The full collections within `number` checks, by the number of the check."""
    seen: list[int] = []
    looked = 0

    def look() -> float:
        nonlocal looked
        looked += 1
        return worked()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            seen.append(looked)

    async with GarbageCollection(every=0.0, cpu_seconds=look, least=least, most=most).running():
        gc.callbacks.append(note)
        await until_so(lambda: looked >= number)
        gc.callbacks.remove(note)
    return seen


def visited(objects: list[list[int]]) -> int:
    """How many of the objects a full collection visits."""
    of_all = set(map(id, gc.get_objects()))
    return sum(id(each) in of_all for each in objects)


async def test_objects_of_the_start_are_frozen(collections: list[int]) -> None:
    before = gc.get_threshold()
    of_the_start = [[number] for number in range(1000)]
    collections.clear()
    async with GarbageCollection().running():
        assert collections.count(2) == 1
        assert visited(of_the_start) == 0
        held = [[number] for number in range(200_000)]
        assert gc.get_threshold()[:2] == before[:2]
        assert collections.count(2) == 1
        assert len(collections) > 100
        assert visited(held) == len(held)
    del held
    assert visited(of_the_start) == 0
    assert gc.get_threshold() == before


async def test_quiet_process_collects() -> None:
    assert await collections_within(20, lambda: 0.0, least=0.0, most=1e9)


async def test_busy_process_does_not_collect() -> None:
    clock = count(0.0, 1000.0)
    assert await collections_within(20, lambda: next(clock), least=0.0, most=1e9) == []


async def test_process_that_is_never_quiet_collects_eventually() -> None:
    clock = count(0.0, 1000.0)
    assert await collections_within(20, lambda: next(clock), least=1e9, most=0.0)


async def test_process_that_has_grown_collects_and_freezes_nothing(collections: list[int]) -> None:
    resident, looked, clock = 0, 0, count(0.0, 1000.0)

    def memory() -> int:
        nonlocal looked
        looked += 1
        return resident

    async def looks() -> int:
        """The full collections after a few more looks at the memory."""
        seen = looked
        await until_so(lambda: looked > seen + 5)
        return collections.count(2)

    async with GarbageCollection(
        every=0.0, least=1e9, most=1e9, cpu_seconds=lambda: next(clock), memory=memory
    ).running():
        before, frozen = await looks(), gc.get_freeze_count()
        resident += GROWTH
        assert await looks() == before
        resident += 1
        assert await looks() == before + 1
        resident += GROWTH - 100
        assert await looks() == before + 1
        resident += 200
        assert await looks() == before + 2
        assert gc.get_freeze_count() == frozen


@pytest.mark.parametrize("quiet_every", [0.0, 1e9])
async def test_process_that_has_grown_collects_in_quiet_moments(collections: list[int], quiet_every: float) -> None:
    resident, looked, clock, works = 0, 0, count(0.0, 1000.0), True

    def memory() -> int:
        nonlocal looked
        looked += 1
        return resident

    async def looks() -> int:
        """The full collections during a few more looks at the memory."""
        seen, before = looked, collections.count(2)
        await until_so(lambda: looked > seen + 5)
        return collections.count(2) - before

    def worked() -> float:
        return next(clock) if works else 0.0

    async with GarbageCollection(
        every=0.0, quiet_every=quiet_every, least=1e9, most=1e9, cpu_seconds=worked, memory=memory
    ).running():
        await looks()
        resident += GROWTH + 1
        assert await looks() == 1  # what it works on is in use
        assert await looks() == 0
        works = False
        assert await looks() >= 1  # what it works on may be in use still, since all of that waits
        assert (await looks() >= 1) == (quiet_every == 0.0)
        resident = 0
        await looks()
        assert await looks() == 0


@linux
def test_memory_in_ram_is_read() -> None:
    assert abs(resident_bytes() - psutil.Process().memory_info().rss) < 32 * 1024 * 1024


RETURNING = """
from app.loop.garbage import resident_bytes, return_free_memory
pieces = [bytes(50_000) for _ in range(2000)]
del pieces[::2], pieces[::2], pieces[::2]
before = resident_bytes()
return_free_memory()
print(before - resident_bytes())
"""


@linux
def test_free_memory_between_objects_is_returned() -> None:
    # In a process of its own: here, other tests may have left room for the pieces among their objects.
    ended = subprocess.run([sys.executable, "-c", RETURNING], capture_output=True, text=True, timeout=60, check=True)
    assert int(ended.stdout) > 40_000_000


async def test_collections_are_at_least_so_far_apart() -> None:
    assert await collections_within(20, lambda: 0.0, least=1e9, most=1e9) == []


async def test_collection_freezes_newer_objects() -> None:
    async with GarbageCollection(every=0.0, least=0.0, cpu_seconds=lambda: 0.0).running():
        held = [[number] for number in range(1000)]
        assert visited(held) == len(held)
        await until_so(lambda: visited(held) == 0)


async def test_young_objects_do_not_add_up_while_as_many_are_freed() -> None:
    cache = [[number] for number in range(20_000)]
    most = 0
    async with GarbageCollection(young_every=0.0, least=1e9).running():
        for start in range(0, len(cache), 100):
            # Each takes the place of an older one, so that Python counts no more objects than before.
            for place in range(start, start + 100):
                cache[place] = [place]
            most = max(most, len(gc.get_objects(0)) + len(gc.get_objects(1)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    assert most < 5000
