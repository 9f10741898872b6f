"""How crowds of callers fare by the law of a queue: pace, calls for a page, shares and waits. Simulated time."""

import heapq
import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from app.pacing import law
from app.pacing.law import SECOND, Booked, Queue, RateWindow, Request


@dataclass
class Worker:
    """One that asks, waits for what it is told, fetches, and asks again.

    `quits` is the chance that one that was refused never comes back; another takes its place.
    """

    caller: str
    max_wait: int = 10
    starts: float = 0.0
    quits: float = 0.0
    late: float = 0.02
    asked: int | None = None
    pages: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Crawl:
    """What came of it, in intervals: `asks` for each page, and `longest` the longest wait for one."""

    pace: float
    asks: float
    longest: float
    shares: Counter[str]


def crawl(
    workers: Sequence[Worker],
    interval: float,
    rounds: float,
    seed: int = 1,
    *,
    learned: bool = False,
    forgets: Iterable[float] = (),
) -> Crawl:
    """Crawl for `rounds` times as many intervals as there are workers; the first part warms up.

    `forgets` are the intervals after which the store only knows the tail, as after a step of its clock.
    """
    dice, step, queue, number = random.Random(seed), round(interval * SECOND), Queue(), 0
    begin = 1_700_000_000 * SECOND
    warm = round(begin + len(workers) * step)
    end = round(warm + rounds * len(workers) * step)
    windows = (RateWindow(math.inf, step),)
    events = [(begin + round(worker.starts * step) + dice.randrange(200_000), at) for at, worker in enumerate(workers)]
    heapq.heapify(events)
    slots, asks = list[Booked](), 0
    losses = [round(begin + after * step) for after in sorted(forgets, reverse=True)]
    while events and events[0][0] < end:
        now, at = heapq.heappop(events)
        worker, number = workers[at], number + 1
        if losses and now >= losses[-1]:
            losses.pop()
            queue = Queue(queue.tail)
        asks += now >= warm
        worker.asked = now if worker.asked is None else worker.asked
        request = Request(worker.caller, f"{number}", windows, worker.max_wait * SECOND, learned=learned)
        result, queue = law.reserve(queue, request, now)
        trip = dice.randrange(2000, round(worker.late * SECOND))
        if isinstance(result, Booked):
            slots.append(result)
            worker.pages.append((worker.asked, result.begin))
            worker.asked = None
            fetched = round(dice.uniform(0.05, 0.6) * min(step, SECOND))
            heapq.heappush(events, (max(now, result.begin) + fetched + trip, at))
        elif dice.random() < worker.quits:
            worker.caller, worker.asked = f"{worker.caller.split('.')[0]}.{number}", None
            heapq.heappush(events, (now + dice.randrange(20 * step), at))
        else:
            heapq.heappush(events, (now + result.retry_after + trip, at))
    slots.sort()
    assert all(first.end <= second.begin for first, second in pairwise(slots))
    counted = [slot for slot in slots if warm <= slot.begin < end]
    waits = [go - asked for worker in workers for asked, go in worker.pages if asked >= warm]
    waits += [end - worker.asked for worker in workers if worker.asked is not None]
    shares = Counter(slot.caller.partition("/")[0] for slot in counted)
    pages = len(counted)
    return Crawl(pages * step / (end - warm), asks / pages, max(waits, default=0) / step, shares)


def crowd(count: int, key: str = "", **members: float) -> list[Worker]:
    return [Worker(f"{key}w{number}", **members) for number in range(count)]  # type: ignore[arg-type]


def alike(pages: Iterable[int]) -> bool:
    """Whether these differ by two pages, or by a fifth of their mean, at most."""
    counts = list(pages)
    return max(counts) - min(counts) <= max(2, sum(counts) / len(counts) / 5)


@pytest.mark.parametrize(("count", "seed"), [(8, 41), (50, 42), (200, 43)])
@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("learned", [False, True])
def test_a_crowd_keeps_the_pace_with_few_calls(interval: float, count: int, seed: int, learned: bool) -> None:
    found = crawl(crowd(count), interval, 1000 / count / 2, seed, learned=learned)
    assert found.pace > 0.98
    assert found.asks < 2.1
    assert found.longest < count + 2
    assert alike(found.shares.values())


@pytest.mark.parametrize(("interval", "max_wait"), [(1.0, 300), (0.05, 10)])
@pytest.mark.parametrize(("count", "seed"), [(50, 44), (200, 45)])
def test_one_call_for_a_page_is_enough_where_the_wait_is_short(
    interval: float, max_wait: int, count: int, seed: int
) -> None:
    assert crawl(crowd(count, max_wait=max_wait), interval, 5, seed).asks < 1.05


@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
@pytest.mark.parametrize(("count", "seed"), [(50, 46), (50, 47), (200, 48)])
def test_callers_that_never_come_back_cost_no_pace(interval: float, count: int, seed: int) -> None:
    found = crawl(crowd(count, quits=0.1), interval, 5, seed)
    assert found.pace >= 0.98
    assert found.asks <= 3


@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
def test_callers_that_come_late_cost_no_pace(interval: float) -> None:
    found = crawl(crowd(50, late=2.0), interval, 5)
    assert found.pace >= 0.98
    assert found.asks <= 3


