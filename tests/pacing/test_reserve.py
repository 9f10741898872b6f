"""The script that reserves slots, in a real Valkey, compared with a simple reference."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from redis.asyncio import Redis

from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow, at_least
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, SlotResult, WaitTooLong
from app.store.connect import Client, connect
from app.store.guarded_client import GuardedClient
from tests.engines import cluster_url, clustered

HOST = "www.example.com"
KEY = PaceKey.of(HOST, "ExampleBot")
KEYS = keys_of(KEY)
KEPT, UNTIL, PLACE, OWN = KEYS[:4]
NEW = QueueState()
SECOND = (PaceWindow(math.inf, 1.0),)
SLOW = (PaceWindow(math.inf, 10.0),)
MICRO = 1_000_000


def pace_of(client: Client) -> RedisPacer:
    return RedisPacer(GuardedClient(client, monotonic=time.monotonic, timeout=20.0))


@pytest.fixture
def pace(store_client: Redis) -> RedisPacer:
    return pace_of(store_client)


async def asked(
    pace: RedisPacer,
    request: SlotRequest,
    known: QueueState = NEW,
    closed_for: float = 0.0,
    closed_if_behind: float = 3.0,
) -> SlotResult:
    reply, _ = await pace.reserve(request, known, closed_for=closed_for, closed_if_behind=closed_if_behind)
    return reply


async def given(pace: RedisPacer, request: SlotRequest) -> Slot:
    reply = await asked(pace, request)
    assert isinstance(reply, Slot), reply
    return reply


def offsets(slots: list[Slot]) -> list[float]:
    return [round(slot.go_at - slots[0].go_at, 4) for slot in slots]


async def test_slots_start_now_and_are_an_interval_apart(pace: RedisPacer) -> None:
    slots = [await given(pace, SlotRequest(KEY, SECOND, f"w{at}", max_wait=60)) for at in range(5)]
    assert slots[0].wait == 0
    assert offsets(slots) == [0, 1, 2, 3, 4]


async def test_the_keys_of_a_queue_expire_except_shared_ones(pace: RedisPacer, store_client: Redis) -> None:
    await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=60))
    await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=60))
    await pace.back_off(KEY, 5)
    await given(pace, SlotRequest(KEY, SLOW, "A/w", max_wait=60))
    keys = {*KEYS, *keys_of(KEY, "A")}
    assert set(await store_client.keys("*")) == {key.encode() for key in keys}
    assert [await store_client.pttl(key) for key in (KEPT, UNTIL)] == [-1, -1]
    assert all([0 < await store_client.pttl(key) < 4 * 3600 * 1000 for key in keys - {KEPT, UNTIL}])


async def test_each_agent_of_an_origin_has_its_own_queue(pace: RedisPacer) -> None:
    await given(pace, SlotRequest(KEY, SLOW, "w"))
    assert (await given(pace, SlotRequest(PaceKey.of(HOST, "OtherBot"), SLOW, "w"))).wait == 0
    assert isinstance(await asked(pace, SlotRequest(PaceKey.of(HOST, "EXAMPLEBOT"), SLOW, "w")), WaitTooLong)


async def test_a_wait_too_long_reserves_nothing_and_gives_retry_after(pace: RedisPacer) -> None:
    await given(pace, SlotRequest(KEY, SECOND, "w", cost=100, max_wait=1))
    reply = await asked(pace, SlotRequest(KEY, SECOND, "x", max_wait=40))
    assert isinstance(reply, WaitTooLong)
    assert 90 < reply.wait <= 100
    assert 50 < reply.retry_after <= 60
    assert 90 < (await given(pace, SlotRequest(KEY, SECOND, "x", max_wait=200))).wait <= 100


async def test_retry_after_is_never_immediate(pace: RedisPacer) -> None:
    await given(pace, SlotRequest(KEY, SLOW, "w", cost=5.0001, max_wait=1))
    reply = await asked(pace, SlotRequest(KEY, SLOW, "x", max_wait=49))
    assert isinstance(reply, WaitTooLong)
    assert reply.retry_after == 10


async def test_a_boundary_between_now_and_the_slot_counts(pace: RedisPacer) -> None:
    now = (await given(pace, SlotRequest(KEY, SLOW, "w", cost=0.01))).go_at
    # Two seconds at the slow pace count for a fifth of a document; the other four fifths come at the fast one.
    slow_then_fast = (PaceWindow(now + 2.1, 10.0), PaceWindow(math.inf, 1.0))
    second = await given(pace, SlotRequest(KEY, slow_then_fast, "w", max_wait=60))
    assert math.isclose(second.go_at - now, 0.1, abs_tol=0.001)
    third = await given(pace, SlotRequest(KEY, slow_then_fast, "w", max_wait=60))
    assert math.isclose(third.go_at - now, 0.1 + 2.0 + 0.8, abs_tol=0.001)


async def test_the_fetch_of_robots_txt_is_charged_once(pace: RedisPacer) -> None:
    now = time.time()
    slots = [await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=60, fetched_at=now)) for _ in range(2)]
    assert 9 < slots[0].wait <= 10
    assert offsets(slots) == [0, 10]
    again = await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=90, fetched_at=now + 0.5))
    assert offsets([slots[0], again]) == [0, 30]


async def test_a_fetch_by_a_clock_ahead_is_charged_once(pace: RedisPacer) -> None:
    now = time.time()
    slots = [await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=60, fetched_at=now + 3600)) for _ in range(2)]
    assert 9 < slots[0].wait <= 10
    slots.append(await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=60, fetched_at=now + 3599)))
    assert offsets(slots) == [0, 10, 20]


async def test_an_old_fetch_is_not_charged(pace: RedisPacer) -> None:
    assert (await given(pace, SlotRequest(KEY, SLOW, "w", fetched_at=time.time() - 11))).wait == 0


async def test_a_released_slot_goes_to_the_next_caller(pace: RedisPacer) -> None:
    slots = [await given(pace, SlotRequest(KEY, SLOW, f"w{at}", max_wait=60)) for at in range(4)]
    assert await pace.release(KEY, slots[2].name)
    assert not await pace.release(KEY, slots[2].name)
    assert not await pace.release(KEY, "1:ab:nobody")
    assert offsets([slots[0], await given(pace, SlotRequest(KEY, SLOW, "x", max_wait=60))]) == [0, 20]
    assert offsets([slots[0], await given(pace, SlotRequest(KEY, SLOW, "x", max_wait=60))]) == [0, 40]


async def test_a_slot_released_late_leaves_no_trace(pace: RedisPacer) -> None:
    first, second = [await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=60)) for _ in range(2)]
    assert await pace.release(KEY, first.name)
    assert await pace.release(KEY, second.name)
    assert (await given(pace, SlotRequest(KEY, SLOW, "w", cost=3))).wait == 0
    assert 29 < (await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=60))).wait <= 30


async def test_a_busy_caller_leaves_gaps_for_another(pace: RedisPacer) -> None:
    await given(pace, SlotRequest(KEY, SECOND, "single"))
    many = [await given(pace, SlotRequest(KEY, SECOND, "many", max_wait=3600)) for _ in range(100)]
    for _ in range(5):
        assert (await given(pace, SlotRequest(KEY, SECOND, "single", max_wait=20))).wait < 17
    assert many[-1].wait > 190


async def test_a_newcomer_gets_a_slot_among_a_hundred_of_another(pace: RedisPacer) -> None:
    many = [await given(pace, SlotRequest(KEY, SECOND, "many", max_wait=3600)) for _ in range(100)]
    assert 99 < many[-1].wait < 112
    assert (await given(pace, SlotRequest(KEY, SECOND, "single", max_wait=3600))).wait <= 10.1


async def test_a_near_gap_is_open_to_all_callers(pace: RedisPacer) -> None:
    await given(pace, SlotRequest(KEY, SECOND, "other"))
    many = [await given(pace, SlotRequest(KEY, SECOND, "many", max_wait=3600)) for _ in range(20)]
    assert await pace.release(KEY, many[1].name)
    assert offsets([many[1], await given(pace, SlotRequest(KEY, SECOND, "many", max_wait=3600))]) == [0, 0]


async def test_a_backoff_holds_for_all_agents(pace: RedisPacer) -> None:
    assert 9 < await pace.back_off(KEY, 0) <= 10
    for agent in ("ExampleBot", "OtherBot"):
        assert 9 < (await given(pace, SlotRequest(PaceKey.of(HOST, agent), SECOND, "w", max_wait=60))).wait <= 10
    other = PaceKey.of("other.example", "ExampleBot")
    assert (await given(pace, SlotRequest(other, SECOND, "w"))).wait == 0


async def test_failures_of_one_burst_count_once(pace: RedisPacer) -> None:
    for _ in range(5):
        assert 9 < await pace.back_off(KEY, 0) <= 10
    assert 119 < await pace.back_off(KEY, 120) <= 120
    assert 118 < await pace.back_off(KEY, 60) <= 120
    assert 86_399 < await pace.back_off(KEY, 1e9) <= 86_400


async def test_a_backoff_doubles_to_its_maximum_and_resets(pace: RedisPacer, store_client: Redis) -> None:
    async def over(since: float) -> None:
        """The state `seconds` after the end."""
        await store_client.hset(PLACE, "until", f"{(time.time() - since) * MICRO:.0f}")
        await store_client.delete(KEPT)

    seconds = []
    for _ in range(11):
        seconds.append(round(await pace.back_off(KEY, 0)))
        await over(1)
    assert seconds == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]
    await over(601)
    assert round(await pace.back_off(KEY, 0)) == 3600
    await over(3601)
    assert round(await pace.back_off(KEY, 0)) == 10


async def test_a_recovering_queue_is_closed_and_respects_known_slots(
    pace: RedisPacer,
) -> None:
    known = QueueState(time.time() + 30, 7, time.time())
    first = await asked(pace, SlotRequest(KEY, SECOND, "w", max_wait=60), known, closed_for=5.0)
    assert isinstance(first, Slot)
    assert 29 < first.wait <= 30
    other = PaceKey.of(HOST, "OtherBot")
    second = await asked(pace, SlotRequest(other, SECOND, "w", max_wait=60), closed_for=5.0)
    assert isinstance(second, Slot)
    assert 4 < second.wait <= 5
    third = await given(pace, SlotRequest(other, SECOND, "x", max_wait=60))
    assert offsets([second, third]) == [0, 1]


async def test_a_process_reports_slots_that_a_server_lost(pace: RedisPacer, store_client: Redis) -> None:
    queue = NEW
    for _ in range(6):
        _, seen = await pace.reserve(
            SlotRequest(KEY, SECOND, "w", max_wait=60), queue, closed_for=0, closed_if_behind=3
        )
        queue = seen.queue
    assert queue.given == 6
    await store_client.flushall()
    reply = await asked(pace, SlotRequest(KEY, SECOND, "w", max_wait=60), queue)
    assert isinstance(reply, Slot)
    # Processes remember a duration, which needs no common clock; part of it has passed.
    assert queue.ends - 1e-5 <= reply.go_at <= queue.ends + (reply.go_at - reply.wait - queue.seen_at) + 1e-5


async def test_remembering_a_released_slot_changes_nothing(pace: RedisPacer) -> None:
    slot = await given(pace, SlotRequest(KEY, SLOW, "w"))
    _, seen = await pace.reserve(SlotRequest(KEY, SLOW, "w", max_wait=60), NEW, closed_for=0, closed_if_behind=3)
    assert await pace.release(KEY, slot.name)
    reply = await asked(pace, SlotRequest(KEY, SLOW, "w", cost=0.5), seen.queue)
    assert isinstance(reply, Slot)
    assert reply.wait == 0


async def test_the_largest_slot_lasts_a_month(pace: RedisPacer) -> None:
    day = (PaceWindow(math.inf, 86_400.0),)
    await given(pace, SlotRequest(KEY, day, "w", cost=1000))
    reply = await asked(pace, SlotRequest(KEY, SECOND, "w", max_wait=3600))
    assert isinstance(reply, WaitTooLong)
    assert round(reply.wait / 86_400) == 30


async def test_a_full_queue_gives_no_slot(pace: RedisPacer, store_client: Redis) -> None:
    now = time.time() * MICRO
    for start in range(0, 10_000, 1000):
        ends = [round(now + 60 * MICRO + at * 1000) for at in range(start, start + 1000)]
        await store_client.zadd(f"{OWN}:slots", {f"{end + 1000}:ab:w": end for end in ends})
    reply = await asked(pace, SlotRequest(KEY, SECOND, "w", max_wait=3600))
    assert isinstance(reply, WaitTooLong)


# Servers.


async def test_a_server_without_the_scripts_is_sent_them_again(pace: RedisPacer, store_client: Redis) -> None:
    slot = await given(pace, SlotRequest(KEY, SLOW, "w"))
    await store_client.script_flush()
    assert isinstance(await asked(pace, SlotRequest(KEY, SLOW, "w")), WaitTooLong)
    await store_client.script_flush()
    assert await pace.release(KEY, slot.name)


@pytest.fixture
async def cluster() -> AsyncIterator[Client]:
    with clustered(0) as fleet:
        client = connect(cluster_url(fleet))
        yield client
        await client.aclose()


async def test_a_cluster_keeps_a_sites_queues_in_one_hash_slot(cluster: Client) -> None:
    pace = pace_of(cluster)
    for number in range(20):
        key = PaceKey.of(f"{number}.example.com", "ExampleBot")
        slot = await given(pace, SlotRequest(key, SLOW, "w"))
        assert isinstance(await asked(pace, SlotRequest(key, SLOW, "w")), WaitTooLong)
        assert await pace.release(key, slot.name)
        assert await pace.back_off(key, 0) > 9
    assert (await given(pace, SlotRequest(PaceKey.of(HOST, "OtherBot"), SLOW, "w"))).wait == 0


# Foreign values.

Foreign = Callable[[Redis], Awaitable[object]]


def far() -> float:
    return (time.time() + 10**9) * MICRO


def typed(key: str) -> list[Foreign]:
    return [
        lambda client: client.set(key, "foreign"),
        lambda client: client.delete(key),
        lambda client: _replaced(client, key),
    ]


async def _replaced(client: Redis, key: str) -> None:
    await client.delete(key)
    await client.rpush(key, "foreign")


NONSENSE: list[Foreign] = [
    *(poison for key in KEYS for poison in typed(key)),
    lambda client: client.hset(OWN, mapping=dict.fromkeys(("tail", "hint", "hold", "fetched", "counted"), "x")),
    lambda client: client.hset(OWN, mapping=dict.fromkeys(("tail", "hint", "hold", "fetched", "counted"), "nan")),
    lambda client: client.hset(OWN, mapping=dict.fromkeys(("tail", "hint", "hold", "fetched", "count"), "inf")),
    lambda client: client.hset(OWN, mapping=dict.fromkeys(("tail", "hint", "counted", "count"), "-1e300")),
    lambda client: client.hset(OWN, "hint", f"{far():.0f}"),
    lambda client: client.hset(PLACE, mapping={"until": "soon", "step": "-inf"}),
    lambda client: client.hset(PLACE, mapping={"until": "1e300", "step": "1e300"}),
    lambda client: client.hset(f"{OWN}:ahead", mapping={"a": "many", "b": "-7", "c": "1e300"}),
    lambda client: client.zadd(f"{OWN}:slots", {"nonsense": far(), "1:ab:a": math.inf, "x:y:z": -math.inf, "::": 1}),
    lambda client: client.zadd(f"{OWN}:slots", {"9" * 400 + ":ab:a": time.time() * MICRO, "1:ab:a": far()}),
    lambda client: client.zadd(f"{OWN}:slots", {f"{at}{far():.0f}:ab:a": far() + at for at in range(30)}),
    lambda client: client.zadd(f"{OWN}:callers", {"b": math.inf, "zz": far()}),
    lambda client: client.zadd(f"{OWN}:keys", {"A/": math.inf, "B": far(), "": -math.inf}),
    lambda client: client.hset(f"{OWN}:ahead", mapping={"A/": "many", "B/": "1e300", "/": "-1"}),
]


@pytest.mark.parametrize("poison", NONSENSE)
async def test_foreign_values_break_nothing_and_give_no_early_slot(
    poison: Foreign, pace: RedisPacer, store_client: Redis
) -> None:
    callers = [*"abc", "A/a", "B/a"]
    slots = [await given(pace, SlotRequest(KEY, SLOW, caller, max_wait=3600)) for caller in (*"a", *callers)]
    await poison(store_client)
    slots += [await given(pace, SlotRequest(KEY, SLOW, caller, max_wait=3600)) for caller in callers]
    goes = sorted(slot.go_at for slot in slots)
    assert all(later - first > 9.999 for first, later in pairwise(goes))
    await poison(store_client)
    await pace.release(KEY, slots[-1].name)
    assert 0 < await pace.back_off(KEY, 0) <= 86_400 + 3600
    assert isinstance(await asked(pace, SlotRequest(KEY, SLOW, "a", max_wait=0)), WaitTooLong)


@pytest.mark.parametrize("name", ["slots", "callers", "keys"])
async def test_a_foreign_set_of_a_million_members_is_dropped(name: str, pace: RedisPacer, store_client: Redis) -> None:
    first = await given(pace, SlotRequest(KEY, SLOW, "w", cost=360))
    # In pieces: one command of seconds would block the server for this test and the next.
    now = f"{time.time() * MICRO - 500_000:.0f}"
    fill = "for at = 1, 20000 do redis.call('ZADD', KEYS[1], ARGV[1] + ARGV[2] + at, ARGV[2] + at .. ':ab:w') end"
    for begin in range(0, 1_000_000, 20_000):
        await store_client.eval(fill, 1, f"{OWN}:{name}", now, str(begin))
    assert await store_client.zcard(f"{OWN}:{name}") >= 1_000_000
    second = await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=3600))
    assert 3599.9 < second.go_at - first.go_at <= 3600.001
    # It was unlinked as a whole, not scanned.
    assert await store_client.zcard(f"{OWN}:{name}") <= 3


# Any number of callers, costs, waits, paces, releases and faults.

TENS = ((math.inf, 10.0),)
STEPPED = ((25.0, 10.0), (70.0, 2.0), (math.inf, 20.0))


def key_of(caller: str) -> str:
    """The id of the caller's API key; empty without API keys."""
    return caller.rpartition("/")[0]


