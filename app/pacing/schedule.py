"""How fast one agent may go at one origin from now on: stretches of time, each with its interval; pure."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from app.cache.recheck import Pace
from app.evaluate import with_delay
from app.overrides.table import Override
from app.robots.rates import Rate, Timetable

MOST_SPANS = 16
"""So many stretches are told apart; the last one goes on for ever."""

MOST_CHANGES = 64
"""So many changes of the rate are looked at: within the bounds, many may come to the same pace, day after day."""

SHORTEST = 0.001
"""Seconds: the least interval there is. Whoever may go faster than that needs no pace."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the operator says of every interval, in seconds: at least `floor`, and at most `cap`."""

    floor: float = 1.0
    cap: float = 86_400.0

    def __post_init__(self) -> None:
        if not 0 <= self.floor <= self.cap:
            raise ValueError(f"a pace cannot lie between {self.floor} and {self.cap} seconds a document")

    def of(self, declared: float | None) -> float:
        """The interval that is kept where the file declares this one, or none."""
        return max(SHORTEST, min(max(declared or 0.0, self.floor), self.cap))


def bounds(own: Bounds, said: Pace | None) -> Bounds:
    """The operator's `own` bounds, or those `said` of a host; one said alone takes the other along, if need be."""
    if said is None:
        return own
    floor = own.floor if said.floor is None else said.floor
    cap = own.cap if said.cap is None else said.cap
    return Bounds(floor if said.floor is not None else min(floor, cap), max(floor, cap) if said.cap is None else cap)


@dataclass(frozen=True, slots=True)
class PaceWindow:
    """Up to the Unix second `until` (infinity for the last), one document every `interval` seconds."""

    until: float
    interval: float


def spans(
    rates: Timetable[Rate | None] | None, now: float, bounds: Bounds, slower: Override | None = None
) -> tuple[PaceWindow, ...]:
    """The paces in force from the Unix second `now` on, one behind the other; `rates` None is a file without any.

    `slower` is the operators' delay that holds. Beyond MOST_SPANS stretches, the slowest pace of the day is kept.
    """
    found: list[PaceWindow] = []
    at: datetime | None = datetime.fromtimestamp(now, UTC)
    for _ in range(MOST_CHANGES):
        if at is None or len(found) == MOST_SPANS:
            break
        # What an operator has set ends with it: behind that, the file alone is asked.
        if slower is not None and slower.expired(at.timestamp()):
            slower = None
        said = with_delay(None if rates is None else rates.at(at), slower)
        rate, at = (None, None) if said is None else (said.value, said.valid_until)
        until = math.inf if at is None else at.timestamp()
        interval = bounds.of(None if rate is None else rate.interval)
        if found and found[-1].interval == interval:
            found[-1] = PaceWindow(until, interval)
        else:
            found.append(PaceWindow(until, interval))
    last = found[-1].interval
    if at is not None and rates is not None:
        last = max(last, *(bounds.of(None if rate is None else rate.interval) for rate in rates.values))
    found[-1] = PaceWindow(math.inf, last)
    return tuple(found)


def advance(spans: tuple[PaceWindow, ...], at: float, documents: float) -> float:
    """When the pace has made up for so many documents fetched at `at`: each stretch counts at its own interval."""
    for span in spans:
        if at < span.until:
            room = (span.until - at) / span.interval
            if documents <= room:
                break
            documents, at = documents - room, span.until
    return at + documents * span.interval


def interval_at(spans: tuple[PaceWindow, ...], at: float) -> float:
    """The interval in force at the Unix second `at`."""
    return next(span.interval for span in spans if at < span.until)
