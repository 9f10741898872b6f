"""A dialect that groups a file as another one does shares its rules, and judges as with rules of its own."""

import pytest

from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.groups import Groups
from robots_core.robots.robots_txt import Reading, RobotsTxt
from tests.corpus import real_files

SHARING = [dialect for dialect in DIALECTS.values() if dialect.like is not None]
AGENTS = [read_agent(token) for token in ("SeznamBot", "Googlebot", "GPTBot", "*")]
PATHS = ("/", "/a", "/private/x", "/search?q=a:b", "/index.html", "/wp-admin/admin-ajax.php")

ALIKE = b"User-agent: *\nDisallow: /private\nCrawl-delay: 5\n\nUser-agent: GPTBot\nDisallow: /\n"
APART = {
    "a member line ends the run": b"User-agent: a\nCrawl-delay: 5\nUser-agent: SeznamBot\nDisallow: /private\n",
    "a version": b"User-agent: *\nRobot-version: 2.0\nDisallow: /[ab]\n",
    "a version in another group": b"User-agent: a\nRobot-version: 1.0\nAllow: /\n\nUser-agent: *\nDisallow: /a\n",
}


def alone(robots: RobotsTxt, dialect: Dialect) -> Reading:
    return Reading(Groups(robots.scan, dialect.grammar), dialect)


@pytest.mark.parametrize("dialect", SHARING, ids=lambda dialect: dialect.name)
def test_rules_are_shared_in_either_order(dialect: Dialect) -> None:
    assert dialect.like is not None
    for first, then in ((dialect, dialect.like), (dialect.like, dialect)):
        robots = RobotsTxt(ALIKE)
        for agent in AGENTS:
            rules = robots.reading(first).rules_of(agent)
            assert rules is not None
            assert robots.reading(then).rules_of(agent) is rules


@pytest.mark.parametrize("dialect", SHARING, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("body", APART.values(), ids=APART)
def test_other_groups_and_versions_are_compiled_apart(dialect: Dialect, body: bytes) -> None:
    robots, agent = RobotsTxt(body), read_agent("SeznamBot")
    assert dialect.like is not None
    assert robots.reading(dialect).rules_of(agent) is not robots.reading(dialect.like).rules_of(agent)


@pytest.mark.parametrize("dialect", SHARING, ids=lambda dialect: dialect.name)
def test_shared_rules_judge_as_rules_of_its_own(dialect: Dialect) -> None:
    bodies = [*sorted(real_files().values())[::20], ALIKE, *APART.values()]
    for robots in map(RobotsTxt, bodies):
        shared, own = robots.reading(dialect), alone(robots, dialect)
        for agent in AGENTS:
            found, expected = ([it.judge(agent, path) for path in PATHS] for it in (shared, own))
            assert [(it.permission, it.reason, it.rule) for it in found] == [
                (it.permission, it.reason, it.rule) for it in expected
            ]
            selections = shared.select(agent), own.select(agent)
            if selections[0] is None or selections[1] is None:
                assert selections == (None, None)
            else:
                assert shared.terms(selections[0], agent) == own.terms(selections[1], agent)
