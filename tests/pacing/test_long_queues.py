"""Queues with more slots than the script searches for a gap, in a real Valkey."""

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


async def given(pace: RedisPacer, caller: str, cost: float) -> float:
    """When the next slot of a caller begins."""
    request = SlotRequest(KEY, SECOND, caller, cost, max_wait=10_000)
    reply, _ = await pace.reserve(request, QueueState(), closed_for=0, closed_if_behind=3)
    assert isinstance(reply, Slot), reply
    return reply.go_at


async def test_no_slot_is_given_twice_behind_gaps_that_are_too_small(store_client: Redis) -> None:
    pace = RedisPacer(GuardedClient(store_client, monotonic=time.monotonic, timeout=20.0))
    short = [await given(pace, caller, 1) for caller in ["other", *["w"] * 40]]
    assert any(later - earlier > 1.5 for earlier, later in pairwise(short))  # a caller with slots ahead leaves gaps
    long = [await given(pace, f"w{at}", 2) for at in range(560)]
    for (begin, cost), (later, _) in pairwise(sorted([*((at, 1) for at in short), *((at, 2) for at in long)])):
        assert later - begin > cost - 0.001
