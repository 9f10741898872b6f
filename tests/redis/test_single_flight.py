"""One piece of work per key at a time, and it belongs to nobody who waits for it."""

import asyncio
import gc
from typing import Any

import pytest

from app.redis.single_flight import SingleFlight


class Work:
    """A piece of work that ends when it is told to."""

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
    flights: SingleFlight[str, int] = SingleFlight()
    work = Work()
    callers = [asyncio.create_task(flights.do("a", work)) for _ in range(50)]
    await work.started.wait()
    work.end.set()
    assert await asyncio.gather(*callers) == [1] * 50


async def test_keys_do_not_wait_for_each_other() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    slow, quick = Work(), Work()
    quick.end.set()
    caller = asyncio.create_task(flights.do("a", slow))
    await slow.started.wait()
    assert await flights.do("b", quick) == 1
    slow.end.set()
    assert await caller == 1


async def test_a_landed_flight_is_not_kept() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    work = Work()
    work.end.set()
    assert [await flights.do("a", work) for _ in range(3)] == [1, 2, 3]


async def test_a_caller_who_hangs_up_fails_nobody_else() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    work = Work()
    first, second = (asyncio.create_task(flights.do("a", work)) for _ in range(2))
    await work.started.wait()
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    work.end.set()
    assert await second == 1
    assert work.cancelled == 0


async def test_work_goes_on_when_all_have_hung_up_and_who_comes_next_joins_it() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    work = Work()
    first = asyncio.create_task(flights.do("a", work))
    await work.started.wait()
    first.cancel()
    await asyncio.wait([first])
    next_one = asyncio.create_task(flights.do("a", work))
    work.end.set()
    assert await next_one == 1
    assert work.runs == 1


async def test_what_the_work_raises_reaches_all() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    work = Work()
    callers = [asyncio.create_task(flights.do("a", work.fail)) for _ in range(3)]
    await work.started.wait()
    work.end.set()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(result) for result in results] == [LookupError] * 3
    assert await flights.do("a", work) == 2


async def test_a_flight_behind_that_fails_as_expected_complains_to_nobody() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    flights: SingleFlight[str, int] = SingleFlight(expected=LookupError)
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


async def test_a_flight_behind_that_fails_unexpectedly_is_reported() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    flights: SingleFlight[str, int] = SingleFlight(expected=KeyError)
    work = Work()
    work.end.set()
    await asyncio.wait([flights.start("a", work.fail)])
    [complaint] = complaints
    assert isinstance(complaint["exception"], LookupError)


async def test_closing_ends_what_is_under_way() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
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
