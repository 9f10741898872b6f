"""A group's rules compiled to an index: a decision costs what its path costs, not what the file costs.

The dialect brings rules into its order of precedence; what is asked here is always the same question: which is the
first pattern of a list that matches? `compiled.patterns` answers it for patterns of version 1.0 and for plain prefixes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from app.robots.globs import Glob, Subject, read_glob
from app.robots.paths import Wildcard, query_escaped
from app.robots.sketches import Sketches
from app.robots.syntax import Directive, Key
from app.robots.wildcards import Wildcards

HEAVY = 100_000
"""The weight of an index that can make a decision take milliseconds."""

_FEW_GLOBS = 4
"""So many globs whose outlines match are followed one by one."""
_SHARED = 100
"""Globs that have the outline of another, if they are more, are told by arrays."""

_Places: TypeAlias = npt.NDArray[np.int64]


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


def longest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Order of precedence where the longest rule wins, Allow before Disallow, then the first line (RFC 9309 2.2.2)."""
    return sorted(entries, key=lambda entry: (entry.directive[1] is not _ALLOW) - 2 * len(entry.pattern))


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
        """`query_forms`: a pattern also matches where it does with both queries' delimiters escaped (spec X5).

        `heavy`: a decision may take long, whatever the path.
        """
        self.entries = entries
        self.subject = subject
        self._index = index([entry.pattern for entry in entries])
        self.heavy = getattr(self._index, "weight", 0) >= HEAVY
        self._make_index = index
        self._query_forms = query_forms
        self._rewritten: Index | None = None

    def _escaped(self, subject: str) -> tuple[str, Index] | None:
        """A subject with a query in its other form, and the index of all patterns in theirs; None if that adds nothing.

        A pattern with delimiters in its query never matches, as it is written, a subject whose query is escaped; all
        others are the same in either form. So one index answers for both.
        """
        escaped = query_escaped(subject)
        if "%" not in escaped:  # and so, what is left as it was: a pattern with something escaped matches no such thing
            return None
        if self._rewritten is None:
            forms = [query_escaped(pattern) if "?" in pattern else pattern for _, pattern in self.entries]
            written = all(form == pattern for form, (_, pattern) in zip(forms, self.entries, strict=True))
            self._rewritten = self._index if written else self._make_index(forms)
        return None if escaped == subject and self._rewritten is self._index else (escaped, self._rewritten)

    def first(self, path: str) -> int:
        """The place of the rule that decides about `path`; the number of entries where none matches."""
        subject = self.subject(path)
        place = self._index.first(subject)
        if self._query_forms and "?" in subject and (other := self._escaped(subject)):
            escaped, index = other
            place = min(place, index.first(escaped))
        return place

    def best(self, path: str) -> Entry | None:
        """The rule that decides about `path`, or None where none matches."""
        place = self.first(path)
        return self.entries[place] if place < len(self.entries) else None

    def every(self, path: str) -> list[Entry]:
        """All rules that match `path`, in order of precedence, each once."""
        subject = self.subject(path)
        found = self._index.every(subject)
        if self._query_forms and "?" in subject and (other := self._escaped(subject)):
            escaped, index = other
            found = sorted({*found, *index.every(escaped)})
        rules: dict[Directive, Entry] = {}
        for place in found:  # a rule with two patterns counts by the one that comes first
            rules.setdefault(self.entries[place].directive, self.entries[place])
        return list(rules.values())


class GlobIndex:
    """Patterns of version 2.0, which match whole subjects (spec F10)."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.weight = sum(map(len, patterns))
        self._none = len(patterns)
        self._same = _Same()
        self._wholes: dict[str, int] = {}
        self._marked: dict[int, Glob] = {}
        globs: dict[str, int] = {}
        for place, pattern in enumerate(patterns):
            self._same.add(globs, pattern, place)
        outlines: list[tuple[int, Wildcard]] = []
        for pattern, place in globs.items():
            glob = read_glob(pattern)
            if isinstance(glob, Glob):
                self._marked[place] = glob
                outlines.append((place, glob.outline))
            elif len(glob.segments) == 1:
                self._same.add(self._wholes, glob.segments[0], place)
            else:
                outlines.append((place, glob))
        # What thousands of globs have in common is looked for once.
        firsts: dict[Wildcard, int] = {}
        common = [firsts.setdefault(outline, place) for place, outline in outlines]
        self._common: tuple[_Places, _Places] | None = None
        if len(common) - len(firsts) > _SHARED:
            self._common = np.array([place for place, _ in outlines]), np.array(common)
            outlines = [(place, outline) for outline, place in firsts.items()]
        self._outlines = Wildcards(outlines)
        self._sketches = Sketches(list(self._marked.items())) if len(self._marked) > _FEW_GLOBS else None

    def first(self, subject: str) -> int:
        below = self._wholes.get(subject, self._none)
        return next(self._matching(subject, below), below)

    def every(self, subject: str) -> list[int]:
        found = [self._wholes[subject]] if subject in self._wholes else []
        return self._same.all_of(found + list(self._matching(subject, self._none)))

    def _matching(self, subject: str, below: int) -> Iterator[int]:
        """Ascending: an outline that matches is only asked further when the answer may hang on it.

        Where more than a few match, most of the others are struck out together.
        """
        outlined = self._places(self._outlines.every(subject, below), below)
        asked = Subject(subject)
        yield from self._fitting(islice(outlined, _FEW_GLOBS), asked)
        others = list(outlined)
        if others and self._sketches:
            others = self._sketches.left(others, subject)
        yield from self._fitting(others, asked)

    def _places(self, outlined: Iterable[int], below: int) -> Iterator[int]:
        """All places below `below` that have one of the outlines, ascending."""
        if self._common is None:
            return iter(outlined)
        places, common = self._common
        matching = np.full(self._none, False)
        matching[list(outlined)] = True
        found = places[matching[common]]
        return iter(found[: np.searchsorted(found, below)].tolist())

    def _fitting(self, places: Iterable[int], asked: Subject) -> Iterator[int]:
        for place in places:
            glob = self._marked.get(place)
            if glob is None or glob.fits(asked):
                yield place


class _Same:
    """Of patterns that say the same only the first is asked; here are the others, for those who want to know of all."""

    def __init__(self) -> None:
        self._others: dict[int, list[int]] = {}

    def add(self, places: dict[str, int], pattern: str, place: int) -> None:
        """Note that `pattern` stands at `place`, no earlier than those before it."""
        first = places.setdefault(pattern, place)
        if first != place:
            self._others.setdefault(first, []).extend((place, *self._others.pop(place, ())))

    def all_of(self, places: Iterable[int]) -> list[int]:
        """`places` and those that say the same, ascending."""
        return sorted(found for place in places for found in (place, *self._others.get(place, ())))
