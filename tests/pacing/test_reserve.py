"""The script that reserves slots, in a real Valkey. `test_law.py` compares it with the law."""

import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from redis.asyncio import Redis

from app.pacing import law, redis_pacer
from app.pacing.redis_pacer import Ask, Knowledge, RedisPacer, SlotOutcome, keys_of
from app.pacing.schedule import PaceWindow
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
    for caller in ("w", "A/w"):
        assert isinstance(await asked(pace, SlotRequest(KEY, SLOW, caller)), WaitTooLong)
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
    # Slots are given as far ahead as the least patient caller can wait.
    reply = await asked(pace, SlotRequest(KEY, SECOND, "y", max_wait=200))
    assert isinstance(reply, WaitTooLong)
    assert 50 < reply.retry_after <= 61


async def test_retry_after_is_never_immediate(pace: RedisPacer) -> None:
    await given(pace, SlotRequest(KEY, SLOW, "w", cost=5.0001, max_wait=1))
    reply = await asked(pace, SlotRequest(KEY, SLOW, "x", max_wait=49))
    assert isinstance(reply, WaitTooLong)
    assert reply.retry_after == 2.5
    # Each further caller has a turn of its own.
    for number in range(1, 5):
        reply = await asked(pace, SlotRequest(KEY, SLOW, f"x{number}", max_wait=49))
        assert isinstance(reply, WaitTooLong)
        assert reply.retry_after == pytest.approx(1 + 10 * number, abs=0.1)


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


async def test_callers_have_equal_shares_of_what_is_ahead(pace: RedisPacer) -> None:
    await given(pace, SlotRequest(KEY, SECOND, "single"))
    replies = [await asked(pace, SlotRequest(KEY, SECOND, "many", max_wait=3600)) for _ in range(200)]
    many = [reply for reply in replies if isinstance(reply, Slot)]
    assert law.FAR_SLOTS / 2 <= len(many) < law.FAR_SLOTS / 2 + 5
    reply = replies[-1]
    assert isinstance(reply, WaitTooLong)
    assert reply.retry_after >= 1
    single = await asked(pace, SlotRequest(KEY, SECOND, "single", max_wait=3600))
    assert isinstance(single, WaitTooLong)
    assert single.retry_after < 5  # before the second turn of the other


async def test_a_newcomer_is_served_behind_what_is_booked(pace: RedisPacer) -> None:
    # With slots a second apart, a machine that stalls between the first calls leaves a gap.
    many = [await given(pace, SlotRequest(KEY, SLOW, "many", max_wait=3600)) for _ in range(100)]
    assert offsets(many) == list(range(0, 1000, 10))
    single = await given(pace, SlotRequest(KEY, SLOW, "single", max_wait=3600))
    assert offsets([many[0], single]) == [0, 1000]


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
        await store_client.hset(PLACE, "ends", f"{(time.time() - since) * MICRO:.0f}")
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


async def test_slots_are_given_within_the_horizon(pace: RedisPacer) -> None:
    replies = [await asked(pace, SlotRequest(KEY, SLOW, "w", max_wait=3600)) for _ in range(law.FAR_SLOTS + 10)]
    assert [isinstance(reply, Slot) for reply in replies] == [True] * (law.FAR_SLOTS + 1) + [False] * 9


async def test_a_queue_holds_so_many_slots(pace: RedisPacer) -> None:
    replies = [await asked(pace, SlotRequest(KEY, SECOND, "w", 0.01, 60)) for _ in range(law.MAX_SLOTS + 10)]
    slots = [reply for reply in replies if isinstance(reply, Slot)]
    assert len(slots) >= law.MAX_SLOTS
    assert all(later - first > 0.0099 for first, later in pairwise(slot.go_at for slot in slots))


async def test_more_slots_than_a_queue_holds_are_waited_for(pace: RedisPacer, store_client: Redis) -> None:
    now = time.time() * MICRO
    ends = [round(now + 60 * MICRO + at * 1000) for at in range(1, 2001)]
    await store_client.zadd(f"{OWN}:slots", {f"{end}:ab:w": end - 1000 for end in ends})
    await store_client.hset(OWN, "tail", ends[-1])
    assert 61 < (await given(pace, SlotRequest(KEY, SECOND, "w", max_wait=200))).wait <= 62


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


FIELDS = ("tail", "hold", "fetched", "count", "shortest", "shortest_until", "spent0", "spent1")

