"""The service while its store fails: right answers from memory and fetches, and no unfounded allow."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis

from app.cache.codec import encode
from app.cache.freshness import Snapshot
from app.store.embedded import serve as serve_valkey
from app.store.guarded_client import STORE_TIMEOUT
from robots_core.robots.access import Successful
from tests.api.service import START, Service, running
from tests.faults.proxy import Proxy, proxy
from tests.faults.until import until
from tests.origins import LoopbackOrigin, serve, text
from tests.valkey import process_of, stopped

CLOSED = text(200, "User-agent: *\nDisallow: /private/\n")
OPEN = Snapshot(Successful(200, b"User-agent: *\nAllow: /\n"), START)
ENOUGH = 30.0
"""Seconds after which an answer fails, even on a busy machine: a tenth of the sum of all deadlines."""


@pytest.fixture
async def between(store_url: str, store_client: Redis, tmp_path: Path) -> AsyncIterator[Proxy]:
    async with proxy(store_url, tmp_path) as one:
        yield one


@asynccontextmanager
async def down(between: Proxy, client: Redis) -> AsyncIterator[None]:
    between.refusing = True
    between.cut()
    yield
    between.refusing = False


@asynccontextmanager
async def silent(between: Proxy, client: Redis) -> AsyncIterator[None]:
    between.held.clear()
    yield
    between.held.set()


@asynccontextmanager
async def talking_nonsense(between: Proxy, client: Redis) -> AsyncIterator[None]:
    between.nonsense = b"+OK\r\n:x\r\n"
    between.cut()
    yield
    between.nonsense = None
    between.cut()


@asynccontextmanager
async def paused(between: Proxy, client: Redis) -> AsyncIterator[None]:
    # Pause writes and messages only: otherwise the server would not process CLIENT UNPAUSE.
    await client.client_pause(600_000, all=False)
    yield
    await client.client_unpause()


@asynccontextmanager
async def hanging(between: Proxy, client: Redis) -> AsyncIterator[None]:
    with stopped(await process_of(client)):
        yield


@asynccontextmanager
async def full(between: Proxy, client: Redis) -> AsyncIterator[None]:
    await client.config_set("maxmemory", "1")
    try:
        yield
    finally:
        await client.config_set("maxmemory", "0")


impatient = partial(running, store_timeout=STORE_TIMEOUT)
"""A service with the production timeout for a hanging store."""

Fault = Callable[[Proxy, Redis], AbstractAsyncContextManager[None]]
FAULTS = (down, silent, talking_nonsense, paused, hanging, full)


async def verdict(service: Service, url: str) -> str:
    async with asyncio.timeout(ENOUGH):
        answer = await service.allowed(url)
    assert answer["allowed"] is (answer["verdict"] == "allow")
    return str(answer["verdict"])


def readiness(service: Service) -> Callable[[], Awaitable[str]]:
    async def store() -> str:
        async with asyncio.timeout(ENOUGH):
            response = await service.client.get("/readyz")
        assert (response.status_code, response.json()["status"]) == (200, "ready")
        return str(response.json()["store"])

    return store


def private(origin: LoopbackOrigin) -> str:
    return f"{origin.url}/private/page"


@pytest.mark.parametrize("fault", FAULTS)
async def test_failing_store_changes_no_answer_and_is_used_again(
    fault: Fault, between: Proxy, store_client: Redis
) -> None:
    async with (
        serve(CLOSED) as known,
        serve(CLOSED) as new,
        serve(text(503)) as failing,
        impatient(between.url) as service,
    ):
        assert await verdict(service, private(known)) == "disallow"
        await until(readiness(service), lambda store: store == "ok")
        async with fault(between, store_client):
            await until(readiness(service), lambda store: store == "degraded")
            for seconds in (0, 31, 31):
                service.now += seconds
                assert await verdict(service, private(known)) == "disallow"
                assert await verdict(service, private(new)) == "disallow"
                assert await verdict(service, private(failing)) == "defer"
            assert [len(origin.requests) for origin in (known, new, failing)] == [1, 1, 1]
            assert await readiness(service)() == "degraded"
        await until(readiness(service), lambda store: store == "ok")
        service.now += 31
        assert await verdict(service, private(new)) == "disallow"
        # Results from the outage now reach the fleet.
        await until(partial(store_client.exists, f"robots:{{{new.url}}}"), bool)
        assert len(new.requests) == 1


@pytest.mark.parametrize("fault", [down, silent, talking_nonsense])
async def test_no_caller_waits_for_a_store_that_is_down_at_the_start(
    fault: Fault, between: Proxy, store_client: Redis
) -> None:
    async with serve(CLOSED) as origin, fault(between, store_client), impatient(between.url) as service:
        assert await verdict(service, private(origin)) == "disallow"
        assert await readiness(service)() == "degraded"
    between.refusing, between.nonsense = True, None
    between.held.set()
    between.cut()
    async with serve(CLOSED) as origin, impatient(between.url) as service:
        assert await verdict(service, private(origin)) == "disallow"
        between.refusing = False
        await until(readiness(service), lambda store: store == "ok")


async def test_store_with_slow_connections_comes_up(between: Proxy) -> None:
    between.latency = 0.3
    async with serve(CLOSED) as origin, impatient(between.url) as service:
        assert await verdict(service, private(origin)) == "disallow"
        await until(readiness(service), lambda store: store == "ok")


async def test_paused_store_changes_no_answer(between: Proxy, store_client: Redis) -> None:
    async with serve(CLOSED) as origin, impatient(between.url) as service:
        await store_client.client_pause(1000)
        assert await verdict(service, private(origin)) == "disallow"
        await until(readiness(service), lambda store: store == "ok")
        service.now += 31
        assert await verdict(service, private(origin)) == "disallow"
        assert len(origin.requests) == 1


async def test_silent_store_leaves_no_caller_unanswered(between: Proxy, store_client: Redis) -> None:
    async with serve(CLOSED) as origin, impatient(between.url) as service, silent(between, store_client):
        verdicts = await asyncio.gather(*(verdict(service, private(origin)) for _ in range(200)))
        assert set(verdicts) == {"disallow"}
        assert len(origin.requests) == 1


async def test_repeatedly_cut_connections_change_no_answer(between: Proxy) -> None:
    async with serve(CLOSED) as origin, running(between.url) as service:
        for _ in range(50):
            asking = asyncio.create_task(verdict(service, private(origin)))
            await asyncio.sleep(0)
            between.cut()
            service.now += 31
            assert await asking == "disallow"
        await until(readiness(service), lambda store: store == "ok")


Foreign = Callable[[Redis, str], Awaitable[object]]
FOREIGN: list[Foreign] = [
    lambda client, key: client.set(key, b""),
    lambda client, key: client.set(key, b"\x00\xff" * 1000),
    lambda client, key: client.set(key, b"User-agent: *\nAllow: /\n"),
    lambda client, key: client.set(key, encode(OPEN)[:-2]),
    lambda client, key: client.set(key, b"R\x00" + encode(OPEN)[2:]),  # an older version
    lambda client, key: client.set(key, b"R\x7f" + encode(OPEN)[2:]),  # a newer one
    lambda client, key: client.set(key, b"P\x01not an instant"),
    lambda client, key: client.set(key, bytes(20_000_000)),
    lambda client, key: client.rpush(key, encode(OPEN)),
    lambda client, key: client.hset(key, "value", encode(OPEN).hex()),
    lambda client, key: client.zadd(key, {"value": 1.0}),
]


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("known", [False, True])
async def test_foreign_value_under_our_key_is_replaced(
    foreign: Foreign, store_url: str, store_client: Redis, *, known: bool
) -> None:
    async with serve(CLOSED) as origin, running(store_url) as service, running(store_url) as other:
        if known:
            assert await verdict(service, private(origin)) == "disallow"
            service.now += 31
        key = f"robots:{{{origin.url}}}"
        await store_client.delete(key)
        await foreign(store_client, key)
        assert await verdict(service, private(origin)) == "disallow"
        assert await readiness(service)() == "ok"
        assert await verdict(other, private(origin)) == "disallow"
        assert len(origin.requests) == 1


async def test_emptied_store_is_filled_from_memory(between: Proxy, store_client: Redis) -> None:
    async with serve(CLOSED) as origin, running(between.url) as service:
        assert await verdict(service, private(origin)) == "disallow"
        with serve_valkey(None) as empty:
            between.target = empty
            between.cut()
            client = Redis.from_url(empty)
            service.now += 31

            async def filled() -> int:
                assert await verdict(service, private(origin)) == "disallow"
                service.now += 31
                return int(await client.dbsize())

            await until(filled, bool)
            await client.aclose()
            async with running(between.url) as other:
                other.now = service.now
                assert await verdict(other, private(origin)) == "disallow"
            assert len(origin.requests) == 1


# Two processes with stopped clocks, so that one changes only by events of the other.

CHANGED = text(200, "User-agent: *\nDisallow: /\n")


async def line(service: Service, origin: LoopbackOrigin) -> str | None:
    rule = (await service.allowed(f"{origin.url}/private/page"))["rule"]
    return rule and str(rule["pattern"])


async def test_refresh_reaches_other_processes_at_once(store_url: str, store_client: Redis) -> None:
    async with serve(CLOSED, CHANGED) as origin, running(store_url) as one, running(store_url) as other:
        await until(lambda: subscribers(store_client), lambda count: count == 2)
        assert await line(one, origin) == await line(other, origin) == "/private/"
        one.now = other.now = one.now + 20
        await one.allowed(private(origin), max_age=5)
        await until(lambda: line(other, origin), lambda pattern: pattern == "/")
        assert len(origin.requests) == 2


async def test_events_missed_by_a_process_are_caught_up_from_the_store(
    between: Proxy, store_url: str, store_client: Redis
) -> None:
    async with serve(CLOSED, CHANGED) as origin, running(store_url) as one, running(between.url) as other:
        await until(lambda: subscribers(store_client), lambda count: count == 2)
        assert await line(one, origin) == await line(other, origin) == "/private/"
        between.refusing = True
        between.cut()
        await until(lambda: subscribers(store_client), lambda count: count == 1)
        one.now = other.now = one.now + 20
        await one.allowed(private(origin), max_age=5)
        assert await line(other, origin) == "/private/"
        between.refusing = False
        await until(lambda: line(other, origin), lambda pattern: pattern == "/")
        assert len(origin.requests) == 2


async def subscribers(client: Redis) -> int:
    [(_, count)] = await client.pubsub_numsub("robots:news")
    return int(count)
