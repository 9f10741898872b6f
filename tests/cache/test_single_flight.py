"""One fetch of an origin for all callers of a process, and for all processes of a fleet."""

import asyncio

from redis.asyncio import Redis

from app.cache.freshness import DAY
from app.cache.result import CacheResult, Source
from app.cache.robots_cache import RobotsCache
from robots_core.origin import Origin
from robots_core.robots.access import (
    Fetched,
)
from tests.cache.web import DEFAULT, FILE, HOURLY, KEY, NEWER, SITE, TAGGED, NewCache, ScriptedWeb
from tests.doubles import Clock, SlowSnapshots, SwitchableSnapshots

# One process.


async def test_two_hundred_callers_of_a_cold_origin_make_one_fetch(
    cache: RobotsCache, store: SwitchableSnapshots, web: ScriptedWeb
) -> None:
    web.let_go.clear()
    callers = [asyncio.create_task(cache.get(SITE, DEFAULT)) for _ in range(200)]
    await web.requested.wait()
    web.let_go.set()
    held = await asyncio.gather(*callers)
    assert len(web.calls) == 1
    assert store.gets == 2  # all look once, and the flight looks again when it holds the lease
    assert {id(one.snapshot) for one in held} == {id(held[0].snapshot)}


async def test_a_cancelled_caller_does_not_end_the_fetch(cache: RobotsCache, web: ScriptedWeb) -> None:
    web.let_go.clear()
    first, second = (asyncio.create_task(cache.get(SITE, DEFAULT)) for _ in range(2))
    await web.requested.wait()
    first.cancel()
    await asyncio.wait([first])
    web.let_go.set()
    assert (await second).source is Source.FETCHED
    assert len(web.calls) == 1


async def one_fetching_one_at_the_store(
    store: SlowSnapshots, cache: RobotsCache, web: ScriptedWeb
) -> tuple[asyncio.Task[CacheResult], asyncio.Task[CacheResult]]:
    """Two callers: the fetch of the first has begun, and the second is waiting for the store's answer."""
    web.let_go.clear()
    first = asyncio.create_task(cache.get(SITE, DEFAULT))
    await web.requested.wait()
    store.says_so.clear()
    store.called.clear()
    second = asyncio.create_task(cache.get(SITE, DEFAULT))
    await store.called.wait()
    return first, second


async def test_a_store_miss_just_before_a_fetch_ends_causes_no_second_fetch(
    slow: tuple[SlowSnapshots, RobotsCache], web: ScriptedWeb
) -> None:
    store, cache = slow
    store.on = False
    first, second = await one_fetching_one_at_the_store(store, cache, web)
    # The store answers the second caller that it has nothing before the fetch ends; the caller resumes afterwards.
    store.says_so.set()
    web.let_go.set()
    held = await asyncio.gather(first, second)
    assert {one.source for one in held} <= {Source.FETCHED, Source.MEMORY}
    assert len(web.calls) == 1


async def test_an_older_answer_of_the_store_does_not_undo_a_fetch(
    slow: tuple[SlowSnapshots, RobotsCache], web: ScriptedWeb
) -> None:
    store, cache = slow
    first, second = await one_fetching_one_at_the_store(store, cache, web)
    web.let_go.set()
    fetched = await first
    store.says_so.set()
    assert (await second).snapshot is fetched.snapshot
    assert len(web.calls) == 1


async def test_a_late_write_does_not_undo_newer_results(
    slow: tuple[SlowSnapshots, RobotsCache], web: ScriptedWeb, clock: Clock
) -> None:
    store, cache = slow
    store.on = False
    await cache.get(SITE, DEFAULT)
    store.on = True
    store.writes.clear()
    web.finds(NEWER)
    clock.now += 10
    # The first refreshes a copy that the store lacks. Later, the second writes the old copy to the store. The
    # process trusts its memory for 15 to 30 s: still at the first question, and no longer at the second.
    web.let_go.clear()
    web.requested.clear()
    first = asyncio.create_task(cache.get(SITE, DEFAULT, max_age=5))
    await web.requested.wait()
    clock.now += 20
    second = asyncio.create_task(cache.get(SITE, DEFAULT))
    await store.written.wait()
    store.on = False
    web.let_go.set()
    newer = await first
    store.writes.set()
    await second
    assert (await cache.get(SITE, DEFAULT)).snapshot is newer.snapshot


