"""Files asked as the service asks them."""

from app.robots.agents import Agent, read_agent
from app.robots.dialects import DIALECTS
from app.robots.groups import Selection
from app.robots.patterns import Ruleset
from app.robots.robots_txt import RobotsTxt
from app.robots.terms import Terms
from app.robots.verdict import Permission, Verdict

AGENT = read_agent("FooBot")


def ask(body: bytes | str, path: str, dialect: str = "rfc9309", agent: Agent = AGENT) -> Verdict:
    """The verdict of a file about a path."""
    return RobotsTxt(body.encode() if isinstance(body, str) else body).judge(DIALECTS[dialect], agent, path)


def closes(dialect: str, rule: str, path: str) -> bool:
    """Whether a Disallow closes a path."""
    return ask(f"User-agent: *\nDisallow: {rule}\n", path, dialect).permission is Permission.DISALLOW


def select(robots: RobotsTxt, dialect: str, agent: Agent = AGENT) -> Selection:
    """The groups that bind an agent that some bind."""
    selection = robots.reading(DIALECTS[dialect]).select(agent)
    assert selection is not None
    return selection


def ruleset(robots: RobotsTxt, dialect: str, agent: Agent = AGENT) -> Ruleset:
    """The rules that bind it."""
    return robots.reading(DIALECTS[dialect]).rules(select(robots, dialect, agent))


def terms(robots: RobotsTxt, dialect: str = "rfc9309", agent: Agent = AGENT) -> Terms:
    """What the groups that bind it say beside their rules."""
    return robots.reading(DIALECTS[dialect]).terms(select(robots, dialect, agent), agent)
