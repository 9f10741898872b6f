"""Checks of groups: lines outside groups, lines between agents, duplicate agents, and closed sites."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, pairwise
from operator import attrgetter
from typing import Final

from robots_core.lint.advice import Warned, directive, name_of, quote
from robots_core.lint.checked_file import LINES_CHECKED, AgentLine, CheckedFile
from robots_core.lint.paths import EVERYTHING
from robots_core.robots.agents import STAR
from robots_core.robots.lines import MEMBER_KEYS, RULE_KEYS, Key, readable

_AGENTS: Final = re.compile(rb"U[^AD]*+")
_MEMBER: Final = re.compile(rb"[MV]")
_NOBODY: Final = ("", "mozilla")
_NAMED: Final = 3
"""Crawlers that a message names."""


def rule_before_agent(file: CheckedFile) -> Iterator[Warned]:
    """Rules above the first User-agent line, at the first of them (spec B10)."""
    rules = [line for line in file.orphans if line.key in RULE_KEYS]
    if not rules:
        return
    line, key, value = rules[0]
    line_text = directive(key, value)
    # To close everything to every crawler would be too much where another one's group was meant.
    closes = any(rule.key is Key.DISALLOW and EVERYTHING.fullmatch(rule.value) for rule in rules)
    # A second group for all crawlers would take the place of the first for those of the draft of 1996.
    first = next((agent.line for agent in file.agents if agent.token == STAR), None)
    instead = None if closes or line_text is None or first is not None else f"User-agent: *\n{line_text}"
    more = "" if len(rules) == 1 else f" or the {f'{len(rules) - 1} rules' if len(rules) > 2 else 'rule'} below it"
    message = f"{name_of(key)} is above the first User-agent line, so no crawler obeys it{more}."
    mend = "Put 'User-agent: *' above it." if first is None else f"Move it below the 'User-agent: *' of line {first}."
    yield Warned(line, f"{message} {mend}", instead)


def member_before_agent(file: CheckedFile) -> Iterator[Warned]:
    """Member lines above the first User-agent line (spec I8)."""
    for line, key, _ in file.orphans:
        if key in MEMBER_KEYS:
            message = f"{name_of(key)} is above the first User-agent line, so no crawler obeys it."
            yield Warned(line, f"{message} Move it below the User-agent line of the crawler that it is meant for.")


def group_without_rules(file: CheckedFile) -> Iterator[Warned]:
    """User-agent lines with something else before the next ones, with which they share the rules (spec B8, B9)."""
    ruled = {rule.group for rule in file.rules}
    for group, found in groupby(file.agents, attrgetter("group")):
        run = list(found)
        apart = [at for at in range(1, len(run)) if run[at].line > run[at - 1].line + 1]
        if not apart or group not in ruled:
            continue
        star = any(agent.token == STAR for agent in run)
        divided = [at for at in apart if _is_division(file, run[at - 1], run[at], star=star)]
        ends = [*divided, len(run)]
        for begin, end in pairwise([0, *ends]):
            block, others = run[begin:end], run[end:]
            if others and {agent.token for agent in block} != {agent.token for agent in others}:
                own, them = ("has no rules of its", "it") if len(block) == 1 else ("have no rules of their", "them")
                yield Warned(
                    block[0].line,
                    f"{_names(block)} {own} own: those below line {run[-1].line} are for {them} and for"
                    f" {_names(others)}. Put the rules that are meant right below; an empty Disallow leaves the site"
                    " open.",
                )


def _is_division(file: CheckedFile, one: AgentLine, following: AgentLine, *, star: bool) -> bool:
    """Whether what stands between two User-agent lines looks like the end of a group.

    A comment may as well head a part of a list of crawlers, to which `*` does not belong; rate-between-agents names the
    members.
    """
    between = file.groups.letters[one.position + 1 : following.position]
    return star or (between != b"" and _MEMBER.search(between) is None)


def _names(agents: Sequence[AgentLine]) -> str:
    names = [readable(agent.value[: len(agent.token)]) or readable(agent.value) for agent in agents]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(quote, names[:_NAMED])) + more


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
        _, line, value, token, group = agent
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
    closing = next((rule for rule in stars if EVERYTHING.fullmatch(rule.value)), None)
    if closing is not None:
        message = "This closes the whole site to every crawler that has no group of its own."
        others = [agent for agent in file.agents if agent.group == closing.group and agent.token != STAR]
        if others:
            # To open the site would open it to these as well, which may be all that was to be closed.
            line = next(agent.line for agent in file.agents if agent.group == closing.group and agent.token == STAR)
            what = f"If only {_names(others)} {'is' if len(others) == 1 else 'are'} meant"
            yield Warned(closing.line, f"{message} {what}, give the '*' of line {line} a group of its own.")
        else:
            yield Warned(closing.line, f"{message} If you do not mean that, write 'Disallow:'.")
