"""Snapshots in a real Valkey: bounded calls, a cooldown after a failure, and foreign values."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.cache.codec import ENCODED_LIMIT, encode
from app.cache.freshness import Snapshot
from app.cache.invalidation import Event
from app.cache.ordering import Purged
from app.cache.redis_snapshots import RedisSnapshots
from app.store.circuit_breaker import IN_FLIGHT
from app.store.connect import connect
from app.store.guarded_client import COOLDOWN, GuardedClient, StoreDown
from robots_core.origin import Origin
from robots_core.robots.access import BODY_LIMIT, Successful, Unavailable
from tests.doubles import Clock
from tests.faults.proxy import Proxy
from tests.faults.until import until, until_so
from tests.valkey import process_of, stopped

SITE = Origin("https", "www.example.com", 443)
KEY = "robots:{https://www.example.com:443}"
COPY = Snapshot(Successful(200, b"User-agent: *\nDisallow: /a\n"), 1000.0, None)


@pytest.fixture
def monotonic() -> Clock:
    return Clock(50.0)


@pytest.fixture
def store(store_client: Redis, monotonic: Clock) -> RedisSnapshots:
    # The deadline is wide here, so that a busy machine fails no test that is not about it.
    return RedisSnapshots(GuardedClient(store_client, monotonic=monotonic, timeout=20.0))


@pytest.fixture
async def short(store_url: str, monotonic: Clock) -> AsyncIterator[RedisSnapshots]:
    client = connect(store_url)
    yield RedisSnapshots(GuardedClient(client, monotonic=monotonic, timeout=0.3))
    await client.aclose()


async def test_a_snapshot_is_returned_until_it_expires(store: RedisSnapshots, store_client: Redis) -> None:
    assert await store.get(SITE) is None
    await store.put(SITE, COPY, 2_592_000.0)
    assert await store.get(SITE) == COPY
    assert 2_591_900 < await store_client.ttl(KEY) <= 2_592_000
    await store.put(SITE, replace(COPY, fetched_at=1001.0), 0.01)
    assert 0 < await store_client.pttl(KEY) <= 1000


async def test_a_write_releases_the_lease_of_its_token_and_no_other(store: RedisSnapshots, store_client: Redis) -> None:
    lease = f"{KEY}:lease"
    for held, left in (("ours", 0), ("another's", 1)):
        await store_client.set(lease, held, px=60_000)
        put = await store.put(SITE, replace(COPY, fetched_at=2000.0 + left), 60.0, "ours")
        assert put.written
        assert await store_client.exists(lease) == left
    await store_client.set(lease, "", px=60_000)
    await store.put(SITE, replace(COPY, fetched_at=3000.0), 60.0)
    assert await store_client.exists(lease) == 1
    await store_client.delete(lease)
    await store_client.rpush(lease, "ours")
    assert (await store.put(SITE, replace(COPY, fetched_at=4000.0), 60.0, "ours")).written
    assert await store_client.exists(lease) == 1


async def test_a_put_that_changes_nothing_releases_no_lease(store: RedisSnapshots, store_client: Redis) -> None:
    await store.put(SITE, COPY, 60.0)
    await store_client.set(f"{KEY}:lease", "ours", px=60_000)
    put = await store.put(SITE, COPY, 60.0, "ours")
    assert not put.written
    assert await store_client.exists(f"{KEY}:lease") == 1


async def test_a_lease_is_taken_with_the_value_of_that_moment(store: RedisSnapshots, store_client: Redis) -> None:
    assert (await store.take(SITE, "ours", 60.0)).found is None
    await store.put(SITE, COPY, 60.0)
    since, found = await store.take(SITE, "another's", 60.0)
    assert (since, found) == (None, COPY)
    since, found = await store.take(SITE, "another's", 60.0, by_force=True)
    assert since is not None
    assert found is None
    for value in (b"x" * (ENCODED_LIMIT + 9), b"", b"P\x01nan"):
        await store_client.set(KEY, value)
        assert (await store.take(SITE, "a third one's", 60.0)).found is None
    await store_client.delete(KEY)
    await store_client.rpush(KEY, "not ours")
    assert await store.take(SITE, "a third one's", 60.0) == (None, None)


@pytest.mark.parametrize(
    ("origin", "key"),
    [
        (Origin("http", "a.example", 80), "robots:{http://a.example:80}"),
        (Origin("https", "a.example", 8443), "robots:{https://a.example:8443}"),
        (Origin("https", "2001:db8::1", 443), "robots:{https://[2001:db8::1]:443}"),
    ],
)
async def test_the_key_names_the_origin_with_its_port(
    store: RedisSnapshots, store_client: Redis, origin: Origin, key: str
) -> None:
    await store.put(origin, COPY, 60)
    assert await store_client.keys() == [key.encode()]


async def test_an_incompressible_file_of_the_limit_is_kept(store: RedisSnapshots) -> None:
    whole = Snapshot(Successful(200, os.urandom(BODY_LIMIT), truncated=True), 1.0)
    await store.put(SITE, whole, 60)
    assert await store.get(SITE) == whole


async def test_a_purge_leaves_a_mark_until_the_next_put(store: RedisSnapshots, store_client: Redis) -> None:
    await store.put(SITE, COPY, 60)
    await store.purge(SITE, 2_592_000.0, 1234.5)
    assert await store.get(SITE) == Purged(1234.5)
    assert 2_591_900 < await store_client.ttl(KEY) <= 2_592_000
    newer = replace(COPY, fetched_at=1235.0)
    await store.put(SITE, newer, 60)
    assert await store.get(SITE) == newer


@pytest.mark.parametrize("at", [b"", b"soon", b"nan", b"inf", b"1" * 10**6, b"\xff", b"0x10"])
async def test_a_purge_mark_without_an_instant_is_a_miss(store: RedisSnapshots, store_client: Redis, at: bytes) -> None:
    await store_client.set(KEY, b"P\x01" + at)
    found = await store.get(SITE)
    assert found is None or found == Purged(float("1" * 32))


@pytest.mark.parametrize("value", [b"", b"garbage", encode(COPY)[:-1], encode(COPY) + b"x", b"R\x01" + bytes(10**7)])
async def test_a_foreign_value_is_a_miss_and_overwritten(
    store: RedisSnapshots, store_client: Redis, value: bytes
) -> None:
    await store_client.set(KEY, value)
    assert await store.get(SITE) is None
    await store.put(SITE, COPY, 60)
    assert await store.get(SITE) == COPY


async def test_no_more_of_a_value_is_read_than_the_limit(store: RedisSnapshots, store_client: Redis) -> None:
    await store_client.set(KEY, encode(COPY) + bytes(10**7))
    before = (await store_client.info("stats"))["total_net_output_bytes"]
    assert await store.get(SITE) is None
    assert (await store_client.info("stats"))["total_net_output_bytes"] - before < 2 * ENCODED_LIMIT


async def test_a_key_of_another_type_is_a_miss_and_overwritten(store: RedisSnapshots, store_client: Redis) -> None:
    await store_client.rpush(KEY, "a", "b")
    assert await store.get(SITE) is None
    assert not store.redis.degraded
    await store.put(SITE, COPY, 60)
    assert await store.get(SITE) == COPY


async def test_a_store_that_does_not_answer_is_retried_after_the_cooldown(
    short: RedisSnapshots, store_client: Redis, monotonic: Clock
) -> None:
    with stopped(await process_of(store_client)):
        with pytest.raises(StoreDown, match="did not answer") as caught:
            await short.get(SITE)
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert short.redis.degraded
    # It answers again, but is not called until the cooldown is over.
    with pytest.raises(StoreDown, match="is not called"):
        await short.get(SITE)
    monotonic.now += COOLDOWN
    await short.redis.ping()
    assert not short.redis.degraded
    assert await short.get(SITE) is None


async def test_after_the_cooldown_one_call_is_tried(
    short: RedisSnapshots, store_client: Redis, monotonic: Clock
) -> None:
    with stopped(await process_of(store_client)):
        with pytest.raises(StoreDown):
            await short.redis.ping()
        monotonic.now += COOLDOWN
        calls = [asyncio.create_task(short.put(SITE, COPY, 60)) for _ in range(5)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [("is not called" in str(error)) for error in errors] == [False, True, True, True, True]


async def test_a_flood_of_calls_is_no_failure_of_the_store(store: RedisSnapshots) -> None:
    origins = [Origin("https", f"host{number}.example", 443) for number in range(20 * IN_FLIGHT)]
    await asyncio.gather(*(store.put(origin, COPY, 60) for origin in origins))
    assert await asyncio.gather(*(store.get(origin) for origin in origins)) == [COPY] * len(origins)
    assert not store.redis.degraded


async def test_a_store_that_refuses_writes_is_still_read(store: RedisSnapshots, store_client: Redis) -> None:
    await store.put(SITE, COPY, 60)
    await store_client.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreDown, match="refused"):
            await store.put(SITE, Snapshot(Unavailable(404), 2000.0), 60)
        assert await store.get(SITE) == COPY
        assert store.redis.degraded
        with pytest.raises(StoreDown, match="refused"):
            await store.redis.ping()
    finally:
        await store_client.config_set("maxmemory", "0")
    await store.redis.ping()
    assert not store.redis.degraded


async def test_a_missing_store_is_down(monotonic: Clock, tmp_path: Path) -> None:
    client = connect(f"unix://{tmp_path}/none")
    store = RedisSnapshots(GuardedClient(client, monotonic=monotonic))
    for call in (store.get(SITE), store.put(SITE, COPY, 60), store.redis.ping()):
        monotonic.now += COOLDOWN
        with pytest.raises(StoreDown):
            await call
    await client.aclose()


@pytest.fixture
async def far(between: Proxy, monotonic: Clock) -> AsyncIterator[RedisSnapshots]:
    """A store behind the proxy `between`, with the timeout of production."""
    client = connect(between.url)
    store = RedisSnapshots(GuardedClient(client, monotonic=monotonic))
    yield store
    await store.redis.aclose()
    await client.aclose()


async def tried(store: RedisSnapshots, monotonic: Clock) -> bool:
    """Whether the store can be used after the cooldown."""
    monotonic.now += COOLDOWN
    try:
        await store.redis.ping()
    except StoreDown:
        return False
    return True


async def test_a_store_slow_to_connect_becomes_available(between: Proxy, far: RedisSnapshots, monotonic: Clock) -> None:
    between.latency = 0.3
    with pytest.raises(StoreDown, match="did not answer"):
        await far.get(SITE)
    assert far.redis.degraded
    assert await until(lambda: tried(far, monotonic), bool)
    assert await far.get(SITE) is None
    assert not far.redis.degraded


async def test_broken_connections_are_replaced(between: Proxy, far: RedisSnapshots, monotonic: Clock) -> None:
    assert await until(lambda: tried(far, monotonic), bool)
    between.held.clear()
    call = asyncio.create_task(far.get(SITE))
    between.cut()
    with pytest.raises(StoreDown):
        await call
    between.held.set()
    assert await until(lambda: tried(far, monotonic), bool)
    assert await far.get(SITE) is None


async def test_a_late_answer_is_not_taken_for_another_call(
    between: Proxy, far: RedisSnapshots, store_client: Redis, monotonic: Clock
) -> None:
    other = Origin("https", "other.example", 443)
    assert await until(lambda: tried(far, monotonic), bool)
    await store_client.set(KEY, encode(COPY))
    between.held.clear()
    with pytest.raises(StoreDown, match="did not answer"):
        await far.get(SITE)
    between.held.set()
    assert await until(lambda: tried(far, monotonic), bool)
    for _ in range(5):
        assert await far.get(other) is None


async def test_late_calls_are_bounded_and_end_with_the_store(
    between: Proxy, store_client: Redis, monotonic: Clock
) -> None:
    client = connect(between.url)
    store = RedisSnapshots(GuardedClient(client, monotonic=monotonic, timeout=0.01))
    between.held.clear()
    before = asyncio.all_tasks()
    for _ in range(2):
        monotonic.now += COOLDOWN
        await asyncio.gather(*(store.get(SITE) for _ in range(3 * IN_FLIGHT)), return_exceptions=True)
        assert between.connections <= 2 * IN_FLIGHT
    await store.redis.aclose()
    await client.aclose()
    between.held.set()
    between.cut()
    await until_so(lambda: asyncio.all_tasks() <= before)


NONSENSE = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"-ERR no\r\n" * 9,
    b"-MOVED\r\n" * 9,
    b"+OK\r\n" * 9,
    b":x\r\n",
    b":" + b"9" * 5000 + b"\r\n",
    b"$x\r\n",
    b"$-7\r\n" * 9,
    b"$999999999999\r\n",
    b"*1\r\n" * 5000,
    b"*-9\r\n" * 9,
    b"%1\r\n*0\r\n+x\r\n",
    b">2\r\n+message\r\n+x\r\n" * 9,
    b"\x00" * 9,
    b"\xff\r\n" * 9,
    b"\r\n" * 9,
]


@pytest.mark.parametrize("nonsense", NONSENSE)
async def test_a_server_that_sends_garbage_counts_as_down_until_it_recovers(
    between: Proxy, far: RedisSnapshots, monotonic: Clock, nonsense: bytes
) -> None:
    between.nonsense = nonsense
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: far.get(SITE),
        lambda: far.put(SITE, COPY, 60),
        lambda: far.take(SITE, "token", 60),
        lambda: far.release(SITE, "token"),
        lambda: far.publish(Event.CHANGED, SITE),
    ]
    for call in calls:
        monotonic.now += COOLDOWN
        with suppress(StoreDown):
            assert await call() in (None, True, False)
    between.nonsense = None
    between.cut()
    assert await until(lambda: tried(far, monotonic), bool)
    await far.put(SITE, COPY, 60)
    assert await far.get(SITE) == COPY
