"""The law of a queue, and the script, which does the same on random histories."""

import heapq
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
    """The clock of the store, which a test sets, in microseconds. `step` sets it and that of no process."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._stepped = 0
        self.now = BEGIN

    def seconds(self) -> float:
        return self.now / law.SECOND

    def steady(self) -> float:
        return (self.now - self._stepped) / law.SECOND

    async def step(self, by: int) -> None:
        self._stepped += by
        await self.set(self.now + by)

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
    clocks = StoreClocks(clock.seconds, clock.steady)
    return RedisPacer(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), clocks)


def micro(seconds: float) -> int:
    return round(seconds * law.SECOND)


@pytest.mark.parametrize("seed", range(20))
async def test_the_script_does_what_the_law_says(
    seed: int, pace: RedisPacer, clock: Clock, store_client: Redis
) -> None:
    """With keys and without, back-offs, closed queues, budgets, windows, costs, releases, lost slots, clock steps."""
    dice = random.Random(seed)
    interval = dice.choice([1000, 50_000, law.SECOND, 10 * law.SECOND, 60 * law.SECOND])
    keys, crowd = dice.choice([[""], ["A/"], ["A/", "B/", "C/"]]), dice.choice([1, 3, 30])
    learned, budget = dice.random() < 0.3, dice.choice([0, 0, 0, 30])
    queue, hold, spent, given = law.Queue(), 0, dict[int, float](), list[tuple[law.Booked, str]]()
    reports, steps = PageReports(20, interval / law.SECOND / 10) if learned else NO_PAGES, list[float]()
    await clock.set(BEGIN + dice.randrange(DAY))
    for number in range(200):
        later = dice.choice([0, 1, interval // 10, interval // 3, interval, 3 * interval])
        await clock.set(clock.now + later + (dice.random() < 0.03) * 40 * interval)
        closed_for = 0
        match dice.choices(["ask", "release", "close", "back off", "lose", "step"], [80, 8, 2, 2, 2, 2])[0]:
            case "release" if given:
                slot, name = dice.choice(given[-10:])
                found = slot if slot in queue.slots else None
                assert await pace.release(KEY, name) or found is None or found.end <= clock.now
                if slot in queue.slots:
                    given.remove((slot, name))
                    queue = law.release(queue, slot.name)
                continue
            case "back off":
                await pace.back_off(KEY, 3 * interval / law.SECOND)
                continue
            case "lose":
                await store_client.delete(KEYS[4])
                queue = queue._replace(slots=())
                continue
            case "close":
                closed_for = 2 * interval
            case "step":
                # A step forward of less than a second looks like a call that took long.
                by = dice.choice([-1, 1]) * dice.choice([law.SECOND // 2, 30 * law.SECOND, 3600 * law.SECOND])
                await clock.step(by)
                steps += [by] if by < 0 or by > law.SECOND else []
                given = []  # by the clock, they may seem to overlap with those after a step back
            case _:
                pass
        now, windows = clock.now, [law.RateWindow(math.inf, interval)]
        if dice.random() < 0.2 and not learned:
            until, other = now + dice.randrange(1, 5 * interval), dice.choice([interval // 2, 2 * interval])
            windows.insert(0, law.RateWindow(until, other))
        caller = f"{dice.choice(keys)}w{dice.randrange(crowd)}"
        cost = dice.choice([0.5, 1.0, 1.0, 3.0])
        wait = dice.choice([interval // 2, *(seconds * law.SECOND for seconds in (-1, 0, 2, 10, 300))])
        request = SlotRequest(
            KEY,
            tuple(PaceWindow(each.until / law.SECOND, each.interval / law.SECOND) for each in windows),
            caller,
            cost,
            wait / law.SECOND,
            budget=budget,
        )
        reply, view = await pace.reserve(
            request, QueueState(), closed_for=closed_for / law.SECOND, closed_if_behind=0.0, pages=reports
        )
        reports = NO_PAGES
        if view.clock_step:
            # What is booked is moved, and nobody's turn is remembered.
            assert steps.pop() * view.clock_step < 0
            step = micro(view.clock_step)
            moved = [max(0, instant - step) for instant in (queue.tail, queue.stand_in, queue.shortest_until)]
            queue = law.Queue(moved[0], stand_in=moved[1], shortest=queue.shortest, shortest_until=moved[2])
            hold = max(0, hold - step)
        hold = max(hold, now + closed_for) if closed_for else hold
        windows = [each._replace(interval=max(each.interval, micro(view.least))) for each in windows]
        day = now // DAY
        used_up = budget and spent.get(day, 0) + cost > budget
        context = (seed, number, reply)
        if wait < 0:
            assert not isinstance(reply, Slot), context
            queue = queue._replace(slots=tuple(slot for slot in queue.slots if slot.end > now))
            continue
        result, queue = law.reserve(
            queue,
            law.Request(caller, f"{number}", windows, wait, cost, learned),
            now,
            max(hold, micro(view.backoff_until)),
            (day + 1) * DAY if used_up else 0,
        )
        if isinstance(result, law.Booked):
            assert isinstance(reply, Slot), (context, result)
            assert (micro(reply.go_at), reply.name.split(":")[0]) == (result.begin, str(result.end)), (context, result)
            given.append((result, reply.name))
            spent[day] = spent.get(day, 0) + cost
        else:
            assert not isinstance(reply, Slot), (context, result)
            assert (micro(reply.wait), micro(reply.retry_after)) == result, (context, result)
        assert micro(view.queue.ends) == queue.tail or queue.tail <= now, (context, result)
        slots = sorted(slot for slot, _ in given)
        assert all(first.end <= second.begin for first, second in pairwise(slots))


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


async def test_a_slot_with_others_inside_it_outlives_them(pace: RedisPacer, clock: Clock, store_client: Redis) -> None:
    """One that takes the place of lost slots may include some that were found again."""
    await clock.set(BEGIN + DAY // 2)
    stored = {"lost": (-10, 5), "aa": (-5, -4), "bb": (-3, -2), "cc": (10, 20)}
    for name, (begin, end) in stored.items():
        members = f"{clock.now + end * law.SECOND}:{name}:w", clock.now + begin * law.SECOND
        await store_client.zadd(KEYS[4], {members[0]: members[1]})
    goes = []
    for number in range(4):
        request = SlotRequest(KEY, (PaceWindow(math.inf, 1.0),), f"w{number}", 1.0, 300.0)
        reply, _ = await pace.reserve(request, QueueState(), closed_for=0.0, closed_if_behind=0.0)
        assert isinstance(reply, Slot)
        goes.append(reply.wait)
        await clock.set(clock.now + 1000)
    assert goes == [pytest.approx(5 + number, abs=0.01) for number in range(4)]


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


@pytest.mark.parametrize("by", [-3600, -5, 5, 3600])
@pytest.mark.parametrize("max_wait", [0.5, 3.0])
async def test_a_newcomer_has_a_page_within_two_rounds_of_a_step(
    max_wait: float, by: int, pace: RedisPacer, clock: Clock
) -> None:
    """Each of ten callers asks when it is told to, by a clock that is never set."""
    crowd, goes, newcomer = 10, list[float](), list[float]()
    await clock.set(BEGIN + DAY // 2)
    begin = clock.steady()
    events = [(begin + at / 10, f"w{at}") for at in range(crowd)] + [(begin + 15.0, "new")]
    stepped = False
    while not newcomer and events:
        heapq.heapify(events)
        at, caller = heapq.heappop(events)
        await clock.set(clock.now + max(0, micro(at - clock.steady())))
        if clock.steady() > begin + 18 and not stepped:
            stepped = True
            await clock.step(by * law.SECOND)
        request = SlotRequest(KEY, (PaceWindow(math.inf, 1.0),), caller, 1.0, max_wait)
        reply, _ = await pace.reserve(request, QueueState(), closed_for=0.0, closed_if_behind=3.0)
        if isinstance(reply, Slot):
            goes.append(clock.steady() + reply.wait)
            newcomer += [goes[-1]] if caller == "new" else []
            events.append((goes[-1] + 0.3, caller))
        else:
            events.append((clock.steady() + reply.retry_after + 0.01, caller))
    assert stepped
    assert newcomer[0] < begin + 15 + 2 * (crowd + 1)
    assert all(later - first > 0.999 for first, later in pairwise(sorted(goes)))


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
