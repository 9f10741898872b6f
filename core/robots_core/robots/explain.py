"""Explain a verdict: how its group was selected, and every rule that matched (spec J)."""

from dataclasses import dataclass
from typing import Final

from robots_core.robots.agents import STAR, Agent
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.groups import Selection
from robots_core.robots.patterns import NormalisedRule
from robots_core.robots.rates import CrawlDelay
from robots_core.robots.robots_txt import RobotsTxt

GROUPS_NAMED: Final = 10
"""How many groups are listed by their lines."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`path` is the normalised path; `tokens` are the product tokens in the order of the lookup.

    `group` is a sentence about how the group was selected. `rules` are the first rules that matched, in order of
    precedence, so `rules[0]` decided. `matched` counts all rules that matched.
    """

    path: str
    tokens: tuple[str, ...]
    group: str
    rules: tuple[NormalisedRule, ...]
    matched: int


def explain(
    robots: RobotsTxt, dialect: Dialect, agent: Agent, path: str, *, limit: int, selection: Selection | None = None
) -> Explanation:
    """Explain the verdict of `RobotsTxt.judge` for the same arguments, with at most `limit` rules.

    `selection` is that of the verdict, if the caller has it.
    """
    reading = robots.reading(dialect)
    selection = selection or reading.select(agent)
    tokens = dialect.tokens(agent)
    if selection is None:
        return Explanation(path, tokens, _no_group(tokens, agent, has_groups=len(reading.groups) > 0), (), 0)
    rules = reading.rules(selection)
    found, matched = rules.matches(path, limit)
    subject = rules.subject(path.encode("utf-8", "surrogatepass")).decode("latin-1")
    group = _group(tokens, selection) + _inherited(reading.terms(selection, agent).crawl_delay)
    return Explanation(subject, tokens, group, tuple(found), matched)


def _no_group(tokens: tuple[str, ...], agent: Agent, *, has_groups: bool) -> str:
    if not has_groups:
        return "the file has no group, so it restricts no crawler"
    if not agent.star:
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


def _inherited(delay: CrawlDelay | None) -> str:
    if delay is None or not delay.inherited:
        return ""
    return f"; only the Crawl-delay of * (line {delay.line}) counts for this crawler, too, since its own group has none"


def _either(tokens: tuple[str, ...]) -> str:
    return " or ".join(tokens) if tokens else "any agent"
