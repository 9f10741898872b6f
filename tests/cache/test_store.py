"""Snapshots in a real Valkey: short calls, a rest after a failure, and nothing believed that is not ours."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.cache.codec import ENCODED_LIMIT, encode
from app.cache.freshness import Snapshot
from app.cache.robots_cache import StoreDown
from app.cache.store import REST, TURNS, RedisStore, connect
from app.origin import Origin
from app.robots.access import BODY_LIMIT, Successful, Unavailable

SITE = Origin("https", "www.example.com", 443)
KEY = "robots:{https://www.example.com:443}"
COPY = Snapshot(Successful(200, b"User-agent: *\nDisallow: /a\n"), 1000.0, None)


class Monotonic:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def monotonic() -> Monotonic:
    return Monotonic()


@pytest.fixture
def store(store_client: Redis, monotonic: Monotonic) -> RedisStore:
    # The deadline is wide here, so that a busy machine fails no test that is not about it.
    return RedisStore(store_client, monotonic=monotonic, timeout=20.0)


@pytest.fixture
async def short(store_url: str, monotonic: Monotonic) -> AsyncIterator[RedisStore]:
    client = connect(store_url)
    yield RedisStore(client, monotonic=monotonic, timeout=0.3)
    await client.aclose()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def server_pid(client: Redis) -> int:
    return int((await client.info("server"))["process_id"])


async def test_what_is_put_is_got_until_its_time_is_over(store: RedisStore, store_client: Redis) -> None:
    assert await store.get(SITE) is None
    await store.put(SITE, COPY, 2_592_000.0)
    assert await store.get(SITE) == COPY
    assert 2_591_900 < await store_client.ttl(KEY) <= 2_592_000
    await store.put(SITE, COPY, 0.01)
    assert 0 < await store_client.pttl(KEY) <= 1000


@pytest.mark.parametrize(
    ("origin", "key"),
    [
        (Origin("http", "a.example", 80), "robots:{http://a.example:80}"),
        (Origin("https", "a.example", 8443), "robots:{https://a.example:8443}"),
        (Origin("https", "2001:db8::1", 443), "robots:{https://[2001:db8::1]:443}"),
    ],
)
async def test_the_key_names_the_origin_with_its_port(
    store: RedisStore, store_client: Redis, origin: Origin, key: str
) -> None:
    await store.put(origin, COPY, 60)
    assert await store_client.keys() == [key.encode()]


async def test_a_file_of_the_limit_that_does_not_compress_is_kept(store: RedisStore) -> None:
    whole = Snapshot(Successful(200, os.urandom(BODY_LIMIT), truncated=True), 1.0)
    await store.put(SITE, whole, 60)
    assert await store.get(SITE) == whole


@pytest.mark.parametrize("value", [b"", b"garbage", encode(COPY)[:-1], encode(COPY) + b"x", b"R\x01" + bytes(10**7)])
async def test_a_value_that_is_not_ours_is_a_miss_and_is_overwritten(
    store: RedisStore, store_client: Redis, value: bytes
) -> None:
    await store_client.set(KEY, value)
    assert await store.get(SITE) is None
    await store.put(SITE, COPY, 60)
    assert await store.get(SITE) == COPY


async def test_no_more_of_a_value_is_read_than_could_be_ours(store: RedisStore, store_client: Redis) -> None:
    await store_client.set(KEY, encode(COPY) + bytes(10**7))
    before = (await store_client.info("stats"))["total_net_output_bytes"]
    assert await store.get(SITE) is None
    assert (await store_client.info("stats"))["total_net_output_bytes"] - before < 2 * ENCODED_LIMIT


async def test_a_key_of_another_type_is_a_miss_and_is_overwritten(store: RedisStore, store_client: Redis) -> None:
    await store_client.rpush(KEY, "a", "b")
    assert await store.get(SITE) is None
    assert not store.degraded
    await store.put(SITE, COPY, 60)
    assert await store.get(SITE) == COPY


async def test_a_store_that_does_not_answer_is_down_then_left_alone_then_tried_again(
    short: RedisStore, store_client: Redis, monotonic: Monotonic
) -> None:
    with stopped(await server_pid(store_client)):
        with pytest.raises(StoreDown, match="did not answer") as caught:
            await short.get(SITE)
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert short.degraded
    # It answers again, and is left alone all the same, until its rest is over.
    with pytest.raises(StoreDown, match="left alone"):
        await short.get(SITE)
    monotonic.now += REST
    await short.ping()
    assert not short.degraded
    assert await short.get(SITE) is None


async def test_after_a_rest_one_call_goes_ahead(short: RedisStore, store_client: Redis, monotonic: Monotonic) -> None:
    with stopped(await server_pid(store_client)):
        with pytest.raises(StoreDown):
            await short.ping()
        monotonic.now += REST
        calls = [asyncio.create_task(short.put(SITE, COPY, 60)) for _ in range(5)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [("left alone" in str(error)) for error in errors] == [False, True, True, True, True]


async def test_calls_without_number_are_no_failure_of_the_store(store: RedisStore) -> None:
    origins = [Origin("https", f"host{number}.example", 443) for number in range(20 * TURNS)]
    await asyncio.gather(*(store.put(origin, COPY, 60) for origin in origins))
    assert await asyncio.gather(*(store.get(origin) for origin in origins)) == [COPY] * len(origins)
    assert not store.degraded


async def test_a_store_that_refuses_to_write_is_still_read(store: RedisStore, store_client: Redis) -> None:
    await store.put(SITE, COPY, 60)
    await store_client.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreDown, match="refused"):
            await store.put(SITE, Snapshot(Unavailable(404), 2.0), 60)
        assert store.degraded
        assert await store.get(SITE) == COPY
    finally:
        await store_client.config_set("maxmemory", "0")


async def test_a_store_that_is_not_there_is_down(monotonic: Monotonic, tmp_path: Path) -> None:
    client = connect(f"unix://{tmp_path}/none")
    store = RedisStore(client, monotonic=monotonic)
    for call in (store.get(SITE), store.put(SITE, COPY, 60), store.ping()):
        monotonic.now += REST
        with pytest.raises(StoreDown):
            await call
    await client.aclose()


@pytest.mark.parametrize("url", ["http://example.com", "localhost:6379", "valkey+unix:///tmp/s", ""])
def test_a_scheme_that_is_no_stores_is_refused_by_name(url: str) -> None:
    with pytest.raises(ValueError, match=r"REDIS_URL has the scheme .*; expected redis://host:port/db, rediss://"):
        connect(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "unix://",
        "redis://:secret@host:port/0",
        "redis://:se/cret@host:6379",
        "redis://:secret@host:99999",
        "redis://:secret@[::1",
        "redis://:secret@host?db=one",
        "redis://:secret@host?no_such_option=1",
        "rediss://:secret@host?ssl_cert_reqs=sometimes",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_and_no_password_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="REDIS_URL cannot be read; expected redis://") as caught:
        connect(url)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://host", "rediss://user:p%40ss@host:6380/2", "unix:///run/valkey.sock?db=1"])
def test_connecting_sends_nothing(url: str) -> None:
    assert connect(url).connection_pool.connection_kwargs["socket_connect_timeout"] == 2.0