NONSENSE: list[Foreign] = [
    *(poison for key in KEYS for poison in typed(key)),
    *(
        lambda client, value=value: client.hset(OWN, mapping=dict.fromkeys(FIELDS, value))
        for value in ("x", "nan", "inf", "-1e300")
    ),
    lambda client: client.hset(OWN, mapping=dict.fromkeys(("shortest", "shortest_until"), f"{far():.0f}")),
    lambda client: client.hset(PLACE, mapping={"ends": "soon", "step": "-inf"}),
    lambda client: client.hset(PLACE, mapping={"ends": "1e300", "step": "1e300"}),
    lambda client: client.zadd(f"{OWN}:slots", {"nonsense": far(), "1:ab:a": math.inf, "x:y:z": -math.inf, "::": 1}),
    lambda client: client.zadd(f"{OWN}:slots", {"9" * 400 + ":ab:a": time.time() * MICRO, "1:ab:a": far()}),
    lambda client: client.zadd(f"{OWN}:slots", {f"{at}{far():.0f}:ab:a": far() + at for at in range(30)}),
    lambda client: client.zadd(f"{OWN}:asking", {"b": -math.inf, "zz": far()}),
    lambda client: client.zadd(f"{OWN}:asking/A", {"A/b": math.inf, "zz": far()}),
    lambda client: client.zadd(f"{OWN}:active", {"A/": math.inf, "": -math.inf}),
    lambda client: client.zadd(f"{OWN}:turns", {"a:0": math.inf, "b:0": far(), ":": -math.inf, "c": 1}),
    lambda client: client.zadd(f"{OWN}:line", {"a:0": math.inf, "b:0": far(), ":": -math.inf, "c": 1}),
]


@pytest.mark.parametrize("callers", [["a", "b", "c"], ["A/a", "A/b", "A/c"]], ids=["without keys", "a key"])
@pytest.mark.parametrize("poison", NONSENSE)
async def test_foreign_values_break_nothing_and_give_no_early_slot(
    poison: Foreign, callers: list[str], pace: RedisPacer, store_client: Redis
) -> None:
    slots = [await given(pace, SlotRequest(KEY, SLOW, caller, max_wait=3600)) for caller in (callers[0], *callers)]
    await poison(store_client)
    slots += [await given(pace, SlotRequest(KEY, SLOW, caller, max_wait=3600)) for caller in callers]
    goes = sorted(slot.go_at for slot in slots)
    assert all(later - first > 9.999 for first, later in pairwise(goes))
    await poison(store_client)
    await pace.release(KEY, slots[-1].name)
    assert 0 < await pace.back_off(KEY, 0) <= 86_400 + 3600
    assert isinstance(await asked(pace, SlotRequest(KEY, SLOW, callers[0], max_wait=0)), WaitTooLong)


@pytest.mark.parametrize("name", ["slots", "asking", "turns", "active", "line"])
async def test_a_foreign_set_of_many_members_is_dropped(name: str, pace: RedisPacer, store_client: Redis) -> None:
    first = await given(pace, SlotRequest(KEY, SLOW, "w", cost=200))
    # In pieces: one command of seconds would block the server for this test and the next.
    now = f"{time.time() * MICRO - 500_000:.0f}"
    fill = "for at = 1, 20000 do redis.call('ZADD', KEYS[1], ARGV[1] + ARGV[2] + at, ARGV[2] + at .. ':ab:w') end"
    for begin in range(0, 100_000, 20_000):
        await store_client.eval(fill, 1, f"{OWN}:{name}", now, str(begin))
    assert await store_client.zcard(f"{OWN}:{name}") >= 100_000
    second = await given(pace, SlotRequest(KEY, SLOW, "w", max_wait=3600))
    assert 1999.9 < second.go_at - first.go_at <= 2000.001
    # It was unlinked as a whole, not scanned.
    assert await store_client.zcard(f"{OWN}:{name}") <= 3


@pytest.mark.parametrize(("script", "what"), [("reserve", Ask), ("outcome", SlotOutcome)])
def test_each_script_reads_every_argument_by_its_name(script: str, what: type[msgspec.Struct]) -> None:
    state, own = [Path(redis_pacer.__file__).with_name(f"{name}.lua").read_text() for name in ("state", script)]
    assert set(re.findall(r"\bASK\.([a-z_]+)", own)) == set(what.__struct_fields__)
    assert set(re.findall(r"\bKNOWN\.([a-z_]+)", state + own)) == set(Knowledge.__struct_fields__)
    assert not re.findall(r"ARGV\[[3-9]", state)
    assert "ARGV" not in own
