"""A group's rules compiled to an index: a decision costs what its path costs, not what the file costs.

The dialect brings rules into its order of precedence; what is asked here is always the same question: which is the
first pattern of a list that matches? `compiled.patterns` answers it for patterns of version 1.0 and for plain prefixes,
`compiled.globs` for those of version 2.0.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from app.robots.compiled.spelling import Decider, Speller, by_length, spelled
from app.robots.document import Group
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


class Entries:
    """Rules in order of precedence with their patterns: an Entry is made of the few that somebody wants to see."""

    __slots__ = ("_rules", "patterns")

    def __init__(self, rules: Sequence[Directive], patterns: list[str]) -> None:
        self._rules = rules
        self.patterns = patterns

    def __len__(self) -> int:
        return len(self.patterns)

    def __getitem__(self, place: int) -> Entry:
        return Entry(self._rules[place], self.patterns[place])


Also: TypeAlias = Callable[[Directive, str], str | None]
"""A rule and its pattern -> another pattern that it has beside it, if it has one."""


def in_file_order(groups: Iterable[Group], pattern: Speller) -> Entries:
    """The groups' rules as they stand, their values as `pattern` spells them; an empty one is none (spec B11, E7)."""
    return Entries(*spelled([group.rules for group in groups], pattern))


def longest_first(groups: Iterable[Group], pattern: Speller, also: Also | None = None) -> Entries:
    """The longest rule wins, of those as long an Allow, of those the first (RFC 9309 2.2.2); empty ones are none."""
    rules, patterns = spelled([group.rules for group in groups], pattern, also)
    return Entries(*by_length(rules, patterns, _ALLOW))


class Ruleset(Decider):
    """The rules that speak for an agent, in order of precedence, asked with URLs as callers write them."""

    __slots__ = ("entries",)

    def __init__(
        self,
        entries: Entries,
        subject: Callable[[str], str],
        index: Callable[[Sequence[str]], Index],
        form: Speller | None = None,
    ) -> None:
        """`form`: a pattern also matches where it does with both queries spelt so (spec X5)."""
        super().__init__(entries.patterns, subject, index, form)
        self.entries = entries

    def best(self, path: str) -> Entry | None:
        """The rule that decides about `path`, or None where none matches."""
        place = self.first(path)
        return self.entries[place] if place < len(self.entries) else None

    def every(self, path: str) -> list[Entry]:
        """All rules that match `path`, in order of precedence, each once."""
        rules: dict[Directive, Entry] = {}
        for entry in map(self.entries.__getitem__, self.places(path)):
            rules.setdefault(entry.directive, entry)  # a rule with two patterns counts by the one that comes first
        return list(rules.values())
