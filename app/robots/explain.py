"""Why a verdict is what it is: the group and how it was found, and every rule that matched (spec J)."""

from dataclasses import dataclass

from app.robots.agents import STAR, Agent
from app.robots.dialect import Dialect, RobotsTxt
from app.robots.matcher import Entry
from app.robots.selection import Selection


@dataclass(frozen=True, slots=True)
class Explanation:
    """`path` is the normalised path that rules were matched against; `tokens` were looked up in this order.

    `group` says in a sentence how the group was found. `rules` are all that matched in order of precedence: the first
    decided.
    """

    path: str
    tokens: tuple[str, ...]
    group: str
    rules: tuple[Entry, ...]


def explain(robots: RobotsTxt, dialect: Dialect, agent: Agent, path: str) -> Explanation:
    """What `judge_file` weighs for the same arguments."""
    reading = robots.reading(dialect)
    selection = reading.select(agent)
    tokens = dialect.tokens(agent)
    if selection is None:
        return Explanation(path, tokens, _no_group(tokens, agent, has_groups=reading.has_groups), ())
    rules = reading.rules(selection)
    return Explanation(rules.subject(path), tokens, _group(tokens, selection), tuple(rules.every(path)))


def _no_group(tokens: tuple[str, ...], agent: Agent, *, has_groups: bool) -> str:
    if not has_groups:
        return "the file has no group, so it restricts nobody"
    if not agent.obeys_star:
        return f"no group names {_either(tokens)}, and this crawler is not bound by the group for *"
    return f"no group names {_either(tokens)}, and there is none for *"


def _group(tokens: tuple[str, ...], selection: Selection) -> str:
    lines = [str(group.line) for group in selection.groups]
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(lines[:10])}" + (", …" if lines[10:] else "")
    if selection.token == STAR:
        found = f"no group names {_either(tokens)}, so the one for * applies"
    elif selection.token == tokens[0]:
        found = f"a group names {selection.token}, so the one for * does not count"
    else:
        before = tokens[: tokens.index(selection.token)]
        found = f"no group names {_either(before)}, and {selection.token} comes next and has one"
    merged = "" if len(lines) == 1 else "; groups with the same token are read as one"
    return f"{found} ({where}){merged}"


def _either(tokens: tuple[str, ...]) -> str:
    return " or ".join(tokens) if tokens else "anybody"
