"""Histories in a real Valkey: written in the background, concurrently, without delaying callers."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from app.cache.freshness import Snapshot
from app.cache.redis_snapshots import snapshot_key
from app.history import redis_history, versions
from app.history.redis_changes import RedisChanges
from app.history.redis_history import RedisHistory, history_key
from app.history.versions import HISTORY_BYTES, HISTORY_EXPIRY, History, version_of, write
from app.store.connect import connect
from app.store.guarded_client import GuardedClient, StoreDown
from robots_core.content import digest
from robots_core.diff.effect import effect
from robots_core.origin import Origin
from robots_core.robots.access import Access, Successful, Unavailable
from tests.faults.until import until, until_so

SITE = Origin("https", "www.example.com", 443)
KEY = "robots:{https://www.example.com:443}:history"
NOW = 1_790_000_000.0
A, B, C = (Successful(200, f"User-agent: *\nDisallow: /{name}\n".encode()) for name in "abc")

NewHistory = Callable[..., RedisHistory]


class Losses:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def snapshot(access: Access, at: float) -> Snapshot:
    return Snapshot(access, at)


def seen(history: History) -> list[tuple[bytes, int, int]]:
    return [(version.digest, version.first_seen, version.last_seen) for version in history]


@pytest.fixture
def losses() -> Losses:
    return Losses()


@pytest.fixture
async def new_history(store_client: Redis, losses: Losses) -> AsyncIterator[NewHistory]:
    made: list[RedisHistory] = []

    def new(**options: Any) -> RedisHistory:
        calls = GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)
        history = RedisHistory(calls, lambda: NOW, lost=losses, **options)
        made.append(history)
        return history

    yield new
    for history in made:
        await history.aclose()


@pytest.fixture
def history(new_history: NewHistory) -> RedisHistory:
    return new_history()


async def written(reader: RedisHistory, count: int) -> History:
    """The history as another process reads it, once it has so many versions."""
    return await until(lambda: reader.read(SITE), lambda held: len(held) >= count)


def test_the_key_shares_the_slot_of_the_snapshot() -> None:
    assert history_key(SITE) == KEY == f"{snapshot_key(SITE)}:history"


async def test_a_noted_version_is_written_with_its_expiry(
    history: RedisHistory, new_history: NewHistory, store_client: Redis
) -> None:
    assert await history.read(SITE) == ()
    history.note(SITE, replace(snapshot(A, 150), since=100))
    history.note(SITE, snapshot(B, 200))
    assert seen(await written(new_history(), 2)) == [(digest(A), 100, 150), (digest(B), 200, 200)]
    assert HISTORY_EXPIRY - 100 < await store_client.ttl(KEY) <= HISTORY_EXPIRY


async def test_concurrent_writers_lose_nothing(new_history: NewHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_history, "RETRY_PAUSE", 0.001)
    processes = [new_history() for _ in range(4)]
    for number in range(12):
        processes[number % 4].note(SITE, snapshot(Unavailable(400 + number), 100 + number))
    held = await written(new_history(), 12)
    assert [version.first_seen for version in held] == list(range(100, 112))


async def test_files_are_compared_in_threads(
    new_history: NewHistory, store_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty files of half a megabyte, which are stored in little, would block the event loop for some tenths."""
    compared_in: set[threading.Thread] = set()

    def noting(access: Access) -> bytes:
        compared_in.add(threading.current_thread())
        return effect(access)

    monkeypatch.setattr(versions, "effect", noting)
    changes = RedisChanges(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0))
    history = new_history(changes=changes)
    for number, access in enumerate((A, B, C)):
        history.note(SITE, snapshot(access, NOW - 9 + number), snapshot(access, NOW))
        await written(history, number + 1)
        await until_so(lambda: not history._waiting)
    assert compared_in
    assert threading.main_thread() not in compared_in


async def test_a_change_noted_by_two_processes_is_one_version(new_history: NewHistory) -> None:
    one, other = new_history(), new_history()
    one.note(SITE, replace(snapshot(A, 150), since=100))
    other.note(SITE, replace(snapshot(A, 140), since=100))
    await one.aclose()
    await other.aclose()
    assert seen(await one.read(SITE)) == [(digest(A), 100, 150)]


