"""Slots are shared between API keys first, and then between the callers of a key: in a real Valkey."""

import math
import time
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, SlotResult, WaitTooLong
from app.store.guarded_client import GuardedClient

KEY = PaceKey.of("www.example.com", "ExampleBot")
INTERVAL = 100.0  # long, so that the time of the test itself moves no slot
WINDOWS = (PaceWindow(math.inf, INTERVAL),)
PERIOD = 20
NEAR = 5
SOON = PERIOD + NEAR + 2
"""Intervals: what is near is open to all, and from there on one slot in a period is left."""


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

    async def book(self, key: str, callers: int, cost: float = 1.0) -> list[float]:
        """A slot for each of so many invented callers."""
        return [await self.wait(f"{key}/{number}", cost) for number in range(callers)]

    async def release(self, reply: SlotResult) -> None:
        assert isinstance(reply, Slot)
        assert await self._pace.release(KEY, reply.name)

    def check(self) -> None:
        """No two slots overlap."""
        assert all(first[1] <= second[0] + 1e-3 for first, second in pairwise(sorted(self.slots)))


@pytest.fixture
def queue(store_client: Redis) -> SharedQueue:
    return SharedQueue(store_client)


@pytest.mark.parametrize("cost", [0.5, 1.0, 7.0])
@pytest.mark.parametrize("callers", [1, 100, 1000, 1500])
async def test_another_key_is_served_soon_behind_invented_callers(
    callers: int, cost: float, queue: SharedQueue
) -> None:
    if callers == 1:
        await queue.wait("A/one", cost)
        booked = [await queue.wait("A/one", cost) for _ in range(100)]
    else:
        booked = await queue.book("A", callers, cost)
    assert booked[-1] > 0.9 * len(booked) * cost - PERIOD
    for number, key in enumerate("BCD", 1):
        assert await queue.wait(f"{key}/w") <= NEAR + number * (PERIOD + cost + 2)
    queue.check()


@pytest.mark.parametrize("keys", [2, 3, 5, 10])
async def test_each_key_that_books_all_it_can_leaves_a_slot_for_the_next(keys: int, queue: SharedQueue) -> None:
    for number in range(keys):
        assert (await queue.book(f"K{number}", 100))[0] <= number * SOON
    assert await queue.wait("newcomer/w") <= keys * SOON
    queue.check()


@pytest.mark.parametrize("greedy", [1, 10])
@pytest.mark.parametrize("ahead", [0, 100])
@pytest.mark.parametrize("keys", [2, 3, 5, 10])
async def test_active_keys_have_equal_shares(keys: int, ahead: int, greedy: int, queue: SharedQueue) -> None:
    """The first key invents `greedy` times the callers of each other one, and may have booked `ahead` before."""
    begin = max(await queue.book("K0", ahead), default=0.0)
    names = [f"K{number}" for number in range(keys)]
    for name in names:
        await queue.wait(f"{name}/first")
    given: dict[str, list[float]] = {name: [] for name in names}
    for number in range(40):
        for name in names:
            for again in range(greedy if name == "K0" else 1):
                given[name].append(await queue.wait(f"{name}/{number}.{again}"))
    begin += NEAR + keys + PERIOD  # what was near was open to all, and a key that had more than its share waits so long
    shares = [sum(begin <= wait < begin + 20 * keys for wait in waits) for waits in given.values()]
    assert max(shares) - min(shares) <= 4, shares
    assert sum(shares) >= 20 * keys * (1 - 1.5 / PERIOD) - keys
    queue.check()


async def test_a_new_worker_and_another_key_find_what_a_worker_left(queue: SharedQueue) -> None:
    busy = [await queue.wait("A/busy") for _ in range(100)]
    assert busy[-1] <= 100 * (1 + 1 / 10 + 1 / PERIOD)
    assert await queue.wait("A/new") <= SOON
    assert await queue.wait("A/third") <= 3 * SOON
    assert await queue.wait("B/w") <= 2 * SOON


async def test_a_new_worker_is_served_soon_beside_another_active_key(queue: SharedQueue) -> None:
    await queue.wait("B/w")
    for _ in range(100):
        await queue.wait("A/busy")
    assert await queue.wait("A/new") <= SOON
    assert await queue.wait("C/w") <= SOON


@pytest.mark.parametrize("callers", [10, 100, 1000])
async def test_a_key_alone_has_all_slots_but_one_in_a_period(callers: int, queue: SharedQueue) -> None:
    waits = await queue.book("A", callers)
    assert max(waits) <= callers * (1 + 1.1 / PERIOD) + 1


async def test_a_near_gap_is_open_to_every_key(queue: SharedQueue) -> None:
    replies = [await queue.ask(f"A/{number}") for number in range(100)]
    await queue.wait("B/w")
    await queue.release(replies[3])
    assert await queue.wait("A/again") <= 3


async def test_who_is_refused_for_its_key_returns_when_a_gap_is_near(queue: SharedQueue) -> None:
    await queue.book("A", 100)
    near = NEAR + 1
    for max_wait in (1, near, 10):
        reply = await queue.ask("A/new", max_wait=max_wait)
        assert isinstance(reply, WaitTooLong)
        assert reply.retry_after / INTERVAL <= SOON - min(near, max_wait)


async def test_callers_of_the_same_name_are_different_under_different_keys(queue: SharedQueue) -> None:
    for _ in range(30):
        await queue.wait("A/worker")
    assert await queue.wait("B/worker") <= SOON


async def test_one_key_cannot_fill_the_queue(queue: SharedQueue, store_client: Redis) -> None:
    now, own = time.time(), keys_of(KEY)
    begins = [now + 10 * INTERVAL + number for number in range(5000)]
    await store_client.zadd(own[4], {f"{at + 1:.0f}000000:ab:A/w": at * 1e6 for at in begins})
    await store_client.hset(own[6], "A/", "5000")
    assert isinstance(await queue.ask("A/w"), WaitTooLong)
    assert isinstance(await queue.ask("A/other"), WaitTooLong)
    assert isinstance(await queue.ask("B/w"), Slot)


async def test_slots_that_have_begun_or_were_released_do_not_count(queue: SharedQueue, store_client: Redis) -> None:
    replies = [await queue.ask("A/w") for _ in range(3)]  # the first has begun
    assert await store_client.hmget(keys_of(KEY)[6], "A/w", "A/") == [b"2", b"2"]
    for reply in replies[1:]:
        await queue.release(reply)
    assert await store_client.hmget(keys_of(KEY)[6], "A/w", "A/") == [None, None]


async def test_callers_from_before_a_step_of_the_clock_do_not_count(queue: SharedQueue, store_client: Redis) -> None:
    callers = keys_of(KEY, "A")[5]
    await store_client.zadd(callers, {f"A/{number}": (time.time() + 3600) * 1e6 for number in range(50)})
    await queue.wait("A/w")
    assert await store_client.zcard(callers) == 1
