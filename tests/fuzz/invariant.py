"""The invariant that no input may violate."""

from datetime import UTC, datetime

from robots_core.lint.linter import lint
from robots_core.origin import URL_LIMIT
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.explain import explain
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission, Reason

AGENTS = [read_agent(name) for name in ("a", "*", "Googlebot-News", "bingbot", "AdsBot-Google")]
INSTANTS = [datetime(2026, 11, 21, hour, 59, tzinfo=UTC) for hour in (0, 7, 23)]


def check(data: bytes) -> None:
    """Any bytes give a verdict for any path in any dialect, and its rule is the first one of the explanation.

    The bytes: dialect, agent and how often the path is repeated, length of the path, path, file.
    """
    head, rest = data[:3].ljust(3, b"\0"), data[3:]
    dialect = list(DIALECTS.values())[head[0] % len(DIALECTS)]
    agent = AGENTS[head[1] % len(AGENTS)]
    repeats = 1 << (head[1] >> 5)
    path = "/" + (rest[: head[2]].decode("utf-8", "replace") * repeats)[: URL_LIMIT - 1]
    robots = RobotsTxt(rest[head[2] :])
    verdict = robots.judge(dialect, agent, path)
    assert verdict.permission is not Permission.DEFER
    explained = explain(robots, dialect, agent, path, limit=1)
    if verdict.reason is Reason.RULE:
        assert verdict.rule is not None
        assert verdict.group is not None
        assert verdict.rule.directive == explained.rules[0].directive
        assert verdict.group.line < verdict.rule.directive.line <= robots.scan.lines.count
    elif verdict.reason not in {Reason.IMPLICIT, Reason.TOO_COMPLEX}:
        assert verdict.rule is None
        assert not explained.rules
    reading = robots.reading(dialect)
    if verdict.selection is not None:
        terms = reading.terms(verdict.selection, agent)
        for instant in INSTANTS:
            until = terms.rates.at(instant).valid_until
            assert until is None or until > instant
        if terms.usage is not None:
            terms.usage.at(path, allowed=verdict.permission is Permission.ALLOW)
    for group in reading.groups:
        assert robots.line_text(group.line) is not None
        assert all(line.line > group.line for line in (*group.rules, *group.members))
    assert all(1 <= line.line <= robots.scan.lines.count for line in (*reading.groups.orphans, *robots.extensions))
    assert all("://" in url for url in (*robots.sitemaps, *robots.licenses))
    lint(robots)
