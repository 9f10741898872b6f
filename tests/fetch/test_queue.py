"""The fetch queue is fair among callers: by the order of fetches, not by time."""

import asyncio
from collections.abc import Sequence

import pytest

from app.fetch.queue import FetchQueue
from app.loop.background import cancel_and_wait
from robots_core.robots.access import Busy
from tests.faults.until import PATIENCE


class Fetches:
    """Fetches that end when the test lets them; `begun` has their names in the order in which they began."""

    def __init__(self, *, concurrency: int = 1, waiting: int = 1000) -> None:
        self.queue = FetchQueue(timeout=PATIENCE, concurrency=concurrency, slow=0, waiting=waiting)
        self.queue._slots._monotonic = lambda: 0.0  # so that the order of callers depends on no time
        self.begun: list[str] = []
        self._go = asyncio.Semaphore(0)

    async def one(self, caller: str, name: str) -> None:
        async with self.queue.slot(caller):
            self.begun.append(name)
            await self._go.acquire()

    async def start(self, caller: str, count: int) -> list[asyncio.Task[None]]:
        """Fetches of a caller, named `caller0`, `caller1`, ...; they are in the queue on return."""
        tasks = [asyncio.create_task(self.one(caller, f"{caller}{number}")) for number in range(count)]
        await asyncio.sleep(0)
        return tasks

    async def end(self, tasks: Sequence[asyncio.Task[None]]) -> list[BaseException | None]:
        """Let all fetches end."""
        for _ in tasks:
            self._go.release()
        return await asyncio.gather(*tasks, return_exceptions=True)


async def test_callers_take_turns_each_in_its_order() -> None:
    fetches = Fetches()
    tasks = [*await fetches.start("a", 7), *await fetches.start("b", 3), *await fetches.start("c", 1)]
    assert await fetches.end(tasks) == [None] * 11
    assert fetches.begun == ["a0", "b0", "c0", "a1", "b1", "a2", "b2", "a3", "a4", "a5", "a6"]
    assert (fetches.queue.in_flight, fetches.queue.waiting) == (0, 0)


async def test_thousands_of_one_caller_do_not_hold_up_another() -> None:
    fetches = Fetches(concurrency=8, waiting=100)
    many = await fetches.start("a", 5000)
    few = await fetches.start("b", 40)
    results = await fetches.end([*many, *few])
    assert results[-40:] == [None] * 40
    assert sum(isinstance(result, Busy) for result in results) == 5000 - 8 - 60
    last = max(fetches.begun.index(f"b{number}") for number in range(40))
    assert last < 8 + 2 * 40
    assert [name for name in fetches.begun if name[0] == "a"] == [f"a{number}" for number in range(68)]


async def test_full_queue_refuses_the_caller_with_most() -> None:
    fetches = Fetches(waiting=4)
    tasks = [*await fetches.start("a", 3), *await fetches.start("b", 2)]
    with pytest.raises(Busy):
        await fetches.one("b", "one too many")  # "a" has no more than it would have itself
    with pytest.raises(Busy):
        await fetches.one("a", "one too many")
    other = await fetches.start("c", 1)
    results = await fetches.end([*tasks, *other])
    assert [isinstance(result, Busy) for result in results] == [False, False, True, False, False, False]
    assert fetches.queue.waiting == 0


async def test_cancelled_fetches_leave_the_queue_and_free_their_slots() -> None:
    fetches = Fetches()
    [first] = await fetches.start("a", 1)
    waiting = [*await fetches.start("a", 3), *await fetches.start("b", 3)]
    waiting[0].cancel()  # it is the next in the queue when the slot becomes free
    first.cancel()
    await asyncio.sleep(0)
    waiting[3].cancel()  # it may have the slot by now, and not know yet
    await cancel_and_wait([waiting[4]])
    left = [waiting[1], waiting[2], waiting[5]]
    assert await fetches.end(left) == [None] * 3
    assert (fetches.queue.in_flight, fetches.queue.waiting, len(fetches.queue._slots._lines)) == (0, 0, 0)
    again = await fetches.start("c", 1)
    assert await fetches.end(again) == [None]


@pytest.mark.parametrize("turns", range(6))
async def test_no_slot_is_lost_whenever_a_fetch_is_cancelled(turns: int) -> None:
    fetches = Fetches(concurrency=2)
    tasks = [*await fetches.start("a", 4), *await fetches.start("b", 4)]
    ending = asyncio.create_task(fetches.end(tasks))
    for _ in range(turns):
        await asyncio.sleep(0)
    for task in tasks[1::2]:
        task.cancel()
    await ending
    assert (fetches.queue.in_flight, fetches.queue.waiting, len(fetches.queue._slots._lines)) == (0, 0, 0)
    assert fetches.queue._slots._free == 2
