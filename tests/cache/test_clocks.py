"""One clock decides freshness: the store's. A process whose own clock is wrong neither fetches for every question nor
answers from a file that is too old."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from app.cache.freshness import DAY, HOUR, MINUTE, Failing, Snapshot, moved
from app.cache.result import Source
from app.cache.robots_cache import RobotsCache
from app.store.store_clock import MAX_STEPS, STEP, ForwardStep, ShardClock, StoreClock, StoreClocks, server_time
from robots_core.robots.access import Cause, Unreachable
from tests.cache.web import DEFAULT, DOWN, FILE, SITE, NewCache, ScriptedWeb
from tests.doubles import Clock, SwitchableSnapshots

OFFSETS = [-2 * DAY, -6 * MINUTE, -1.0, 1.0, 6 * MINUTE, 2 * DAY]
"""Seconds by which the clock of a process is ahead of the store's."""


class Process:
    """A process whose clock is ahead of the store's, which goes on as `clock` does."""

    def __init__(self, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, ahead: float) -> None:
        self.clock = StoreClock(lambda: clock.now + ahead, lambda: clock.now - 1e9)
        self.cache = RobotsCache(store, web.fetch, self.clock, 1_000_000)


@asynccontextmanager
async def process(store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, ahead: float) -> AsyncIterator[Process]:
    made = Process(store, web, clock, ahead)
    yield made
    await made.cache.aclose()


@pytest.mark.parametrize("ahead", OFFSETS)
async def test_a_wrong_clock_fetches_as_often_as_a_right_one(
    ahead: float, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, new_cache: NewCache
) -> None:
    async with process(store, web, clock, ahead) as wrong:
        fetched = []
        for _ in range(40):  # HOURLY: fresh for an hour, give or take a tenth
            await wrong.cache.get(SITE, DEFAULT)
            await new_cache().get(SITE, DEFAULT)
            fetched.append(len(web.calls))
            clock.now += 6 * MINUTE
        assert fetched[:9] == [1] * 9
        assert fetched[-1] in {4, 5}


@pytest.mark.parametrize("ahead", OFFSETS)
async def test_a_wrong_clock_reads_the_store_as_a_right_one_does(
    ahead: float, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, cache: RobotsCache
) -> None:
    await cache.get(SITE, DEFAULT)
    async with process(store, web, clock, ahead) as wrong:
        wrong.clock.sync(clock.now)  # as the probe at the start does
        for age in (0.0, 30 * MINUTE):
            clock.now += age
            found = await wrong.cache.get(SITE, DEFAULT)
            assert found.freshness is not None
            assert found.freshness.age == pytest.approx(age, abs=0.01)
        assert len(web.calls) == 1
        clock.now += HOUR
        assert (await wrong.cache.get(SITE, DEFAULT)).source is not Source.MEMORY
        assert len(web.calls) == 2


@pytest.mark.parametrize("ahead", OFFSETS)
async def test_reaching_the_store_makes_nothing_stale(
    ahead: float, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, new_cache: NewCache
) -> None:
    store.on = False
    async with process(store, web, clock, ahead) as wrong:
        await wrong.cache.get(SITE, DEFAULT)
        clock.now += 10 * MINUTE
        await wrong.cache.get(SITE, DEFAULT)
        store.on = True
        wrong.clock.sync(clock.now)
        for age in (10 * MINUTE, 40 * MINUTE):
            found = await wrong.cache.get(SITE, DEFAULT)
            assert found.freshness is not None
            assert found.freshness.age == pytest.approx(age, abs=0.01)
            clock.now += 30 * MINUTE
        clock.now -= 30 * MINUTE
        assert (await new_cache().get(SITE, DEFAULT)).source is Source.STORE
        assert len(web.calls) == 1
        clock.now += 30 * MINUTE
        await wrong.cache.get(SITE, DEFAULT)
        assert len(web.calls) == 2