# Several processes.


async def test_one_of_two_processes_fetches_for_both(new_cache: NewCache, web: ScriptedWeb) -> None:
    web.let_go.clear()
    fetching = asyncio.create_task(new_cache().get(SITE, DEFAULT))
    await web.requested.wait()
    waiting = [asyncio.create_task(cache.get(SITE, DEFAULT)) for cache in (new_cache(), new_cache())]
    web.let_go.set()
    assert (await fetching).source is Source.FETCHED
    assert [one.source for one in await asyncio.gather(*waiting)] == [Source.STORE] * 2
    assert len(web.calls) == 1


async def test_a_due_snapshot_is_refreshed_by_one_process(new_cache: NewCache, web: ScriptedWeb, clock: Clock) -> None:
    caches = [new_cache() for _ in range(3)]
    for cache in caches:
        await cache.get(SITE, DEFAULT)
    clock.now += 2 * DAY
    web.finds(NEWER)
    held = await asyncio.gather(*(cache.get(SITE, DEFAULT, max_age=0) for cache in caches))
    assert [one.snapshot.access for one in held if one.snapshot] == [NEWER] * 3
    assert len(web.calls) == 2


async def test_a_copy_fetched_during_the_wait_satisfies_any_max_age(
    new_cache: NewCache, web: ScriptedWeb, clock: Clock
) -> None:
    web.let_go.clear()
    fetching = asyncio.create_task(new_cache().get(SITE, DEFAULT, max_age=0))
    await web.requested.wait()
    cache = new_cache()
    await cache.get(SITE, DEFAULT, wait=0, max_age=0)
    waiting = asyncio.create_task(cache.get(SITE, DEFAULT, max_age=0))
    clock.now += 3
    web.let_go.set()
    await fetching
    clock.now += 2
    assert (await waiting).snapshot is not None
    assert len(web.calls) == 1


async def test_a_process_that_stops_leaves_the_fetch_to_another(new_cache: NewCache, web: ScriptedWeb) -> None:
    ending, other = new_cache(), new_cache()
    web.let_go.clear()
    await ending.get(SITE, DEFAULT, wait=0)
    await web.requested.wait()
    waiting = asyncio.create_task(other.get(SITE, DEFAULT))
    await ending.aclose()
    web.let_go.set()
    assert (await waiting).source is Source.FETCHED
    assert len(web.calls) == 2


async def test_wait_0_returns_while_another_process_fetches(new_cache: NewCache, web: ScriptedWeb) -> None:
    web.let_go.clear()
    fetching = asyncio.create_task(new_cache().get(SITE, DEFAULT))
    await web.requested.wait()
    other = new_cache()
    for wait in (0, 0.01):
        assert (await other.get(SITE, DEFAULT, wait=wait)).snapshot is None
    web.let_go.set()
    assert (await fetching).source is Source.FETCHED
    # The other process is still waiting for the result, or has just taken it from the store.
    assert (await other.get(SITE, DEFAULT)).source in {Source.STORE, Source.MEMORY}
    assert len(web.calls) == 1


async def test_a_redirected_file_is_stored_for_the_requested_origin(
    cache: RobotsCache, store_client: Redis, web: ScriptedWeb
) -> None:
    target = Origin("https", "target.example", 443)
    web.answer = Fetched(FILE, target.robots_url, TAGGED, HOURLY)
    redirected = await cache.get(SITE, DEFAULT)
    assert redirected.snapshot is not None
    assert redirected.snapshot.final_url == target.robots_url
    assert await store_client.keys() == [KEY.encode()]
    web.finds(NEWER)
    held = await cache.get(target, DEFAULT)
    assert held.snapshot is not None
    assert (held.snapshot.access, held.source) == (NEWER, Source.FETCHED)
    assert [origin for origin, _ in web.calls] == [SITE, target]
