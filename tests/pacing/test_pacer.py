"""Turns from the store, from here while that is in trouble, and from the store again once nobody goes by others."""

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from app.origin import Origin
from app.pacing.local_pacer import ALONE, LATER, LocalPacer
from app.pacing.pacer import MEETING, Grant, Pacer
from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.shard_state import PATIENCE, RECOVERY_PERIOD, SLACK
from app.pacing.slots import PaceKey, QueueState, QueueView, Reply, Slot, SlotRequest, WaitTooLong
from app.redis.guarded_client import GuardedClient, StoreDown

SITE = Origin("https", "www.example.com", 443)
LANE = PaceKey.of(SITE, "ExampleBot")
ADDRESS = PaceKey("address:192.0.2.1", None)
SECOND = (PaceWindow(math.inf, 1.0),)
WISH = SlotRequest(LANE, SECOND, "w", max_wait=60)


class OneQueue:
    """A store with a clock of its own, whose shards can be down. It notes how it was asked."""

    def __init__(self) -> None:
        self.down: set[int] = set()
        self.now = 5000.0
        self.tail = QueueState(self.now)
        self.held: list[float] = []
        self.known: list[QueueState] = []
        self.backs_off_until = 0.0
        self.pings = 0
        self.shards: dict[PaceKey, int] = {}

    def shard_of(self, lane: PaceKey) -> int:
        return self.shards.get(lane, 0)

    async def reserve(
        self, wish: SlotRequest, known: QueueState, *, hold: float, lost: float
    ) -> tuple[Reply, QueueView]:
        self._fail(wish.lane)
        self.held.append(hold)
        self.known.append(known)
        go = max(self.now + hold, self.tail.ends)
        reply: Reply = WaitTooLong(go - self.now, go - self.now, 1.0)
        if go - self.now <= wish.max_wait:
            self.tail = QueueState(go + wish.cost, self.tail.count + 1)
            reply = Slot(wish.lane, f"{self.tail.count}", go, go - self.now, 1.0)
        return reply, QueueView(replace(self.tail, at=self.now), self.backs_off_until)

    async def release(self, lane: PaceKey, name: str) -> bool:
        self._fail(lane)
        return True

    async def hold_back(self, lane: PaceKey, retry_after: float, reporter: str | None) -> float:
        self._fail(lane)
        self.backs_off_until = self.now + retry_after
        return retry_after

    async def ping(self, shard: int) -> None:
        self.pings += 1
        if shard in self.down:
            raise StoreDown("it is down")

    def _fail(self, lane: PaceKey) -> None:
        if self.shard_of(lane) in self.down:
            raise StoreDown("it is down")


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Rig:
    """A pacer whose clock is an hour behind the store's. It sleeps until the test lets time pass."""

    def __init__(self, fleet: int | None = 1) -> None:
        self.store = OneQueue()
        self.clock = self.store.now - 3600
        self.monotonic = 0.0
        self.sleepers: list[tuple[float, asyncio.Event]] = []
        self.pacer = Pacer(self.store, LocalPacer(fleet), lambda: self.clock, lambda: self.monotonic, self.sleep)

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        self.sleepers.append((self.monotonic + seconds, awake))
        await awake.wait()

    async def later(self, seconds: float) -> None:
        await settled()
        self.clock += seconds
        self.monotonic += seconds
        self.store.now += seconds
        for until, awake in self.sleepers:
            if until <= self.monotonic:
                awake.set()
        await settled()

    async def turn(self, wish: SlotRequest = WISH) -> Grant:
        return await self.pacer.turn(wish)

    async def lose_the_store(self) -> None:
        """Until the process paces alone."""
        self.store.down = {0, 1}
        await self.turn()
        await self.later(PATIENCE)

    async def find_the_store(self) -> None:
        self.store.down = set()
        await self.later(PATIENCE)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.pacer.aclose()


def go_at(turn: Grant) -> float:
    assert isinstance(turn.reply, Slot), turn
    return turn.reply.go_at


async def test_while_the_store_answers_its_slots_are_given(rig: Rig) -> None:
    turns = [await rig.turn() for _ in range(3)]
    assert [turn.degraded for turn in turns] == [False] * 3
    assert [turn.reply.wait for turn in turns] == [0, 1, 2]
    assert rig.store.held == [0, 0, 0]
    assert [known.count for known in rig.store.known] == [0, 1, 2]


async def test_callers_of_a_store_away_for_a_moment_are_told_to_come_back(rig: Rig) -> None:
    await rig.turn()
    rig.store.down = {0}
    turns = await asyncio.gather(*(rig.turn() for _ in range(20)))
    assert all(turn.degraded and turn.reply == WaitTooLong(PATIENCE, PATIENCE, 1.0) for turn in turns)
    rig.store.down = set()
    turn = await rig.turn()
    assert (turn.degraded, rig.store.held) == (False, [0, 0])
    await rig.later(PATIENCE)
    assert rig.store.pings == 1
    assert rig.store.held == [0, 0]


