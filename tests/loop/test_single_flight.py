"""One task per key at a time, which no caller owns."""

import asyncio
import gc
from typing import Any

import pytest

from app.loop.background import TASK as REPORTED
from app.loop.background import BackgroundTask
from app.loop.single_flight import SingleFlight

TASK = BackgroundTask.REFRESHES


class Work:
    """Work that ends when the test releases it."""

    def __init__(self) -> None:
        self.runs = 0
        self.cancelled = 0
        self.started = asyncio.Event()
        self.end = asyncio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        run = self.runs
        self.started.set()
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return run

    async def fail(self) -> int:
        raise LookupError(await self())


async def test_callers_of_one_key_share_one_run() -> None:
    flights: SingleFlight[str, int] = SingleFlight(TASK)
    work = Work()
    callers = [asyncio.create_task(flights.do("a", work)) for _ in range(50)]
    await work.started.wait()
    work.end.set()
    assert await asyncio.gather(*callers) == [1] * 50


async def test_keys_do_not_wait_for_each_other() -> None:
    flights: SingleFlight[str, int] = SingleFlight(TASK)
    slow, quick = Work(), Work()
    quick.end.set()
    caller = asyncio.create_task(flights.do("a", slow))
    await slow.started.wait()
    assert await flights.do("b", quick) == 1
    slow.end.set()
    assert await caller == 1


async def test_a_finished_flight_is_not_kept() -> None:
    flights: SingleFlight[str, int] = SingleFlight(TASK)
    work = Work()
    work.end.set()
    assert [await flights.do("a", work) for _ in range(3)] == [1, 2, 3]


async def test_a_cancelled_caller_does_not_fail_the_others() -> None:
    flights: SingleFlight[str, int] = SingleFlight(TASK)
    work = Work()
    first, second = (asyncio.create_task(flights.do("a", work)) for _ in range(2))
    await work.started.wait()
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    work.end.set()
    assert await second == 1
    assert work.cancelled == 0


async def test_a_flight_without_callers_continues_and_can_be_joined() -> None:
    flights: SingleFlight[str, int] = SingleFlight(TASK)
    work = Work()
    first = asyncio.create_task(flights.do("a", work))
    await work.started.wait()
    first.cancel()
    await asyncio.wait([first])
    next_one = asyncio.create_task(flights.do("a", work))
    work.end.set()
    assert await next_one == 1
    assert work.runs == 1


async def test_errors_of_a_flight_reach_all_callers() -> None:
    flights: SingleFlight[str, int] = SingleFlight(TASK)
    work = Work()
    callers = [asyncio.create_task(flights.do("a", work.fail)) for _ in range(3)]
    await work.started.wait()
    work.end.set()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(result) for result in results] == [LookupError] * 3
    assert await flights.do("a", work) == 2


async def test_expected_errors_without_a_caller_are_not_reported() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    flights: SingleFlight[str, int] = SingleFlight(TASK, expected=LookupError)
    work = Work()
    work.end.set()
    await asyncio.wait([flights.start("a", work.fail)])
    caller = asyncio.create_task(flights.do("b", work.fail))
    work.end.clear()
    work.started.clear()
    await work.started.wait()
    caller.cancel()
    await asyncio.wait([caller])
    work.end.set()
    with pytest.raises(LookupError):
        await flights.do("b", work)
    gc.collect()
    assert complaints == []


async def test_unexpected_errors_without_a_caller_are_reported() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    flights: SingleFlight[str, int] = SingleFlight(TASK, expected=KeyError)
    work = Work()
    work.end.set()
    await asyncio.wait([flights.start("a", work.fail)])
    [complaint] = complaints
    assert isinstance(complaint["exception"], LookupError)
    assert complaint[REPORTED] is TASK


async def test_closing_cancels_running_flights() -> None:
    flights: SingleFlight[str, int] = SingleFlight(TASK)
    work = Work()
    caller = asyncio.create_task(flights.do("a", work))
    await work.started.wait()
    work.started.clear()
    flights.start("b", work)
    await work.started.wait()
    await flights.aclose()
    assert work.cancelled == work.runs == 2
    await asyncio.wait([caller])
    assert caller.cancelled()
    await flights.aclose()
