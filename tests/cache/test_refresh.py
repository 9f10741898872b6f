"""When a copy is fetched again: at its recheck, on request, after a purge."""

import asyncio

import pytest
from redis.asyncio import Redis

from app.cache.freshness import DAY, KEEP, Snapshot, State
from app.cache.invalidation import Event
from app.cache.result import Source
from app.cache.robots_cache import RobotsCache
from app.store.guarded_client import StoreDown
from robots_core.robots.access import (
    Busy,
    NotModified,
    Unavailable,
    Validators,
)
from tests.cache.web import DEFAULT, DOWN, FILE, NEWER, SITE, TAGGED, NewCache, ScriptedWeb
from tests.doubles import Clock, SwitchableSnapshots

# Refreshes.


async def test_in_grace_a_copy_is_served_and_refreshed_in_the_background(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    first = await cache.get(SITE, DEFAULT)
    assert first.freshness is not None
    web.let_go.clear()
    web.requested.clear()
    web.finds(NEWER)
    clock.now = first.freshness.recheck_at + 1
    graced = await cache.get(SITE, DEFAULT)
    assert graced.freshness is not None
    assert graced.freshness.state is State.GRACE
    assert graced.snapshot is first.snapshot
    await web.requested.wait()
    due = asyncio.create_task(cache.get(SITE, DEFAULT, max_age=0))
    web.let_go.set()
    held = await due
    assert held.snapshot is not None
    assert held.snapshot.access == NEWER
    assert len(web.calls) == 2


async def test_a_due_snapshot_is_refreshed_first_and_conditionally(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    await cache.get(SITE, DEFAULT)
    web.finds(NotModified())
    clock.now += 2 * DAY
    held = await cache.get(SITE, DEFAULT)
    assert held.source is Source.REVALIDATED
    assert held.snapshot == Snapshot(FILE, clock.now, None, TAGGED, 3600.0, since=int(clock.now - 2 * DAY))
    assert web.calls[1:] == [(SITE, TAGGED)]


async def test_only_a_copy_makes_a_fetch_conditional(cache: RobotsCache, web: ScriptedWeb, clock: Clock) -> None:
    web.finds(Unavailable(404))
    await cache.get(SITE, DEFAULT)
    clock.now += 2 * DAY
    await cache.get(SITE, DEFAULT)
    assert web.calls == [(SITE, Validators())] * 2


async def test_a_copy_older_than_max_age_is_refreshed(cache: RobotsCache, web: ScriptedWeb, clock: Clock) -> None:
    await cache.get(SITE, DEFAULT)
    clock.now += 10
    assert (await cache.get(SITE, DEFAULT, max_age=10)).source is Source.MEMORY
    assert (await cache.get(SITE, DEFAULT, max_age=9)).source is Source.FETCHED
    assert len(web.calls) == 2


async def test_max_age_does_not_break_the_backoff(cache: RobotsCache, web: ScriptedWeb, clock: Clock) -> None:
    await cache.get(SITE, DEFAULT)
    web.finds(DOWN)
    clock.now += 2 * DAY
    recheck_at = 0.0
    for _ in range(5):
        held = await cache.get(SITE, DEFAULT, max_age=0)
        assert held.snapshot is not None
        assert held.freshness is not None
        assert held.snapshot.access == FILE
        assert held.freshness.stale
        assert held.source is Source.MEMORY
        recheck_at = held.freshness.recheck_at
    assert len(web.calls) == 2
    clock.now = recheck_at
    web.finds(NEWER)
    assert (await cache.get(SITE, DEFAULT)).source is Source.FETCHED


async def test_without_a_copy_the_failure_is_returned(cache: RobotsCache, web: ScriptedWeb) -> None:
    web.finds(DOWN)
    for source in (Source.FETCHED, Source.MEMORY):
        held = await cache.get(SITE, DEFAULT)
        assert held.snapshot is not None
        assert held.snapshot.access == DOWN
        assert held.source is source
    assert len(web.calls) == 1


async def test_rfc9309_a_missing_file_does_not_answer_for_an_unreachable_origin(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    web.finds(Unavailable(404))
    await cache.get(SITE, DEFAULT)
    web.finds(DOWN)
    clock.now += 2 * DAY
    held = await cache.get(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == DOWN


async def test_a_copy_past_thirty_days_is_not_served_while_waiting(
    cache: RobotsCache, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock
) -> None:
    await cache.get(SITE, DEFAULT)
    store.on = False
    clock.now += KEEP + 1
    assert (await cache.get(SITE, DEFAULT, wait=0)).snapshot is None


# Purges and forced refreshes.


async def test_a_purged_file_is_fetched_again_everywhere(new_cache: NewCache, web: ScriptedWeb, clock: Clock) -> None:
    one, notified, unaware = new_cache(), new_cache(), new_cache()
    for cache in (one, notified, unaware):
        await cache.get(SITE, DEFAULT)
    web.finds(NEWER)
    await one.purge(SITE)
    clock.now += 1
    notified.on_event(Event.PURGED, SITE)
    assert (await notified.get(SITE, DEFAULT)).source is Source.FETCHED
    assert (await one.get(SITE, DEFAULT)).source is Source.STORE
    assert (await unaware.get(SITE, DEFAULT)).source is Source.MEMORY  # it still trusts its memory
    clock.now += 31
    assert (await unaware.get(SITE, DEFAULT)).source is Source.STORE
    assert len(web.calls) == 2


async def test_a_process_that_missed_a_purge_finds_it_in_the_store(
    new_cache: NewCache, web: ScriptedWeb, clock: Clock
) -> None:
    one, unaware = new_cache(), new_cache()
    await unaware.get(SITE, DEFAULT)
    clock.now += 10
    await one.purge(SITE)
    clock.now += 29 * DAY
    unaware.on_gap()
    assert (await unaware.get(SITE, DEFAULT)).source is Source.FETCHED
    assert len(web.calls) == 2


async def test_a_purge_without_the_store_raises(cache: RobotsCache, store: SwitchableSnapshots) -> None:
    await cache.get(SITE, DEFAULT)
    store.on = False
    with pytest.raises(StoreDown):
        await cache.purge(SITE)


@pytest.mark.parametrize(("learnt_after", "source"), [(5, Source.MEMORY), (-5, Source.FETCHED)])
async def test_a_purge_keeps_what_was_found_after_it(
    new_cache: NewCache, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, learnt_after: float, source: Source
) -> None:
    cut_off, other = new_cache(), new_cache()
    purged_at = clock.now + 100
    store.on = False
    clock.now = purged_at + learnt_after
    await cut_off.get(SITE, DEFAULT)
    store.on = True
    clock.now = purged_at
    await other.purge(SITE)
    clock.now += 50
    assert (await cut_off.get(SITE, DEFAULT)).source is source


async def test_a_forced_refresh_fetches_a_fresh_file_unconditionally(new_cache: NewCache, web: ScriptedWeb) -> None:
    cache, other = new_cache(), new_cache()
    await cache.get(SITE, DEFAULT)
    web.finds(NEWER)
    held = await cache.refresh(SITE, DEFAULT)
    assert held.snapshot is not None
    assert (held.snapshot.access, held.source) == (NEWER, Source.FETCHED)
    assert web.calls == [(SITE, Validators())] * 2
    assert (await other.get(SITE, DEFAULT)).snapshot == held.snapshot


async def test_a_forced_refresh_ignores_the_backoff_and_keeps_the_copy(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    await cache.get(SITE, DEFAULT)
    web.finds(DOWN)
    for attempts in (1, 2):
        clock.now += 1
        held = await cache.refresh(SITE, DEFAULT)
        assert held.snapshot is not None
        assert held.snapshot.failing is not None
        assert (held.snapshot.access, held.snapshot.failing.attempts) == (FILE, attempts)


async def test_a_forced_refresh_needs_a_fetch_that_begins_after_it(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock
) -> None:
    web.let_go.clear()
    before = asyncio.create_task(cache.refresh(SITE, DEFAULT))
    await web.requested.wait()
    web.requested.clear()
    after = [asyncio.create_task(cache.refresh(SITE, DEFAULT)) for _ in range(20)]
    clock.now += 1
    web.let_go.set()
    await before
    await asyncio.gather(*after)
    assert len(web.calls) == 2


async def test_a_forced_refresh_when_busy_or_without_the_store(
    cache: RobotsCache, store: SwitchableSnapshots, web: ScriptedWeb
) -> None:
    web.answer = Busy(5)
    with pytest.raises(Busy):
        await cache.refresh(SITE, DEFAULT)
    web.finds(FILE)
    store.on = False
    assert (await cache.refresh(SITE, DEFAULT)).source is Source.FETCHED


async def test_an_older_copy_restored_to_the_store_never_replaces_a_later_one(
    new_cache: NewCache, store_client: Redis, web: ScriptedWeb, clock: Clock
) -> None:
    behind, ahead = new_cache(), new_cache()
    await behind.get(SITE, DEFAULT)
    clock.now += 50
    web.finds(NEWER)
    later = await ahead.get(SITE, DEFAULT, max_age=10)
    await store_client.flushall()
    assert (await behind.get(SITE, DEFAULT)).source is Source.MEMORY
    clock.now += 31
    assert (await ahead.get(SITE, DEFAULT)).snapshot is later.snapshot
    behind.on_gap()
    assert (await behind.get(SITE, DEFAULT)).snapshot == later.snapshot
    assert len(web.calls) == 2


async def test_a_result_of_a_fast_clock_counts_as_the_oldest(
    new_cache: NewCache, web: ScriptedWeb, clock: Clock
) -> None:
    wrong, right = new_cache(), new_cache()
    clock.now += 5000
    await wrong.get(SITE, DEFAULT)
    clock.now -= 5000
    web.finds(NEWER)
    await right.refresh(SITE, DEFAULT)
    wrong.on_gap()
    held = await wrong.get(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == NEWER
