"""Processes agree on their ranks through the store, and keep them while it is down."""

import asyncio
import math
import random
from itertools import combinations
from typing import Any

import pytest
from redis.asyncio import Redis

from app.pacing.membership import AGREED_AFTER, ANNOUNCE_INTERVAL, KNOWN_KEY, MEMBERS_KEY, FleetMembership, Rank
from app.store.guarded_client import GuardedClient, StoreDown
from tests.valkey import process_of, stopped


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def calls(store_client: Redis) -> GuardedClient:
    return GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)


async def agreed(time: Time, *fleet: FleetMembership) -> None:
    """Announce these processes until they have agreed."""
    for wait in (0.0, 0.0, AGREED_AFTER):
        time.now += wait
        await asyncio.gather(*(one.announce() for one in fleet))


async def test_every_process_has_its_own_rank(calls: GuardedClient) -> None:
    time = Time()
    fleet = [FleetMembership(calls, name, monotonic=time) for name in ("c", "a", "b")]
    assert [one.ranks for one in fleet] == [None] * 3
    await agreed(time, *fleet)
    assert [one.ranks for one in fleet] == [(Rank(2, 3),), (Rank(0, 3),), (Rank(1, 3),)]


async def test_a_process_that_joins_has_no_rank_until_all_know_it(calls: GuardedClient) -> None:
    time = Time()
    first, second, third = (FleetMembership(calls, name, monotonic=time) for name in "abc")
    await agreed(time, first, second)
    await third.announce()
    await first.announce()
    time.now += AGREED_AFTER
    await third.announce()  # the second has not heard of it
    assert (first.ranks, second.ranks, third.ranks) == ((Rank(0, 2), Rank(0, 3)), (Rank(1, 2),), ())
    await agreed(time, first, second, third)
    assert [one.ranks for one in (first, second, third)] == [(Rank(number, 3),) for number in range(3)]


async def test_the_first_process_has_its_rank_at_once(calls: GuardedClient) -> None:
    first, second = (FleetMembership(calls, name) for name in "ba")
    await first.announce()
    await second.announce()
    assert (first.ranks, second.ranks) == ((Rank(0, 1),), ())
    await first.announce()
    assert first.ranks == (Rank(0, 1), Rank(1, 2))


async def test_a_gone_process_and_foreign_values_are_removed(calls: GuardedClient, store_client: Redis) -> None:
    time = Time()
    for key in (MEMBERS_KEY, KNOWN_KEY):
        await store_client.set(key, "x" * 1000)
    one = FleetMembership(calls, "b", monotonic=time)
    await one.announce()
    await store_client.zadd(MEMBERS_KEY, {"a": 1000.0})
    await store_client.hset(KNOWN_KEY, "a", "x")
    await agreed(time, one)
    assert one.ranks == (Rank(0, 1),)
    assert await store_client.zrange(MEMBERS_KEY, 0, -1) == [b"b"]
    assert await store_client.hkeys(KNOWN_KEY) == [b"b"]


async def test_without_the_store_the_ranks_stay(store_client: Redis) -> None:
    time = Time()
    one = FleetMembership(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=0.3), "a", monotonic=time)
    await agreed(time, one)
    with stopped(await process_of(store_client)):
        await one.announce()
    assert one.ranks == (Rank(0, 1),)


class LosesReplies:
    """A store whose replies may be lost after it has run a call."""

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self.losing = False

    async def with_calls(self, *arguments: object) -> object:
        reply = await self._calls.with_calls(*arguments)
        if self.losing:
            raise StoreDown("the reply was lost")
        return reply


def owned(ranks: tuple[Rank, ...], slots: int) -> set[int]:
    """The slots that a process uses without the store."""
    return {slot for slot in range(slots) if ranks and all(slot % of == number for number, of in ranks)}


@pytest.mark.parametrize("seed", range(12))
async def test_whenever_the_store_is_lost_no_slot_is_of_two_processes(
    calls: GuardedClient, store_client: Redis, seed: int
) -> None:
    """Processes join and leave, replies are lost and the store is emptied, at random instants of each round.

    After some calm rounds, all have agreed.
    """
    dice, time, store = random.Random(seed), Time(), LosesReplies(calls)
    await store_client.zadd(MEMBERS_KEY, {"gone": (await store_client.time())[0]})
    fleet: dict[FleetMembership, str] = {}
    missed: set[FleetMembership] = set()
    joined = 0
    for calm in (*[False] * 40, *[True] * 6):
        if calm:
            await store_client.zrem(MEMBERS_KEY, "gone")
        if not calm and len(fleet) < 5 and dice.random() < 0.3:
            joined += 1
            name = f"{dice.choice('xyz')}{joined}"
            fleet[FleetMembership(store, name, monotonic=time)] = name  # type: ignore[arg-type]
        if not calm and len(fleet) > 1 and dice.random() < 0.1:
            gone = dice.choice(list(fleet))
            await store_client.zrem(MEMBERS_KEY, fleet.pop(gone))
        emptied = dice.randrange(len(fleet)) if not calm and fleet and dice.random() < 0.1 else -1
        for number, one in enumerate(dice.sample(list(fleet), len(fleet))):
            if number == emptied:
                await store_client.flushall()
                # A process that joins before any other has come back would take itself for the first.
                await store_client.zadd(MEMBERS_KEY, {"gone": (await store_client.time())[0]})
            store.losing = not calm and one not in missed and dice.random() < 0.1
            missed = (missed - {one}) | ({one} if store.losing else set())
            await one.announce()
            time.now += ANNOUNCE_INTERVAL / len(fleet)
            ranks = [one.ranks or () for one in fleet]
            slots = math.lcm(*(rank.of for each in ranks for rank in each))
            assert all(owned(a, slots).isdisjoint(owned(b, slots)) for a, b in combinations(ranks, 2)), ranks
    assert all(one.ranks is not None and len(one.ranks) == 1 for one in fleet)