async def test_a_store_that_stays_away_is_done_without(rig: Rig) -> None:
    await rig.turn()
    await rig.lose_the_store()
    turns = []
    for _ in range(5):
        turns.append(await rig.turn())
        await rig.later(1.0)
    goes = [go_at(turn) for turn in turns]
    assert all(turn.degraded for turn in turns)
    assert all(later - first >= 1 - 1e-6 for first, later in pairwise(goes))


async def test_local_pacer_starts_after_last_known_slot(rig: Rig) -> None:
    await rig.turn()
    await rig.lose_the_store()
    turn = await rig.turn()
    assert isinstance(turn.reply, Slot)
    assert turn.reply.name == ALONE
    # Behind the slot that is known, and one of another process that is not.
    assert turn.reply.go_at == pytest.approx(5002)
    assert turn.reply.wait == pytest.approx(2 - PATIENCE)


async def test_local_pacer_expects_a_queue_as_deep_as_it_was(rig: Rig) -> None:
    for _ in range(4):
        await rig.turn()
    await rig.later(10.0)
    await rig.lose_the_store()
    # The queue was 4 s deep when it was seen, and others may have kept it so until the store went.
    turn = await rig.turn()
    assert isinstance(turn.reply, WaitTooLong)
    await rig.later(turn.reply.retry_after)
    assert go_at(await rig.turn()) == pytest.approx(5010 + 4 + 1)


async def test_local_pacer_leaves_an_interval_to_who_was_served_last(rig: Rig) -> None:
    slow = replace(WISH, spans=(PaceWindow(math.inf, 10.0),))
    await rig.turn(replace(WISH, lane=PaceKey.of(SITE, "OtherBot")))
    await rig.lose_the_store()
    turn = await rig.turn(slow)
    assert isinstance(turn.reply, WaitTooLong)
    assert turn.reply.wait == pytest.approx(10 - PATIENCE)


async def test_recovered_queues_are_closed_and_told_what_is_remembered(rig: Rig) -> None:
    await rig.turn()
    await rig.lose_the_store()
    given = go_at(await rig.turn())
    rig.store.down = set()
    back = await rig.turn()
    assert not back.degraded
    assert back.reply.wait == pytest.approx(RECOVERY_PERIOD)
    known = rig.store.known[-1]
    assert known.ends - known.at == pytest.approx(given + 1 + SLACK - rig.store.now)
    await rig.later(1.0)
    await rig.turn()
    await rig.later(RECOVERY_PERIOD)
    await rig.turn()
    assert [rig.store.held[at] for at in (0, 1, -2, -1)] == pytest.approx([0, RECOVERY_PERIOD, RECOVERY_PERIOD - 1, 0])


async def test_slots_given_alone_are_reported_though_no_caller_comes(rig: Rig) -> None:
    slow = replace(WISH, spans=(PaceWindow(math.inf, 30.0),))
    await rig.turn(slow)
    await rig.lose_the_store()
    await rig.later(30.0)
    given = go_at(await rig.turn(slow))
    await rig.find_the_store()
    known = rig.store.known[-1]
    assert known.ends - known.at == pytest.approx(given + 30 - rig.store.now)
    assert rig.store.held[-1] > 0


async def test_one_shard_that_fails_leaves_the_lanes_of_others_alone(rig: Rig) -> None:
    other = replace(WISH, lane=PaceKey.of(SITE, "OtherBot"))
    rig.store.shards[other.lane] = 1
    await rig.turn()
    rig.store.down = {0}
    for _ in range(4):
        assert (await rig.turn()).degraded
        assert not (await rig.turn(other)).degraded
        await rig.later(PATIENCE)
    rig.store.down = set()
    await rig.turn(other)
    assert set(rig.store.held) == {0}
    assert (await rig.turn()).reply.wait >= RECOVERY_PERIOD


async def test_a_back_off_of_the_fleet_is_kept_without_the_store(rig: Rig) -> None:
    rig.store.backs_off_until = rig.store.now + 600
    await rig.turn()
    await rig.lose_the_store()
    other = replace(WISH, lane=PaceKey.of(SITE, "OtherBot"))
    turn = await rig.turn(other)
    assert isinstance(turn.reply, WaitTooLong)
    assert turn.reply.wait == pytest.approx(600 - PATIENCE)


