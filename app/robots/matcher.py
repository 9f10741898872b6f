"""A group's rules compiled to an index: a decision costs what its path costs, not what the file costs.

The dialect brings rules into its order of precedence; what is asked here is always the same question: which is the
first pattern of a list that matches? `PatternIndex` answers it for the patterns of version 1.0 (`*`, final `$`).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from app.robots.globs import read_glob
from app.robots.paths import Wildcard, query_escaped
from app.robots.syntax import Directive, Key

_FEW = 12
"""So many wildcards are tried one by one sooner than a subject is cut into grams."""
_GRAM = 3
_ALWAYS = ""


class Matcher(Protocol):
    """One pattern: `pieces` are texts that every subject it matches holds."""

    @property
    def pieces(self) -> tuple[str, ...]: ...

    def matches(self, subject: str) -> bool: ...


class Index(Protocol):
    """Patterns in order of precedence."""

    def first(self, subject: str) -> int:
        """The place of the first pattern that matches the normalised `subject`; the number of patterns if none does."""
        ...

    def every(self, subject: str) -> list[int]:
        """The places of all patterns that match, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule with the normalised pattern it is matched by; a rule may have two (spec D10)."""

    directive: Directive
    pattern: str

    @property
    def allows(self) -> bool:
        return self.directive[1] is Key.ALLOW

    @property
    def length(self) -> int:
        """Octets of the normalised pattern, `*` and `$` counted: what precedence goes by (spec D7)."""
        return len(self.pattern)


def longest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Order of precedence where the longest rule wins, Allow before Disallow, then the first line (RFC 9309 2.2.2)."""
    return sorted(entries, key=lambda entry: (-len(entry.pattern), not entry.allows))


class Ruleset:
    """The rules that speak for an agent, in order of precedence, asked with URLs as callers write them."""

    def __init__(
        self,
        entries: Sequence[Entry],
        subject: Callable[[str], str],
        index: Callable[[Sequence[str]], Index],
        *,
        query_forms: bool = False,
    ) -> None:
        """`query_forms`: a pattern also matches where it does with both queries' delimiters escaped (spec X5)."""
        self.entries = entries
        self.subject = subject
        self._make_index = index
        self._query_forms = query_forms

    @cached_property
    def _index(self) -> Index:
        return self._make_index([entry.pattern for entry in self.entries])

    @cached_property
    def _escaped_index(self) -> Index:
        escaped = [query_escaped(entry.pattern) for entry in self.entries]
        if all(entry.pattern == form for entry, form in zip(self.entries, escaped, strict=True)):
            return self._index
        return self._make_index(escaped)

    def best(self, path: str) -> Entry | None:
        """The rule that decides about `path`, or None where none matches."""
        subject = self.subject(path)
        place = self._index.first(subject)
        if self._query_forms and "?" in subject:
            escaped = query_escaped(subject)
            if escaped != subject or self._escaped_index is not self._index:
                place = min(place, self._escaped_index.first(escaped))
        return self.entries[place] if place < len(self.entries) else None

    def every(self, path: str) -> list[Entry]:
        """All rules that match `path`, in order of precedence, each once."""
        subject = self.subject(path)
        places = set(self._index.every(subject))
        if self._query_forms and "?" in subject:
            places.update(self._escaped_index.every(query_escaped(subject)))
        found = {self.entries[place].directive: self.entries[place] for place in sorted(places, reverse=True)}
        return list(found.values())[::-1]


class PatternIndex:
    """Patterns of version 1.0: prefixes, whole subjects (a final `$`), and what holds a `*`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._wholes: dict[str, int] = {}
        prefixes: dict[str, int] = {}
        wildcards: list[tuple[int, Wildcard]] = []
        for place, pattern in enumerate(patterns):
            if "*" not in pattern:
                if pattern.endswith("$"):
                    self._wholes.setdefault(pattern[:-1], place)
                else:
                    prefixes.setdefault(pattern, place)
            elif "*" not in (stem := pattern.rstrip("*")):
                prefixes.setdefault(stem, place)
            else:
                wildcards.append((place, Wildcard.read(pattern)))
        self._prefixes = _Prefixes(prefixes, len(patterns))
        self._wildcards = _Gated(wildcards)

    def first(self, subject: str) -> int:
        best = self._prefixes.first(subject)
        if self._wholes:
            best = min(best, self._wholes.get(subject, best))
        return self._wildcards.first(subject, best)

    def every(self, subject: str) -> list[int]:
        return [place for place, pattern in enumerate(self._patterns) if Wildcard.read(pattern).matches(subject)]


class PrefixIndex:
    """Patterns that are prefixes to the letter (spec E6)."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        places: dict[str, int] = {}
        for place, pattern in enumerate(patterns):
            places.setdefault(pattern, place)
        self._prefixes = _Prefixes(places, len(patterns))

    def first(self, subject: str) -> int:
        return self._prefixes.first(subject)

    def every(self, subject: str) -> list[int]:
        return [place for place, pattern in enumerate(self._patterns) if subject.startswith(pattern)]


