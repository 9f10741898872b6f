"""Turns from the store, from here while that is in trouble, and from the store again once nobody goes by others."""

import asyncio
import math
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from app.origin import Origin
from app.pace.alone import ALONE, Alone
from app.pace.pace_store import RedisPace
from app.pace.pacer import HOLD, PATIENCE, SLACK, Pacer, Turn
from app.pace.slots import Lane, Reply, Slot, Tail, TooLong, Wish
from app.pace.spans import Span
from app.store.calls import Calls, StoreDown

SITE = Origin("https", "www.example.com", 443)
LANE = Lane.of(SITE, "ExampleBot")
ADDRESS = Lane("address:192.0.2.1", None)
SECOND = (Span(math.inf, 1.0),)
WISH = Wish(LANE, SECOND, "w", max_wait=60)


class OneLane:
    """A store with a clock of its own, that can be down; it notes how it was asked."""

    def __init__(self) -> None:
        self.down = False
        self.now = 5000.0
        self.tail = Tail(self.now)
        self.held: list[float] = []
        self.known: list[Tail] = []
        self.pings = 0

    async def reserve(self, wish: Wish, known: Tail, *, hold: float, lost: float) -> tuple[Reply, Tail]:
        self._fail()
        self.held.append(hold)
        self.known.append(known)
        go = max(self.now + hold, self.tail.ends)
        self.tail = Tail(go + wish.cost, self.tail.count + 1)
        return Slot(wish.lane, f"{self.tail.count}", go, go - self.now, 1.0), self.tail

    async def release(self, lane: Lane, name: str) -> bool:
        self._fail()
        return True

    async def hold_back(self, lane: Lane, retry_after: float, reporter: str | None) -> float:
        self._fail()
        return retry_after

    async def ping(self) -> None:
        self.pings += 1
        self._fail()

    def _fail(self) -> None:
        if self.down:
            raise StoreDown("it is down")


