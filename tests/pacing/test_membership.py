"""Processes agree on their ranks through the store, and keep them while it is down."""

import asyncio

import pytest
from redis.asyncio import Redis

from app.pacing.membership import MEMBERS_KEY, FleetMembership, Rank
from app.store.guarded_client import GuardedClient
from tests.valkey import process_of, stopped


@pytest.fixture
def calls(store_client: Redis) -> GuardedClient:
    return GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)


async def test_every_process_has_its_own_rank(calls: GuardedClient) -> None:
    fleet = [FleetMembership(calls, name) for name in ("c", "a", "b")]
    for _ in range(2):
        await asyncio.gather(*(one.announce() for one in fleet))
    assert [one.rank for one in fleet] == [Rank(2, 3), Rank(0, 3), Rank(1, 3)]


async def test_a_gone_process_and_foreign_values_are_removed(calls: GuardedClient, store_client: Redis) -> None:
    await store_client.set(MEMBERS_KEY, "x" * 1000)
    one = FleetMembership(calls, "b")
    await one.announce()
    await store_client.zadd(MEMBERS_KEY, {"a": 1000.0})
    await one.announce()
    assert one.rank == Rank(0, 1)
    assert await store_client.zrange(MEMBERS_KEY, 0, -1) == [b"b"]


async def test_without_the_store_the_rank_stays(store_client: Redis) -> None:
    one = FleetMembership(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=0.3), "a")
    assert one.rank is None
    await one.announce()
    with stopped(await process_of(store_client)):
        await one.announce()
    assert one.rank == Rank(0, 1)
