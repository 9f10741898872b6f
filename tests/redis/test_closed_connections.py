"""A connection that the server has closed costs no call, and a closed transport is never an unexpected error."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import pytest
import uvloop
from redis.asyncio.connection import AbstractConnection

from app.cache.redis_snapshots import RedisSnapshots
from app.redis.connect import Client, connect
from app.redis.guarded_client import GuardedClient, StoreDown
from robots_core.origin import Origin
from tests.engines import QUOTED, Fleet, alone, cluster_url, clustered
from tests.faults.until import until_so
from tests.redis.redirected import on_own_connection
from tests.redis.sites import copy

SITES = [Origin("https", f"{i}.example.com", 443) for i in range(24)]
PATIENT = 20.0
LOOPS = [pytest.param(uvloop.new_event_loop, id="uvloop"), pytest.param(asyncio.new_event_loop, id="asyncio")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, Fleet]]:
    with clustered(0) as fleet:
        yield cluster_url(fleet), fleet


@pytest.fixture(scope="module")
def single() -> Iterator[tuple[str, Fleet]]:
    with alone() as fleet:
        yield f"redis://default:{QUOTED}@{fleet.hosts}", fleet


@pytest.fixture(params=["cluster", "single"])
def store(request: pytest.FixtureRequest) -> tuple[str, Fleet]:
    found: tuple[str, Fleet] = request.getfixturevalue(request.param)
    return found


def kill_connections(fleet: Fleet) -> int:
    """Let every server close the connections of its clients; return how many there were."""
    return sum(int(one.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")) for one in fleet.masters)


def open_connections(client: Client) -> list[AbstractConnection]:
    """Those of which the client does not know yet that they are closed."""
    nodes = getattr(client, "nodes_manager", None)
    if nodes is None:
        return [*client.connection_pool._available_connections]  # type: ignore[union-attr]
    return [connection for node in nodes.nodes_cache.values() for connection in node._free]


def on(loop: Callable[[], asyncio.AbstractEventLoop], main: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await main()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("loop", LOOPS)
def test_idle_connections_that_were_closed_fail_no_call(
    store: tuple[str, Fleet], loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    url, fleet = store

    async def main() -> None:
        client = connect(url)
        redis = GuardedClient(client, monotonic=time.monotonic, timeout=PATIENT)
        snapshots = RedisSnapshots(redis)
        await asyncio.gather(*(snapshots.put(site, copy(site), 600) for site in SITES))
        for _ in range(3):
            assert kill_connections(fleet) >= len(fleet.masters)
            await until_so(lambda: not any(lane.is_connected for lane in redis._lanes.values()))
            assert await asyncio.gather(*(snapshots.get(site) for site in SITES)) == [copy(site) for site in SITES]
        await redis.aclose()
        await client.aclose()

    on(loop, main)


@pytest.mark.parametrize("loop", LOOPS)
def test_connections_that_are_closed_in_use_only_fail_as_calls(
    store: tuple[str, Fleet], loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    url, fleet = store
    answered = 0

    async def main() -> None:
        client = connect(url)
        now = 0.0
        redis = GuardedClient(client, monotonic=lambda: now, timeout=PATIENT)
        snapshots, ended = RedisSnapshots(redis), False

        async def ask(site: Origin) -> None:
            nonlocal answered, now
            while not ended:
                with suppress(StoreDown):
                    await snapshots.put(site, copy(site), 600)
                    assert await snapshots.get(site) == copy(site)
                    answered += 1
                now += 1.0
                await asyncio.sleep(0)

        asking = [asyncio.create_task(ask(site)) for site in SITES]
        for _ in range(20):
            before = answered
            await until_so(lambda before=before: answered > before)  # type: ignore[misc]
            await asyncio.to_thread(kill_connections, fleet)
        ended = True
        await asyncio.gather(*asking)
        await redis.aclose()
        await client.aclose()

    on(loop, main)
    assert answered > 0


def test_a_command_is_sent_once_more_if_the_transport_closes_just_before(single: tuple[str, Fleet]) -> None:
    url, fleet = single

    async def main() -> None:
        client = connect(url)
        await client.set("a", b"0")
        [connection] = open_connections(client)
        assert connection._writer is not None
        connection._writer.transport.abort()
        await until_so(lambda: connection._reader is not None and connection._reader.at_eof())
        await connection.send_packed_command(connection.pack_command("INCR", "a"))  # past the pool, which would look
        assert await connection.read_response() == 1
        await client.aclose()

    on(uvloop.new_event_loop, main)
    assert fleet.masters[0].ask("GET", "a") == b"1"


async def test_any_other_runtime_error_stays_one(single: tuple[str, Fleet]) -> None:
    client = connect(single[0])
    redis = GuardedClient(client, monotonic=time.monotonic, timeout=PATIENT)

    async def broken() -> None:
        raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match="a fault of ours"):
        await on_own_connection(redis, "a", broken)
    await redis.aclose()
    await client.aclose()
