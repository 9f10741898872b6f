"""A shard that hangs does not affect the others: their keys are read, written and paced as before."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis

from app.cache.redis_snapshots import RedisSnapshots, snapshot_key
from app.cache.redis_visits import RedisVisits
from app.cache.visits import Tally
from app.pacing.local_pacer import LocalPacer
from app.pacing.pacer import Pacer
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, SlotRequest
from app.redis.connect import ANY, FEWEST_CONNECTIONS, _MasterPool, connect, subscriber
from app.redis.guarded_client import GuardedClient, StoreDown
from app.redis.store_clock import StoreClocks
from app.redis.timed_calls import Limits
from robots_core.origin import Origin
from tests.engines import Fleet, Node, cluster_url, clustered, eventually, sentinel_url, watched
from tests.faults.until import until_so
from tests.redis.redirected import on_own_connection
from tests.redis.sites import copy, owner

ROUNDS = 5
SITES = [Origin("https", f"{i}.example.com", 443) for i in range(24)]
SLOWEST = 2.0
"""The timeout of a call in these tests: a healthy server answers within it even on a busy machine."""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with clustered(0, cluster_require_full_coverage="no") as three:
        yield three


@contextmanager
def hung(fleet: Fleet, node: Node) -> Iterator[None]:
    """Suspend the node while the block lasts, and restore the cluster afterwards."""
    node.stop()
    try:
        yield
    finally:
        node.process.resume()
        for one in fleet.masters:
            eventually("all slots are served", lambda one=one: one.ask("CLUSTER INFO")["cluster_slots_ok"] == "16384")  # type: ignore[misc]


@pytest.fixture
async def redis(fleet: Fleet) -> AsyncIterator[GuardedClient]:
    client = connect(cluster_url(fleet))
    redis = GuardedClient(client, monotonic=time.monotonic, timeout=SLOWEST)
    yield redis
    await redis.aclose()
    await client.aclose()


async def test_every_master_is_a_shard_and_is_probed(redis: GuardedClient, fleet: Fleet) -> None:
    assert redis.shard_of(snapshot_key(SITES[0])) == ANY
    await redis.ping()
    await redis.ping()
    assert len({redis.shard_of(snapshot_key(site)) for site in SITES}) == 3
    assert [node.ask("DBSIZE") > 0 for node in fleet.masters] == [True] * 3


async def test_a_hanging_shard_does_not_affect_other_snapshots(redis: GuardedClient, fleet: Fleet) -> None:
    store = RedisSnapshots(redis)
    await redis.ping()
    stopped = owner(fleet, SITES[0])
    healthy = [site for site in SITES if owner(fleet, site) is not stopped]
    with hung(fleet, stopped):
        with pytest.raises(StoreDown):
            await store.get(SITES[0])
        for _ in range(ROUNDS):
            calling = asyncio.gather(*(store.get(site) for site in SITES), return_exceptions=True)
            await asyncio.gather(*(store.put(site, copy(site), 60) for site in healthy))
            assert await asyncio.gather(*(store.get(site) for site in healthy)) == [copy(site) for site in healthy]
            await calling
        assert redis.degraded
        assert redis.trouble is not None
        with pytest.raises(StoreDown):
            await redis.ping()


async def test_a_hanging_shard_does_not_affect_other_permits(redis: GuardedClient, fleet: Fleet) -> None:
    pace = RedisPacer(redis)
    pacer = Pacer(pace, LocalPacer(1), StoreClocks(time.time, time.monotonic))
    requests = [
        SlotRequest(PaceKey.of(site.host, "ExampleBot"), (PaceWindow(math.inf, 0.1),), "w", max_wait=60)
        for site in SITES
    ]
    await asyncio.gather(*map(pacer.reserve, requests))
    assert {pace.shard_of(request.key) == 0 for request in requests} == {False, True}
    with hung(fleet, fleet.masters[0]):  # it has the slots from 0 on
        for _ in range(ROUNDS):
            turns = await asyncio.gather(*map(pacer.reserve, requests))
            for request, turn in zip(requests, turns, strict=True):
                assert turn.degraded is (pace.shard_of(request.key) == 0), request
                assert turn.degraded or turn.result.wait < 2, (request, turn)
    await pacer.aclose()


@pytest.mark.parametrize("connections", [FEWEST_CONNECTIONS, 12])
async def test_a_process_keeps_within_its_connections_to_each_server(fleet: Fleet, connections: int) -> None:
    before = [open_to(server) for server in fleet.masters]
    client = connect(cluster_url(fleet), connections)
    redis = GuardedClient(client, monotonic=time.monotonic, timeout=SLOWEST, connections=connections)
    store, visits = RedisSnapshots(redis), RedisVisits(redis, clock=time.time)
    tallies = {site: Tally(1.0, time.time(), time.time()) for site in SITES}
    await redis.ping()  # so that the shards are known
    async with aclosing(subscriber(client)) as listener:
        await listener.subscribe("test:news")
        most = [0] * len(fleet.masters)
        for _ in range(ROUNDS):
            keys = [snapshot_key(site) for site in SITES]
            asking: list[asyncio.Task[Any]] = [asyncio.create_task(store.get(site)) for site in SITES * 20]
            asking += [
                asyncio.create_task(on_own_connection(redis, key, partial(client.getrange, key, 0, 1)))
                for key in keys * 20
            ]
            writing = asyncio.create_task(visits.add(tallies))
            while not all(one.done() for one in asking):
                most = [max(old, open_to(server)) for old, server in zip(most, fleet.masters, strict=True)]
                await asyncio.sleep(0)
            await asyncio.gather(*asking, writing)
            client.search_again()  # type: ignore[union-attr]
    added = [now - old for now, old in zip(most, before, strict=True)]
    assert max(added) <= connections, added
    assert min(added) >= Limits.within(connections, SLOWEST).concurrent, added
    await redis.aclose()
    await client.aclose()


def open_to(server: Node) -> int:
    """Connections of clients that the server has."""
    return int(server.ask("INFO", "clients")["connected_clients"])


async def test_idle_connections_to_a_hung_master_fail_no_calls_after_failover() -> None:
    with watched(1, 1) as fleet:
        client = connect(sentinel_url(fleet))
        assert isinstance(client, Redis)
        pool = client.connection_pool
        assert isinstance(pool, _MasterPool)
        now = 0.0
        redis = GuardedClient(client, monotonic=lambda: now, timeout=0.5)
        # As many connections as run at once, all idle when the master hangs.
        await asyncio.gather(*(on_own_connection(redis, "a", lambda: client.set("a", b"1")) for _ in range(20)))
        fleet.copied()
        fleet.masters[0].stop()
        [replica] = fleet.replicas
        await until_so(lambda: replica.ask("ROLE")[0] == b"master")
        failed = 0
        while True:
            now += 1.0
            try:
                await on_own_connection(redis, "a", lambda: client.set("a", b"2"))
                break
            except StoreDown:
                failed += 1
                await asyncio.sleep(0.2)
                # The sentinels are asked in the background, once a connection that hangs is given up.
                await until_so(lambda: pool._searches.under_way(None) is None)
        assert failed <= 5
        await redis.aclose()
        await client.aclose()
