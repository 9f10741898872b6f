"""The pace that follows: the scripts in a real Valkey, whose clock is moved, compared with a plain model."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from app.pacing.law import AHEAD_SLOTS, FAR_SLOTS
from app.pacing.page_times import NO_PAGES, PageReports
from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, QueueView, Slot, SlotRequest, SlotResult, WaitTooLong
from app.store.guarded_client import GuardedClient
from tests.engines import Node, client_of
from tests.pacing.server_clock import ServerClock, clocked

KEY = PaceKey.of("www.example.com", "ExampleBot")
CAP = 60.0
FACTOR = 1.2


@dataclass
class Model:
    """What the queue knows; durations in seconds."""

    latency: float = 0.0
    recent: float = 0.0
    apart: float = 0.0
    told: float = 0.0
    page_at: float = 0.0
    reports: int = 0
    run: float = 0.0
    pace: float = 0.0
    bad: float = 0.0
    bad_at: float = 0.0
    refused_at: float = 0.0
    refused_until: float = 0.0
    forgotten_at: float = math.inf

    def forget(self, now: float) -> None:
        """Lose what has expired: the queue, and a refusal after three hours."""
        if now > self.forgotten_at:
            self.latency = self.recent = self.apart = self.told = self.page_at = self.run = self.pace = 0.0
            self.reports = 0
        if now > self.refused_at + 3 * 3600:
            self.bad = self.bad_at = 0.0

    def learn(self, now: float, pages: PageReports) -> bool:
        """Take a hand-over; return whether a run of time-outs begins."""
        count = pages.pages
        if pages.succeeded:
            self.page_at = now
        if count:
            mean = min(max(pages.mean, 0.001), 60.0)
            if self.reports >= 8:
                mean = min(mean, 8 * max(self.latency, self.recent / 1.5))
            early = count / (self.reports + count) if self.reports < 8 else 0.0
            since = min(now - self.told, 60.0) if self.reports else 0.0
            self.apart = self.apart or since / count
            weight = (count * self.apart + max(0.0, since - 4 * self.apart)) / 60
            self.latency += max(early, min(0.25, weight)) * (mean - self.latency)
            self.recent += max(early, min(0.5, count / 16)) * (mean - self.recent)
            self.apart += min(0.5, count / 16) * (since / count - self.apart)
            self.told, self.reports = now, min(self.reports + count, 8)
        begins = pages.timed_out and now >= self.run
        if begins:
            self.latency = max(self.latency, min(2 * self.latency, 30.0))
        return begins

    def refuse(self, now: float, until: float) -> None:
        """A page was refused; a new run begins if the backoff of the last one is over."""
        if now >= self.refused_until and not (self.bad > 0 and self.page_at <= self.bad_at):
            self.bad, self.bad_at = self.pace, now
        self.refused_at, self.refused_until = now, until

    def least(self, now: float) -> tuple[float, str]:
        """The least interval, and what decided it."""
        by_latency = min(FACTOR * max(self.latency, self.recent / 1.5), 30.0) if self.reports else 0.0
        penalty = 0.0
        if self.bad:
            age, quick = now - self.bad_at, 60 * math.log2(1.6)
            left = 2 * 0.5 ** (age / 60) if age < quick else 1.25 * 0.5 ** ((age - quick) / 3600)
            penalty = self.bad * left
        penalty = min(penalty, CAP)
        return (penalty, "backoff") if penalty > by_latency else (by_latency, "latency")


@dataclass(frozen=True)
class Step:
    """After `pause` seconds, a hand-over and a request for a slot, and maybe then a refusal."""

    pause: int
    pages: PageReports
    own: float
    refused: bool


pages = st.builds(
    PageReports,
    st.integers(0, 40),
    st.floats(0.0, 90.0) | st.floats(0.01, 0.5),
    st.booleans() | st.just(False),
    st.booleans(),
)
pauses = st.sampled_from([0, 1, 2, 5, 30, 60, 300, 500, 700, 4000])
steps = st.builds(Step, pauses, pages, st.sampled_from([0.05, 1.0, 10.0]), st.sampled_from([False, False, True]))


@pytest.fixture(scope="module")
def clocked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerClock, Node]]:
    with clocked(tmp_path_factory.mktemp("clock")) as both:
        yield both


async def ask(
    pace: RedisPacer, own: float, pages: PageReports = NO_PAGES, max_wait: float = 3600.0
) -> tuple[SlotResult, QueueView]:
    request = SlotRequest(KEY, (PaceWindow(math.inf, own),), "w", max_wait=max_wait, cap=CAP)
    return await pace.reserve(request, QueueState(), closed_for=0.0, closed_if_behind=0.0, pages=pages)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@example(
    taken=[
        Step(0, PageReports(1, 0.0), 1.0, refused=True),
        Step(30, NO_PAGES, 0.05, refused=True),
        Step(30, PageReports(succeeded=True), 0.05, refused=False),
        Step(0, NO_PAGES, 0.05, refused=True),
        Step(0, NO_PAGES, 0.05, refused=False),
        Step(0, NO_PAGES, 10.0, refused=False),
        Step(30, NO_PAGES, 0.05, refused=False),
    ]
)
@given(taken=st.lists(steps, min_size=3, max_size=10))
async def test_the_script_follows_the_law(clocked_server: tuple[ServerClock, Node], taken: list[Step]) -> None:
    clock, server = clocked_server
    server.ask("FLUSHALL")
    model, ahead, end, slots = Model(), 0, 0.0, AHEAD_SLOTS
    async with client_of(server) as client:
        for step in taken:
            ahead += step.pause
            clock.set(server, ahead)
            # A process that has just started does not know that the clock was moved, so the time has passed.
            pace = RedisPacer(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
            result, view = await ask(pace, step.own, step.pages)
            now = view.queue.seen_at
            assume(abs(now - model.forgotten_at) > 5)
            model.forget(now)
            begins = model.learn(now, step.pages)
            least, bound = model.least(now)
            assert view.latency == pytest.approx(model.latency, rel=5e-4, abs=2e-5)  # some milliseconds apart, too
            assert view.least == pytest.approx(least, rel=2e-3, abs=2e-5)  # a refusal is some milliseconds older
            assert least == 0 or view.bound == bound
            assert result.interval == pytest.approx(max(step.own, view.least), abs=2e-5)
            assert result.bound == (view.bound if view.least > step.own + 1e-6 else "floor")
            if isinstance(result, Slot):
                assert result.go_at >= end - 1e-5
                assert not model.reports or result.wait <= max(2.0, slots * result.interval) + 1e-5
                end, model.pace = result.go_at + result.interval, result.interval
            else:
                slots = FAR_SLOTS  # the caller has a turn from here on
            model.forgotten_at = max(now, view.queue.ends) + 600
            if begins:
                model.run = max(now, view.queue.ends) + 1.0
            if step.refused:
                seconds = await pace.back_off(KEY, 0.0)
                model.refuse(now, now + seconds)


@pytest.mark.parametrize(
    ("pages", "times"),
    [(PageReports(succeeded=True), 2.0), (PageReports(1, 0.1, succeeded=True), 2.0), (PageReports(1, 9.0), 1.0)],
)
async def test_a_refusal_counts_if_a_page_came_since_the_last_one(
    clocked_server: tuple[ServerClock, Node], pages: PageReports, times: float
) -> None:
    clock, server = clocked_server
    server.ask("FLUSHALL")
    clock.set(server, 0)
    async with client_of(server) as client:
        guarded = GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0)
        await ask(RedisPacer(guarded, latency_factor=0.0), 1.0)
        await RedisPacer(guarded).back_off(KEY, 0.0)
        clock.set(server, 20)
        slot, _ = await ask(RedisPacer(guarded, latency_factor=0.0), 1.0, pages)
        assert 1.5 < slot.interval < 1.7
        await RedisPacer(guarded).back_off(KEY, 0.0)
        _, view = await ask(RedisPacer(guarded, latency_factor=0.0), 1.0)
        assert view.least == pytest.approx(times * slot.interval, rel=0.05)


async def test_a_slow_page_weighs_no_more_because_its_report_comes_late(
    clocked_server: tuple[ServerClock, Node],
) -> None:
    clock, server = clocked_server
    server.ask("FLUSHALL")
    ahead = 0
    async with client_of(server) as client:
        guarded = GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0)
        for turn in range(80):
            seconds, apart = ((0.1, 2), (1.0, 8))[turn % 2]
            ahead += apart
            clock.set(server, ahead)
            _, view = await ask(RedisPacer(guarded), 0.05, PageReports(1, seconds))
            assert turn < 40 or view.latency == pytest.approx(0.55, abs=0.1)


async def test_a_page_after_a_long_silence_weighs_a_quarter(clocked_server: tuple[ServerClock, Node]) -> None:
    clock, server = clocked_server
    server.ask("FLUSHALL")
    async with client_of(server) as client:
        guarded = GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0)
        for second in range(20):
            clock.set(server, second)
            await ask(RedisPacer(guarded), 0.05, PageReports(1, 1.0))
        clock.set(server, 60)
        _, view = await ask(RedisPacer(guarded), 0.05, PageReports(1, 5.0))
    assert view.latency == pytest.approx(2.0, abs=0.1)


async def slowed(pace: RedisPacer, seconds: float) -> tuple[SlotResult, QueueView]:
    """A slot after eight pages that took so long."""
    return await ask(pace, 0.05, PageReports(8, seconds))


async def test_without_latency_only_refusals_are_followed(store_client: Redis) -> None:
    guarded = GuardedClient(store_client, monotonic=time.monotonic, timeout=20.0)
    result, view = await slowed(RedisPacer(guarded, latency_factor=0.0), 2.0)
    assert (result.interval, result.bound) == (0.05, "floor")
    assert view.latency == pytest.approx(2.0)
    assert isinstance((await ask(RedisPacer(guarded, latency_factor=0.0), 0.05, max_wait=60))[0], Slot)


async def test_slots_are_given_far_ahead_until_pages_are_reported(store_client: Redis) -> None:
    pace = RedisPacer(GuardedClient(store_client, monotonic=time.monotonic, timeout=20.0))
    waits = [(await ask(pace, 1.0, max_wait=60))[0].wait for _ in range(20)]
    assert waits[-1] == pytest.approx(19, abs=1)
    refused, _ = await ask(pace, 1.0, PageReports(1, 0.1), max_wait=60)
    assert isinstance(refused, WaitTooLong)
    assert refused.retry_after == pytest.approx(refused.wait - 8, abs=0.01)


@pytest.mark.parametrize(
    "poison",
    [
        dict.fromkeys(("latency", "recent", "apart", "told", "reports", "run", "pace"), value)
        for value in ("x", "nan", "inf", "-1", "1e300", "9" * 40)
    ],
)
async def test_foreign_state_breaks_nothing(store_client: Redis, poison: dict[Any, Any]) -> None:
    pace = RedisPacer(GuardedClient(store_client, monotonic=time.monotonic, timeout=20.0))
    await slowed(pace, 0.5)
    await store_client.hset(keys_of(KEY)[3], mapping=poison)
    await store_client.hset(keys_of(KEY)[2], mapping={"bad": poison["pace"], "bad_at": poison["told"]})
    for _ in range(2):
        result, view = await slowed(pace, 0.5)
        assert 0 <= view.latency <= 60
        assert 0.05 <= result.interval <= CAP
    await pace.back_off(KEY, 0.0)
    assert 0.05 <= (await slowed(pace, 0.5))[0].interval <= CAP
