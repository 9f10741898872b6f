"""What the chosen groups say beside their rules: how fast, when to come, what for (spec F, G, I)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from app.robots.rates import (
    CrawlDelay,
    Rate,
    RatePolicy,
    Reading,
    Timetable,
    largest_delay,
    rate_timetable,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
    visit_timetable,
)
from app.robots.syntax import Directive, Key, readable
from app.robots.usage import UsageTerms

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Terms:
    """`rates` through the day as the dialect obeys them, `crawl_delay` as declared; None is what is not stated."""

    rates: Timetable[Rate | None]
    crawl_delay: CrawlDelay | None
    visits: Timetable[bool] | None
    usage: UsageTerms | None


def read_terms(members: Iterable[Directive], policy: RatePolicy) -> Terms:
    """The terms that these member lines state; none of them ever changes a verdict (spec G1)."""
    by_key: dict[Key, list[tuple[str, int]]] = {}
    for line, key, value in members:
        by_key.setdefault(key, []).append((value, line))

    def read(key: Key, reader: Callable[[str, int], Reading[T]]) -> list[T]:
        readings = (reader(readable(value), line).value for value, line in by_key.get(key, ()))
        return [value for value in readings if value is not None]

    delay = largest_delay(read(Key.CRAWL_DELAY, read_crawl_delay))
    visits = read(Key.VISIT_TIME, read_visit_time)
    usages = [value for value, _ in by_key.get(Key.CONTENT_USAGE, ())]
    signals = [value for value, _ in by_key.get(Key.CONTENT_SIGNAL, ())]
    return Terms(
        rates=rate_timetable(read(Key.REQUEST_RATE, read_request_rate), delay, policy),
        crawl_delay=delay,
        visits=visit_timetable(visits) if visits else None,
        usage=UsageTerms(usages, signals) if usages or signals else None,
    )
