"""Visits of origins: decaying means, counted in each process, added up in a real Valkey, and written in batches."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from app.cache.freshness import DAY, HOUR
from app.cache.visits import (
    HALF_LIFE,
    READ_FOR,
    TALLIES_PER_WRITE,
    TALLY_EXPIRY,
    RedisVisits,
    Tally,
    Visits,
    key,
    read_value,
)
from app.store.connect import connect
from app.store.guarded_client import COOLDOWN, GuardedClient, StoreDown
from robots_core.origin import Origin
from tests.doubles import Clock, SwitchableVisits

NOW = 1_790_000_000.0
SITE = Origin("https", "www.example.com", 443)
KEY = "robots:{https://www.example.com:443}:visits"


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def redis_visits(store_client: Redis, clock: Clock) -> RedisVisits:
    # The deadline is wide here, so that a busy machine fails no test that is not about it.
    return RedisVisits(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), clock=clock)


@pytest.fixture
def store(redis_visits: RedisVisits) -> SwitchableVisits:
    return SwitchableVisits(redis_visits)


NewProcess = Callable[[], Visits]


@pytest.fixture
def new_process(store: SwitchableVisits, clock: Clock) -> NewProcess:
    return lambda: Visits(store, clock)


def sites(number: int) -> list[Origin]:
    return [Origin("https", f"host{at}.example", 443) for at in range(number)]


async def visit(visits: Visits, clock: Clock, times: int, every: float, origin: Origin = SITE) -> float:
    """Visit `times` times, and return the result of the last visit."""
    per_day = 0.0
    for _ in range(times):
        clock.now += every
        per_day = await visits.visit(origin)
    return per_day


# Decay.


def test_a_visit_a_half_life_ago_counts_half() -> None:
    old, new = Tally(8, NOW, NOW), Tally(1, NOW + HALF_LIFE, NOW + HALF_LIFE)
    assert old + new == new + old == Tally(5, NOW + HALF_LIFE, NOW)


def test_a_first_visit_counts_as_one_a_day() -> None:
    assert Tally(1, NOW, NOW).per_day(NOW) == 1
    assert Tally(0, NOW, NOW).per_day(NOW) == 0


@pytest.mark.parametrize(("rate", "days"), [(0.2, 60), (1, 60), (10, 3), (10, 7), (10, 60), (500, 3), (500, 60)])
def test_the_mean_of_a_steady_pace_is_the_pace(rate: float, days: int) -> None:
    tally = Tally(0, NOW, NOW)
    for number in range(int(rate * days)):
        tally += Tally(1, at := NOW + (number + 0.5) * DAY / rate, at)
    assert tally.per_day(NOW + days * DAY) == pytest.approx(rate, rel=0.05)


def test_the_mean_halves_in_a_half_life_without_visits() -> None:
    steady = Tally(100, NOW, NOW - 100 * DAY)
    ratio = steady.per_day(NOW + HALF_LIFE) / steady.per_day(NOW)
    assert ratio == pytest.approx(0.5, rel=0.001)


tallies = st.tuples(st.floats(0, 1e9), st.floats(0, 1e10), st.floats(0, 1e10)).map(
    lambda it: Tally(it[0], max(it[1:]), min(it[1:]))
)


@given(tallies, tallies, st.floats(0, 1e11))
def test_more_visits_never_lower_the_mean(one: Tally, other: Tally, now: float) -> None:
    more = Tally(one.weight + 1, one.at, one.since)
    assert 0 <= one.per_day(now) <= more.per_day(now) <= 1 + more.weight
    assert (one + other).per_day(now) >= 0


# One process and the store.


async def test_a_visit_is_counted_at_once_and_written_later(
    new_process: NewProcess, store_client: Redis, clock: Clock
) -> None:
    visits = new_process()
    assert await visit(visits, clock, 5, 0) == 5
    assert await store_client.keys() == []
    await visits.write_back()
    assert await store_client.get(KEY) == b"V1 5 1790000000 1790000000"
    assert TALLY_EXPIRY - 60 < await store_client.ttl(KEY) <= TALLY_EXPIRY
    assert await visits.per_day(SITE) == 5


async def test_the_counts_of_two_processes_add_up(new_process: NewProcess, clock: Clock) -> None:
    one, other = new_process(), new_process()
    await visit(one, clock, 3, 0)
    await visit(other, clock, 4, 0)
    await one.write_back()
    await other.write_back()
    assert await other.per_day(SITE) == 7
    assert await new_process().per_day(SITE) == 7
    await visit(one, clock, 1, 0)
    await one.write_back()
    assert await one.per_day(SITE) == 8


async def test_the_store_adds_like_the_process(
    new_process: NewProcess, redis_visits: RedisVisits, clock: Clock
) -> None:
    # This one neither writes nor reads, so it counts only its own visits.
    alone, written = Visits(SwitchableVisits(redis_visits, on=False), clock), new_process()
    for step, pause in enumerate([0, 1, 5 * HOUR, 3 * DAY, 20 * DAY, 90, 30 * DAY]):
        await visit(alone, clock, 1, pause)
        await visit(alone, clock, step, 0)
        await visit(written, clock, step + 1, 0)
        await written.write_back()
    expected = pytest.approx(await alone.per_day(SITE), rel=1e-6)
    assert await written.per_day(SITE) == expected
    assert await new_process().per_day(SITE) == expected


async def test_late_counts_of_another_process_are_weighted_by_age(redis_visits: RedisVisits) -> None:
    await redis_visits.add({SITE: Tally(1, NOW, NOW)})
    sums = await redis_visits.add({SITE: Tally(8, NOW - HALF_LIFE, NOW - 2 * HALF_LIFE)})
    assert sums == {SITE: Tally(5, NOW, NOW - 2 * HALF_LIFE)}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"garbage",
        b"V2 5 1790000000 1790000000",
        b"V1 nan 1790000000 1790000000",
        b"V1 inf 1790000000 1790000000",
        b"V1 -5 1790000000 1790000000",
        b"V1 9e99 1790000000 1790000000",
        b"V1 5 1790000000 1790000001",
        b"V1 5 1790009999 1790000000",
        b"V1 5 999999999999 1790000000",
        b"V1 0x10 1790000000 1790000000",
        b"V1 5 1790000000 1790000000 " + b"x" * 10**6,
        ["a", "list"],
    ],
)
async def test_a_foreign_tally_is_ignored_and_overwritten(
    new_process: NewProcess, store_client: Redis, value: bytes | list[str]
) -> None:
    await (store_client.set(KEY, value) if isinstance(value, bytes) else store_client.rpush(KEY, *value))
    visits = new_process()
    assert await visits.visit(SITE) == 1
    await visits.write_back()
    assert await visits.per_day(SITE) == 1
    assert await store_client.get(KEY) == b"V1 1 1790000000 1790000000"


@given(st.binary(max_size=80) | st.from_regex(rb"V1 [0-9.e+-]{0,20} [0-9]{0,12} [0-9]{0,12}"))
def test_any_value_can_be_read(value: bytes) -> None:
    tally = read_value(value, NOW)
    assert tally is None or tally.per_day(NOW) >= 0


# Reads and writes are batched.


async def test_visits_are_written_in_batches(
    new_process: NewProcess, store: SwitchableVisits, store_client: Redis, clock: Clock
) -> None:
    visits = new_process()
    await visit(visits, clock, 1, 0)
    await visits.write_back()  # the server has the script now
    store.written.clear()
    await store_client.config_resetstat()
    for origin in sites(2 * TALLIES_PER_WRITE + 1):
        await visit(visits, clock, 3, 0, origin)
    before = await calls(store_client)
    assert before == {"getrange": 2 * TALLIES_PER_WRITE + 1}
    await visits.write_back()
    assert store.written == [TALLIES_PER_WRITE, TALLIES_PER_WRITE, 1]
    probes, each = (
        dict.fromkeys(("eval", "publish", "time"), 3),
        dict.fromkeys(("evalsha", "get"), 2 * TALLIES_PER_WRITE + 1),
    )
    assert await calls(store_client) == {**before, **probes, **each, "set": 2 * TALLIES_PER_WRITE + 1 + 3}
    await visits.write_back()
    assert store.written == [TALLIES_PER_WRITE, TALLIES_PER_WRITE, 1]


async def calls(client: Redis) -> dict[str, int]:
    """The number of calls of each command for keys or scripts."""
    stats: dict[str, dict[str, int]] = await client.info("commandstats")
    names = {name.removeprefix("cmdstat_"): stat["calls"] for name, stat in stats.items()}
    return {
        name: number for name, number in names.items() if not name.startswith(("config", "info", "client", "flush"))
    }


async def test_the_store_is_asked_once_about_an_origin_that_is_visited(
    new_process: NewProcess, store: SwitchableVisits, clock: Clock
) -> None:
    visits = new_process()
    for _ in range(10):
        await visit(visits, clock, 20, 60)
        await visits.write_back()
    assert store.reads == 1
    clock.now += READ_FOR
    await visits.visit(SITE)
    assert store.reads == 2


async def test_callers_who_ask_at_once_share_one_read(new_process: NewProcess, store: SwitchableVisits) -> None:
    visits = new_process()
    await asyncio.gather(*(visits.visit(SITE) for _ in range(50)))
    assert store.reads == 1
    assert await visits.per_day(SITE) == 50


# The store is down.


async def test_visits_without_the_store_are_written_later(
    new_process: NewProcess, store: SwitchableVisits, clock: Clock
) -> None:
    visits = new_process()
    store.on = False
    assert await visit(visits, clock, 5, 0) == 5
    await visits.write_back()
    assert await visit(visits, clock, 1, 0) == 6
    store.on = True
    await visits.write_back()
    assert await new_process().per_day(SITE) == 6


async def test_refused_tallies_are_kept_and_the_others_written(
    new_process: NewProcess, store: SwitchableVisits, clock: Clock
) -> None:
    visits = new_process()
    other = sites(1)[0]
    await visit(visits, clock, 2, 0)
    await visit(visits, clock, 3, 0, other)
    store.refused = {SITE}
    await visits.write_back()
    assert [await new_process().per_day(origin) for origin in (SITE, other)] == [0, 3]
    store.refused = set()
    await visits.write_back()
    assert [await new_process().per_day(origin) for origin in (SITE, other)] == [2, 3]


async def test_visits_during_a_batch_are_counted_once(
    new_process: NewProcess, store: SwitchableVisits, clock: Clock
) -> None:
    visits = new_process()
    await visit(visits, clock, 2, 0)
    store.let_go.clear()
    writing = asyncio.create_task(visits.write_back())
    await store.called.wait()
    assert await visit(visits, clock, 3, 0) == 5
    store.let_go.set()
    await writing
    assert await visits.per_day(SITE) == 5
    await visits.write_back()
    assert await new_process().per_day(SITE) == 5


async def test_a_batch_that_is_cancelled_is_kept(
    new_process: NewProcess, store: SwitchableVisits, clock: Clock
) -> None:
    visits = new_process()
    await visit(visits, clock, 2, 0)
    store.let_go.clear()
    writing = asyncio.create_task(visits.write_back())
    await store.called.wait()
    writing.cancel()
    await asyncio.wait([writing])
    assert await visits.per_day(SITE) == 2


async def test_memory_is_bounded_and_the_oldest_counts_are_dropped(store: SwitchableVisits, clock: Clock) -> None:
    visits = Visits(store, clock, origins=10)
    store.on = False
    for origin in sites(15):
        await visit(visits, clock, 2, 0, origin)
    await visits.write_back()
    store.on = True
    await visits.write_back()
    seen = [await Visits(store, clock).per_day(origin) for origin in sites(15)]
    assert sorted(seen) == [0] * 5 + [2] * 10
    assert seen[-5:] == [2] * 5


# A real server that does not answer.


@asynccontextmanager
async def stopped(client: Redis) -> AsyncIterator[None]:
    pid = int((await client.info("server"))["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def test_a_hanging_server_costs_one_timeout_then_a_cooldown(
    store_url: str, store_client: Redis, clock: Clock
) -> None:
    monotonic = Clock(NOW)
    client = connect(store_url)
    store = RedisVisits(GuardedClient(client, monotonic=monotonic, timeout=0.05), clock=clock)
    async with stopped(store_client):
        with pytest.raises(StoreDown, match="did not answer"):
            await store.read(SITE)
        with pytest.raises(StoreDown, match="is not called"):
            await store.read(SITE)
        assert await Visits(store, clock).visit(SITE) == 1
    monotonic.now += COOLDOWN
    assert await store.read(SITE) is None
    await client.aclose()


async def test_a_resumed_server_ignores_the_visits_sent_while_it_was_stopped(
    new_process: NewProcess, store_client: Redis, store_url: str, clock: Clock
) -> None:
    monotonic = Clock(NOW)
    client = connect(store_url)
    visits = Visits(RedisVisits(GuardedClient(client, monotonic=monotonic, timeout=0.05), clock=clock), clock)
    async with stopped(store_client):
        await visit(visits, clock, 5, 0)
        await visits.write_back()
    monotonic.now += COOLDOWN
    await visits.write_back()
    assert await new_process().per_day(SITE) == 5
    await client.aclose()


async def test_a_server_that_lost_its_scripts_gets_them_again(
    new_process: NewProcess, store_client: Redis, clock: Clock
) -> None:
    visits = new_process()
    for _ in range(2):
        await visit(visits, clock, 1, 0)
        await visits.write_back()
        await store_client.script_flush()
    assert await new_process().per_day(SITE) == 2


async def test_visits_that_a_full_server_refuses_are_written_later(
    new_process: NewProcess, store_client: Redis, clock: Clock
) -> None:
    visits = new_process()
    await visit(visits, clock, 4, 0)
    await store_client.config_set("maxmemory", "1")
    try:
        await visits.write_back()
    finally:
        await store_client.config_set("maxmemory", "0")
    assert await visits.per_day(SITE) == 4
    await visits.write_back()
    assert await new_process().per_day(SITE) == 4


# The life of a process.


async def test_a_process_writes_its_counts_at_the_end(new_process: NewProcess, clock: Clock) -> None:
    visits = new_process()
    async with visits.writing_back(every=3600):
        await visit(visits, clock, 5, 0)
    assert await new_process().per_day(SITE) == 5


async def test_a_process_writes_at_intervals(new_process: NewProcess, store: SwitchableVisits, clock: Clock) -> None:
    visits = new_process()
    async with visits.writing_back(every=0.001):
        await visit(visits, clock, 5, 0)
        await store.called.wait()
        store.called.clear()
        await visit(visits, clock, 5, 0)
        await store.called.wait()


async def test_a_process_writes_when_its_memory_is_half_full(store: SwitchableVisits, clock: Clock) -> None:
    visits = Visits(store, clock, origins=10)
    async with visits.writing_back(every=3600):
        for origin in sites(5):
            await visits.visit(origin)
        await store.called.wait()


def test_the_key_shares_the_slot_of_the_snapshot() -> None:
    assert key(SITE) == KEY
