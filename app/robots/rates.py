"""Request-rate, Crawl-delay and Visit-time: what each line says, and which is in force when (spec F5-F9, G2-G5).

A day is a wheel: every window comes round each UTC day, so the whole answer for a group is a Timetable, drawn up once
per parsed file. Asking it what holds now, and until when, is then one bisection, however many lines the file has.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from heapq import heappop, heappush
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from app.robots.compiled import paces
from app.robots.compiled.paces import PaceLines

DAY: Final = 24 * 60
"""Minutes of a UTC day."""

CAPPED_ABOVE: Final = 3600.0
"""Seconds of Crawl-delay above which an answer is marked as capped (spec G2)."""

_FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
_LAST_INSTANT = datetime.max.replace(tzinfo=UTC)

Stretches: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of lines, [first, last)."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ProblemCode(StrEnum):
    """The warnings that rate lines give rise to (spec J5)."""

    MALFORMED = "rate-malformed"
    WINDOW = "rate-window"
    CLAMPED = "rate-clamped"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the directive of line `line` (1-based), as a sentence."""

    code: ProblemCode
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Reading(Generic[T_co]):
    """A directive's value as understood, None when the line is ignored, and what was wrong with it, None when nothing.

    Both are set for a good Request-rate with a bad window: the rate then applies all day (spec F9).
    """

    value: T_co | None
    problem: Problem | None = None


class Window(NamedTuple):
    """A part of every UTC day, in minutes since midnight: `start` inclusive, `end` exclusive (spec F8b, F8c, Q5).

    `start` is 0 to 1439 and `end` 1 to 1440. It crosses midnight where `start` is after `end`, and is the whole day
    where they are equal.
    """

    start: int
    end: int

    @property
    def start_text(self) -> str:
        """`start` as HH:MM."""
        return _clock(self.start)

    @property
    def end_text(self) -> str:
        """`end` as HH:MM, midnight being 24:00; a line's `-1659` is 17:00 here, since it covers that minute."""
        return _clock(self.end)


class RequestRate(NamedTuple):
    """`documents` per `seconds`, both 1 or more, inside `window`, or all day when it is None (spec F5, F6)."""

    documents: int
    seconds: int
    window: Window | None
    line: int

    @property
    def interval(self) -> float:
        """Seconds from one document to the next, as the line declares them."""
        return self.seconds / self.documents


class CrawlDelay(NamedTuple):
    """Seconds between fetches, finite and 0 or more (spec G2)."""

    seconds: float
    line: int

    @property
    def capped(self) -> bool:
        """Whether the delay is so long that a crawler may well mean to cap it (spec G2); nothing here does."""
        return self.seconds > CAPPED_ABOVE


class VisitTime(NamedTuple):
    """One window of the day in which visits are welcome; several lines are a union (spec G5)."""

    window: Window
    line: int


class RateSource(StrEnum):
    """Which directive a rate comes from, or that an operator set it, whose line is 0."""

    REQUEST_RATE = "request-rate"
    CRAWL_DELAY = "crawl-delay"
    OVERRIDE = "override"


class Rate(NamedTuple):
    """How fast a crawler may go, and which line says so.

    `documents` and `seconds` are the line's own numbers (a Crawl-delay is one document per delay) and
    `declared_interval` is the time between documents that they make; `interval` is that time after the dialect's clamp,
    and the one to keep (spec F7, Q4). All times are seconds; 0 is a Crawl-delay that asks for none.
    """

    interval: float
    documents: int
    seconds: float
    declared_interval: float
    source: RateSource
    line: int
    window: Window | None


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """What a dialect makes of rate lines: which kinds it obeys, and the longest interval it keeps, in seconds."""

    uses_request_rate: bool = True
    uses_crawl_delay: bool = True
    clamp_seconds: float | None = None


PLAIN_RATES: Final = RatePolicy()
"""Both directives, the slower one wins, nothing is clamped (spec G4)."""

SEZNAM_RATES: Final = RatePolicy(uses_crawl_delay=False, clamp_seconds=10.0)
"""Request-rate alone, never slower than one document in 10 s (spec F7, F14, Q4)."""

NO_RATES: Final = RatePolicy(uses_request_rate=False, uses_crawl_delay=False)
"""No rate line is obeyed (spec G4, google)."""


@dataclass(frozen=True, slots=True)
class InForce(Generic[T_co]):
    """What holds at an instant, and the UTC instant at which something else will; None where nothing else ever does."""

    value: T_co
    valid_until: datetime | None


class Span(NamedTuple):
    """A stretch of the UTC day, HH:MM to HH:MM (exclusive, 24:00 at most), and the rate in force in it, if any."""

    start: str
    end: str
    rate: Rate | None


