"""Checks of groups: lines outside groups, lines between agents, duplicate agents, and closed sites."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from robots_core.lint.advice import Warned, directive, name_of, quote
from robots_core.lint.checked_file import LINES_CHECKED, CheckedFile
from robots_core.robots.agents import STAR
from robots_core.robots.lines import MEMBER_KEYS, RULE_KEYS, Key

_AGENTS: Final = re.compile(rb"U[^AD]*+")
_MEMBER: Final = re.compile(rb"[MV]")
_NOBODY: Final = ("", "mozilla")
_EVERYTHING: Final = frozenset({b"/", b"/*", b"*"})


def rule_before_agent(file: CheckedFile) -> Iterator[Warned]:
    """Rules above the first User-agent line (spec B10)."""
    for line, key, value in file.orphans:
        if key in RULE_KEYS:
            line_text = directive(key, value)
            message = f"{name_of(key)} is above the first User-agent line, so no crawler obeys it."
            # To close everything to every crawler would be too much where another one's group was meant.
            closes = key is Key.DISALLOW and value in _EVERYTHING
            instead = None if closes or line_text is None else f"User-agent: *\n{line_text}"
            yield Warned(line, f"{message} Put 'User-agent: *' above it.", instead)


def member_before_agent(file: CheckedFile) -> Iterator[Warned]:
    """Member lines above the first User-agent line (spec I8)."""
    for line, key, _ in file.orphans:
        if key in MEMBER_KEYS:
            message = f"{name_of(key)} is above the first User-agent line, so no crawler obeys it."
            yield Warned(line, f"{message} Move it below the User-agent line of the crawler that it is meant for.")


def rate_between_agents(file: CheckedFile) -> Iterator[Warned]:
    """Lines between User-agent lines that end the group for some crawlers (spec X3)."""
    letters = file.groups.letters
    for run in islice(_AGENTS.finditer(letters), LINES_CHECKED):
        last = letters.rfind(b"U", *run.span())
        for found in islice(_MEMBER.finditer(letters, run.start(), last), LINES_CHECKED):
            directive_here = file.scan.directive(found.start())
            yield Warned(
                directive_here.line,
                f"{name_of(directive_here.key)} is between User-agent lines. For some crawlers it ends the group; for"
                " others, all these agents share the rules below. Give each agent a group with rules of its own.",
            )


def agent_in_two_groups(file: CheckedFile) -> Iterator[Warned]:
    """Agents that an earlier group also names (spec C5)."""
    first: dict[str, tuple[int, int]] = {}
    for agent in file.agents:
        line, value, token, group = agent
        if token in _NOBODY or (agent.cut and token != STAR):
            continue  # the checks of agents report it
        at, known = first.setdefault(token, (line, group))
        if known != group:
            named = quote(value[: len(token)].decode("latin-1"))
            message = f"Line {at} names {named}, too. Most crawlers read both groups as one, some only the first."
            yield Warned(line, f"{message} Put their rules into one group.")
            first[token] = (at, group)


def whole_site_closed(file: CheckedFile) -> Iterator[Warned]:
    """A Disallow of everything for `*`, without any Allow."""
    if len(file.rules) == LINES_CHECKED or len(file.agents) == LINES_CHECKED:
        return  # unchecked lines may allow something
    groups = {agent.group for agent in file.agents if agent.token == STAR}
    stars = [rule for rule in file.paths if rule.group in groups] if groups else []
    if any(rule.allows for rule in stars):
        return
    closing = next((rule for rule in stars if rule.value in _EVERYTHING), None)
    if closing is not None:
        message = "This closes the whole site to every crawler that has no group of its own."
        yield Warned(closing.line, f"{message} If you do not mean that, write 'Disallow:'.")
