"""Backoffs and slots survive the eviction of keys and a change of the store's clock."""

import asyncio
import math
from collections.abc import AsyncIterator, Iterator

import pytest

from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, SlotResult, WaitTooLong
from app.store.guarded_client import GuardedClient
from tests.engines import Node, client_of, node

KEYS = [PaceKey.of(f"{number}.example.com", "ExampleBot") for number in range(200)]
MINUTE, SECOND = (PaceWindow(math.inf, 60.0),), (PaceWindow(math.inf, 1.0),)
HOUR = 3600.0
FILE = bytes(1000)


@pytest.fixture(scope="module")
def small() -> Iterator[Node]:
    """A server as docs/how-to/redis.md advises it, with little room."""
    with node(maxmemory="12mb", maxmemory_policy="volatile-lru") as server:
        yield server


@pytest.fixture
async def pace(small: Node) -> AsyncIterator[RedisPacer]:
    small.ask("FLUSHALL")
    async with client_of(small) as client:
        yield RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))


def fill(server: Node) -> None:
    """Write far more files than fit."""
    pipe = server.admin.pipeline(transaction=False)
    for number in range(30_000):
        pipe.set(f"robots:{{https://{number}.example.org:443}}", FILE, ex=30 * 86_400)
    pipe.execute()
    assert server.ask("INFO", "stats")["evicted_keys"] > 10_000


def present(server: Node, which: int) -> int:
    """The number of queues whose key with this number in state.lua still exists."""
    return sum(int(server.ask("EXISTS", keys_of(key)[which])) for key in KEYS)


async def reserve(pace: RedisPacer, key: PaceKey, pace_windows: tuple[PaceWindow, ...] = SECOND) -> SlotResult:
    reply, _ = await pace.reserve(
        SlotRequest(key, pace_windows, "w"), QueueState(), closed_for=0.0, closed_if_behind=3.0
    )
    return reply


async def test_backoffs_survive_eviction(pace: RedisPacer, small: Node) -> None:
    for key in KEYS:
        assert await pace.back_off(key, HOUR) > HOUR - 1
    fill(small)
    assert present(small, 2) < len(KEYS)  # most of the rest of their state was evicted
    replies = [await reserve(pace, key) for key in KEYS]
    assert all(isinstance(reply, WaitTooLong) and reply.wait > HOUR - 120 for reply in replies)


async def test_last_slots_survive_eviction(pace: RedisPacer, small: Node) -> None:
    hour = (PaceWindow(math.inf, HOUR),)
    for key in KEYS:
        assert isinstance(await reserve(pace, key, hour), Slot)
    fill(small)
    assert present(small, 3) < len(KEYS)
    assert all([isinstance(await reserve(pace, key, hour), WaitTooLong) for key in KEYS])


async def test_the_durable_record_is_bounded_and_expires(pace: RedisPacer, small: Node) -> None:
    durable = keys_of(KEYS[0])[0]
    for number in range(600):
        # All in one bucket: the site of a key chooses it.
        await reserve(pace, PaceKey(KEYS[0].pool, f"bot{number}"), MINUTE)
    assert small.ask("HLEN", durable) <= 256
    small.ask("DEL", *keys_of(KEYS[0])[:2])
    for number in range(100):
        await reserve(pace, PaceKey(KEYS[0].pool, f"short{number}"), ((PaceWindow(math.inf, 0.05)),))
    await asyncio.sleep(0.1)
    for number in range(10):
        await reserve(pace, PaceKey(KEYS[0].pool, f"next{number}"), MINUTE)
    assert small.ask("HLEN", durable) == small.ask("ZCARD", keys_of(KEYS[0])[1]) == 10
