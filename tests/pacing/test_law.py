"""The law of a queue, and the script, which does the same on random histories."""

import math
import random
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from app.pacing import law, redis_pacer
from app.pacing.page_times import NO_PAGES, PageReports
from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, WaitTooLong
from app.store.guarded_client import GuardedClient
from app.store.script import Script
from app.store.store_clock import StoreClocks

KEY = PaceKey.of("www.example.com", "ExampleBot")
KEYS = keys_of(KEY)
DAY = 86_400 * law.SECOND
BEGIN = 20_000 * DAY


class Clock:
    """The clock of the store, which a test sets, in microseconds; it never stands still for the processes."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self.now = BEGIN

    def seconds(self) -> float:
        return self.now / law.SECOND

    async def set(self, now: int) -> None:
        self.now = now
        seconds, rest = divmod(now, law.SECOND)
        await self._client.hset("clock", mapping={"seconds": seconds, "microseconds": rest})


@pytest.fixture
def clock(store_client: Redis, monkeypatch: pytest.MonkeyPatch) -> Clock:
    for name in ("_RESERVE", "_OUTCOME"):
        text = getattr(redis_pacer, name)._text
        assert "redis.call('TIME')" in text
        read = "redis.call('HMGET', 'clock', 'seconds', 'microseconds')"
        monkeypatch.setattr(redis_pacer, name, Script(text.replace("redis.call('TIME')", read)))
    return Clock(store_client)


@pytest.fixture
async def pace(store_client: Redis, clock: Clock) -> RedisPacer:
    clocks = StoreClocks(clock.seconds, clock.seconds)
    return RedisPacer(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), clocks)


def micro(seconds: float) -> int:
    return round(seconds * law.SECOND)


@pytest.mark.parametrize("seed", range(20))
async def test_the_script_does_what_the_law_says(
    seed: int, pace: RedisPacer, clock: Clock, store_client: Redis
) -> None:
    """With keys and without, back-offs, closed queues, budgets, windows, costs, releases, and lost sets of slots."""
    dice = random.Random(seed)
    interval = dice.choice([1000, 50_000, law.SECOND, 10 * law.SECOND, 60 * law.SECOND])
    keys, crowd = dice.choice([[""], ["A/"], ["A/", "B/", "C/"]]), dice.choice([1, 3, 30])
    learned, budget = dice.random() < 0.3, dice.choice([0, 0, 0, 30])
    queue, closed, spent, given = law.Queue(), 0, dict[int, float](), list[tuple[law.Booked, str]]()
    reports = PageReports(20, interval / law.SECOND / 10)
    await clock.set(BEGIN + dice.randrange(DAY))
    for number in range(200):
        step = dice.choice([0, 1, interval // 10, interval // 3, interval, 3 * interval])
        await clock.set(clock.now + step + (dice.random() < 0.03) * 40 * interval)
        now = clock.now
        match dice.choices(["ask", "release", "close", "back off", "lose"], [80, 8, 2, 2, 2])[0]:
            case "release" if given:
                slot, name = dice.choice(given[-10:])
                found = slot if slot in queue.slots else None
                assert await pace.release(KEY, name) or found is None or found.end <= now
                if slot in queue.slots:
                    given.remove((slot, name))
                    queue = law.release(queue, slot.name)
                continue
            case "back off":
                closed = max(closed, now + micro(await pace.back_off(KEY, 3 * interval / law.SECOND)))
                continue
            case "lose":
                await store_client.delete(KEYS[4])
                queue = queue._replace(slots=())
                continue
            case "close":
                closed_for = 2 * interval
            case _:
                closed_for = 0
        closed = max(closed, now + closed_for) if closed_for else closed
        windows = [law.RateWindow(math.inf, interval)]
        if dice.random() < 0.2 and not learned:
            until, other = now + dice.randrange(1, 5 * interval), dice.choice([interval // 2, 2 * interval])
            windows.insert(0, law.RateWindow(until, other))
        caller = f"{dice.choice(keys)}w{dice.randrange(crowd)}"
        cost = dice.choice([0.5, 1.0, 1.0, 3.0])
        wait = dice.choice([interval // 2, *(seconds * law.SECOND for seconds in (-1, 0, 2, 10, 300))])
        slot_request = SlotRequest(
            KEY,
            tuple(PaceWindow(each.until / law.SECOND, each.interval / law.SECOND) for each in windows),
            caller,
            cost,
            wait / law.SECOND,
            budget=budget,
        )
        reply, view = await pace.reserve(
            slot_request,
            QueueState(),
            closed_for=closed_for / law.SECOND,
            closed_if_behind=0.0,
            pages=reports if learned and number == 0 else NO_PAGES,
        )
        windows = [each._replace(interval=max(each.interval, micro(view.least))) for each in windows]
        day = now // DAY
        used_up = budget and spent.get(day, 0) + cost > budget
        name = f"{number}"
        result, queue = law.reserve(
            queue,
            law.Request(caller, name, windows, wait, cost, learned),
            now,
            closed,
            (day + 1) * DAY if used_up else 0,
        )
        context = (seed, number, reply, result)
        if isinstance(result, law.Booked):
            assert isinstance(reply, Slot), context
            assert (micro(reply.go_at), reply.name.split(":")[0]) == (result.begin, str(result.end)), context
            given.append((result, reply.name))
            spent[day] = spent.get(day, 0) + cost
        else:
            assert not isinstance(reply, Slot), context
            assert (micro(reply.wait), micro(reply.retry_after)) == result, context
        assert micro(view.queue.ends) == queue.tail or queue.tail <= now, context
    slots = sorted(slot for slot, _ in given)
    assert all(first.end <= second.begin for first, second in pairwise(slots))
    assert given or budget


FACTS = ("tail", "hold", "fetched", "count", "shortest", "shortest_until", "seen")


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_is_lost_or_foreign_no_two_slots_overlap(
    seed: int, pace: RedisPacer, clock: Clock, store_client: Redis
) -> None:
    """One key is lost or overwritten at a time: what a process knows of the queue repairs it with its next call."""
    dice, slots, known = random.Random(seed), list[tuple[float, float]](), QueueState()
    await clock.set(BEGIN)
    for number in range(150):
        await clock.set(clock.now + dice.choice([0, law.SECOND // 3, law.SECOND, 5 * law.SECOND]))
        left = QueueState(known.ends, known.given, clock.seconds())
        caller = f"{dice.choice(['', 'A/', 'B/'])}w{dice.randrange(5)}"
        cost, max_wait = dice.choice([0.5, 1.0, 3.0]), dice.choice([0.0, 10.0, 300.0])
        request = SlotRequest(KEY, (PaceWindow(math.inf, 1.0),), caller, cost, max_wait)
        reply, view = await pace.reserve(request, left, closed_for=0.0, closed_if_behind=3.0)
        known = view.queue
        if isinstance(reply, Slot):
            slots.append((reply.go_at, int(reply.name.split(":")[0]) / law.SECOND))
        if number % 10 == 9:
            key = dice.choice([*KEYS, *keys_of(KEY, "A")[5:7]])
            match dice.choice(["delete", "type", "fields", "members"]):
                case "delete":
                    await store_client.delete(key)
                case "type":
                    await store_client.set(key, "foreign")
                case "fields":
                    value = dice.choice(["x", "nan", "inf", "-1e300", "1e300", "0"])
                    await store_client.hset(KEYS[3], mapping=dict.fromkeys(FACTS, value))
                case _ if await store_client.type(key) == b"zset":
                    await store_client.zadd(key, {"x": clock.now + 1, "A/": math.inf, "9:ab:a": 1, "w1:0": clock.now})
            left = QueueState(known.ends, known.given, clock.seconds())
            _, view = await pace.reserve(request._replace(max_wait=-1.0), left, closed_for=0.0, closed_if_behind=3.0)
            known = view.queue
    slots.sort()
    assert len(slots) > 10
    assert all(first[1] <= second[0] + 1e-5 for first, second in pairwise(slots))


async def test_callers_of_another_key_from_before_a_step_back_do_not_count(pace: RedisPacer, clock: Clock) -> None:
    async def ask(caller: str, max_wait: float = 0.0) -> Slot | WaitTooLong:
        request = SlotRequest(KEY, (PaceWindow(math.inf, 1.0),), caller, 1.0, max_wait)
        reply, _ = await pace.reserve(request, QueueState(), closed_for=0.0, closed_if_behind=0.0)
        return reply

    await clock.set(BEGIN + DAY // 2)
    for number in range(50):
        await ask(f"A/{number}")
    await clock.set(BEGIN + DAY // 2 - 3600 * law.SECOND)
    await ask("B/w")
    await clock.set(clock.now + 60 * law.SECOND)
    assert isinstance(await ask("A/0"), Slot)
    for wait in range(1, 4):
        reply = await ask("A/0", 10.0)
        assert isinstance(reply, Slot), "there is no other caller with a share"
        assert reply.wait == wait


async def test_a_budget_is_not_given_twice_around_midnight(pace: RedisPacer, clock: Clock) -> None:
    given = dict[int, int]()
    request = SlotRequest(KEY, (PaceWindow(math.inf, 1.0),), "w", 1.0, 60.0, budget=6)
    for day, second in [(1, -60), (1, 60), (1, -50), (1, 70), (1, -40), (1, 86_340), (2, 30), (1, 86_350)]:
        await clock.set(BEGIN + day * DAY + second * law.SECOND)
        for _ in range(10):
            reply, _ = await pace.reserve(request, QueueState(), closed_for=0.0, closed_if_behind=0.0)
            await clock.set(clock.now + law.SECOND // 2)
            today = clock.now // DAY
            given[today] = given.get(today, 0) + isinstance(reply, Slot)
            if not isinstance(reply, Slot):
                assert reply.bound == "budget"
                assert clock.now / law.SECOND + reply.retry_after >= (today + 1) * DAY / law.SECOND - 1
    assert set(given.values()) == {6}
