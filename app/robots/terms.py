"""What the chosen groups say beside their rules: how fast, and when to come (spec F, G)."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.robots.rates import (
    CrawlDelay,
    Rate,
    RatePolicy,
    Timetable,
    largest_delay,
    rate_timetable,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
    visit_timetable,
)
from app.robots.syntax import Directive, Key, readable


@dataclass(frozen=True, slots=True)
class Terms:
    """`rates` through the day as the dialect obeys them, `crawl_delay` as declared, `visits` None where unstated."""

    rates: Timetable[Rate | None]
    crawl_delay: CrawlDelay | None
    visits: Timetable[bool] | None


def read_terms(members: Iterable[Directive], policy: RatePolicy) -> Terms:
    """The terms that these member lines state; none of them ever changes a verdict (spec G1)."""
    by_key: dict[Key, list[tuple[int, str]]] = {}
    for line, key, value in members:
        by_key.setdefault(key, []).append((line, readable(value)))
    rates = [read_request_rate(value, line).value for line, value in by_key.get(Key.REQUEST_RATE, ())]
    delays = [read_crawl_delay(value, line).value for line, value in by_key.get(Key.CRAWL_DELAY, ())]
    times = [read_visit_time(value, line).value for line, value in by_key.get(Key.VISIT_TIME, ())]
    delay = largest_delay(filter(None, delays))
    windows = [time for time in times if time is not None]
    return Terms(
        rates=rate_timetable([rate for rate in rates if rate is not None], delay, policy),
        crawl_delay=delay,
        visits=visit_timetable(windows) if windows else None,
    )
