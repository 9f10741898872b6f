"""The pace of one agent in one pool over time, as windows of constant interval; pure."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

from app.cache.recheck import Pace
from app.decisions.evaluate import with_delay
from app.overrides.table import Override
from robots_core.robots.rates import Rate, RateSource, Timetable

MAX_WINDOWS = 16
"""Windows of one schedule, at most; the last one never ends."""

MAX_CHANGES = 64
"""Changes of the rate that are examined, at most: within the bounds, many may give the same interval every day."""

MIN_INTERVAL = 0.001
"""Seconds: the shortest interval. A crawler that may go faster needs no pacing."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The operator's limits for every interval, in seconds: at least `floor`, at most `cap`.

    `budget` is in documents a day; 0: none.
    """

    floor: float = 1.0
    cap: float = 86_400.0
    budget: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.floor <= self.cap:
            raise ValueError(f"The floor of the pace ({self.floor} s) must be from 0 to its cap ({self.cap} s).")

    def clamp(self, declared: float | None) -> float:
        """The interval to keep if the file declares this one, or none."""
        return max(MIN_INTERVAL, min(max(declared or 0.0, self.floor), self.cap))


def host_bounds(default: Bounds, pace: Pace | None) -> Bounds:
    """The bounds of a host: `default`, with the floor and cap that `pace` states.

    If only one is stated and it crosses the other, the other moves with it.
    """
    if pace is None:
        return default
    floor = default.floor if pace.floor is None else pace.floor
    cap = default.cap if pace.cap is None else pace.cap
    budget = default.budget if pace.budget is None else pace.budget
    least, most = floor if pace.floor is not None else min(floor, cap), max(floor, cap) if pace.cap is None else cap
    return Bounds(least, most, budget)


Bound: TypeAlias = Literal["file", "override", "floor", "latency", "backoff", "budget"]
"""What decides an interval: the file, an operator's delay, the floor, the time of pages, or an earlier refusal.

"budget" is not about an interval: the documents of the day are used up.
"""


class PaceWindow(NamedTuple):
    """One document every `interval` seconds, up to the Unix second `until` (infinity for the last window).

    `bound` is what decided the interval.
    """

    until: float
    interval: float
    bound: Bound = "floor"


def pace_windows(
    rates: Timetable[Rate | None] | None, now: float, bounds: Bounds, delay: Override | None = None
) -> tuple[PaceWindow, ...]:
    """The windows from the Unix second `now` on, in order. `rates` is None if the file declares none.

    `delay` is the delay override in force. Beyond MAX_WINDOWS, the slowest interval of the day holds.
    """
    windows: list[PaceWindow] = []
    at: datetime | None = datetime.fromtimestamp(now, UTC)
    for _ in range(MAX_CHANGES):
        if at is None or len(windows) == MAX_WINDOWS:
            break
        if delay is not None and delay.expired(at.timestamp()):
            delay = None
        rate_at = with_delay(None if rates is None else rates.at(at), delay)
        rate, at = (None, None) if rate_at is None else (rate_at.value, rate_at.valid_until)
        until = math.inf if at is None else at.timestamp()
        interval = bounds.clamp(None if rate is None else rate.interval)
        bound = _bound(rate, bounds)
        if windows and windows[-1].interval == interval:
            windows[-1] = PaceWindow(until, interval, windows[-1].bound)
        else:
            windows.append(PaceWindow(until, interval, bound))
    last, bound = windows[-1].interval, windows[-1].bound
    if at is not None and rates is not None:
        slowest = max(bounds.clamp(None if rate is None else rate.interval) for rate in rates.values)
        last, bound = (slowest, "file") if slowest > last else (last, bound)
    windows[-1] = PaceWindow(math.inf, last, bound)
    return tuple(windows)


def _bound(rate: Rate | None, bounds: Bounds) -> Bound:
    if rate is None or rate.interval < bounds.floor:
        return "floor"
    return "override" if rate.source is RateSource.OVERRIDE else "file"


def at_least(windows: tuple[PaceWindow, ...], interval: float, bound: Bound) -> tuple[PaceWindow, ...]:
    """The windows with intervals of at least this one, which `bound` decided."""
    return tuple(
        window if window.interval >= interval else PaceWindow(window.until, interval, bound) for window in windows
    )


def window_at(windows: tuple[PaceWindow, ...], at: float) -> PaceWindow:
    """The window in force at the Unix second `at`."""
    return next(window for window in windows if at < window.until)


def interval_at(windows: tuple[PaceWindow, ...], at: float) -> float:
    """The interval in force at the Unix second `at`."""
    return window_at(windows, at).interval
