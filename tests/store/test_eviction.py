"""A store whose eviction policy may evict what must not be lost is reported at the start."""

import time

import pytest
from redis.asyncio import Redis

from app.store.connect import connect
from app.store.embedded import serve
from app.store.eviction import EVICTION_EVERY, EvictionPolicy
from app.store.guarded_client import GuardedClient
from tests.api.service import counted, running
from tests.doubles import Clock
from tests.engines import PASSWORD, QUOTED, clustered, node
from tests.exposition import value


@pytest.mark.parametrize(
    ("policy", "maxmemory", "risk"),
    [
        ("allkeys-lru", "100mb", True),
        ("allkeys-random", "100mb", True),
        ("volatile-ttl", "100mb", True),
        ("volatile-lru", "100mb", False),
        ("volatile-lfu", "100mb", False),
        ("noeviction", "100mb", False),
        ("allkeys-lru", "0", False),
    ],
)
async def test_a_policy_that_may_evict_overrides_is_a_risk(policy: str, maxmemory: str, risk: bool) -> None:
    with serve(None) as url:
        client = connect(url)
        assert isinstance(client, Redis)
        await client.config_set("maxmemory", maxmemory)
        await client.config_set("maxmemory-policy", policy)
        async with running(url) as service:
            readiness = (await service.client.get("/readyz")).json()
            text = (await service.client.get("/metrics")).text
        assert readiness == {"status": "ready", "store": "ok", **({"eviction": policy} if risk else {})}
        assert value(text, "robots_store_may_evict") == int(risk)
        await client.aclose()


async def test_every_master_of_a_cluster_is_asked_for_its_policy() -> None:
    with clustered(replicas=0) as fleet:
        fleet.masters[1].ask("CONFIG", "SET", "maxmemory", "100mb")
        fleet.masters[1].ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        client = connect(f"redis+cluster://:{QUOTED}@{fleet.hosts}")
        redis = GuardedClient(client, monotonic=time.monotonic, timeout=20.0)
        await redis.ping()  # as the service does first, which finds the masters
        policy = EvictionPolicy(redis, time.monotonic)
        await policy.read()
        assert policy.risk == "allkeys-lfu"
        await redis.aclose()
        await client.aclose()


async def test_a_policy_that_is_changed_later_is_a_risk() -> None:
    clock = Clock()
    with serve(None) as url:
        client = connect(url)
        assert isinstance(client, Redis)
        policy = EvictionPolicy(GuardedClient(client, monotonic=clock, timeout=20.0), clock)
        await policy.read()
        found = [policy.risk]
        await client.config_set("maxmemory", "100mb")
        for value in ("allkeys-lru", "volatile-lru"):
            await client.config_set("maxmemory-policy", value)
            await policy.read()
            found.append(policy.risk)
            clock.now += EVICTION_EVERY
            await policy.read()
            found.append(policy.risk)
        assert found == [None, None, "allkeys-lru", "allkeys-lru", None]
        await client.aclose()


async def test_a_store_that_does_not_report_its_policy_is_no_risk() -> None:
    with node() as server:
        server.ask("ACL", "SETUSER", "shy", "on", f">{PASSWORD}", "~robots:*", "&robots:*", "+@all", "-info")
        async with running(f"redis://shy:{QUOTED}@127.0.0.1:{server.port}") as service:
            readiness = (await service.client.get("/readyz")).json()
            assert readiness == {"status": "ready", "store": "ok"}
            assert await counted(service, "robots_store_degraded") == 0
