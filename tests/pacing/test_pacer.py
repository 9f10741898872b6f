"""Slots from the store, from this process while the store fails, and from the store again after recovery."""

import asyncio
import math
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import cast

import pytest

from app.pacing.local_pacer import LOCAL_SLOT, UNKNOWN_FLEET_RETRY, LocalPacer
from app.pacing.membership import Rank
from app.pacing.pacer import Grant, Pacer
from app.pacing.page_times import NO_PAGES, PageReports
from app.pacing.permit import SlotRef
from app.pacing.recovery import REPORT_ATTEMPTS
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.shard_state import PROBE_INTERVAL, RECOVERY_PERIOD, SLACK
from app.pacing.slots import (
    FIRST_BACKOFF,
    MAX_CONFIRMED,
    MAX_UNCONFIRMED,
    PaceKey,
    QueueState,
    QueueView,
    Slot,
    SlotRequest,
    SlotResult,
    WaitTooLong,
)
from app.store.guarded_client import StoreDown
from app.store.store_clock import StoreClocks

HOST = "www.example.com"
KEY = PaceKey.of(HOST, "ExampleBot")
SECOND = (PaceWindow(math.inf, 1.0),)
REQUEST = SlotRequest(KEY, SECOND, "w", max_wait=60)


class OneQueue:
    """A store with its own clock, whose shards can be down. It records its calls."""

    def __init__(self, clocks: StoreClocks) -> None:
        self.down: set[int] = set()
        self.clocks = clocks
        self.now = 5000.0
        self.queue = QueueState(self.now)
        self.closed_for: list[float] = []
        self.known: list[QueueState] = []
        self.backoff_until = 0.0
        self.least = 0.0
        self.pings = 0
        self.refuses_reports = False
        self.shards: dict[PaceKey, int] = {}
        self.pages: list[PageReports] = []

    def shard_of(self, key: PaceKey) -> int:
        return self.shards.get(key, 0)

    async def reserve(
        self,
        request: SlotRequest,
        known: QueueState,
        backoff: float = 0.0,
        *,
        closed_for: float,
        closed_if_behind: float,
        pages: PageReports = NO_PAGES,
    ) -> tuple[SlotResult, QueueView]:
        self._fail(request.key)
        clock = self.clocks.of(self.shard_of(request.key))
        clock.sync_reply(self.now, clock.steady())
        given_back = self._learn(backoff)
        self.closed_for.append(closed_for)
        self.known.append(known)
        self.pages.append(pages)
        go = max(self.now + closed_for, self.queue.ends)
        reply: SlotResult = WaitTooLong(go - self.now, go - self.now, 1.0)
        if go - self.now <= request.max_wait:
            self.queue = QueueState(go + request.cost, self.queue.given + 1)
            reply = Slot(request.key, f"{self.queue.given}", go, go - self.now, 1.0)
        return reply, QueueView(
            self.queue._replace(seen_at=self.now), self.backoff_until, given_back=given_back, least=self.least
        )

    async def release(self, key: PaceKey, name: str) -> bool:
        self._fail(key)
        return True

    async def back_off(self, key: PaceKey, retry_after: float, reporter: str | None, known: float = 0.0) -> float:
        self._fail(key)
        self.backoff_until = self.now + retry_after
        return retry_after

    async def give_back(self, key: PaceKey, backoff: float) -> bool:
        self._fail(key)
        if self.refuses_reports:
            raise StoreDown("it refuses reports")
        return self._learn(backoff)

    def _learn(self, backoff: float) -> bool:
        later = self.now + backoff > max(self.backoff_until, self.now)
        self.backoff_until = max(self.backoff_until, self.now + backoff) if later else self.backoff_until
        return later

    async def ping(self, shard: int) -> None:
        self.pings += 1
        if shard in self.down:
            raise StoreDown("it is down")

    def _fail(self, key: PaceKey) -> None:
        if self.shard_of(key) in self.down:
            raise StoreDown("it is down")


