"""A connection that the server has closed costs no call, and a closed transport is never an unexpected error."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import pytest
import uvloop

from app.cache.redis_snapshots import RedisSnapshots
from app.store.connect import connect
from app.store.guarded_client import GuardedClient, StoreDown
from robots_core.origin import Origin
from tests.engines import QUOTED, Fleet, alone, cluster_url, clustered
from tests.faults.until import until_so
from tests.store.sites import copy

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
            await until_so(lambda: not any(shared.is_connected for shared in redis._connections.values()))
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
