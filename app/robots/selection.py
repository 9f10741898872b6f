"""Which groups speak for an agent (RFC 9309 2.2.1, spec C, E2, K5, K6)."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, TypeAlias

from app.robots.agents import STAR, Agent
from app.robots.document import Group
from app.robots.syntax import Directive

Cut: TypeAlias = Callable[[str], str]
"""A user-agent line's value -> its lower-case token, STAR, or "" where it names nobody."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The groups that speak for an agent, in file order, and the token they were found by (STAR for `*`)."""

    token: str
    groups: tuple[Group, ...]


class Selector(Protocol):
    """A file's groups, ready to be asked for an agent's."""

    def token(self, agent: Agent) -> str | None:
        """What the groups that speak for `agent` are found by; None where neither its tokens nor `*` has one."""
        ...

    def selection(self, token: str) -> Selection:
        """The groups that are found by a token that was given so."""
        ...

    def members(self, selection: Selection) -> Iterator[Directive]:
        """The member lines of its groups that stand below an agent line of its own (spec G11)."""
        ...


def token_cut(alphabet: str) -> Cut:
    """The cut at the first character outside `alphabet`, a regular expression's set (spec C2, C3)."""
    star = re.compile(r"\*(?=[ \t\v\f]|\Z)")
    token = re.compile(rf"[{alphabet}]+")

    def cut(value: str) -> str:
        if value.startswith(STAR):
            return STAR if value == STAR or star.match(value) else ""
        found = token.match(value)
        return found[0].lower() if found else ""

    return cut


class MergedGroups:
    """All groups of the first token in the chain that has any, read as one (RFC 9309 2.2.1).

    `prefer_version_2`: a site that offers 1.0 and 2.0 to the same agent means the 2.0 groups for a robot that
    honours them (spec F12, K6).
    """

    def __init__(self, groups: Iterable[Group], cut: Cut, *, prefer_version_2: bool = False) -> None:
        self._cut = cut
        self._prefer_version_2 = prefer_version_2
        self._by_token: dict[str, list[Group]] = {}
        for group in groups:
            for token in set(map(cut, group.agents)):
                if token:
                    self._by_token.setdefault(token, []).append(group)
        self._star = STAR if STAR in self._by_token else None

    def token(self, agent: Agent) -> str | None:
        for token in agent.chain:
            if token in self._by_token:
                return token
        return self._star if agent.obeys_star else None

    def selection(self, token: str) -> Selection:
        groups = self._by_token[token]
        return Selection(token, _newest(groups) if self._prefer_version_2 else tuple(groups))

    def members(self, selection: Selection) -> Iterator[Directive]:
        return _members(selection, lambda agent: self._cut(agent) == selection.token)


class FirstRecord:
    """The first record with the robot's name inside an agent line, else the first with `*`; one only (spec E2)."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        # All agent lines of the file as one text: however many there are, one search finds the first that holds a name.
        values = [[agent.lower() for agent in group.agents] for group in groups]
        records = ["\n".join(["", *agents, ""]) for agents in values]
        self._text = "".join(records)
        self._ends = list(accumulate(map(len, records)))
        self._star = tuple(group for group, agents in zip(groups, values, strict=True) if STAR in agents)[:1]

    def token(self, agent: Agent) -> str | None:
        for name in agent.names:
            if name != STAR and name in self._text:
                return name
        return STAR if self._star else None

    def selection(self, token: str) -> Selection:
        if token == STAR:
            return Selection(STAR, self._star)
        return Selection(token, (self._groups[bisect_right(self._ends, self._text.find(token))],))

    def members(self, selection: Selection) -> Iterator[Directive]:
        return _members(selection, lambda agent: selection.token in agent.lower())


def _members(selection: Selection, names_it: Callable[[str], bool]) -> Iterator[Directive]:
    for group in selection.groups:
        first = next((at for at, agent in enumerate(group.agents) if names_it(agent)), len(group.agents))
        yield from ((line, key, value) for line, key, value, listed in group.members if listed > first)


def _newest(groups: Sequence[Group]) -> tuple[Group, ...]:
    return tuple(group for group in groups if group.version_2) or tuple(groups)