@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
def test_a_small_key_that_comes_late_costs_the_others_no_pace(interval: float) -> None:
    found = crawl([*crowd(3, "A/", late=2.0), *crowd(50, "B/", late=2.0)], interval, 10, 60)
    assert found.pace >= 0.97
    assert found.asks <= 3


@pytest.mark.parametrize(("one", "other", "seed"), [(50, 50, 49), (50, 200, 50)])
@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
def test_two_keys_have_half_each(interval: float, one: int, other: int, seed: int) -> None:
    found = crawl([*crowd(one, "A/"), *crowd(other, "B/")], interval, 4, seed)
    assert found.pace > 0.98
    assert abs(found.shares["A"] / found.shares.total() - 0.5) < 0.05
    assert found.asks < 3


@pytest.mark.parametrize(
    ("count", "interval", "seed"), [(300, 1.0, 51), (100, 10.0, 52), (100, 0.05, 53), (100, 1.0, 54)]
)
def test_one_worker_of_a_key_has_half_beside_a_crowd(count: int, interval: float, seed: int) -> None:
    """It does not ask while it fetches, and finds its slot free when it does."""
    crowds = [*crowd(1, "A/"), *crowd(count, "B/")]
    found = crawl(crowds, interval, 400 / count, seed)
    assert found.pace > 0.98
    assert abs(found.shares["A"] / found.shares.total() - 0.5) < 0.05
    assert found.asks < 3
    assert found.longest < 2.6 * count


@pytest.mark.parametrize("count", [8, 50, 200])
@pytest.mark.parametrize(("interval", "seed"), [(30.0, 55), (60.0, 56)])
def test_quitters_cost_no_pace_where_one_slot_is_in_reach(interval: float, count: int, seed: int) -> None:
    found = crawl(crowd(count, quits=0.1), interval, 400 / count, seed)
    assert found.pace >= 0.98
    assert found.asks < 4
    assert crawl(crowd(count), interval, 400 / count, seed).asks < 2.1


@pytest.mark.parametrize(("keys", "count"), [(2, 25), (2, 6), (3, 40), (7, 9), (40, 2)])
@pytest.mark.parametrize(("interval", "max_wait", "seed"), [(20.0, 3, 57), (60.0, 10, 58), (120.0, 10, 59)])
def test_quitters_of_several_keys_cost_no_pace_either(
    interval: float, max_wait: int, seed: int, keys: int, count: int
) -> None:
    def crowds(quits: float) -> list[Worker]:
        each = [crowd(count, f"K{key}/", quits=quits, max_wait=max_wait) for key in range(keys)]
        return [worker for members in each for worker in members]

    rounds = 800 / keys / count
    found = crawl(crowds(0.1), interval, rounds, seed)
    assert found.pace >= 0.98
    assert found.asks < 4.2
    steady = crawl(crowds(0.0), interval, rounds, seed)
    assert steady.pace > 0.99
    assert steady.asks < 2.7


@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
def test_many_keys_share_one_line(interval: float) -> None:
    found = crawl([worker for key in range(20) for worker in crowd(5, f"K{key}/")], interval, 5)
    assert found.pace > 0.98
    assert found.asks < 2.5
    assert max(found.shares.values()) < 1.5 * min(found.shares.values())


@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0, 60.0])
def test_a_caller_has_as_many_turns_as_workers(interval: float) -> None:
    found = crawl([worker for _ in range(6) for worker in crowd(8)], interval, 5)
    assert found.pace > 0.98
    assert found.asks < 2.5
    assert min(found.shares.values()) > found.shares.total() / 8 / 2


@pytest.mark.parametrize("max_wait", [10, 300])
@pytest.mark.parametrize("key", ["", "B/"])
@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
def test_a_newcomer_has_a_page_within_two_rounds(interval: float, key: str, max_wait: int) -> None:
    newcomer = Worker(f"{key}new", max_wait, starts=77)
    found = crawl([*crowd(50, "A/" if key else "", max_wait=max_wait), newcomer], interval, 6)
    [first, *_] = newcomer.pages
    assert (first[1] - first[0]) / interval / SECOND < 2 * 51
    assert found.pace > 0.98


@pytest.mark.parametrize("forgets", [[60], [90], [78, 79, 100]])
@pytest.mark.parametrize("max_wait", [10, 300])
@pytest.mark.parametrize("interval", [0.05, 1.0, 10.0])
def test_a_newcomer_has_a_page_soon_although_the_line_is_lost(
    interval: float, max_wait: int, forgets: list[float]
) -> None:
    """As after a fail-over to a server with another clock: everyone comes when it was told to."""
    newcomer = Worker("new", max_wait, starts=77)
    found = crawl([*crowd(50, max_wait=max_wait), newcomer], interval, 6, forgets=forgets)
    [first, *_] = newcomer.pages
    assert (first[1] - first[0]) / interval / SECOND < 2 * 51
    assert found.pace > 0.97
    assert found.asks < 3


@pytest.mark.parametrize("interval", [1.0, 10.0])
def test_who_cannot_wait_long_has_its_share_beside_who_can(interval: float) -> None:
    found = crawl([*crowd(50, "S/"), *crowd(50, "L/", max_wait=300)], interval, 6)
    assert abs(found.shares["S"] / found.shares.total() - 0.5) < 0.1
    assert found.pace > 0.98