async def test_without_a_known_fleet_size_no_slot_is_given() -> None:
    rig = Rig(None)
    await rig.lose_the_store()
    turn = await rig.turn()
    assert turn == Grant(WaitTooLong(LATER, LATER, 1.0), True)
    await rig.find_the_store()
    assert not (await rig.turn()).degraded
    await rig.pacer.aclose()


async def test_outcomes_go_to_the_store_or_are_reported_later(rig: Rig) -> None:
    assert await rig.pacer.release(LANE, "1") == (1, False)
    assert await rig.pacer.release(LANE, ALONE) == (0, False)
    assert await rig.pacer.hold_back(LANE, 30.0) == (30, False)
    await rig.lose_the_store()
    assert await rig.pacer.release(LANE, "1") == (0, True)
    assert await rig.pacer.hold_back(LANE, 60.0) == (60, True)
    await rig.later(20)
    turn = await rig.turn()
    assert (turn.degraded, isinstance(turn.reply, WaitTooLong)) == (True, True)
    assert turn.reply.wait == pytest.approx(40)
    rig.store.backs_off_until = 0.0
    await rig.find_the_store()
    assert rig.store.backs_off_until - rig.store.now == pytest.approx(40 - PATIENCE)


# An origin and its address, in a real store.


@pytest.fixture
def pacer(store_client: Redis) -> Pacer:
    store = RedisPacer(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0))
    return Pacer(store, LocalPacer(1), lambda: 0.0, lambda: 0.0)


def host(number: int, interval: float = 1.0, max_wait: float = 600.0) -> tuple[SlotRequest, SlotRequest]:
    lane = PaceKey.of(Origin("https", f"{number}.example.com", 443), "ExampleBot")
    wish = SlotRequest(lane, (PaceWindow(math.inf, interval),), "w", max_wait=max_wait)
    return wish, SlotRequest(ADDRESS, SECOND, "w", max_wait=max_wait)


async def far_ahead(pacer: Pacer) -> float:
    """Take the address for two minutes: when they are over. No slot after that begins while a test runs."""
    first = await pacer.turn(SlotRequest(ADDRESS, SECOND, "w", cost=120.0, max_wait=600))
    return go_at(first) + 120


async def test_hosts_of_one_address_share_its_floor(pacer: Pacer) -> None:
    await far_ahead(pacer)
    turns = [await pacer.turn(*host(number)) for number in range(10)]
    goes = [turn.reply.go_at for turn in turns if isinstance(turn.reply, Slot)]
    assert len(goes) == 10
    assert goes == [turn.shared.go_at for turn in turns if turn.shared]
    assert all(later - first >= 0.99 for first, later in pairwise(sorted(goes)))


async def test_a_slow_host_keeps_its_own_pace_and_leaves_the_rest_to_others(pacer: Pacer) -> None:
    await far_ahead(pacer)
    slow = [await pacer.turn(*host(0, 10.0)) for _ in range(4)]
    fast = [await pacer.turn(*host(1)) for _ in range(12)]
    goes = [sorted(turn.reply.go_at for turn in turns if isinstance(turn.reply, Slot)) for turns in (slow, fast)]
    assert [len(some) for some in goes] == [4, 12]
    assert all(later - first >= 9.9 for first, later in pairwise(goes[0]))
    assert all(later - first >= 0.99 for first, later in pairwise(sorted(goes[0] + goes[1])))
    assert goes[1][-1] - goes[1][0] < 20


async def test_a_wait_that_is_too_long_at_the_address_leaves_nothing_behind(pacer: Pacer, store_client: Redis) -> None:
    await pacer.turn(host(0)[0], SlotRequest(ADDRESS, (PaceWindow(math.inf, 100.0),), "w", max_wait=600))
    turn = await pacer.turn(*host(1, max_wait=5))
    assert isinstance(turn.reply, WaitTooLong)
    assert turn.reply.wait > 90
    assert turn.shared is None
    assert await store_client.zcard(keys_of(host(1)[0].lane)[4]) == 0


async def test_many_at_once_at_one_address_do_not_overlap(pacer: Pacer) -> None:
    free_from = await far_ahead(pacer)
    # A slot of each host lies across two of the address, so that not all turns find both free at the first attempt.
    for number in range(5):
        across = replace(host(number)[0], not_before=free_from + 4 * number + 0.5)
        assert go_at(await pacer.turn(across)) == pytest.approx(free_from + 4 * number + 0.5, abs=1e-3)
    turns = await asyncio.gather(*(pacer.turn(*host(number % 5)) for number in range(30)))
    goes = sorted(turn.reply.go_at for turn in turns if isinstance(turn.reply, Slot))
    assert len(goes) >= 20
    assert goes[0] >= free_from - 1e-3
    assert all(later - first >= 0.999 - MEETING for first, later in pairwise(goes))