@dataclass
class Reference:
    """The script's algorithm without its optimisations, in microseconds."""

    booked: list[tuple[int, int, str]] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)
    backoff: int = 0
    hold: int = 0
    fetched: int = 0

    def reserve(self, now: int, request: SlotRequest, hold: int, peek: int) -> int:
        """The instant of the next slot."""
        self.asked[request.caller] = now
        if hold:
            behind = peek > max([end for _, end, _ in self.booked], default=0)
            self.hold = max(self.hold, now + hold, peek if behind else 0)
        self._charge(now, request)
        start = max(now, self.hold, self.backoff)
        go = self._gap(start, start, request)
        ahead = sum(caller == request.caller and at > now for at, _, caller in self.booked)
        active = sum(now - at <= 10 * MICRO for who, at in self.asked.items() if key_of(who) == request.key_id)
        interval = next(span.interval for span in request.windows if start < span.until * MICRO) * MICRO
        keys = 1
        if request.key_id:
            expiry = 10 * MICRO + 20 * interval
            keys = len({key_of(who) for who, at in self.asked.items() if key_of(who) and now - at <= expiry})
        if ahead and go > start + (5 + active) * interval:
            skipped = ahead * active if active > 1 else ahead + 1 + (ahead + 1) // 10
            fair = round(start + skipped * keys * interval)
            go = max(go, self._gap(fair, start, request, lined_up=True)) if fair > go else go
        key_is_ahead = request.key_id and any(key_of(who) == request.key_id and at > now for at, _, who in self.booked)
        if key_is_ahead and go > start + (5 + keys) * interval:
            go = self._gap_of_key(go, now, start, request, keys, round(interval))
        return go

    def _gap_of_key(self, at: int, now: int, start: int, request: SlotRequest, keys: int, interval: int) -> int:
        end = before = due = start
        ahead = False

        def is_new_period(first: int, second: int) -> bool:
            return second // (20 * interval) > first // (20 * interval)

        def fitting(limit: float) -> int | None:
            gap = end + (interval if ahead and is_new_period(before, max(end, at, due)) else 0)
            room = self._end(gap, request, request.cost) - gap
            gap += max(0, max(at, due) - gap) // room * room
            left = interval if ahead and limit < math.inf and is_new_period(gap, int(limit)) else 0
            return gap if self._end(gap, request, request.cost) <= limit - left else None

        booked = sorted(self.booked)
        parts = [[slot for slot in booked if slot[0] > start][:60]]
        latest = self.latest.get(request.key_id, 0)
        skips = [False, len(parts[0]) == 60 and latest > parts[0][-1][0], True]
        if len(parts[0]) == 60:
            parts.append([slot for slot in booked if slot[0] >= max(latest, parts[0][-1][0])][:60])
        if len(parts[-1]) == 60:
            parts.append(booked[-30:])
        parts[0] = [*[slot for slot in booked if slot[0] <= start < slot[1]][-1:], *parts[0]]
        for go, slot_end, caller, skipped in [
            (*slot, skips[part] and place == 0) for part, slots in enumerate(parts) for place, slot in enumerate(slots)
        ]:
            if skipped:
                end, before, due, ahead = max(end, go), go, go, True
            found = fitting(go) if go > end else None
            if found is not None:
                return found
            if key_of(caller) == request.key_id:
                begin = max(go, start)
                took = slot_end - begin
                rest = min(max(due, begin) + took * keys - slot_end, 20 * interval)
                due, ahead = slot_end + max(rest, took * (keys - 1)), ahead or go > now
            end, before = max(end, slot_end), go
        found = fitting(math.inf)
        assert found is not None
        return found

    def book(self, go: int, request: SlotRequest) -> None:
        self.booked.append((go, self._end(go, request, request.cost), request.caller))
        self.latest[request.key_id] = max(go, self.latest.get(request.key_id, 0))

    def _charge(self, now: int, request: SlotRequest) -> None:
        visited = round(request.fetched_at * MICRO)
        if visited > self.fetched:
            self.fetched = visited
            at = min(visited, now)
            if self._end(at, request, 1) > now:
                at = max([at, *(end for _, end, _ in self.booked)])
                self.booked.append((at, self._end(at, request, 1), ""))

    def _gap(self, at: int, start: int, request: SlotRequest, *, lined_up: bool = False) -> int:
        before = max([end for go, end, _ in self.booked if go <= at], default=0)
        if before < at and lined_up:
            left = max(before, start)
            room = self._end(left, request, request.cost) - left
            at = left + (at - left) // room * room
        at = max(at, before)
        for go, end, _ in sorted(self.booked):
            if end > at:
                if self._end(at, request, request.cost) <= go:
                    break
                at = end
        return at

    def _end(self, at: float, request: SlotRequest, documents: float) -> int:
        for span in request.windows:
            until = span.until if math.isinf(span.until) else round(span.until * MICRO)
            interval = round(span.interval * MICRO)
            if at < until:
                if documents <= (until - at) / interval:
                    return math.ceil(at + documents * interval)
                documents, at = documents - (until - at) / interval, until
        raise AssertionError("the last span has an end")


