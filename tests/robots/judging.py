"""Helpers that parse a file and judge it as the service does."""

from robots_core.robots.agents import Agent, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.groups import Selection
from robots_core.robots.patterns import Ruleset
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.terms import Terms
from robots_core.robots.verdict import Permission, Verdict

AGENT = read_agent("FooBot")


def ask(body: bytes | str, path: str, dialect: str = "rfc9309", agent: Agent = AGENT) -> Verdict:
    """The verdict of a file for a path."""
    return RobotsTxt(body.encode() if isinstance(body, str) else body).judge(DIALECTS[dialect], agent, path)


def closes(dialect: str, rule: str, path: str) -> bool:
    """Whether a Disallow with this pattern disallows the path."""
    return ask(f"User-agent: *\nDisallow: {rule}\n", path, dialect).permission is Permission.DISALLOW


def select(robots: RobotsTxt, dialect: str, agent: Agent = AGENT) -> Selection:
    """The groups that bind the agent; there must be some."""
    selection = robots.reading(DIALECTS[dialect]).select(agent)
    assert selection is not None
    return selection


def ruleset(robots: RobotsTxt, dialect: str, agent: Agent = AGENT) -> Ruleset:
    """The rules that bind the agent."""
    return robots.reading(DIALECTS[dialect]).rules(select(robots, dialect, agent))


def terms(robots: RobotsTxt, dialect: str = "rfc9309", agent: Agent = AGENT) -> Terms:
    """The terms that bind the agent."""
    return robots.reading(DIALECTS[dialect]).terms(select(robots, dialect, agent), agent)