async def idle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Rig:
    """A pacer whose clock is an hour behind the store's. It sleeps until the test lets time pass."""

    def __init__(self, fleet: int | None = 1, ranks: tuple[Rank, ...] | None = None) -> None:
        self.clock, self.monotonic = 1400.0, 0.0
        clocks = StoreClocks(lambda: self.clock, lambda: self.monotonic)
        self.store = OneQueue(clocks)
        self.sleepers: list[tuple[float, asyncio.Event]] = []
        self.pacer = Pacer(cast("RedisPacer", self.store), LocalPacer(fleet, lambda: ranks), clocks, self.sleep)

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        self.sleepers.append((self.monotonic + seconds, awake))
        await awake.wait()

    async def later(self, seconds: float) -> None:
        await idle()
        self.clock += seconds
        self.monotonic += seconds
        self.store.now += seconds
        for until, awake in self.sleepers:
            if until <= self.monotonic:
                awake.set()
        await idle()

    async def reserve(self, request: SlotRequest = REQUEST) -> Grant:
        return await self.pacer.reserve(request)

    async def lose_the_store(self) -> None:
        """Wait until the process gives slots by itself."""
        self.store.down = {0, 1}
        await self.reserve()
        await self.later(PROBE_INTERVAL)

    async def find_the_store(self) -> None:
        self.store.down = set()
        await self.later(PROBE_INTERVAL)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.pacer.aclose()


def go_at(grant: Grant) -> float:
    assert isinstance(grant.result, Slot), grant
    return grant.result.go_at


async def test_slots_come_from_a_store_that_answers(rig: Rig) -> None:
    grants = [await rig.reserve() for _ in range(3)]
    assert [grant.degraded for grant in grants] == [False] * 3
    assert [grant.result.wait for grant in grants] == [0, 1, 2]
    assert rig.store.closed_for == [0, 0, 0]
    assert [known.given for known in rig.store.known] == [0, 1, 2]


async def test_a_brief_store_failure_asks_callers_to_come_back(rig: Rig) -> None:
    await rig.reserve()
    rig.store.down = {0}
    grants = await asyncio.gather(*(rig.reserve() for _ in range(20)))
    assert all(grant.degraded and grant.result == WaitTooLong(PROBE_INTERVAL, PROBE_INTERVAL, 1.0) for grant in grants)
    rig.store.down = set()
    grant = await rig.reserve()
    assert (grant.degraded, rig.store.closed_for) == (False, [0, 0])
    await rig.later(PROBE_INTERVAL)
    assert rig.store.pings == 1
    assert rig.store.closed_for == [0, 0]


async def test_slots_are_local_while_the_store_stays_away(rig: Rig) -> None:
    await rig.reserve()
    await rig.lose_the_store()
    grants = []
    for _ in range(5):
        grants.append(await rig.reserve())
        await rig.later(1.0)
    goes = [go_at(grant) for grant in grants]
    assert all(grant.degraded for grant in grants)
    assert all(later - first >= 1 - 1e-6 for first, later in pairwise(goes))


async def test_local_pacer_starts_after_last_known_slot(rig: Rig) -> None:
    await rig.reserve()
    await rig.lose_the_store()
    grant = await rig.reserve()
    assert isinstance(grant.result, Slot)
    assert grant.result.name == LOCAL_SLOT
    # After the known slot, and one unknown slot of another process.
    assert grant.result.go_at == pytest.approx(5002)
    assert grant.result.wait == pytest.approx(2 - PROBE_INTERVAL)


async def test_local_pacer_expects_a_queue_as_deep_as_it_was(rig: Rig) -> None:
    for _ in range(4):
        await rig.reserve()
    await rig.later(10.0)
    await rig.lose_the_store()
    # The queue was 4 s deep when seen, and others may have kept it so until the store failed.
    grant = await rig.reserve()
    assert isinstance(grant.result, WaitTooLong)
    await rig.later(grant.result.retry_after)
    assert go_at(await rig.reserve()) == pytest.approx(5010 + 4 + 1)


