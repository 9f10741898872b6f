"""What no input may break."""

from datetime import UTC, datetime

from app.robots.advice import advise
from app.robots.agents import read_agent
from app.robots.dialect import Decision, Reason, RobotsTxt, judge_file
from app.robots.dialects import DIALECTS
from app.robots.explain import explain

AGENTS = [read_agent(name) for name in ("a", "*", "Googlebot-News", "bingbot", "AdsBot-Google")]
INSTANTS = [datetime(2026, 11, 21, hour, 59, tzinfo=UTC) for hour in (0, 7, 23)]


def check(data: bytes) -> None:
    """Any bytes, asked about any path in any dialect, give a verdict whose rule is the first that is explained."""
    dialect = list(DIALECTS.values())[(data[0] if data else 0) % len(DIALECTS)]
    agent = AGENTS[(data[1] if len(data) > 1 else 0) % len(AGENTS)]
    size = data[2] if len(data) > 2 else 0
    path = "/" + data[3 : 3 + size].decode("utf-8", "replace")
    robots = RobotsTxt(data[3 + size :])
    verdict = judge_file(robots, dialect, agent, path)
    told = explain(robots, dialect, agent, path, limit=1)
    if verdict.reason is not Reason.IMPLICIT:
        assert (verdict.rule is None) == (not told.rules)
        assert verdict.rule is None or verdict.rule.directive == told.rules[0].directive
    assert verdict.decision is not Decision.DEFER
    if verdict.group is not None and verdict.rule is not None:
        assert verdict.group.line < verdict.rule.directive[0] <= robots.document.scan.lines
    if verdict.selection is not None:
        terms = robots.reading(dialect).terms(verdict.selection, agent)
        for instant in INSTANTS:
            until = terms.rates.at(instant).valid_until
            assert until is None or until > instant
        if terms.usage is not None:
            terms.usage.at(path, allowed=verdict.decision is Decision.ALLOW)
    advise(robots.document)