WHOLE = write((version_of(snapshot(A, 1)),), bytes(8))
FOREIGN = [b"", b"garbage", b"H\x02", b"H\x02" + bytes(10**6), WHOLE[:-1], WHOLE + b"\0", WHOLE[:10] + b"\x91" * 10**5]


@pytest.mark.parametrize("value", FOREIGN)
async def test_a_foreign_value_is_empty_and_overwritten(
    history: RedisHistory, new_history: NewHistory, store_client: Redis, value: bytes
) -> None:
    await store_client.set(KEY, value)
    assert await history.read(SITE) == ()
    history.note(SITE, snapshot(A, 100))
    assert seen(await written(new_history(), 1)) == [(digest(A), 100, 100)]


async def test_a_key_of_another_type_is_empty_and_overwritten(
    history: RedisHistory, new_history: NewHistory, store_client: Redis
) -> None:
    await store_client.rpush(KEY, "a", "b")
    assert await history.read(SITE) == ()
    history.note(SITE, snapshot(A, 100))
    assert len(await written(new_history(), 1)) == 1


async def test_no_more_of_a_value_is_read_than_a_history_can_have(history: RedisHistory, store_client: Redis) -> None:
    await store_client.set(KEY, bytes(10**7))
    before = (await store_client.info("stats"))["total_net_output_bytes"]
    assert await history.read(SITE) == ()
    assert (await store_client.info("stats"))["total_net_output_bytes"] - before < 2 * HISTORY_BYTES


async def test_a_refused_version_is_written_later(
    new_history: NewHistory, store_client: Redis, losses: Losses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_history, "RETRY_PAUSE", 0.01)
    history = new_history()
    await store_client.config_resetstat()
    await store_client.config_set("maxmemory", "1")
    try:
        history.note(SITE, snapshot(A, 100))
        await until(lambda: store_client.info("errorstats"), lambda found: "errorstat_OOM" in found)
    finally:
        await store_client.config_set("maxmemory", "0")
    assert len(await written(new_history(), 1)) == 1
    assert losses.count == 0


async def test_without_a_store_noting_is_bounded_and_never_waits(
    losses: Losses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_history, "WAITING_VERSION_BYTES", 10_000)
    monkeypatch.setattr(redis_history, "RETRY_PAUSE", 0.001)
    client = connect("unix:///nonexistent/valkey.sock")
    history = RedisHistory(GuardedClient(client, monotonic=lambda: 0.0), lambda: NOW, lost=losses)
    for number in range(20):
        history.note(SITE, snapshot(Successful(200, bytes(1000)), number))
    assert losses.count == 16
    with pytest.raises(StoreDown):
        await history.read(SITE)
    history.note(SITE, snapshot(Successful(200, bytes(20_000)), 30))
    await until_so(lambda: losses.count == 21)
    await history.aclose()
    assert losses.count == 21
    await client.aclose()


async def test_versions_waiting_to_be_written_are_read(history: RedisHistory) -> None:
    history.note(SITE, snapshot(A, 100))
    history.note(Origin("https", "other.example", 443), snapshot(C, 150))
    history.note(SITE, snapshot(B, 200))
    assert seen(await history.read(SITE)) == [(digest(A), 100, 100), (digest(B), 200, 200)]


async def test_waiting_versions_are_written_at_the_end(history: RedisHistory, new_history: NewHistory) -> None:
    history.note(SITE, snapshot(A, 100))
    await asyncio.wait_for(history.aclose(), 20)
    assert len(await new_history().read(SITE)) == 1


async def test_versions_that_cannot_be_written_at_the_end_are_counted(losses: Losses) -> None:
    client = connect("unix:///nonexistent/valkey.sock")
    history = RedisHistory(GuardedClient(client, monotonic=lambda: 0.0), lambda: NOW, lost=losses)
    history.note(SITE, snapshot(A, 100))
    history.note(SITE, snapshot(B, 200))
    await history.aclose()
    assert losses.count == 2
    await client.aclose()