@dataclass(frozen=True, slots=True)
class Timetable(Generic[T_co]):
    """What holds in each minute of every UTC day: `values[i]` from minute `starts[i]` up to the next start or midnight.

    `starts` ascend from 0; neighbouring values differ.
    """

    starts: tuple[int, ...]
    values: tuple[T_co, ...]

    def at(self, instant: datetime) -> InForce[T_co]:
        """What holds at this aware instant, and until when."""
        instant = _utc(instant)
        index = bisect_right(self.starts, instant.hour * 60 + instant.minute) - 1
        value = self.values[index]
        if len(self.starts) == 1:
            return InForce(value, None)
        if index + 1 < len(self.starts):
            return InForce(value, _minutes_into_day(instant, self.starts[index + 1]))
        # The last stretch runs on past midnight where the first one says the same.
        change = self.starts[1] if self.values[0] == value else 0
        return InForce(value, _minutes_into_day(instant, DAY + change))


@dataclass(frozen=True, slots=True)
class Visit:
    """Whether Visit-time welcomes a visit now, and for how long that stays so (spec G5); it never decides a verdict.

    `next_open` is the UTC instant of the next opening, None while a visit is welcome now.
    """

    visit_now: bool
    next_open: datetime | None
    valid_until: datetime | None


def read_request_rate(value: str, line: int) -> Reading[RequestRate]:
    """Read `documents/time[unit] [window]`; no unit is seconds, blanks round the slash do no harm (spec F5, F6, F9)."""
    read = paces.request_rate(value)
    if read is None:
        expected = "whole documents per whole seconds, minutes, hours or days, all of them above zero"
        return _malformed("Request-rate", value, line, expected)
    *_, unread = read
    problem = None
    if unread is not None:
        message = f"the window {_shown(unread)} is not HHMM-HHMM, so the rate is taken to apply all day"
        problem = Problem(ProblemCode.WINDOW, line, message)
    return Reading(_request_rate(*read[:3], line), problem)


def read_crawl_delay(value: str, line: int) -> Reading[CrawlDelay]:
    """Read a decimal number of seconds, point and no unit (spec G2)."""
    seconds = paces.crawl_delay(value)
    if seconds is None:
        return _malformed("Crawl-delay", value, line, "a decimal number of seconds")
    return Reading(CrawlDelay(seconds, line))


def read_visit_time(value: str, line: int) -> Reading[VisitTime]:
    """Read `HHMM-HHMM`, spelt as in a Request-rate, or with a blank for the dash (spec G5, F8)."""
    window = paces.visit_time(value)
    if window is None:
        message = f"the Visit-time {_shown(value)} is not HHMM-HHMM, so the line is ignored"
        return Reading(None, Problem(ProblemCode.WINDOW, line, message))
    return Reading(VisitTime(Window(*window), line))


def deciding_rates(lines: PaceLines, stretches: Stretches) -> list[RequestRate]:
    """Of the Request-rates of these stretches those that are in force at any minute, where the dialect has them."""
    return [_request_rate(*rate) for rate in lines.rates(stretches)]


def largest_delay(lines: PaceLines, stretches: Stretches) -> CrawlDelay | None:
    """The one Crawl-delay that counts of several: the largest, the first of equals (spec G2)."""
    found = lines.delay(stretches)
    return None if found is None else CrawlDelay(*found)


def rate_timetable(
    rates: Sequence[RequestRate], crawl_delay: CrawlDelay | None, policy: RatePolicy
) -> Timetable[Rate | None]:
    """The rate in force in each minute of the day, None where nothing limits (spec F8a, F7, G4)."""
    heeded = rates if policy.uses_request_rate else ()
    delay = crawl_delay if policy.uses_crawl_delay else None
    # Slowest first: of several active windows the slowest wins, and of equals the line that came first.
    slowest = sorted(heeded, key=lambda rate: rate.interval, reverse=True)
    plain = next((rate for rate in slowest if rate.window is None), None)
    windowed = [(rate.window, _combine(rate, delay, policy)) for rate in slowest if rate.window is not None]
    return _timetable(windowed, otherwise=_combine(plain, delay, policy))


def schedule(table: Timetable[Rate | None]) -> list[Span]:
    """The whole UTC day from 00:00 to 24:00 without a gap, equal neighbours merged."""
    ends = (*table.starts[1:], DAY)
    return [
        Span(_clock(start), _clock(end), rate)
        for start, end, rate in zip(table.starts, ends, table.values, strict=True)
    ]