async def test_local_pacer_leaves_an_interval_after_the_failure(rig: Rig) -> None:
    slow = REQUEST._replace(windows=(PaceWindow(math.inf, 10.0),))
    await rig.reserve(REQUEST._replace(key=PaceKey.of(HOST, "OtherBot")))
    await rig.lose_the_store()
    grant = await rig.reserve(slow)
    assert isinstance(grant.result, WaitTooLong)
    assert grant.result.wait == pytest.approx(10 - PROBE_INTERVAL)


async def test_recovered_queues_are_closed_and_learn_local_slots(rig: Rig) -> None:
    await rig.reserve()
    await rig.lose_the_store()
    given = go_at(await rig.reserve())
    rig.store.down = set()
    back = await rig.reserve()
    assert not back.degraded
    assert back.result.wait == pytest.approx(RECOVERY_PERIOD)
    known = rig.store.known[-1]
    assert known.ends - known.seen_at == pytest.approx(given + 1 + SLACK - rig.store.now)
    await rig.later(1.0)
    await rig.reserve()
    await rig.later(RECOVERY_PERIOD)
    await rig.reserve()
    assert [rig.store.closed_for[at] for at in (0, 1, -2, -1)] == pytest.approx(
        [0, RECOVERY_PERIOD, RECOVERY_PERIOD - 1, 0]
    )


async def test_local_slots_are_reported_without_any_caller(rig: Rig) -> None:
    slow = REQUEST._replace(windows=(PaceWindow(math.inf, 30.0),))
    await rig.reserve(slow)
    await rig.lose_the_store()
    await rig.later(30.0)
    given = go_at(await rig.reserve(slow))
    await rig.find_the_store()
    known = rig.store.known[-1]
    assert known.ends - known.seen_at == pytest.approx(given + 30 - rig.store.now)
    assert rig.store.closed_for[-1] > 0


async def test_a_failing_shard_does_not_affect_the_others(rig: Rig) -> None:
    other = REQUEST._replace(key=PaceKey.of(HOST, "OtherBot"))
    rig.store.shards[other.key] = 1
    await rig.reserve()
    rig.store.down = {0}
    for _ in range(4):
        assert (await rig.reserve()).degraded
        assert not (await rig.reserve(other)).degraded
        await rig.later(PROBE_INTERVAL)
    rig.store.down = set()
    await rig.reserve(other)
    assert set(rig.store.closed_for) == {0}
    assert (await rig.reserve()).result.wait >= RECOVERY_PERIOD


async def test_a_fleet_backoff_holds_without_the_store(rig: Rig) -> None:
    rig.store.backoff_until = rig.store.now + 600
    await rig.reserve()
    await rig.lose_the_store()
    other = REQUEST._replace(key=PaceKey.of(HOST, "OtherBot"))
    grant = await rig.reserve(other)
    assert isinstance(grant.result, WaitTooLong)
    assert grant.result.wait == pytest.approx(600 - PROBE_INTERVAL)


async def test_processes_that_learned_two_paces_keep_apart_without_the_store() -> None:
    rigs = [Rig(None, (Rank(number, 3),)) for number in range(3)]
    request = REQUEST._replace(windows=(PaceWindow(math.inf, 0.1),), max_wait=1.0)
    for rig, least in zip(rigs, (0.30, 0.31, 0.29), strict=True):
        rig.store.least = least
        await rig.reserve()
        await rig.lose_the_store()
    taken = []
    for _ in range(200):
        for rig in rigs:
            await rig.later(0.05)
            grant = await rig.reserve(request)
            taken += [go_at(grant)] if isinstance(grant.result, Slot) else []
    assert len(taken) > 10
    assert all(later >= go + 0.31 for go, later in pairwise(sorted(taken)))
    for rig in rigs:
        await rig.pacer.aclose()


async def test_page_times_wait_for_a_store_that_answers(rig: Rig) -> None:
    slot = SlotRef("https://www.example.com", KEY, "1:ab:w", 1000.0)
    rig.pacer.note_page(KEY, slot, 200, 3.0)
    rig.store.down = {0}
    for _ in range(2):
        assert (await rig.reserve()).degraded
    await rig.find_the_store()
    await rig.reserve()
    assert [pages for pages in rig.store.pages if pages != NO_PAGES] == [PageReports(1, 3.0, False, True)]


