"""A shard that hangs does not affect the others: their keys are read, written and paced as before."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import pytest

from app.cache.redis_snapshots import RedisSnapshots, snapshot_key
from app.cache.visits import RedisVisits, Tally
from app.pacing.local_pacer import LocalPacer
from app.pacing.pacer import Pacer
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, SlotRequest
from app.store.cluster import ANY
from app.store.connect import connect, note_failed_connection, subscriber
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.store_clock import StoreClocks
from robots_core.origin import Origin
from tests.engines import Fleet, Node, cluster_url, clustered, eventually
from tests.store.sites import copy, owner

ROUNDS = 5
SITES = [Origin("https", f"{i}.example.com", 443) for i in range(24)]
MOST_CONNECTIONS = 4
"""Those of a process to one server: for its keys, for commands without one, for messages, and for the map."""

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


async def test_a_process_has_few_connections_to_each_server(fleet: Fleet) -> None:
    before = [open_to(server) for server in fleet.masters]
    client = connect(cluster_url(fleet))
    redis = GuardedClient(client, monotonic=time.monotonic, timeout=SLOWEST)
    store, visits = RedisSnapshots(redis), RedisVisits(redis, clock=time.time)
    tallies = {site: Tally(1.0, time.time(), time.time()) for site in SITES}
    async with aclosing(await subscriber(client)) as listener:
        await listener.subscribe("test:news")
        most = [0] * len(fleet.masters)
        for _ in range(ROUNDS):
            asking: list[asyncio.Task[Any]] = [asyncio.create_task(store.get(site)) for site in SITES * 20]
            asking += [asyncio.create_task(visits.add(tallies)), asyncio.create_task(redis.ping())]
            while not all(one.done() for one in asking):
                most = [max(old, open_to(server)) for old, server in zip(most, fleet.masters, strict=True)]
                await asyncio.sleep(0)
            await asyncio.gather(*asking)
            note_failed_connection(client)  # so that the map is read again
    added = [now - old for now, old in zip(most, before, strict=True)]
    assert min(added) > 0
    assert max(added) <= MOST_CONNECTIONS, added
    await redis.aclose()
    await client.aclose()


def open_to(server: Node) -> int:
    """Connections of clients that the server has."""
    return int(server.ask("INFO", "clients")["connected_clients"])
