"""A group's rules compiled to an index: a decision costs what its path costs, not what the file costs.

The dialect brings rules into its order of precedence; what is asked here is always the same question: which is the
first pattern of a list that matches? `compiled.patterns` answers it for patterns of version 1.0 and for plain prefixes,
`compiled.globs` for those of version 2.0.
"""

from typing import NamedTuple, Protocol

from app.robots.compiled.deciding import Decider
from app.robots.syntax import Directive, Key


class Index(Protocol):
    """Patterns in order of precedence."""

    def first(self, subject: str) -> int:
        """The place of the first pattern that matches the normalised `subject`; the number of patterns if none does."""
        ...

    def every(self, subject: str) -> list[int]:
        """The places of all patterns that match, in order."""
        ...


_ALLOW = Key.ALLOW


class Entry(NamedTuple):
    """A rule with the normalised pattern it is matched by; a rule may have two (spec D10)."""

    directive: Directive
    pattern: str

    @property
    def allows(self) -> bool:
        return self.directive[1] is _ALLOW

    @property
    def length(self) -> int:
        """Octets of the normalised pattern, `*` and `$` counted: what precedence goes by (spec D7)."""
        return len(self.pattern)


class Ruleset(Decider):
    """The rules that speak for an agent, in order of precedence, asked with URLs as callers write them."""

    __slots__ = ()

    def entry(self, place: int) -> Entry:
        """The rule that stands there, made for whoever wants to see it."""
        return Entry(*self.rules[place])

    def best(self, path: str) -> Entry | None:
        """The rule that decides about `path`, or None where none matches."""
        place = self.first(path)
        return self.entry(place) if place < len(self) else None

    def matches(self, path: str, limit: int) -> tuple[list[Entry], int]:
        """The first rules that match `path`, at most `limit`, in order of precedence; and how many there are in all.

        A rule with two patterns counts once, by the one that comes first.
        """
        first, count = self.rules.told(self.places(path), limit)
        return [Entry(*it) for it in first], count
