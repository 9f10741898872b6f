"""Parse Request-rate, Crawl-delay and Visit-time, and find the ones in force at an instant (spec F5-F9, G2-G5).

Every window recurs each UTC day. So the rates of a group are compiled into a Timetable once per file, and a lookup is a
binary search, however many lines the file has.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

DAY_MINUTES: Final = 24 * 60
"""Minutes of a UTC day."""

CAPPED_ABOVE: Final = 3600.0
"""Seconds above which a Crawl-delay is reported as capped (spec G2)."""

_FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
_LAST_INSTANT = datetime.max.replace(tzinfo=UTC)

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

# Eighteen digits are more than any site needs, and bound the cost of int(). The quantifiers are possessive, so the
# patterns do not backtrack.
_REQUEST_RATE = re.compile(
    r"([0-9]{1,18}+)[ \t]*+/[ \t]*+([0-9]{1,18}+)(?:[ \t]*+([A-Za-z]++)(?=[ \t]|\Z))?+(?:[ \t]++(\S.*+))?",
    re.ASCII | re.DOTALL,
)
_CRAWL_DELAY = re.compile(r"[0-9]{1,18}+(?:\.[0-9]{1,18}+)?+", re.ASCII)
_CLOCK = r"([0-9]{1,2})[:.]?([0-9]{2})"
_WINDOW = re.compile(
    rf"{_CLOCK}(?:[ \t]*+[-–][ \t]*+|([ \t]++)){_CLOCK}[ \t]*+(?:UTC|GMT|Z)?", re.ASCII | re.IGNORECASE
)

S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class RateWarningCode(StrEnum):
    """The codes of warnings about rate lines (spec J5)."""

    MALFORMED = "rate-malformed"
    WINDOW = "rate-window"
    CLAMPED = "rate-clamped"


@dataclass(frozen=True, slots=True)
class RateWarning:
    """A sentence about what is wrong with line `line` (1-based)."""

    code: RateWarningCode
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T_co]):
    """The parsed value of a line, None if the line is ignored, and a warning if something is wrong.

    Both are set for a valid Request-rate with an invalid window: the rate then applies all day (spec F9).
    """

    value: T_co | None
    warning: RateWarning | None = None


class Window(NamedTuple):
    """A part of every UTC day, in minutes since midnight: `start` inclusive, `end` exclusive (spec F8b, F8c, Q5).

    `start` is 0 to 1439 and `end` 1 to 1440. The window crosses midnight if `start` is after `end`, and is the whole
    day if they are equal.
    """

    start: int
    end: int

    @property
    def start_text(self) -> str:
        """`start` as HH:MM."""
        return _clock(self.start)

    @property
    def end_text(self) -> str:
        """`end` as HH:MM, with 24:00 for midnight. `-1659` in a line is 17:00 here, since it includes that minute."""
        return _clock(self.end)


class RequestRate(NamedTuple):
    """`documents` per `seconds`, both 1 or more, inside `window`, or all day if that is None (spec F5, F6)."""

    documents: int
    seconds: int
    window: Window | None
    line: int

    @property
    def interval(self) -> float:
        """Seconds between documents, as declared."""
        return self.seconds / self.documents


class CrawlDelay(NamedTuple):
    """Seconds between fetches, finite and 0 or more (spec G2). `inherited`: from the group for `*` (spec C12)."""

    seconds: float
    line: int
    inherited: bool = False

    @property
    def capped(self) -> bool:
        """Whether the delay is so long that crawlers may want to cap it (spec G2). It is not capped here."""
        return self.seconds > CAPPED_ABOVE


class VisitTime(NamedTuple):
    """One window of the day in which visits are welcome; several lines form a union (spec G5)."""

    window: Window
    line: int


class RateSource(StrEnum):
    """The directive that a rate comes from, or the operator who set it (line 0)."""

    REQUEST_RATE = "request-rate"
    CRAWL_DELAY = "crawl-delay"
    OVERRIDE = "override"


class Rate(NamedTuple):
    """The rate to keep, and the line that declares it.

    `documents` and `seconds` are the numbers of the line (a Crawl-delay is one document per delay), and
    `declared_interval` is the resulting time between documents. `interval` is the same after the dialect's clamp, and
    is the one to keep (spec F7, Q4). All times are seconds; 0 means no delay.
    """

    interval: float
    documents: int
    seconds: float
    declared_interval: float
    source: RateSource
    line: int
    window: Window | None
    inherited: bool = False
    """Whether the line is in the group for `*` although the agent has its own group (spec C12)."""


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """How a dialect treats rate lines: which kinds it obeys, and the longest interval that it keeps, in seconds."""

    uses_request_rate: bool = True
    uses_crawl_delay: bool = True
    clamp_seconds: float | None = None


PLAIN_RATES: Final = RatePolicy()
"""Both directives are obeyed; the slower one wins, and nothing is clamped (spec G4)."""

SEZNAM_RATES: Final = RatePolicy(uses_crawl_delay=False, clamp_seconds=10.0)
"""Only Request-rate is obeyed, and never slower than one document in 10 s (spec F7, F14, Q4)."""

NO_RATES: Final = RatePolicy(uses_request_rate=False, uses_crawl_delay=False)
"""No rate line is obeyed (spec G4, google)."""


@dataclass(frozen=True, slots=True)
class InForce(Generic[T_co]):
    """The value at an instant, and the UTC instant at which it changes; None if it never does."""

    value: T_co
    valid_until: datetime | None


class RateChange(NamedTuple):
    """The UTC instant at which the rate changes, and the one from then on; None for no limit."""

    at: datetime
    rate: Rate | None


class Span(NamedTuple):
    """A part of the UTC day, HH:MM to HH:MM (exclusive, 24:00 at most), and the rate in force, if any."""

    start: str
    end: str
    rate: Rate | None


@dataclass(frozen=True, slots=True)
class Timetable(Generic[T_co]):
    """Values over every UTC day: `values[i]` holds from minute `starts[i]` to the next start or midnight.

    `starts` ascend from 0; neighbouring values differ.
    """

    starts: tuple[int, ...]
    values: tuple[T_co, ...]

    def at(self, instant: datetime) -> InForce[T_co]:
        """The value at this aware instant, and how long it holds."""
        instant = _utc(instant)
        index = bisect_right(self.starts, instant.hour * 60 + instant.minute) - 1
        value = self.values[index]
        if len(self.starts) == 1:
            return InForce(value, None)
        if index + 1 < len(self.starts):
            return InForce(value, _minutes_into_day(instant, self.starts[index + 1]))
        # If the first value equals the last one, the value holds across midnight.
        change = self.starts[1] if self.values[0] == value else 0
        return InForce(value, _minutes_into_day(instant, DAY_MINUTES + change))


@dataclass(frozen=True, slots=True)
class Visit:
    """Whether Visit-time allows a visit now, and until when that holds (spec G5). It never affects a verdict.

    `next_open` is the UTC instant at which the next window opens, None if visits are welcome now.
    """

    visit_now: bool
    next_open: datetime | None
    valid_until: datetime | None


def read_request_rate(value: str, line: int) -> Parsed[RequestRate]:
    """Read `documents/time[unit] [window]`, in seconds by default; blanks may surround the slash (spec F5, F6, F9)."""
    written = _REQUEST_RATE.fullmatch(value.strip(" \t"))
    seconds = int(written[2]) * _UNITS.get((written[3] or "").lower(), 0) if written else 0
    if written is None or seconds == 0 or int(written[1]) == 0:
        expected = "whole documents per whole seconds, minutes, hours or days, all of them above zero"
        return _malformed("Request-rate", value, line, expected)
    window, warning = None, None
    if written[4] is not None:
        window = _read_window(written[4], blank=False)
        if window is None:
            message = f"The window {_shown(written[4])} is not HHMM-HHMM, so the rate applies all day."
            warning = RateWarning(RateWarningCode.WINDOW, line, message)
    return Parsed(RequestRate(int(written[1]), seconds, window, line), warning)


def read_crawl_delay(value: str, line: int) -> Parsed[CrawlDelay]:
    """Read a decimal number of seconds, with a point and without a unit (spec G2)."""
    text = value.strip(" \t")
    if not _CRAWL_DELAY.fullmatch(text):
        return _malformed("Crawl-delay", value, line, "a decimal number of seconds")
    return Parsed(CrawlDelay(float(text), line))


def read_visit_time(value: str, line: int) -> Parsed[VisitTime]:
    """Read `HHMM-HHMM` as in a Request-rate; a blank may replace the dash (spec G5, F8)."""
    window = _read_window(value.strip(" \t"), blank=True)
    if window is None:
        message = f"The Visit-time {_shown(value)} is not HHMM-HHMM, so the line is ignored."
        return Parsed(None, RateWarning(RateWarningCode.WINDOW, line, message))
    return Parsed(VisitTime(window, line))


def largest_delay(delays: Iterable[CrawlDelay]) -> CrawlDelay | None:
    """The Crawl-delay that counts: the largest, or the first of equal ones (spec G2)."""
    return max(delays, key=lambda delay: delay.seconds, default=None)


def rate_timetable(
    rates: Sequence[RequestRate], crawl_delay: CrawlDelay | None, policy: RatePolicy
) -> Timetable[Rate | None]:
    """The rate in force in each minute of the day, None for no limit (spec F8a, F7, G4)."""
    heeded = rates if policy.uses_request_rate else ()
    delay = crawl_delay if policy.uses_crawl_delay else None
    # Slowest first: the slowest active window wins, and the first line on ties.
    slowest = sorted(heeded, key=lambda rate: rate.interval, reverse=True)
    plain = next((rate for rate in slowest if rate.window is None), None)
    windowed = [(rate.window, rate) for rate in slowest if rate.window is not None]
    return _timetable(windowed, plain, lambda rate: _combine(rate, delay, policy))


def schedule(table: Timetable[Rate | None]) -> list[Span]:
    """The UTC day from 00:00 to 24:00 without gaps; equal neighbours are merged."""
    ends = (*table.starts[1:], DAY_MINUTES)
    return [
        Span(_clock(start), _clock(end), rate)
        for start, end, rate in zip(table.starts, ends, table.values, strict=True)
    ]


def clamp_warnings(
    rates: Iterable[RequestRate], crawl_delay: CrawlDelay | None, policy: RatePolicy
) -> list[RateWarning]:
    """A `rate-clamped` warning for each line with an interval longer than the dialect keeps (spec F7)."""
    longest = policy.clamp_seconds
    if longest is None:
        return []
    declared = [(rate.interval, rate.line) for rate in rates if policy.uses_request_rate]
    if crawl_delay is not None and policy.uses_crawl_delay:
        declared.append((crawl_delay.seconds, crawl_delay.line))
    return [
        RateWarning(
            RateWarningCode.CLAMPED,
            line,
            f"The declared interval of {interval:g} s counts as {longest:g} s: SeznamBot waits no longer.",
        )
        for interval, line in declared
        if interval > longest
    ]


def visit_timetable(times: Sequence[VisitTime]) -> Timetable[bool] | None:
    """Whether each minute of the day is inside a window; None if no line states one."""
    return _timetable([(time.window, True) for time in times], False, bool) if times else None


def visit_at(table: Timetable[bool], at: datetime) -> Visit:
    """The visit state at the aware instant `at`."""
    now = table.at(at)
    return Visit(now.value, None if now.value else now.valid_until, now.valid_until)


def _malformed(key: str, value: str, line: int, expected: str) -> Parsed[T]:
    message = f"The {key} {_shown(value)} is not {expected}, so the line is ignored."
    return Parsed(None, RateWarning(RateWarningCode.MALFORMED, line, message))


def _shown(value: str) -> str:
    return repr(value if len(value) <= 100 else value[:100] + "…")


# HH:MM for each minute, and 24:00. Formatted once, since a schedule may have 1,440 spans.
_CLOCKS = tuple(f"{minute // 60:02}:{minute % 60:02}" for minute in range(DAY_MINUTES + 1))


def _clock(minute: int) -> str:
    return _CLOCKS[minute]


def _read_window(text: str, *, blank: bool) -> Window | None:
    """Read `HHMM-HHMM` (spec F8b to F8d). `blank`: white space may replace the dash."""
    written = _WINDOW.fullmatch(text.strip(" \t"))
    if written is None or (written[3] is not None and not blank):
        return None
    start_hour, start_minute, end_hour, end_minute = map(int, written.group(1, 2, 4, 5))
    start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
    if start_minute > 59 or end_minute > 59 or start >= DAY_MINUTES or end > DAY_MINUTES:
        return None
    # Compared before the last minute is added: `0859-0859` is a whole day, like any window with equal ends.
    if end_minute == 59 and end != start:
        end += 1
    return Window(start, end or DAY_MINUTES)


def _combine(rate: RequestRate | None, delay: CrawlDelay | None, policy: RatePolicy) -> Rate | None:
    """The slower of the two, or the Request-rate if they are equal, clamped (spec G4, F7)."""
    if rate is not None and (delay is None or rate.interval >= delay.seconds):
        interval = _clamped(rate.interval, policy)
        source = RateSource.REQUEST_RATE
        return Rate(interval, rate.documents, rate.seconds, rate.interval, source, rate.line, rate.window)
    if delay is not None:
        # Reported as most lines write it: `10`, not `10.0`.
        seconds = int(delay.seconds) if delay.seconds.is_integer() else delay.seconds
        interval = _clamped(delay.seconds, policy)
        return Rate(interval, 1, seconds, delay.seconds, RateSource.CRAWL_DELAY, delay.line, None, delay.inherited)
    return None


def _clamped(interval: float, policy: RatePolicy) -> float:
    return interval if policy.clamp_seconds is None else min(interval, policy.clamp_seconds)


def _timetable(windowed: Sequence[tuple[Window, S]], otherwise: S, meaning: Callable[[S], T]) -> Timetable[T]:
    """Map the minutes of a day to the first window that contains them, or `otherwise`; then apply `meaning`.

    Each minute is written once, however many windows overlap: `free` is a union-find structure that leads from a minute
    to the next one that has not been written.
    """
    minutes: list[S] = [otherwise] * DAY_MINUTES
    free = list(range(DAY_MINUTES + 1)) if windowed else []
    for window, value in windowed:
        wraps = window.start >= window.end
        for start, end in ((window.start, DAY_MINUTES), (0, window.end)) if wraps else ((window.start, window.end),):
            minute = _next_free(free, start)
            while minute < end:
                minutes[minute] = value
                free[minute] = minute + 1
                minute = _next_free(free, minute + 1)
    changes = (
        [minute for minute in range(1, DAY_MINUTES) if minutes[minute] is not minutes[minute - 1]] if windowed else []
    )
    starts, values = [0], [meaning(minutes[0])]
    for minute in changes:
        value_then = meaning(minutes[minute])
        if value_then != values[-1]:
            starts.append(minute)
            values.append(value_then)
    return Timetable(tuple(starts), tuple(values))


def _next_free(free: list[int], minute: int) -> int:
    """The first minute from `minute` on that has not been written; halves the path for later calls."""
    while free[minute] != minute:
        free[minute] = free[free[minute]]
        minute = free[minute]
    return minute


def _utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:  # the offset leads outside the years 1 to 9999: use the nearest valid instant
        return _FIRST_INSTANT if instant.year == 1 else _LAST_INSTANT


def _minutes_into_day(instant: datetime, minutes: int) -> datetime | None:
    midnight = instant.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        return midnight + timedelta(minutes=minutes)
    except OverflowError:  # after the year 9999
        return None
