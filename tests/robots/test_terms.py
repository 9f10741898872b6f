"""What groups say beside their rules, by the whole way from bytes: spec F, G and the rate cases."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.robots.agents import read_agent
from app.robots.dialects import DIALECTS
from app.robots.robots_txt import RobotsTxt
from app.robots.terms import Terms
from tests.robots.cases import rows

RATES = rows("rate-cases.jsonl")


def terms(robots: str, agent: str = "FooBot", dialect: str = "rfc9309") -> Terms | None:
    reading = RobotsTxt(robots.encode()).reading(DIALECTS[dialect])
    asking = read_agent(agent)
    selection = reading.select(asking)
    return None if selection is None else reading.terms(selection, asking)


@pytest.mark.parametrize("case", RATES, ids=[f"{case['id']}-{case['clause']}" for case in RATES])
def test_the_rate_of_each_case_of_the_specification(case: dict[str, Any]) -> None:
    hour, minute = map(int, case["at_utc"].split(":"))
    found = terms(case["robots"], case["agent"], case["dialect"])
    assert found is not None
    rate = found.rates.at(datetime(2026, 11, 21, hour, minute, tzinfo=UTC)).value
    stated = (None, None, None) if rate is None else (rate.documents, rate.seconds, rate.interval)
    assert stated == (case["documents"], case["seconds"], case["interval_s"])


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def interval(robots: str, agent: str = "FooBot", dialect: str = "rfc9309") -> float | None:
    found = terms(robots, agent, dialect)
    rate = None if found is None else found.rates.at(NOON).value
    return None if rate is None else rate.interval


BOTH = "User-agent: *\nCrawl-delay: 20\nRequest-rate: 1/15s\n"


@pytest.mark.parametrize(
    ("dialect", "kept"), [("rfc9309", 20), ("v2", 20), ("draft1996", 20), ("seznam", 10), ("google", None)]
)
def test_g4_f7_f14_each_dialect_keeps_the_rates_it_obeys(dialect: str, kept: float | None) -> None:
    assert interval(BOTH, dialect=dialect) == kept
    found = terms(BOTH, dialect=dialect)
    assert found is not None
    assert found.crawl_delay is not None
    assert found.crawl_delay.seconds == 20


def test_g11_a_member_line_speaks_for_the_agents_above_it() -> None:
    robots = "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\nCrawl-delay: 7\n"
    assert (interval(robots, "a"), interval(robots, "b")) == (7, 7)
    robots = "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\n"
    assert (interval(robots, "a"), interval(robots, "b")) == (5, None)
    assert (interval(robots, "a", "seznam"), terms(robots, "a", "seznam")) != (5, None)


def test_b9_in_seznam_a_rate_closes_the_group_it_stands_in() -> None:
    robots = "User-agent: a\nRequest-rate: 1/5s\nUser-agent: b\nDisallow: /x\n"
    assert (interval(robots, "a", "seznam"), interval(robots, "b", "seznam")) == (5, None)


def test_g2_of_several_delays_the_largest_counts() -> None:
    robots = "User-agent: a\nCrawl-delay: 2\nCrawl-delay: 4.5\n\nUser-agent: a\nCrawl-delay: 3\n"
    assert interval(robots, "a") == 4.5


def test_c4_a_group_of_ones_own_inherits_no_rate_but_bings_delay() -> None:
    robots = (
        "User-agent: *\nCrawl-delay: 9\nRequest-rate: 1/90s\n\nUser-agent: foobot\nUser-agent: bingbot\nDisallow: /x\n"
    )
    assert interval(robots, "FooBot") is None
    assert interval(robots, "bingbot") == 9


def test_g5_visits_are_a_union_and_none_where_nothing_is_said() -> None:
    found = terms("User-agent: *\nVisit-time: 0600-0845\nVisit-time: 2200-0100\n")
    assert found is not None
    assert found.visits is not None
    assert [found.visits.at(NOON.replace(hour=hour)).value for hour in (0, 5, 7, 12, 23)] == [
        True,
        False,
        True,
        False,
        True,
    ]
    plain = terms("User-agent: *\nDisallow: /")
    assert plain is not None
    assert plain.visits is None
