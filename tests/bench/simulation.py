"""Simulate weeks of an origin's robots.txt with the service's own code for rechecks: no I/O, no clock.

An origin is visited at random instants at a steady mean rate (a Poisson process), fails now and then, and otherwise
always answers the same. Instants are seconds from the beginning, paces are per day.
"""

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from app.cache.freshness import DAY, HOUR, KEEP, Recheck, Snapshot, State, freshness, next_snapshot, usable
from app.cache.recheck import Model
from app.cache.visits import TALLY_EXPIRY, Tally
from app.history import versions as history
from robots_core.content import same
from robots_core.robots.access import Access, Cause, Fetched, Lifetime, Successful, Unavailable, Unreachable

OUTAGES_APART, OUTAGE = 30 * DAY, 6 * HOUR
"""Mean seconds from one outage of an origin to the next, and of an outage."""

WITHOUT_FILE = 0.47
"""The share of origins that answer 404."""

PACE_LIMIT = 2000.0
"""Visits a day that are simulated one by one; at a higher rate, each stands for several."""

AGES = (1.0, *(60.0 * 10 ** (step / 16) for step in range(76)))
"""Upper bounds of the age classes: 1 second, then from 1 minute to 33 days."""

_FILE = Successful(200, b"User-agent: *\nDisallow: /private/\n")
_MISSING = Unavailable(404)
_DOWN = Unreachable(Cause.CONNECTION)
_TAG = bytes(8)


@dataclass(slots=True)
class Account:
    """Counts over a number of origin-days; `ages` counts decisions by AGES, with one more class for older ones.

    `history_byte_days` sums the bytes of stored histories, times the days.
    """

    days: float = 0.0
    fetches: int = 0
    decisions: float = 0.0
    deferred: float = 0.0
    age_sum: float = 0.0
    ages: list[float] = field(default_factory=lambda: [0.0] * (len(AGES) + 1))
    kept_days: float = 0.0
    counted_days: float = 0.0
    history_days: float = 0.0
    history_byte_days: float = 0.0

    def decide(self, age: float | None, weight: float) -> None:
        """Count decisions by a copy of this age; None: without a copy."""
        self.decisions += weight
        if age is None:
            self.deferred += weight
        else:
            self.age_sum += age * weight
            self.ages[bisect(AGES, age)] += weight


@dataclass(frozen=True, slots=True)
class Course:
    """The visits of an origin, its recheck model, its caching headers, and the length of the simulation."""

    pace: float
    model: Model
    lifetime: Lifetime
    warm_up: float = 26 * 7 * DAY
    watched: float = 26 * 7 * DAY

    @property
    def end(self) -> float:
        """When the simulation ends."""
        return self.warm_up + self.watched


def play(course: Course, account: Account, random: Random) -> None:
    """Simulate one origin; after its warm-up, add to the account."""
    pace = min(course.pace, PACE_LIMIT)
    weight = course.pace / pace
    key = f"https://host{random.getrandbits(40):x}.example"
    answer: Access = _MISSING if random.random() < WITHOUT_FILE else _FILE
    outages = list(_outages(course.end, random))
    known: Snapshot | None = None
    tally: Tally | None = None
    puts: list[float] = []
    visits: list[float] = []
    past: history.History = ()
    writings: list[float] = []
    lengths: list[int] = []
    account.days += course.watched / DAY

    def fetch(now: float) -> Snapshot:
        nonlocal past
        begun = bisect(outages, (now, math.inf)) - 1
        down = begun >= 0 and now < outages[begun][1]
        puts.append(now)
        account.fetches += now >= course.warm_up
        found = next_snapshot(known, Fetched(_DOWN if down else answer, lifetime=course.lifetime), now)
        if known is not None and not same(known.access, found.access):
            if writings and now - writings[-1] > history.HISTORY_EXPIRY:
                past = ()
            past = history.add(past, [history.version_of(known)], now)
            writings.append(now)
            lengths.append(len(history.write(past, _TAG)))
        return found

    now = random.expovariate(pace) * DAY
    while now < course.end:
        visit = Tally(weight, now, now)
        tally = visit if tally is None or now - tally.at > TALLY_EXPIRY else tally + visit
        visits.append(now)
        recheck = course.model if isinstance(course.model, Recheck) else course.model.recheck(tally.per_day(now))
        known = None if known is None else usable(known, now)
        state = State.DUE if known is None else freshness(known, recheck, key, now).state
        if state is State.DUE:
            known = fetch(now)
        if now >= course.warm_up:
            account.decide(_age(known, now), weight)
        if state is State.GRACE:
            known = fetch(now)
        now += random.expovariate(pace) * DAY
    account.kept_days += sum(_covered(puts, KEEP, course)) / DAY
    account.counted_days += sum(_covered(visits, TALLY_EXPIRY, course)) / DAY
    covered = _covered(writings, history.HISTORY_EXPIRY, course)
    account.history_days += sum(covered) / DAY
    account.history_byte_days += sum(size * lasts for size, lasts in zip(lengths, covered, strict=True)) / DAY


def _age(known: Snapshot | None, now: float) -> float | None:
    if known is None or isinstance(known.access, Unreachable):
        return None
    return now - known.fetched_at


def _outages(end: float, random: Random) -> Iterator[tuple[float, float]]:
    now = random.expovariate(1 / OUTAGES_APART)
    while now < end:
        until = now + random.expovariate(1 / OUTAGE)
        yield now, until
        now = until + random.expovariate(1 / OUTAGES_APART)


def _covered(writes: Sequence[float], lasts: float, course: Course) -> list[float]:
    """Seconds within the simulated time for which an entry exists: `keep`, or until it is replaced."""
    return [
        max(0.0, min(until, begun + lasts, course.end) - max(begun, course.warm_up))
        for begun, until in pairwise([*writes, course.end])
    ]