async def test_without_a_known_fleet_size_no_slot_is_given() -> None:
    rig = Rig(None)
    await rig.lose_the_store()
    grant = await rig.reserve()
    assert grant == Grant(WaitTooLong(UNKNOWN_FLEET_RETRY, UNKNOWN_FLEET_RETRY, 1.0), True)
    await rig.find_the_store()
    assert not (await rig.reserve()).degraded
    await rig.pacer.aclose()


async def test_outcomes_go_to_the_store_or_are_reported_later(rig: Rig) -> None:
    assert await rig.pacer.release(KEY, "1") == (1, False)
    assert await rig.pacer.release(KEY, LOCAL_SLOT) == (0, False)
    assert await rig.pacer.back_off(KEY, 30.0) == (30, False)
    await rig.lose_the_store()
    assert await rig.pacer.release(KEY, "1") == (0, True)
    assert await rig.pacer.back_off(KEY, 60.0) == (60, True)
    await rig.later(20)
    grant = await rig.reserve()
    assert (grant.degraded, isinstance(grant.result, WaitTooLong)) == (True, True)
    assert grant.result.wait == pytest.approx(40)
    rig.store.backoff_until = 0.0
    await rig.find_the_store()
    assert rig.store.backoff_until - rig.store.now == pytest.approx(40 - PROBE_INTERVAL)


async def test_one_reporter_without_the_store_gets_the_unconfirmed_maximum(rig: Rig) -> None:
    await rig.lose_the_store()
    assert await rig.pacer.back_off(KEY, 0.0, "one") == (FIRST_BACKOFF, True)
    assert await rig.pacer.back_off(KEY, 86_400.0, "one") == (MAX_UNCONFIRMED, True)
    assert await rig.pacer.back_off(KEY, 5.0, "two") == (MAX_UNCONFIRMED, True)
    assert await rig.pacer.back_off(KEY, 1e12) == (MAX_CONFIRMED, True)  # an operator
    other = REQUEST._replace(key=PaceKey.of(HOST, "OtherBot"))
    assert isinstance((await rig.reserve(other)).result, WaitTooLong)
    await rig.later(MAX_CONFIRMED)
    assert isinstance((await rig.reserve(other)).result, Slot)


async def test_a_backoff_reported_in_a_brief_failure_reaches_the_store(rig: Rig) -> None:
    rig.store.down = {0}
    assert await rig.pacer.back_off(KEY, 60.0, "one") == (60, True)
    rig.store.down = set()
    await rig.later(PROBE_INTERVAL)
    assert rig.store.backoff_until - rig.store.now == pytest.approx(60 - PROBE_INTERVAL)
    assert rig.store.closed_for == []  # no slot was given without the store, so no queue is closed


async def test_a_backoff_is_told_with_the_next_slot(rig: Rig) -> None:
    await rig.pacer.back_off(KEY, 600.0)
    rig.store.backoff_until = 0.0
    await rig.reserve(REQUEST._replace(key=PaceKey.of(HOST, "OtherBot")))
    assert rig.store.backoff_until - rig.store.now == pytest.approx(600)


async def test_a_report_that_fails_is_made_again_without_any_caller(rig: Rig) -> None:
    rig.store.down = {0}
    await rig.pacer.back_off(KEY, 600.0)
    await rig.later(PROBE_INTERVAL)
    rig.store.refuses_reports = True
    rig.store.down = set()
    for _ in range(REPORT_ATTEMPTS + 2):
        await rig.later(PROBE_INTERVAL)
    assert rig.store.backoff_until == 0
    rig.store.refuses_reports = False
    for _ in range(REPORT_ATTEMPTS + 2):
        await rig.later(PROBE_INTERVAL)
    assert rig.store.backoff_until > rig.store.now + 500