class GlobIndex:
    """Patterns of version 2.0, which match whole subjects (spec F10)."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._globs = [read_glob(pattern) for pattern in patterns]
        self._wholes: dict[str, int] = {}
        others: list[tuple[int, Matcher]] = []
        for place, glob in enumerate(self._globs):
            if isinstance(glob, Wildcard) and len(glob.segments) == 1:
                self._wholes.setdefault(glob.segments[0], place)
            else:
                others.append((place, glob))
        self._others = _Gated(others)

    def first(self, subject: str) -> int:
        return self._others.first(subject, self._wholes.get(subject, len(self._globs)))

    def every(self, subject: str) -> list[int]:
        return [place for place, glob in enumerate(self._globs) if glob.matches(subject)]


class _Prefixes:
    """Prefixes, sorted: all that a subject begins with lie on one chain of ancestors, each the next longest.

    The first place along that chain is known before anybody asks, so it is one search and a walk up to the first
    that fits.
    """

    def __init__(self, places: Mapping[str, int], none: int) -> None:
        self._none = none
        self._ordered = sorted(places)
        self._parents: list[int] = []  # where the longest proper prefix stands; -1: nowhere
        self._first: list[int] = []  # the first place among it and its ancestors
        above: list[int] = []
        for at, prefix in enumerate(self._ordered):
            while above and not prefix.startswith(self._ordered[above[-1]]):
                above.pop()
            parent = above[-1] if above else -1
            self._parents.append(parent)
            self._first.append(places[prefix] if parent < 0 else min(places[prefix], self._first[parent]))
            above.append(at)

    def first(self, subject: str) -> int:
        at = bisect_right(self._ordered, subject) - 1
        while at >= 0 and not subject.startswith(self._ordered[at]):
            at = self._parents[at]
        return self._first[at] if at >= 0 else self._none


class _Gated:
    """Patterns that must be tried one by one, but only where the rarest piece of their text stands in the subject.

    The rarest by what fewest of them share: so a head that thousands have in common opens no gate.
    """

    def __init__(self, matchers: Sequence[tuple[int, Matcher]]) -> None:
        self._matchers = matchers
        self._gates = _gates(matchers) if len(matchers) > _FEW else None

    def first(self, subject: str, best: int) -> int:
        """The first place before `best` that matches `subject`, or `best`."""
        for place, matcher in self._matchers if self._gates is None else self._candidates(self._gates, subject):
            if place >= best:
                break
            if matcher.matches(subject):
                return place
        return best

    def _candidates(self, gates: Mapping[str, list[int]], subject: str) -> Iterator[tuple[int, Matcher]]:
        found = [*gates.get(_ALWAYS, ())]
        for gram in gates.keys() & _grams(subject):
            found += gates[gram]
        found.sort()
        return (self._matchers[number] for number in found)


def _grams(text: str) -> set[str]:
    return {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}


def _gates(matchers: Sequence[tuple[int, Matcher]]) -> dict[str, list[int]]:
    """For each gram, the matchers that it stands for; those with no text long enough are always tried."""
    texts = [set[str]().union(*map(_grams, matcher.pieces)) for _, matcher in matchers]
    shared = Counter(gram for grams in texts for gram in grams)
    gates: dict[str, list[int]] = {}
    for number, grams in enumerate(texts):
        rarest = min(grams, key=lambda gram: (shared[gram], gram), default=_ALWAYS)
        gates.setdefault(rarest, []).append(number)
    return gates
