"""Fixtures: a cache between a scripted web and a real Valkey that a test can switch off or slow down."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.cache.robots_cache import RobotsCache
from app.store.guarded_client import GuardedClient
from app.store.store_clock import StoreClock
from tests.cache.web import NewCache, Past, ScriptedWeb
from tests.doubles import Clock, SlowSnapshots, SwitchableSnapshots
from tests.faults.proxy import Proxy, proxy


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def web() -> ScriptedWeb:
    return ScriptedWeb()


@pytest.fixture
def store(store_client: Redis, clock: Clock) -> SwitchableSnapshots:
    return SwitchableSnapshots(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), clock)


@pytest.fixture
def past() -> Past:
    return Past()


@pytest.fixture
async def new_cache(store: SwitchableSnapshots, web: ScriptedWeb, clock: Clock, past: Past) -> AsyncIterator[NewCache]:
    """Caches of other processes, which share the store and the histories."""
    caches: list[RobotsCache] = []

    def new() -> RobotsCache:
        caches.append(RobotsCache(store, web.fetch, StoreClock(clock, clock), 1_000_000, on_version_ended=past.note))
        return caches[-1]

    yield new
    for cache in caches:
        await cache.aclose()


@pytest.fixture
def cache(new_cache: NewCache) -> RobotsCache:
    return new_cache()


@pytest.fixture
async def slow(web: ScriptedWeb, clock: Clock) -> AsyncIterator[tuple[SlowSnapshots, RobotsCache]]:
    store = SlowSnapshots(clock)
    cache = RobotsCache(store, web.fetch, StoreClock(clock, clock), 1_000_000)
    yield store, cache
    await cache.aclose()


@pytest.fixture
async def between(store_url: str, store_client: Redis, tmp_path: Path) -> AsyncIterator[Proxy]:
    """A proxy to the test's empty store."""
    async with proxy(store_url, tmp_path) as one:
        yield one
