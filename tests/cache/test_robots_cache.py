"""The source of an answer: memory, a real Valkey or the origin; and how long a caller waits."""

import asyncio
from collections.abc import Callable

import pytest
from redis.asyncio import Redis

from app.cache.codec import encode
from app.cache.freshness import DAY, Snapshot, State
from app.cache.invalidation import Event
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.result import Source
from app.cache.robots_cache import RobotsCache
from app.store.guarded_client import GuardedClient
from app.store.store_clock import StoreClock
from robots_core.origin import Origin
from robots_core.robots.access import (
    Busy,
    NotModified,
    Unavailable,
    Validators,
)
from tests.cache.web import DEFAULT, FILE, KEY, NEWER, SITE, TAGGED, NewCache, ScriptedWeb
from tests.doubles import Clock, SlowSnapshots, SwitchableSnapshots

# Sources.


async def test_an_unknown_origin_is_fetched_and_kept_in_memory(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    first = await cache.get(SITE, DEFAULT)
    assert first.snapshot == Snapshot(FILE, clock.now, None, TAGGED, 3600.0)
    assert first.freshness is not None
    assert (first.source, first.freshness.state, first.freshness.age) == (Source.FETCHED, State.FRESH, 0)
    clock.now += 14
    second = await cache.get(SITE, DEFAULT)
    assert second.source is Source.MEMORY
    assert second.snapshot is first.snapshot
    assert web.calls == [(SITE, Validators())]


async def test_a_new_origin_takes_four_calls_to_the_store(web: ScriptedWeb, clock: Clock, store_client: Redis) -> None:
    answered: list[float] = []
    redis = GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0, answered=answered.append)
    cache = RobotsCache(RedisSnapshots(redis), web.fetch, StoreClock(clock, clock), 1_000_000)
    found = await cache.get(SITE, DEFAULT)
    assert found.source is Source.FETCHED
    await cache.aclose()
    assert len(answered) == 4  # the lookup, the lease, the write, and the invalidation, which others share
    assert await store_client.exists(KEY, f"{KEY}:lease") == 1


async def test_a_file_fetched_by_another_process_is_in_the_store(new_cache: NewCache, web: ScriptedWeb) -> None:
    fetched = await new_cache().get(SITE, DEFAULT)
    found = await new_cache().get(SITE, DEFAULT)
    assert found.source is Source.STORE
    assert found.snapshot == fetched.snapshot
    assert len(web.calls) == 1


async def test_memory_is_trusted_for_a_while_and_stays_the_same_object(
    cache: RobotsCache, store: SwitchableSnapshots, clock: Clock
) -> None:
    first = await cache.get(SITE, DEFAULT)
    gets = store.gets
    clock.now += 31
    again = await cache.get(SITE, DEFAULT)
    assert (again.source, store.gets) == (Source.STORE, gets + 1)
    assert again.snapshot is first.snapshot
    clock.now += 14
    assert (await cache.get(SITE, DEFAULT)).source is Source.MEMORY
    assert store.gets == gets + 1


