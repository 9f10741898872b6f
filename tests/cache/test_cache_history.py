"""What the cache writes to the history of an origin when its file changes."""

import asyncio

import pytest

from app.cache.freshness import DAY
from app.cache.robots_cache import RobotsCache
from app.history.reader import HistoryReader
from app.history.versions import History
from app.store.guarded_client import StoreDown
from robots_core.content import digest
from robots_core.robots.access import (
    NotModified,
    Unavailable,
)
from tests.cache.web import DEFAULT, DOWN, FILE, NEWER, SITE, NewCache, Past, ScriptedWeb
from tests.doubles import Clock, SwitchableSnapshots


async def history(cache: RobotsCache, past: Past, clock: Clock) -> History:
    return await HistoryReader(cache, past, clock).read(SITE)


def stretches(history: History, clock: Clock) -> list[tuple[bytes, int, int]]:
    """Each version's content, and how many seconds ago it was seen first and last."""
    return [(it.digest, it.first_seen - int(clock.now), it.last_seen - int(clock.now)) for it in history]


async def test_an_unchanged_file_adds_no_version(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock, past: Past
) -> None:
    for found in (FILE, NotModified(), DOWN, DOWN, FILE, NotModified()):
        web.finds(found)
        await cache.refresh(SITE, DEFAULT)
        clock.now += 40 * DAY / 5
    assert past.noted == []
    assert stretches(await history(cache, past, clock), clock) == [(digest(FILE), -48 * int(DAY), -8 * int(DAY))]


async def test_a_change_adds_only_the_version_that_ended(
    new_cache: NewCache, web: ScriptedWeb, clock: Clock, past: Past
) -> None:
    one, other = new_cache(), new_cache()
    await one.get(SITE, DEFAULT)
    clock.now += 100
    await one.refresh(SITE, DEFAULT)
    clock.now += 100
    web.finds(NEWER)
    await other.refresh(SITE, DEFAULT)
    assert [it.access for it in past.noted] == [FILE]
    clock.now += 100
    one.on_gap()
    for cache in (one, other):
        assert stretches(await history(cache, past, clock), clock) == [
            (digest(FILE), -300, -200),
            (digest(NEWER), -100, -100),
        ]


async def test_a_copy_past_thirty_days_is_added_to_the_history(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock, past: Past
) -> None:
    await cache.get(SITE, DEFAULT)
    web.finds(DOWN)
    clock.now += 20 * DAY
    await cache.get(SITE, DEFAULT)
    clock.now += 11 * DAY
    assert stretches(await history(cache, past, clock), clock) == [(digest(FILE), -31 * int(DAY), -31 * int(DAY))]
    held = await cache.get(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == DOWN
    assert [it.access for it in past.noted] == [FILE]


async def test_a_purged_file_is_added_to_the_history(
    new_cache: NewCache, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, past: Past
) -> None:
    one, other = new_cache(), new_cache()
    await one.get(SITE, DEFAULT)
    clock.now += 100
    store.on = False
    with pytest.raises(StoreDown):
        await other.purge(SITE)
    assert past.noted == []
    store.on = True
    await other.purge(SITE)
    assert stretches(await history(other, past, clock), clock) == [(digest(FILE), -100, -100)]
    web.finds(NEWER)
    clock.now += 1
    await other.get(SITE, DEFAULT)
    assert stretches(await history(other, past, clock), clock) == [(digest(FILE), -101, -101), (digest(NEWER), 0, 0)]


async def test_two_concurrent_fetches_lose_no_version(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock, past: Past
) -> None:
    await cache.get(SITE, DEFAULT)
    clock.now += 100
    web.let_go.clear()
    web.requested.clear()
    web.finds(NotModified())
    slow = asyncio.create_task(cache.get(SITE, DEFAULT, max_age=10))
    await web.requested.wait()
    late = web.let_go
    web.let_go = asyncio.Event()
    web.let_go.set()
    web.finds(NEWER)
    clock.now += 1
    await cache.refresh(SITE, DEFAULT)
    clock.now += 1
    web.finds(NotModified())
    late.set()
    await slow
    assert stretches(await history(cache, past, clock), clock) == [(digest(FILE), -102, -2), (digest(NEWER), -1, -1)]


@pytest.mark.parametrize("learnt_later", [False, True])
async def test_versions_fetched_by_isolated_processes_are_all_in_the_history(
    new_cache: NewCache, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, past: Past, learnt_later: bool
) -> None:
    cut_off, other = new_cache(), new_cache()
    await cut_off.get(SITE, DEFAULT)
    clock.now += 100

    async def apart() -> None:
        store.on = False
        web.finds(NEWER)
        await cut_off.refresh(SITE, DEFAULT)
        store.on = True
        clock.now += 100

    async def together() -> None:
        web.finds(Unavailable(404))
        await other.refresh(SITE, DEFAULT)
        clock.now += 100

    for step in (together, apart) if learnt_later else (apart, together):
        await step()
    for cache in (cut_off, other):
        cache.on_gap()
        await cache.get(SITE, DEFAULT)
    expected = [digest(FILE), digest(NEWER), digest(Unavailable(404))]
    for cache in (cut_off, other):
        found = [it.digest for it in await history(cache, past, clock)]
        assert found == ([expected[0], expected[2], expected[1]] if learnt_later else expected)
