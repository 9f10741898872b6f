"""Queues with many slots, and gaps between them, in a real Valkey."""

import math
import time
from itertools import pairwise

from redis.asyncio import Redis

from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest
from app.store.guarded_client import GuardedClient

KEY = PaceKey.of("www.example.com", "ExampleBot")
SECOND = (PaceWindow(math.inf, 1.0),)


async def given(pace: RedisPacer, caller: str, cost: float) -> Slot:
    """The next slot of a caller."""
    request = SlotRequest(KEY, SECOND, caller, cost, max_wait=10_000)
    reply, _ = await pace.reserve(request, QueueState(), closed_for=0, closed_if_behind=3)
    assert isinstance(reply, Slot), reply
    return reply


async def test_no_slot_is_given_twice_behind_gaps_that_are_too_small(store_client: Redis) -> None:
    pace = RedisPacer(GuardedClient(store_client, monotonic=time.monotonic, timeout=20.0))
    booked = [await given(pace, "w", 1) for _ in range(120)]
    for slot in booked[20::2]:
        assert await pace.release(KEY, slot.name)
    short = [slot.go_at for slot in [*booked[:20], *booked[21::2]]]
    long = [(await given(pace, f"w{at}", 2)).go_at for at in range(50)]
    assert min(long) > max(short)
    for (begin, cost), (later, _) in pairwise(sorted([*((at, 1) for at in short), *((at, 2) for at in long)])):
        assert later - begin > cost - 0.001
