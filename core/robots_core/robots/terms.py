"""The terms of an agent's groups besides rules: rates, visit times and usage (spec F, G, I)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from robots_core.robots.lines import Directive, Key
from robots_core.robots.rates import (
    CrawlDelay,
    Parsed,
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
from robots_core.robots.usage import USAGE_KEYS, UsageTerms

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Terms:
    """The rates under the dialect, the Crawl-delay as declared, visit times and usage; None for what is not stated."""

    rates: Timetable[Rate | None]
    crawl_delay: CrawlDelay | None
    visits: Timetable[bool] | None
    usage: UsageTerms | None


_NOTHING_STATED: Final = Terms(Timetable((0,), (None,)), None, None, None)


def read_terms(members: Iterable[Directive], inherited: Iterable[Directive], policy: RatePolicy) -> Terms:
    """Read the terms from member lines; none of them changes a verdict (spec G1).

    `inherited` are the member lines of `*`, for an agent that inherits the Crawl-delay of `*` (spec C12).
    """
    own, of_star = list(members), list(inherited)
    if not own and not of_star:
        return _NOTHING_STATED  # as most files do
    delay = largest_delay(_delays(own))
    if delay is None and (found := largest_delay(_delays(of_star))):
        delay = found._replace(inherited=True)
    usages = [line for line in own if line.key in USAGE_KEYS]
    return Terms(
        rates=rate_timetable(_parsed(own, Key.REQUEST_RATE, read_request_rate), delay, policy),
        crawl_delay=delay,
        visits=visit_timetable(_parsed(own, Key.VISIT_TIME, read_visit_time)),
        usage=UsageTerms(usages) if usages else None,
    )


def _delays(lines: Iterable[Directive]) -> list[CrawlDelay]:
    return _parsed(lines, Key.CRAWL_DELAY, read_crawl_delay)


def _parsed(lines: Iterable[Directive], key: Key, parse: Callable[[str, int], Parsed[T]]) -> list[T]:
    values = (parse(line.text, line.line).value for line in lines if line.key is key)
    return [value for value in values if value is not None]
