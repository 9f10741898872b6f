"""The terms of groups, from bytes: spec F, G and the rate cases."""

from datetime import UTC, datetime

import pytest

from robots_core.robots.agents import agent_of, known_agents, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.terms import Terms


def terms(robots: str, agent: str = "FooBot", dialect: str = "rfc9309") -> Terms | None:
    reading = RobotsTxt(robots.encode()).reading(DIALECTS[dialect])
    asking = read_agent(agent)
    selection = reading.select(asking)
    return None if selection is None else reading.terms(selection, asking)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def interval(robots: str, agent: str = "FooBot", dialect: str = "rfc9309") -> float | None:
    found = terms(robots, agent, dialect)
    rate = None if found is None else found.rates.at(NOON).value
    return None if rate is None else rate.interval


BOTH = "User-agent: *\nCrawl-delay: 20\nRequest-rate: 1/15s\n"


@pytest.mark.parametrize(
    ("dialect", "kept"), [("rfc9309", 20), ("v2", 20), ("draft1996", 20), ("seznam", 10), ("google", None)]
)
def test_g4_f7_f14_each_dialect_has_the_rates_it_obeys(dialect: str, kept: float | None) -> None:
    assert interval(BOTH, dialect=dialect) == kept
    found = terms(BOTH, dialect=dialect)
    assert found is not None
    assert found.crawl_delay is not None
    assert found.crawl_delay.seconds == 20


def test_g11_a_member_line_applies_to_the_agents_above_it() -> None:
    robots = "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\nCrawl-delay: 7\n"
    assert (interval(robots, "a"), interval(robots, "b")) == (7, 7)
    robots = "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\n"
    assert (interval(robots, "a"), interval(robots, "b")) == (5, None)
    assert (interval(robots, "a", "seznam"), terms(robots, "a", "seznam")) != (5, None)


def test_b9_in_seznam_a_rate_ends_a_run_of_agents() -> None:
    robots = "User-agent: a\nRequest-rate: 1/5s\nUser-agent: b\nDisallow: /x\n"
    assert (interval(robots, "a", "seznam"), interval(robots, "b", "seznam")) == (5, None)


def test_g2_of_several_delays_the_largest_counts() -> None:
    robots = "User-agent: a\nCrawl-delay: 2\nCrawl-delay: 4.5\n\nUser-agent: a\nCrawl-delay: 3\n"
    assert interval(robots, "a") == 4.5


def test_c4_an_own_group_inherits_only_bings_delay() -> None:
    robots = (
        "User-agent: *\nCrawl-delay: 9\nRequest-rate: 1/90s\n\nUser-agent: foobot\nUser-agent: bingbot\nDisallow: /x\n"
    )
    assert interval(robots, "FooBot") is None
    assert interval(robots, "bingbot") == 9


@pytest.mark.parametrize(
    ("own", "seconds", "line", "inherited"),
    [
        ("Disallow: /x", 20, 2, True),
        ("Crawl-delay: 2", 2, 5, False),
        ("Crawl-delay: 50", 50, 5, False),
        ("Crawl-delay: 0", 0, 5, False),
        ("Crawl-delay: soon", 20, 2, True),
    ],
)
def test_c12_bings_own_delay_precedes_that_of_star(own: str, seconds: int, line: int, inherited: bool) -> None:
    robots = f"User-agent: *\nCrawl-delay: 20\nDisallow: /y\nUser-agent: bingbot\n{own}\n"
    found = terms(robots, "bingbot")
    assert found is not None
    rate = found.rates.at(NOON).value
    assert rate is not None
    assert (rate.interval, rate.line, rate.inherited) == (seconds, line, inherited)
    # Without a group of its own, the group for * binds it, and nothing is inherited.
    of_star = terms("User-agent: *\nCrawl-delay: 20\n", "bingbot")
    assert of_star is not None
    assert (of_star.crawl_delay and of_star.crawl_delay.inherited) is False


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("own", "seconds"), [("Crawl-delay: 5", 5), ("Crawl-delay: soon", None), ("Visit-time: 0600-0845", None)]
)
def test_c12_a_file_without_a_star_group_has_nothing_to_inherit(dialect: str, own: str, seconds: int | None) -> None:
    # The group of another agent has the member line that the second file's bingbot lacks.
    for robots in (
        f"User-agent: bingbot\n{own}\n",
        f"User-agent: foobot\n{own}\n\nUser-agent: bingbot\nDisallow: /x\n",
    ):
        found = terms(robots, "bingbot", dialect)
        assert found is not None
        stated = seconds if "foobot" not in robots else None
        assert (found.crawl_delay and found.crawl_delay.seconds) == stated


@pytest.mark.parametrize("first", ["bingbot", "OwnBot"])
def test_c12_a_crawler_that_falls_back_on_bingbot_inherits_no_delay(first: str) -> None:
    own = {"ownbot": agent_of("OwnBot", {"chain": ["bingbot"]})}
    robots = RobotsTxt(b"User-agent: *\nCrawl-delay: 9\n\nUser-agent: bingbot\nDisallow: /x\n")
    reading = robots.reading(DIALECTS["rfc9309"])
    delays = {}
    for name in sorted(("bingbot", "OwnBot"), key=lambda name: name != first):
        agent = read_agent(name, {**known_agents(), **own})
        selection = reading.select(agent)
        assert selection is not None
        assert selection.token == "bingbot"
        delays[name] = reading.terms(selection, agent).crawl_delay
    assert delays["OwnBot"] is None
    assert delays["bingbot"] is not None
    assert delays["bingbot"].inherited


def test_g5_visit_times_are_a_union_or_none() -> None:
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
