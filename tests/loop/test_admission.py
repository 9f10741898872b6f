"""Admission is fair among callers, however many they are and however often they ask again."""

import asyncio
from collections import Counter

import pytest

from app.loop.admission import Admission
from app.loop.background import cancel_and_wait
from robots_core.robots.access import Busy
from tests.faults.until import PATIENCE, until_so


def busy() -> Busy:
    return Busy(1, "busy")


class Work:
    """Two slots, for which 32 pieces of work may wait; `done` and `refused` count by caller.

    The clock stands still but for the seconds that work takes, by caller.
    """

    def __init__(self, **seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.admission = Admission(2, 32, busy, lambda: self.now)
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    async def one(self, caller: str) -> None:
        slot = await self.admission.acquire(caller, asyncio.get_running_loop().time() + PATIENCE)
        try:
            await asyncio.sleep(0)
            self.now += self.seconds.get(caller, 1.0)
            self.done[caller] += 1
        finally:
            slot.close()

    async def again_and_again(self, caller: str) -> None:
        while True:
            try:
                await self.one(caller)
            except Busy:
                self.refused[caller] += 1
                await asyncio.sleep(0)


@pytest.mark.parametrize(("callers", "at_once"), [(1, 80), (40, 2), (80, 1), (200, 3)])
async def test_a_caller_that_asks_now_and_then_is_not_kept_out(callers: int, at_once: int) -> None:
    work = Work()
    crowd = [
        asyncio.create_task(work.again_and_again(f"{number}")) for number in range(callers) for _ in range(at_once)
    ]
    await until_so(lambda: work.refused.total() > 20 * callers * at_once)
    for _ in range(8):
        await work.one("other")
    assert work.done["other"] == 8
    assert work.done.total() > 8
    await cancel_and_wait(crowd)


async def test_callers_of_one_piece_each_are_refused_if_none_asked_for_more() -> None:
    work = Work()
    tasks = [asyncio.create_task(work.one(f"{number}")) for number in range(40)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [type(None)] * 34 + [Busy] * 6


async def test_short_work_is_not_kept_out_by_long_work_of_many_new_callers() -> None:
    work = Work(other=0.01)
    for _ in range(8):
        await work.one("other")
    crowd = [asyncio.create_task(work.again_and_again(f"{number}")) for number in range(40) for _ in range(2)]
    await until_so(lambda: work.done.total() > 12)  # before, nobody knows how long their work takes
    for _ in range(50):
        await work.one("other")
    await cancel_and_wait(crowd)


async def test_callers_share_the_time_and_not_the_number_of_pieces() -> None:
    work = Work(short=0.1, long=1.0)
    crowd = [asyncio.create_task(work.again_and_again(caller)) for caller in ("short", "long") for _ in range(20)]
    await until_so(lambda: work.done["long"] >= 40)
    await cancel_and_wait(crowd)
    assert 5 < work.done["short"] / work.done["long"] < 20


async def test_what_was_held_long_ago_is_forgotten() -> None:
    work = Work(long=100.0)
    await work.one("long")
    assert set(work.admission._accounts) == {"long"}
    work.now += 1000
    await work.one("other")
    assert set(work.admission._accounts) == {"other"}
