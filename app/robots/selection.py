"""Which groups speak for an agent (RFC 9309 2.2.1, spec C, E2, K5, K6)."""

import re
from typing import NamedTuple, Protocol

from app.robots.agents import Agent
from app.robots.compiled.lines import Cut, Group
from app.robots.compiled.lines import FirstRecord as FirstRecord
from app.robots.compiled.lines import MergedGroups as MergedGroups
from app.robots.rates import Stretches
from app.robots.syntax import Key


class Selection(NamedTuple):
    """The groups that speak for an agent, in file order, and the token they were found by (STAR for `*`)."""

    token: str
    groups: tuple[Group, ...]


class Selector(Protocol):
    """A file's groups, ready to be asked for an agent's."""

    def token(self, agent: Agent) -> str | None:
        """What the groups that speak for `agent` are found by; None where neither its tokens nor `*` has one."""
        ...

    def groups(self, token: str) -> tuple[Group, ...]:
        """The groups that are found by a token that was given so, in file order."""
        ...

    def stretches(self, token: str) -> Stretches:
        """Where the member lines of those groups are that stand below an agent line of the token's own (spec G11).

        They are the same for all tokens that the same members bind.
        """
        ...

    def said(self, token: str, key: Key) -> list[str]:
        """The values that these have with `key`, a key of members, in file order."""
        ...

    def lines(self, key: Key) -> tuple[list[int], list[str]]:
        """The lines of the whole file that have `key`, and their values."""
        ...


def token_cut(alphabet: str) -> Cut:
    """The cut at the first character outside `alphabet`, a regular expression's set of ASCII (spec C2, C3)."""
    inside = re.compile(rf"[{alphabet}]")
    return Cut(bytes(octet for octet in range(0x80) if inside.match(chr(octet))))
