"""Which groups speak for an agent (RFC 9309 2.2.1, spec C, E2, K5, K6)."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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

    def find(self, agent: Agent) -> Selection | None:
        """The groups that speak for `agent`; None where neither its tokens nor `*` has one."""
        ...

    def members(self, selection: Selection) -> Iterator[Directive]:
        """The member lines of its groups that stand below an agent line of its own (spec G11)."""
        ...


def token_cut(alphabet: str) -> Cut:
    """The cut at the first character outside `alphabet`, a regular expression's set (spec C2, C3)."""
    star = re.compile(r"\*(?=[ \t\v\f]|\Z)")
    token = re.compile(rf"[{alphabet}]+")

    def cut(value: str) -> str:
        if star.match(value):
            return STAR
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
        by_token: dict[str, list[Group]] = {}
        for group in groups:
            for token in dict.fromkeys(map(cut, group.agents)):
                if token:
                    by_token.setdefault(token, []).append(group)
        self._selections = {
            token: Selection(token, _newest(found) if prefer_version_2 else tuple(found))
            for token, found in by_token.items()
        }

    def find(self, agent: Agent) -> Selection | None:
        for token in agent.chain:
            found = self._selections.get(token)
            if found is not None:
                return found
        return self._selections.get(STAR) if agent.obeys_star else None

    def members(self, selection: Selection) -> Iterator[Directive]:
        return _members(selection, lambda agent: self._cut(agent) == selection.token)


class FirstRecord:
    """The first record with the robot's name inside an agent line, else the first with `*`; one only (spec E2)."""

    def __init__(self, groups: Iterable[Group]) -> None:
        self._records = [(tuple(agent.lower() for agent in group.agents), group) for group in groups]

    def find(self, agent: Agent) -> Selection | None:
        for name in agent.names:
            for values, group in self._records:
                if name != STAR and any(name in value for value in values):
                    return Selection(name, (group,))
        for values, group in self._records:
            if STAR in values:
                return Selection(STAR, (group,))
        return None

    def members(self, selection: Selection) -> Iterator[Directive]:
        return _members(selection, lambda agent: selection.token in agent.lower())


def _members(selection: Selection, names_it: Callable[[str], bool]) -> Iterator[Directive]:
    for group in selection.groups:
        first = next((at for at, agent in enumerate(group.agents) if names_it(agent)), len(group.agents))
        yield from ((line, key, value) for line, key, value, listed in group.members if listed > first)


def _newest(groups: Sequence[Group]) -> tuple[Group, ...]:
    return tuple(group for group in groups if group.version_2) or tuple(groups)
