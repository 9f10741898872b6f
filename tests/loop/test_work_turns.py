"""Long work gets one turn of the event loop after another, and is refused when it waits too long for the first."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import pytest

from app.loop import work_turns
from app.loop.admission import Overloaded
from app.loop.work_turns import LATE, WorkTurns, YieldBudget
from tests.doubles import Clock


class Loop:
    """Counts the iterations of the event loop."""

    def __init__(self) -> None:
        self.turn = 0
        self._counting = asyncio.create_task(self._count())

    async def _count(self) -> None:
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    def stop(self) -> None:
        self._counting.cancel()


async def test_each_turn_has_one_slice_of_work_however_many_wait() -> None:
    turns, loop, worked = WorkTurns(), Loop(), []

    async def work(number: int) -> None:
        budget = await turns.first()
        for _ in range(3):
            worked.append((loop.turn, number))
            await budget.next()

    await asyncio.gather(*map(work, range(100)))
    loop.stop()
    assert max(Counter(turn for turn, _ in worked).values()) == 1
    assert [number for _, number in worked] == [*range(100)] * 3  # in rotation
    assert loop.turn < 3 * len(worked)


async def test_short_tasks_run_between_two_slices() -> None:
    turns = WorkTurns()
    order: list[str] = []

    async def work() -> None:
        async with turns.turn():
            order.append("slice")

    async def short() -> None:
        order.append("short")

    tasks = [asyncio.create_task(work()) for _ in range(50)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(short()))
    await asyncio.gather(*tasks)
    assert order.index("short") <= 2


async def test_work_that_waits_too_long_for_its_first_turn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_turns, "FIRST_TURN_SECONDS", 0.01)
    refused: list[str] = []
    turns = WorkTurns(refused=refused.append)
    async with turns.turn():
        results = await asyncio.gather(*(turns.first() for _ in range(20)), return_exceptions=True)
    assert [type(result) for result in results] == [Overloaded] * 20
    assert refused == ["turns"] * 20
    assert isinstance(await turns.first(), YieldBudget)  # nothing of it is left


async def test_work_that_has_begun_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_turns, "FIRST_TURN_SECONDS", 0.01)
    turns = WorkTurns()
    budget = await turns.first()
    async with turns.turn():
        going_on = asyncio.create_task(budget.next())
        with pytest.raises(Overloaded):
            await turns.first()
        assert not going_on.done()
    await going_on


async def test_tasks_of_one_request_wait_for_one_turn() -> None:
    turns = WorkTurns()
    budget = YieldBudget(turns)
    begun: list[str] = []

    async def work(name: str, wait: Callable[[], Awaitable[object]]) -> None:
        await wait()
        begun.append(name)

    async with turns.turn():
        tasks = [asyncio.create_task(work("many", budget.next)) for _ in range(300)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(work("other", turns.first)))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert begun.index("other") < 10


async def test_cancelled_work_gives_its_turn_to_the_next() -> None:
    turns = WorkTurns()
    async with turns.turn():
        tasks = [asyncio.create_task(turns.first()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in tasks[:2]:
            task.cancel()
    await tasks[2]
    assert [task.cancelled() for task in tasks] == [True, True, False]
    assert not turns.is_late()


async def test_process_is_late_while_the_oldest_work_waits_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(0.0)
    monkeypatch.setattr(work_turns, "time", SimpleNamespace(monotonic=clock))
    turns = WorkTurns()
    async with turns.turn():
        oldest = asyncio.create_task(turns.next())
        await asyncio.sleep(0)
        clock.now = LATE
        newer = asyncio.create_task(turns.next())
        await asyncio.sleep(0)
        assert not turns.is_late()
        clock.now = LATE + 0.1
        assert turns.is_late()
        oldest.cancel()
        await asyncio.sleep(0)
        assert not turns.is_late()
    await newer


async def test_one_long_turn_of_the_event_loop_does_not_make_it_late() -> None:
    turns = WorkTurns()
    seen = []
    for lag in (0.0, 3 * LATE, 0.0, 2 * LATE, 2 * LATE, 3 * LATE, 0.0):
        turns.note_lag(lag)
        seen.append(turns.is_late())
    assert seen == [False, False, False, False, True, True, False]
