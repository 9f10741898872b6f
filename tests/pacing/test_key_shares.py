"""Slots are shared between API keys first, and then between the callers of a key: in a real Valkey."""

import math
import time
from collections import Counter
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from app.pacing.law import AHEAD_SLOTS, FAR_SLOTS
from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, SlotResult, WaitTooLong
from app.store.guarded_client import GuardedClient

KEY = PaceKey.of("www.example.com", "ExampleBot")
INTERVAL = 100.0  # long, so that the time of the test itself moves no slot
WINDOWS = (PaceWindow(math.inf, INTERVAL),)


class SharedQueue:
    """One queue. Waits are in intervals."""

    def __init__(self, client: Redis) -> None:
        self._pace = RedisPacer(GuardedClient(client, monotonic=time.monotonic, timeout=20.0))
        self.slots: list[tuple[float, float, str]] = []

    async def ask(self, caller: str, cost: float = 1.0, max_wait: float = 20_000.0) -> SlotResult:
        request = SlotRequest(KEY, WINDOWS, caller, cost, max_wait * INTERVAL)
        reply, _ = await self._pace.reserve(request, QueueState(), closed_for=0, closed_if_behind=3)
        if isinstance(reply, Slot):
            self.slots.append((reply.go_at, reply.go_at + cost * INTERVAL, caller))
        return reply

    async def wait(self, caller: str, cost: float = 1.0) -> float:
        """The wait for a slot, which is given."""
        reply = await self.ask(caller, cost)
        assert isinstance(reply, Slot), reply
        return reply.wait / INTERVAL

    async def is_soon(self, caller: str) -> bool:
        """Whether it gets a slot, or its turn is within two intervals."""
        reply = await self.ask(caller)
        return isinstance(reply, Slot) or reply.retry_after <= 2 * INTERVAL

    async def release(self, reply: SlotResult) -> None:
        assert isinstance(reply, Slot)
        assert await self._pace.release(KEY, reply.name)

    def check(self) -> None:
        """No two slots overlap."""
        assert all(first[1] <= second[0] + 1e-3 for first, second in pairwise(sorted(self.slots)))


@pytest.fixture
def queue(store_client: Redis) -> SharedQueue:
    return SharedQueue(store_client)


async def test_a_key_holds_its_share_of_the_horizon(queue: SharedQueue) -> None:
    """However many callers it invents. The key that comes next finds its own share free."""
    for key in ("A", "B"):
        await queue.wait(f"{key}/first")
    replies = [await queue.ask(f"A/{number}") for number in range(1000)]
    assert sum(isinstance(reply, Slot) for reply in replies) <= AHEAD_SLOTS / 2
    assert await queue.is_soon("B/w")
    queue.check()


@pytest.mark.parametrize("keys", [2, 3, 5, 8])
async def test_active_keys_have_equal_shares(keys: int, queue: SharedQueue) -> None:
    """The first key invents ten times the callers of each other one."""
    names = [f"K{number}" for number in range(keys)]
    for name in names:
        await queue.ask(f"{name}/first")
    for number in range(10):
        for name in names:
            for again in range(10 if name == "K0" else 1):
                await queue.ask(f"{name}/{number}.{again}")
    held = Counter(caller.partition("/")[0] for _, _, caller in queue.slots[1:])
    assert max(held.values()) <= max(1, AHEAD_SLOTS // keys)
    queue.check()


async def test_another_key_waits_for_what_one_alone_has_booked(queue: SharedQueue) -> None:
    replies = [await queue.ask(f"A/{number}") for number in range(1000)]
    booked = sum(isinstance(reply, Slot) for reply in replies)
    assert FAR_SLOTS - 10 < booked <= FAR_SLOTS + 1
    reply = await queue.ask("B/w")
    assert isinstance(reply, WaitTooLong)
    assert reply.retry_after / INTERVAL <= booked - AHEAD_SLOTS + 3
    queue.check()


async def test_a_near_gap_is_open_to_every_key(queue: SharedQueue) -> None:
    replies = [await queue.ask(f"A/{number}") for number in range(100)]
    await queue.ask("B/w")
    await queue.release(replies[1])
    assert await queue.wait("A/again") <= 1


async def test_turns_of_a_key_leave_room_for_the_others(queue: SharedQueue) -> None:
    """Each further caller of a key has a turn two intervals later, and no two turns of both keys coincide."""
    for key in ("A", "B"):
        await queue.wait(f"{key}/first")
    turns = []
    for number in range(20):
        for key in ("A", "B"):
            reply = await queue.ask(f"{key}/{number}", max_wait=1)
            if isinstance(reply, WaitTooLong):
                turns.append(reply.retry_after / INTERVAL)
    assert len(turns) >= 38
    assert all(second - first > 0.49 for first, second in pairwise(sorted(turns)[2:]))
    assert max(turns) < len(turns) + 4


async def test_callers_of_the_same_name_are_different_under_different_keys(queue: SharedQueue) -> None:
    await queue.wait("A/worker")
    await queue.wait("B/worker")
    for _ in range(30):
        await queue.ask("A/worker")
    assert await queue.is_soon("B/worker")


async def test_one_key_cannot_fill_the_queue(queue: SharedQueue, store_client: Redis) -> None:
    now, own = time.time(), keys_of(KEY)
    begins = [now + INTERVAL / 2 + number * INTERVAL for number in range(AHEAD_SLOTS - 2)]
    members = {f"{(at + INTERVAL) * 1e6:.0f}:ab:A/w": at * 1e6 for at in begins}
    await store_client.zadd(own[4], members)
    await store_client.zadd(own[7], {"B/": (now + 10 * INTERVAL) * 1e6})
    assert isinstance(await queue.ask("A/w"), WaitTooLong)
    assert isinstance(await queue.ask("A/other"), WaitTooLong)
    assert await queue.is_soon("B/w")


async def test_slots_that_were_released_do_not_count(queue: SharedQueue) -> None:
    await queue.wait("B/w")
    replies = [await queue.ask("A/w") for _ in range(10)]
    slots = [reply for reply in replies if isinstance(reply, Slot)]
    assert len(slots) <= AHEAD_SLOTS / 2
    for reply in slots:
        await queue.release(reply)
    assert await queue.wait("A/other") <= 1.1
