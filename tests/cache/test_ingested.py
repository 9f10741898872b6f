"""What callers send: ordered by when it was observed, over processes, purges and outages of the store."""

import random

import pytest

from app.cache.freshness import DAY, Snapshot
from app.cache.robots_cache import RobotsCache
from robots_core.robots.access import Access, Blocked, Fetched, Unavailable, Validators
from tests.cache.web import DEFAULT, DOWN, FILE, NEWER, SITE, TAGGED, NewCache, Past, ScriptedWeb
from tests.doubles import Clock, SwitchableSnapshots


def learned(snapshot: Snapshot | None) -> tuple[object, ...]:
    assert snapshot is not None
    failing = snapshot.failing
    return snapshot.access, snapshot.fetched_at, snapshot.ingested, failing and (failing.last_at, failing.failure)


@pytest.mark.parametrize("seed", range(40))
async def test_any_order_of_arrival_leads_to_the_same(new_cache: NewCache, clock: Clock, seed: int) -> None:
    chance = random.Random(seed)
    accesses: list[Access] = [FILE, NEWER, DOWN]
    found = [(clock.now - 3600 + 60 * number, chance.choice(accesses)) for number in range(5)]
    results = set()
    for number in range(4):
        site = SITE.with_profile(f"p{number}")
        caches = [new_cache() for _ in range(2)]
        for at, access in found if number == 0 else chance.sample(found, len(found)):
            cache = chance.choice(caches)
            cache.on_gap()
            await cache.ingest(site, Fetched(access), at, DEFAULT, "crawler-7")
        for cache in caches:
            cache.on_gap()
            results.add(learned(await cache.last_found(site)))
    assert len(results) == 1


async def test_a_fetch_and_a_copy_are_ordered_by_their_beginnings(
    cache: RobotsCache, web: ScriptedWeb, clock: Clock, past: Past
) -> None:
    began = clock.now
    web.let_go.clear()
    web.finds(NEWER)
    cached = await cache.get(SITE, DEFAULT, wait=0)
    assert cached.snapshot is None
    await web.requested.wait()
    clock.now += 5
    result, in_use = await cache.ingest(SITE, Fetched(FILE), clock.now, DEFAULT, "crawler-7")
    web.let_go.set()
    refreshed = await cache.get(SITE, DEFAULT)
    # The fetch ended last, but began first.
    assert in_use
    assert result.snapshot is not None
    assert refreshed.snapshot is not None
    assert (refreshed.snapshot.access, refreshed.snapshot.fetched_at) == (FILE, began + 5)


async def test_after_a_copy_the_fetch_is_unconditional(cache: RobotsCache, web: ScriptedWeb, clock: Clock) -> None:
    await cache.get(SITE, DEFAULT)
    await cache.ingest(SITE, Fetched(FILE, validators=TAGGED), clock.now, DEFAULT, "crawler-7")
    for asked in (Validators(), TAGGED):
        clock.now += 2 * DAY
        await cache.get(SITE, DEFAULT)
        assert web.calls[-1] == (SITE, asked)


async def test_a_copy_in_an_outage_reaches_the_fleet_after_it(
    new_cache: NewCache, store: SwitchableSnapshots, clock: Clock
) -> None:
    one, other = new_cache(), new_cache()
    store.on = False
    result, in_use = await one.ingest(SITE, Fetched(FILE), clock.now, DEFAULT, "crawler-7")
    assert (in_use, result.snapshot is not None) == (True, True)
    store.on = True
    one.on_gap()
    await one.last_found(SITE)
    found = await other.last_found(SITE)
    assert found is not None
    assert (found.access, found.ingested) == (FILE, "crawler-7")


@pytest.mark.parametrize("access", [FILE, Unavailable(404), Unavailable(403), Blocked("::1"), DOWN])
async def test_the_mark_is_stored_and_ends_with_the_next_fetch(
    new_cache: NewCache, web: ScriptedWeb, clock: Clock, access: Access
) -> None:
    one, other = new_cache(), new_cache()
    await one.ingest(SITE, Fetched(access), clock.now, DEFAULT, "crawler-7")
    found = await other.last_found(SITE)
    assert found is not None
    assert (found.access, found.ingested) == (access, "crawler-7")
    clock.now += 60
    web.finds(access)
    await other.refresh(SITE, DEFAULT)
    one.on_gap()
    found = await one.last_found(SITE)
    assert found is not None
    assert (found.access, found.ingested) == (access, None)
