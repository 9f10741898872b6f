"""Why a verdict is what it is: the group and how it was found, and every rule that matched (spec J)."""

from dataclasses import dataclass
from typing import Final

from app.robots.agents import STAR, Agent
from app.robots.dialects.dialect import Dialect
from app.robots.groups import Selection
from app.robots.patterns import Entry
from app.robots.robots_txt import RobotsTxt

GROUPS_NAMED: Final = 10
"""The lines of so many groups are named."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`path` is the normalised path that rules were matched against; `tokens` were looked up in this order.

    `group` says in a sentence how the group was found. `rules` are the first that matched, in order of precedence: the
    very first decided. `matched` counts them all.
    """

    path: str
    tokens: tuple[str, ...]
    group: str
    rules: tuple[Entry, ...]
    matched: int


def explain(
    robots: RobotsTxt, dialect: Dialect, agent: Agent, path: str, *, limit: int, selection: Selection | None = None
) -> Explanation:
    """Explain what `RobotsTxt.judge` decides for the same arguments, by at most `limit` rules.

    `selection` are the groups that its verdict names, where there is one.
    """
    reading = robots.reading(dialect)
    selection = selection or reading.select(agent)
    tokens = dialect.tokens(agent)
    if selection is None:
        return Explanation(path, tokens, _no_group(tokens, agent, has_groups=len(reading.groups) > 0), (), 0)
    rules = reading.rules(selection)
    found, matched = rules.matches(path, limit)
    subject = rules.subject(path.encode("utf-8", "surrogatepass")).decode("latin-1")
    return Explanation(subject, tokens, _group(tokens, selection), tuple(found), matched)


def _no_group(tokens: tuple[str, ...], agent: Agent, *, has_groups: bool) -> str:
    if not has_groups:
        return "the file has no group, so it restricts no crawler"
    if not agent.obeys_star:
        return f"no group names {_either(tokens)}, and this crawler is not bound by the group for *"
    return f"no group names {_either(tokens)}, and there is none for *"


def _group(tokens: tuple[str, ...], selection: Selection) -> str:
    groups = selection.groups
    lines = ", ".join(str(group.line) for group in groups[:GROUPS_NAMED]) + ", …" * (len(groups) > GROUPS_NAMED)
    where = f"line {lines}" if len(groups) == 1 else f"lines {lines}"
    if selection.token == STAR:
        found = f"no group names {_either(tokens)}, so the one for * applies"
    elif selection.token == tokens[0]:
        found = f"a group names {selection.token}, so the one for * does not count"
    else:
        before = tokens[: tokens.index(selection.token)]
        found = f"no group names {_either(before)}, and {selection.token} comes next and has one"
    merged = "" if len(groups) == 1 else "; groups with the same token are read as one"
    return f"{found} ({where}){merged}"


def _either(tokens: tuple[str, ...]) -> str:
    return " or ".join(tokens) if tokens else "any agent"