def clamp_warnings(rates: Iterable[RequestRate], crawl_delay: CrawlDelay | None, policy: RatePolicy) -> list[Problem]:
    """A `rate-clamped` for each line that asks for more patience than the dialect has (spec F7)."""
    longest = policy.clamp_seconds
    if longest is None:
        return []
    declared = [(rate.interval, rate.line) for rate in rates if policy.uses_request_rate]
    if crawl_delay is not None and policy.uses_crawl_delay:
        declared.append((crawl_delay.seconds, crawl_delay.line))
    return [
        Problem(
            ProblemCode.CLAMPED,
            line,
            f"the declared interval of {interval:g} s counts as {longest:g} s for Seznam, which waits no longer",
        )
        for interval, line in declared
        if interval > longest
    ]


def visit_timetable(lines: PaceLines, stretches: Stretches) -> Timetable[bool] | None:
    """Whether each minute of the day is open to visits, which is inside any window; None where no line says one."""
    windows = lines.visits(stretches)
    return None if windows is None else _timetable([(Window(*window), True) for window in windows], otherwise=False)


def visit_at(table: Timetable[bool], at: datetime) -> Visit:
    """What a `visit_timetable` says at the aware instant `at`."""
    now = table.at(at)
    return Visit(now.value, None if now.value else now.valid_until, now.valid_until)


def _malformed(key: str, value: str, line: int, expected: str) -> Reading[T]:
    message = f"the {key} {_shown(value)} is not {expected}, so the line is ignored"
    return Reading(None, Problem(ProblemCode.MALFORMED, line, message))


def _shown(value: str) -> str:
    return repr(value if len(value) <= 100 else value[:100] + "…")


# Of each minute, and of the midnight that ends the day: a day of 1,440 spans shows four for each.
_CLOCKS = tuple(f"{minute // 60:02}:{minute % 60:02}" for minute in range(DAY + 1))


def _clock(minute: int) -> str:
    return _CLOCKS[minute]


def _request_rate(documents: int, seconds: int, window: tuple[int, int] | None, line: int) -> RequestRate:
    return RequestRate(documents, seconds, None if window is None else Window(*window), line)


def _combine(rate: RequestRate | None, delay: CrawlDelay | None, policy: RatePolicy) -> Rate | None:
    """The slower of the two, the Request-rate where they are equal, clamped (spec G4, F7)."""
    if rate is not None and (delay is None or rate.interval >= delay.seconds):
        interval = _clamped(rate.interval, policy)
        source = RateSource.REQUEST_RATE
        return Rate(interval, rate.documents, rate.seconds, rate.interval, source, rate.line, rate.window)
    if delay is not None:
        # A whole number of seconds is kept as one, as the line most likely wrote it: `10`, not `10.0`.
        seconds = int(delay.seconds) if delay.seconds.is_integer() else delay.seconds
        interval = _clamped(delay.seconds, policy)
        return Rate(interval, 1, seconds, delay.seconds, RateSource.CRAWL_DELAY, delay.line, None)
    return None


def _clamped(interval: float, policy: RatePolicy) -> float:
    return interval if policy.clamp_seconds is None else min(interval, policy.clamp_seconds)


def _timetable(windowed: Sequence[tuple[Window, T]], otherwise: T) -> Timetable[T]:
    """Lay windows over a day, earlier ones on top, `otherwise` where there is none.

    A sweep with a heap: asking each of as many windows as a day has minutes about each minute would take seconds.
    """
    opening: list[tuple[int, int, int]] = []  # start, rank, end
    for rank, (window, _) in enumerate(windowed):
        if window.start < window.end:
            opening.append((window.start, rank, window.end))
        else:
            opening += [(0, rank, window.end), (window.start, rank, DAY)]
    opening.sort(reverse=True)
    boundaries = {0} | {start for start, _, _ in opening} | {end for _, _, end in opening if end < DAY}
    is_open: list[tuple[int, int]] = []  # rank, end: the lowest rank is on top
    starts: list[int] = []
    values: list[T] = []
    for minute in sorted(boundaries):
        while opening and opening[-1][0] <= minute:
            _, rank, end = opening.pop()
            heappush(is_open, (rank, end))
        while is_open and is_open[0][1] <= minute:
            heappop(is_open)
        value = windowed[is_open[0][0]][1] if is_open else otherwise
        if not values or values[-1] != value:
            starts.append(minute)
            values.append(value)
    return Timetable(tuple(starts), tuple(values))


def _utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:  # an offset that leads out of the years 1 to 9999: the nearest instant inside them
        return _FIRST_INSTANT if instant.year == 1 else _LAST_INSTANT


def _minutes_into_day(instant: datetime, minutes: int) -> datetime | None:
    midnight = instant.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        return midnight + timedelta(minutes=minutes)
    except OverflowError:  # the change comes after the last instant that can be written, so it never comes
        return None
