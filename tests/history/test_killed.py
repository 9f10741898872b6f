"""No version and no change is lost when the process that found it is killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.cache.codec import encode
from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Snapshot
from app.cache.ordering import Purged
from app.cache.redis_snapshots import UNRECORDED, RedisSnapshots, unrecorded_key
from app.cache.snapshot_memory import SnapshotMemory
from app.cache.tiered_snapshots import TieredSnapshots
from app.history.redis_changes import OLDEST, RedisChanges
from app.history.redis_history import RedisHistory
from app.store.guarded_client import GuardedClient
from app.store.store_clock import StoreClock
from robots_core.content import digest, id_of
from robots_core.robots.access import Access, Successful, Unavailable
from tests.doubles import Clock
from tests.history.killed import SITE

ROOT = Path(__file__).parents[2]
KEY = "robots:{https://www.example.com:443}"
NOW, KEEP = 1_790_000_000.0, 2_592_000.0
A, B, C = (Successful(200, f"User-agent: *\nDisallow: /{name}\n".encode()) for name in "abc")


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def store(store_client: Redis, clock: Clock) -> RedisSnapshots:
    return RedisSnapshots(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), clock=clock)


async def find(store: RedisSnapshots, clock: Clock, access: Access) -> None:
    """Find this content at the origin as a process does that has only just started."""
    changes = RedisChanges(store.redis)
    history = RedisHistory(store.redis, clock, lost=lambda: None, changes=changes)
    of_server = StoreClock(clock, clock)
    snapshots = TieredSnapshots(
        store, SnapshotMemory(1_000_000, of_server, 30.0), of_server, FetchHealth(), history.note
    )
    await snapshots.save(SITE, Snapshot(access, clock.now))
    await history.aclose()


async def versions(store: RedisSnapshots, clock: Clock) -> list[str]:
    return [version.id for version in await RedisHistory(store.redis, clock, lost=lambda: None).read(SITE)]


async def changes(store: RedisSnapshots) -> list[tuple[str, str | None]]:
    page = await RedisChanges(store.redis).read(OLDEST, 100)
    return [(change.from_, change.to) for _, change in page.changes]


def id_(access: Access) -> str:
    return id_of(digest(access))


def killed_finding(store_url: str, clock: Clock, access: Successful) -> None:
    """Find the content in a process that is killed as soon as the store has it."""
    command = [sys.executable, "-m", "tests.history.killed", store_url, str(clock.now), access.body.decode()]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("next_", [B, C, A, Unavailable(404)], ids=["the same", "another", "the old one", "none"])
async def test_the_next_process_records_what_a_killed_one_did_not(
    store: RedisSnapshots, store_url: str, clock: Clock, next_: Access
) -> None:
    await find(store, clock, A)
    clock.now += 100
    killed_finding(store_url, clock, B)
    assert await versions(store, clock) == []
    clock.now += 100
    await find(store, clock, next_)
    ended = [] if next_ is B else [(id_(B), id_(next_))]
    assert await changes(store) == [(id_(A), id_(B)), *ended]
    assert await versions(store, clock) == [id_(A), *(id_(B) for _ in ended)]
    clock.now += 100
    await find(store, clock, next_)
    assert len(await changes(store)) == 1 + len(ended)


async def test_versions_that_two_killed_processes_ended_are_recorded(
    store: RedisSnapshots, store_url: str, clock: Clock
) -> None:
    await find(store, clock, A)
    for access in (B, C):
        clock.now += 100
        killed_finding(store_url, clock, access)
    clock.now += 100
    await find(store, clock, Unavailable(404))
    assert await changes(store) == [(id_(A), id_(B)), (id_(B), id_(C)), (id_(C), id_(Unavailable(404)))]
    assert await versions(store, clock) == [id_(A), id_(B), id_(C)]


async def test_a_version_that_a_killed_process_purged_is_recorded(store: RedisSnapshots, clock: Clock) -> None:
    await find(store, clock, A)
    clock.now += 100
    await store.purge(SITE, KEEP)
    assert isinstance(await store.get(SITE), Purged)
    clock.now += 100
    await find(store, clock, B)
    assert await changes(store) == [(id_(A), None)]
    assert await versions(store, clock) == [id_(A)]


async def test_nothing_waits_once_it_is_recorded(store: RedisSnapshots, store_client: Redis, clock: Clock) -> None:
    for access in (A, B, C):
        await find(store, clock, access)
        clock.now += 100
    assert await changes(store) == [(id_(A), id_(B)), (id_(B), id_(C))]
    assert await store_client.exists(unrecorded_key(SITE)) == 0


async def test_what_waits_is_bounded_and_expires(store: RedisSnapshots, store_client: Redis, clock: Clock) -> None:
    for number in range(10):
        clock.now += 1
        await store.put(SITE, Snapshot(Successful(200, b"# %d" % number), clock.now), 60)
    assert await store_client.hlen(unrecorded_key(SITE)) == UNRECORDED
    assert 0 < await store_client.ttl(unrecorded_key(SITE)) <= 60


async def test_foreign_values_are_ignored(store: RedisSnapshots, store_client: Redis, clock: Clock) -> None:
    valid, key = encode(Snapshot(C, 1.0)), unrecorded_key(SITE)
    await find(store, clock, A)
    await store_client.set(key, b"foreign")
    clock.now += 100
    await find(store, clock, B)
    contents: list[dict[bytes, bytes]] = [
        {digest(C) + bytes([number]): valid for number in range(UNRECORDED + 1)},
        {b"a": b"", b"b": b"\xff", digest(C): valid[:-1]},
        {digest(C): valid + bytes(10**7)},
    ]
    for fields in contents:
        await store_client.hset(key, items=[part for field in fields.items() for part in field])
        clock.now += 100
        await find(store, clock, B)
        await store_client.delete(key)
    assert await changes(store) == [(id_(A), id_(B))]
    assert await versions(store, clock) == [id_(A)]
