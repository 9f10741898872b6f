"""While the store is down, the cache answers from memory and by fetching."""

import os
import signal

from redis.asyncio import Redis

from app.cache.redis_snapshots import RedisSnapshots
from app.cache.result import Source
from app.cache.robots_cache import RobotsCache
from app.store.connect import connect
from app.store.guarded_client import COOLDOWN, GuardedClient
from app.store.store_clock import StoreClock
from robots_core.origin import Origin
from tests.cache.web import DEFAULT, DOWN, NEWER, SITE, NewCache, ScriptedWeb
from tests.doubles import Clock, SwitchableSnapshots


async def test_without_the_store_memory_and_fetches_answer(
    cache: RobotsCache, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock
) -> None:
    known = await cache.get(SITE, DEFAULT)
    store.on = False
    clock.now += 100
    held = await cache.get(SITE, DEFAULT)
    assert held.source is Source.MEMORY
    assert held.snapshot is known.snapshot
    other = Origin("https", "other.example", 443)
    assert (await cache.get(other, DEFAULT)).source is Source.FETCHED
    clock.now += 100
    assert (await cache.get(other, DEFAULT)).source is Source.MEMORY
    assert len(web.calls) == 2


async def test_without_the_store_a_failure_is_remembered(
    cache: RobotsCache, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock
) -> None:
    store.on = False
    web.finds(DOWN)
    for _ in range(5):
        held = await cache.get(SITE, DEFAULT, max_age=0)
        assert held.snapshot is not None
        assert held.snapshot.access == DOWN
        clock.now += 40
    assert len(web.calls) == 1


async def test_snapshots_found_without_the_store_are_delivered_later(
    new_cache: NewCache, store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock
) -> None:
    one, other = new_cache(), new_cache()
    await one.get(SITE, DEFAULT)
    store.on = False
    web.finds(NEWER)
    clock.now += 50
    learnt = await one.get(SITE, DEFAULT, max_age=10)
    store.on = True
    clock.now += 50
    held = await one.get(SITE, DEFAULT)
    assert held.snapshot is learnt.snapshot
    found = await other.get(SITE, DEFAULT)
    assert (found.snapshot, found.source) == (learnt.snapshot, Source.STORE)
    assert len(web.calls) == 2


async def test_a_stopped_valkey_delays_an_answer_and_does_not_change_it(
    store_client: Redis, store_url: str, web: ScriptedWeb, clock: Clock
) -> None:
    client = connect(store_url)
    monotonic = Clock()
    stopped = GuardedClient(client, monotonic=monotonic, timeout=0.3)
    snapshots = RedisSnapshots(stopped, clock=clock)
    cache = RobotsCache(snapshots, web.fetch, StoreClock(clock, clock), 1_000_000)
    pid = int((await store_client.info("server"))["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        assert (await cache.get(SITE, DEFAULT)).source is Source.FETCHED
        assert stopped.degraded
        clock.now += 40
        assert (await cache.get(SITE, DEFAULT)).source is Source.MEMORY
    finally:
        os.kill(pid, signal.SIGCONT)
    monotonic.now += COOLDOWN
    clock.now += 40
    await cache.get(SITE, DEFAULT)
    assert not stopped.degraded
    assert await snapshots.get(SITE) is not None
    assert len(web.calls) == 1
    await cache.aclose()
    await client.aclose()