class Rig:
    """A pacer whose clock is an hour behind the store's, and who sleeps when told."""

    def __init__(self, fleet: int = 1) -> None:
        self.store = OneLane()
        self.clock = self.store.now - 3600
        self.monotonic = 0.0
        self.slept: list[float] = []
        self.comes_back = False
        self.pacer = Pacer(self.store, Alone(fleet), lambda: self.clock, lambda: self.monotonic, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        if self.comes_back:
            self.store.down = False

    def later(self, seconds: float) -> None:
        self.clock += seconds
        self.monotonic += seconds
        self.store.now += seconds

    async def turn(self, wish: Wish = WISH) -> Turn:
        return await self.pacer.turn(wish)


async def test_while_the_store_answers_its_turns_are_given() -> None:
    rig = Rig()
    turns = [await rig.turn() for _ in range(3)]
    assert [turn.degraded for turn in turns] == [False] * 3
    assert [turn.reply.wait for turn in turns] == [0, 1, 2]
    assert rig.store.held == [0, 0, 0]
    assert [known.count for known in rig.store.known] == [0, 1, 2]


async def test_a_store_that_is_away_for_a_moment_is_waited_for_by_all_together() -> None:
    rig = Rig()
    rig.store.down = rig.comes_back = True
    turns = await asyncio.gather(*(rig.turn() for _ in range(20)))
    assert not any(turn.degraded for turn in turns)
    assert (rig.slept, rig.store.pings) == ([PATIENCE], 1)
    assert set(rig.store.held) == {0}


async def test_a_store_that_stays_away_is_waited_for_once_and_then_done_without() -> None:
    rig = Rig()
    rig.store.down = True
    turns = await asyncio.gather(*(rig.turn() for _ in range(5)))
    turns += [await rig.turn()]
    assert all(turn.degraded for turn in turns)
    assert rig.slept == [PATIENCE]
    goes = [turn.reply.go_at for turn in turns if isinstance(turn.reply, Slot)]
    assert len(goes) >= 2
    assert all(later - first >= 1 - 1e-6 for first, later in pairwise(goes))


async def test_alone_nothing_is_given_before_the_end_of_the_lane_as_it_was_seen_by_the_clock_of_the_store() -> None:
    rig = Rig()
    await rig.turn()
    rig.store.down = True
    rig.later(0.2)
    turn = await rig.turn()
    assert isinstance(turn.reply, Slot)
    assert turn.reply.name == ALONE
    assert turn.reply.go_at == pytest.approx(5000 + 1 + SLACK)
    assert turn.reply.wait == pytest.approx(1 + SLACK - 0.2)


async def test_when_the_store_is_back_it_is_closed_for_a_while_and_told_what_is_remembered() -> None:
    rig = Rig()
    await rig.turn()
    rig.store.down = True
    await rig.turn()
    rig.store.down = False
    back = await rig.turn()
    assert not back.degraded
    assert back.reply.wait == pytest.approx(HOLD)
    assert rig.store.known[-1] == Tail(5001 + SLACK, 1)
    rig.later(1.0)
    await rig.turn()
    rig.later(HOLD)
    await rig.turn()
    assert rig.store.held == pytest.approx([0, HOLD, HOLD - 1, 0])


async def test_outcomes_are_told_to_the_store_or_kept_here() -> None:
    rig = Rig()
    assert await rig.pacer.release(LANE, "1") == (1, False)
    assert await rig.pacer.release(LANE, ALONE) == (0, False)
    assert await rig.pacer.hold_back(LANE, 30.0) == (30, False)
    rig.store.down = True
    assert await rig.pacer.release(LANE, "1") == (0, True)
    assert await rig.pacer.hold_back(LANE, 60.0) == (60, True)
    other = Lane.of(Origin("https", "other.example", 443), "ExampleBot")
    assert await rig.pacer.hold_back(other, 86_400.0, "one key") == (600, True)
    assert await rig.pacer.hold_back(other, 86_400.0) == (86_400, True)
    rig.later(20)
    turn = await rig.turn()
    assert (turn.degraded, isinstance(turn.reply, TooLong)) == (True, True)
    assert turn.reply.wait == pytest.approx(40)


# An origin and its address, in a real store.


@pytest.fixture
def pacer(store_client: Redis) -> Pacer:
    store = RedisPace(Calls(store_client, monotonic=lambda: 0.0, timeout=20.0))
    return Pacer(store, Alone(1), lambda: 0.0, lambda: 0.0)


def host(number: int, interval: float = 1.0, max_wait: float = 600.0) -> tuple[Wish, Wish]:
    lane = Lane.of(Origin("https", f"{number}.example.com", 443), "ExampleBot")
    wish = Wish(lane, (Span(math.inf, interval),), "w", max_wait=max_wait)
    return wish, Wish(ADDRESS, SECOND, "w", max_wait=max_wait)


async def test_hosts_of_one_address_share_its_floor(pacer: Pacer) -> None:
    turns = [await pacer.turn(*host(number)) for number in range(10)]
    goes = [turn.reply.go_at for turn in turns if isinstance(turn.reply, Slot)]
    assert len(goes) == 10
    assert goes == [turn.shared.go_at for turn in turns if turn.shared]
    assert all(later - first >= 0.99 for first, later in pairwise(sorted(goes)))


async def test_a_slow_host_keeps_its_own_pace_and_leaves_the_rest_to_others(pacer: Pacer) -> None:
    slow = [await pacer.turn(*host(0, 10.0)) for _ in range(4)]
    fast = [await pacer.turn(*host(1)) for _ in range(12)]
    goes = [sorted(turn.reply.go_at for turn in turns if isinstance(turn.reply, Slot)) for turns in (slow, fast)]
    assert [len(some) for some in goes] == [4, 12]
    assert all(later - first >= 9.9 for first, later in pairwise(goes[0]))
    assert all(later - first >= 0.99 for first, later in pairwise(sorted(goes[0] + goes[1])))
    assert goes[1][-1] - goes[1][0] < 20


async def test_a_wait_that_is_too_long_at_the_address_leaves_nothing_behind(pacer: Pacer, store_client: Redis) -> None:
    await pacer.turn(host(0)[0], Wish(ADDRESS, (Span(math.inf, 100.0),), "w", max_wait=600))
    turn = await pacer.turn(*host(1, max_wait=5))
    assert isinstance(turn.reply, TooLong)
    assert turn.reply.wait > 90
    assert turn.shared is None
    assert await store_client.zcard("robots:{https://1.example.com}:pace:examplebot:slots") == 0


async def test_many_at_once_at_one_address_do_not_overlap(pacer: Pacer) -> None:
    turns = await asyncio.gather(*(pacer.turn(*host(number % 5)) for number in range(30)))
    goes = sorted(turn.reply.go_at for turn in turns if isinstance(turn.reply, Slot))
    assert len(goes) >= 10
    assert all(later - first >= 0.99 for first, later in pairwise(goes))