@pytest.mark.parametrize("ahead", OFFSETS)
async def test_losing_the_store_makes_nothing_stale(
    ahead: float, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock
) -> None:
    async with process(store, web, clock, ahead) as wrong:
        await wrong.cache.get(SITE, DEFAULT)
        store.on = False
        for _ in range(8):
            clock.now += 6 * MINUTE
            await wrong.cache.get(SITE, DEFAULT)
        assert len(web.calls) == 1
        clock.now += 20 * MINUTE
        await wrong.cache.get(SITE, DEFAULT)
        assert len(web.calls) == 2


@pytest.mark.parametrize("step", [-2 * DAY, -HOUR - 1, 2 * DAY])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_step_of_the_stores_clock_costs_one_fetch(
    step: float, fails: bool, cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    await cache.get(SITE, DEFAULT)
    clock.now += step
    if fails:
        web.finds(DOWN)
    for _ in range(10):
        await cache.get(SITE, DEFAULT)
    assert len(web.calls) == 2
    clock.now += 2 * HOUR
    await cache.get(SITE, DEFAULT)
    assert len(web.calls) == 3


def test_a_snapshot_is_moved_with_all_its_instants() -> None:
    failure = Unreachable(Cause.TIMEOUT)
    snapshot = Snapshot(FILE, 1000.0, failing=Failing(1010.0, 1020.0, 2, failure), since=900)
    after = Snapshot(FILE, 940.5, failing=Failing(950.5, 960.5, 2, failure), since=840)
    assert moved(snapshot, -59.5) == after
    assert moved(replace(snapshot, failing=None, since=None), 1.0) == Snapshot(FILE, 1001.0)


# The clocks.


def test_a_store_clock_is_this_process_s_own_until_it_is_read() -> None:
    own, steady = Clock(1000.0), Clock(5.0)
    clock = StoreClock(own, steady)
    assert (clock(), clock.known, clock.offset) == (1000, False, 0)
    own.now = 1500.0
    assert clock() == 1500
    clock.sync(700.0)
    assert (clock(), clock.known, clock.offset, clock.first_step) == (700, True, -800, -800)
    own.now = 9000.0  # this process's clock is set, which no longer matters
    assert (clock(), clock.offset) == (700, -8300)
    steady.now += 10
    assert (clock(), clock.at(5.0)) == (710, 700)


def test_a_late_reply_is_not_a_step() -> None:
    steady = Clock(0.0)
    clock = ShardClock(Clock(1000.0), steady)
    assert clock.latest() == 0
    clock.sync_reply(1000.0, 0.0)
    assert clock.latest() == 1000 + STEP
    for sent, executed, received in ((10, 10, 50), (60, 90, 90), (100, 130, 160)):
        steady.now = received
        clock.sync_reply(1000.0 + executed, sent)
        assert clock.latest() >= 1000 + received
    assert clock.steps == ()


@pytest.mark.parametrize("step", [STEP + 0.1, 40.0, 2 * DAY])
def test_a_forward_step_is_noted_and_forgotten_after_one_back(step: float) -> None:
    steady = Clock(0.0)
    clock = ShardClock(Clock(1000.0), steady)
    clock.sync_reply(1000.0, 0.0)
    steady.now = 20.0
    clock.sync_reply(1020.0 + step, 19.5)
    [noted] = clock.steps
    assert noted == pytest.approx(ForwardStep(1019.5 + STEP, step + 0.5))
    for at in range(1, 10):
        steady.now += 1
        clock.sync_reply(1020.0 + step + at + at * 10, steady.now)
    assert len(clock.steps) == MAX_STEPS
    steady.now += 1
    clock.sync_reply(900.0, steady.now)
    assert not clock.steps


def test_the_offset_is_that_of_the_worst_server() -> None:
    clocks = StoreClocks(Clock(1000.0), Clock(0.0))
    assert clocks.offset == 0
    clocks.of(7)
    clocks.sync({0: 1003.0, 5: 940.0, 9: 1010.0}, 0.0)
    assert clocks.offset == -60
    assert clocks.fleet() == 1010


@pytest.mark.parametrize("reply", [None, [], [b"1"], [b"1", b"x"], [b"-1", b"1"], [1, 2], b"1", [b"9" * 12, b"1"]])
def test_only_a_time_is_read_as_one(reply: object) -> None:
    assert server_time(reply) is None