class PacingMachine(RuleBasedStateMachine):
    """The script and the reference give the same slots; once the store is poisoned, slots do not overlap."""

    loop: asyncio.AbstractEventLoop
    url: str

    def __init__(self) -> None:
        super().__init__()
        client = connect(self.url)
        assert isinstance(client, Redis)
        self.client = client
        self.pace = pace_of(self.client)
        self.reference = Reference()
        self.slots: list[Slot] = []
        self.queue = NEW
        self.poisoned = False
        self.begun = time.time()
        self.loop.run_until_complete(self.client.flushall())

    def teardown(self) -> None:
        self.loop.run_until_complete(self.client.aclose())

    @rule(
        caller=st.sampled_from([*"aaabc", "A/a", "A/a", "A/b", "B/a", "C/a"]),
        cost=st.sampled_from([0.5, 1.0, 1.0, 1.0, 2.0, 7.0]),
        max_wait=st.sampled_from([0.0, 5.0, 50.0, 3000.0, 3000.0]),
        pace=st.sampled_from([TENS, TENS, STEPPED]),
        fetched=st.sampled_from([False] * 9 + [True]),
        closed_for=st.sampled_from([0.0] * 9 + [30.0]),
        times=st.sampled_from([1, 1, 1, 12]),
    )
    def reserve(
        self,
        caller: str,
        cost: float,
        max_wait: float,
        pace: tuple[tuple[float, float], ...],
        fetched: bool,
        closed_for: float,
        times: int,
    ) -> None:
        # Intervals are long, so that the time of the test itself moves no slot from one gap to the next.
        pace_windows = tuple(PaceWindow(self.begun + until, interval) for until, interval in pace)
        fetched_at = time.time() if fetched else 0.0
        for _ in range(times):
            request = SlotRequest(KEY, pace_windows, caller, cost, max_wait, fetched_at)
            left = round((self.queue.ends - self.queue.seen_at) * MICRO)
            reply, seen = self._run(self.pace.reserve(request, self.queue, closed_for=closed_for, closed_if_behind=3.0))
            self.queue = seen.queue
            request = request._replace(windows=at_least(pace_windows, seen.least, seen.bound))
            now = round(
                self._run(self.client.zscore(keys_of(KEY, request.key_id)[5], caller))
            )  # the script's own instant
            expected = self.reference.reserve(now, request, round(closed_for * MICRO), now + left)
            if closed_for:
                self.reference.hold = int(self._run(self.client.hget(OWN, "hold")))
            if isinstance(reply, WaitTooLong):
                assert self.poisoned or expected - now > max_wait * MICRO
                continue
            assert self.poisoned or round(reply.go_at * MICRO) == expected
            self.reference.book(round(reply.go_at * MICRO), request)
            assert reply.name.startswith(f"{self.reference.booked[-1][1]}:")
            self.slots.append(reply)

    @precondition(lambda self: self.slots)
    @rule(which=st.integers(0, 50))
    def release(self, which: int) -> None:
        slot = self.slots.pop(which % len(self.slots))
        # Either side may drop a slot that is over at any time.
        if self._run(self.pace.release(KEY, slot.name)):
            self.reference.booked = [it for it in self.reference.booked if it[0] != round(slot.go_at * MICRO)]

    @rule(retry_after=st.sampled_from([0.0, 0.0, 60.0]))
    def back_off(self, retry_after: float) -> None:
        self._run(self.pace.back_off(KEY, retry_after))
        until = self._run(self.client.hget(PLACE, "until"))
        self.reference.backoff = int(until)

    @rule(poison=st.sampled_from(NONSENSE))
    def poison(self, poison: Foreign) -> None:
        self._run(poison(self.client))
        self.poisoned = True
        # Each reservation repairs one lost key; two at once cannot be repaired.
        self._run(
            self.pace.reserve(SlotRequest(KEY, SLOW, "b", max_wait=-1), self.queue, closed_for=0, closed_if_behind=3.0)
        )

    @invariant()
    def no_two_slots_overlap(self) -> None:
        booked = sorted((go, end) for go, end, caller in self.reference.booked if caller or not self.poisoned)
        assert all(first[1] <= second[0] for first, second in pairwise(booked))

    def _run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


def test_the_script_agrees_with_the_reference(store_url: str, loop: asyncio.AbstractEventLoop) -> None:
    PacingMachine.loop, PacingMachine.url = loop, store_url
    run_state_machine_as_test(
        PacingMachine,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