async def test_snapshots_of_other_processes_are_adopted(new_cache: NewCache, web: ScriptedWeb, clock: Clock) -> None:
    one, other = new_cache(), new_cache()
    await one.get(SITE, DEFAULT)
    web.finds(NEWER)
    clock.now += 10
    await other.get(SITE, DEFAULT, max_age=5)
    clock.now += 25
    held = await one.get(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == NEWER


@pytest.mark.parametrize("value", [None, b"garbage", encode(Snapshot(FILE, 1.0)).replace(b"R\x01", b"R\x00")])
async def test_a_snapshot_that_the_store_lost_is_restored(
    new_cache: NewCache, store_client: Redis, web: ScriptedWeb, clock: Clock, value: bytes | None
) -> None:
    cache = new_cache()
    await cache.get(SITE, DEFAULT)
    await store_client.flushall()
    if value is not None:
        await store_client.set(KEY, value)
    clock.now += 31
    assert (await cache.get(SITE, DEFAULT)).source is Source.MEMORY
    assert (await new_cache().get(SITE, DEFAULT)).source is Source.STORE
    assert len(web.calls) == 1


@pytest.mark.parametrize("value", [b"garbage", b"R\x01garbage", encode(Snapshot(FILE, 1.0))[:-1]])
async def test_garbage_in_the_store_is_a_miss_and_is_overwritten(
    new_cache: NewCache, store_client: Redis, web: ScriptedWeb, value: bytes
) -> None:
    await store_client.set(KEY, value)
    assert (await new_cache().get(SITE, DEFAULT)).source is Source.FETCHED
    assert (await new_cache().get(SITE, DEFAULT)).source is Source.STORE
    assert len(web.calls) == 1


@pytest.mark.parametrize(("step", "source"), [(3000, Source.STORE), (4000, Source.FETCHED), (2e5, Source.FETCHED)])
async def test_a_clock_set_back_asks_the_store_or_the_origin_once(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock, step: float, source: Source
) -> None:
    await cache.get(SITE, DEFAULT)
    clock.now -= step
    held = await cache.get(SITE, DEFAULT)
    assert held.freshness is not None
    assert (held.source, held.freshness.age) == (source, 0)
    assert (await cache.get(SITE, DEFAULT)).source is Source.MEMORY
    assert len(web.calls) == 1 + (source is Source.FETCHED)


# Invalidations by other processes.


async def test_an_invalidation_ends_the_trust_in_memory(new_cache: NewCache, web: ScriptedWeb, clock: Clock) -> None:
    one, other = new_cache(), new_cache()
    await one.get(SITE, DEFAULT)
    web.finds(NEWER)
    clock.now += 10
    newer = await other.get(SITE, DEFAULT, max_age=5)
    assert (await one.get(SITE, DEFAULT)).source is Source.MEMORY
    one.on_event(Event.CHANGED, SITE)
    held = await one.get(SITE, DEFAULT)
    assert (held.snapshot, held.source) == (newer.snapshot, Source.STORE)
    assert (await one.get(SITE, DEFAULT)).source is Source.MEMORY
    assert len(web.calls) == 2


async def test_an_invalidation_of_the_known_snapshot_keeps_the_object(
    new_cache: NewCache, web: ScriptedWeb, clock: Clock
) -> None:
    one, other = new_cache(), new_cache()
    first = await one.get(SITE, DEFAULT)
    web.finds(NotModified())
    clock.now += 10
    await other.get(SITE, DEFAULT, max_age=5)
    one.on_event(Event.CHANGED, SITE)
    held = await one.get(SITE, DEFAULT)
    assert first.snapshot is not None
    assert held.snapshot is not None
    assert held.snapshot.fetched_at == first.snapshot.fetched_at + 10
    assert held.snapshot.access is first.snapshot.access


async def test_a_gap_ends_all_trust(cache: RobotsCache, store: SwitchableSnapshots, web: ScriptedWeb) -> None:
    other = Origin("https", "other.example", 443)
    for origin in (SITE, other):
        await cache.get(origin, DEFAULT)
    cache.on_gap()
    gets = store.gets
    for origin in (SITE, other):
        assert (await cache.get(origin, DEFAULT)).source is Source.STORE
        assert (await cache.get(origin, DEFAULT)).source is Source.MEMORY
    assert store.gets == gets + 2
    assert len(web.calls) == 2


@pytest.mark.parametrize(
    "invalidate", [lambda cache: cache.on_event(Event.CHANGED, SITE), lambda cache: cache.on_gap()]
)
async def test_an_answer_overtaken_by_an_invalidation_is_not_trusted(
    slow: tuple[SlowSnapshots, RobotsCache], web: ScriptedWeb, clock: Clock, invalidate: Callable[[RobotsCache], None]
) -> None:
    store, cache = slow
    older = Snapshot(FILE, clock.now, None, TAGGED, 3600.0)
    store.has = older
    store.says_so.clear()
    asking = asyncio.create_task(cache.get(SITE, DEFAULT))
    await store.called.wait()
    clock.now += 1
    store.has = newer = Snapshot(NEWER, clock.now, None, TAGGED, 3600.0)
    invalidate(cache)
    store.says_so.set()
    assert (await asking).snapshot == older
    assert (await cache.get(SITE, DEFAULT)).snapshot == newer
    assert web.calls == []


async def test_an_invalidation_of_an_unknown_origin_is_ignored(cache: RobotsCache, store: SwitchableSnapshots) -> None:
    for word in Event:
        cache.on_event(word, SITE)
    assert store.gets == 0


async def test_an_invalidation_without_the_store_keeps_memory(
    cache: RobotsCache, store: SwitchableSnapshots, web: ScriptedWeb
) -> None:
    known = await cache.get(SITE, DEFAULT)
    store.on = False
    cache.on_event(Event.CHANGED, SITE)
    cache.on_gap()
    held = await cache.get(SITE, DEFAULT)
    assert held.source is Source.MEMORY
    assert held.snapshot is known.snapshot
    assert len(web.calls) == 1


# Waiting.


async def test_wait_0_answers_now_and_fetches_in_the_background(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    web.let_go.clear()
    held = await cache.get(SITE, DEFAULT, wait=0)
    assert (held.snapshot, held.freshness, held.source) == (None, None, Source.NONE)
    await web.requested.wait()
    waiting = asyncio.create_task(cache.get(SITE, DEFAULT))
    web.let_go.set()
    assert (await waiting).snapshot == Snapshot(FILE, clock.now, None, TAGGED, 3600.0)
    assert len(web.calls) == 1


async def test_a_late_fetch_leaves_the_known_snapshot(cache: RobotsCache, web: ScriptedWeb, clock: Clock) -> None:
    first = await cache.get(SITE, DEFAULT)
    web.let_go.clear()
    clock.now += 2 * DAY
    late = await cache.get(SITE, DEFAULT, wait=0.001)
    assert late.snapshot is first.snapshot
    assert late.freshness is not None
    assert (late.source, late.freshness.state) == (Source.STORE, State.DUE)
    other = Origin("https", "other.example", 443)
    assert (await cache.get(other, DEFAULT, wait=0.001)).snapshot is None


async def test_busy_is_raised_without_a_copy(cache: RobotsCache, web: ScriptedWeb, clock: Clock) -> None:
    web.answer = Busy(5)
    with pytest.raises(Busy):
        await cache.get(SITE, DEFAULT)
    web.finds(Unavailable(404))
    await cache.get(SITE, DEFAULT)
    web.answer = Busy(5)
    clock.now += 2 * DAY
    with pytest.raises(Busy):
        await cache.get(SITE, DEFAULT)


async def test_busy_leaves_the_copy(cache: RobotsCache, web: ScriptedWeb, clock: Clock) -> None:
    first = await cache.get(SITE, DEFAULT)
    web.answer = Busy(5)
    clock.now += 2 * DAY
    held = await cache.get(SITE, DEFAULT)
    assert held.snapshot is first.snapshot
    assert len(web.calls) == 2


async def test_closing_cancels_background_fetches(cache: RobotsCache, web: ScriptedWeb) -> None:
    web.let_go.clear()
    await cache.facts(SITE)  # opens the connection to the store, which stays
    before = asyncio.all_tasks()
    await cache.get(SITE, DEFAULT, wait=0)
    await web.requested.wait()
    assert asyncio.all_tasks() > before
    await cache.aclose()
    assert asyncio.all_tasks() == before
