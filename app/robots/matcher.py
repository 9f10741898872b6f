"""A group's rules compiled to an index: a decision costs what its path costs, not what the file costs.

The dialect brings rules into its order of precedence; what is asked here is always the same question: which is the
first pattern of a list that matches? `PatternIndex` answers it for the patterns of version 1.0 (`*`, final `$`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from app.robots.globs import Glob, Subject, read_glob
from app.robots.paths import Wildcard, query_escaped
from app.robots.prefixes import Prefixes
from app.robots.syntax import Directive, Key
from app.robots.wildcards import Wildcards


class Index(Protocol):
    """Patterns in order of precedence."""

    def first(self, subject: str) -> int:
        """The place of the first pattern that matches the normalised `subject`; the number of patterns if none does."""
        ...

    def every(self, subject: str) -> list[int]:
        """The places of all patterns that match, in order."""
        ...


class Entry(NamedTuple):
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
    def _rewritten(self) -> tuple[list[int], Index]:
        """The places of the patterns that have delimiters in their query, and an index of them with those escaped.

        As they are written these never match a subject whose query is escaped; all others are the same in either form.
        """
        forms = ((place, query_escaped(entry.pattern)) for place, entry in enumerate(self.entries))
        rewritten = [(place, form) for place, form in forms if form != self.entries[place].pattern]
        return [place for place, _ in rewritten], self._make_index([form for _, form in rewritten])

    def best(self, path: str) -> Entry | None:
        """The rule that decides about `path`, or None where none matches."""
        subject = self.subject(path)
        place = self._index.first(subject)
        if self._query_forms and "?" in subject:
            place = min(place, self._first_escaped(subject))
        return self.entries[place] if place < len(self.entries) else None

    def _first_escaped(self, subject: str) -> int:
        escaped = query_escaped(subject)
        place = self._index.first(escaped) if escaped != subject else len(self.entries)
        places, index = self._rewritten
        if not places:
            return place
        rewritten = index.first(escaped)
        return min(place, places[rewritten]) if rewritten < len(places) else place

    def every(self, path: str) -> list[Entry]:
        """All rules that match `path`, in order of precedence, each once."""
        subject = self.subject(path)
        found = set(self._index.every(subject))
        if self._query_forms and "?" in subject:
            escaped = query_escaped(subject)
            places, index = self._rewritten
            found.update(self._index.every(escaped), (places[place] for place in index.every(escaped)))
        # A rule with two patterns counts by the one that comes first.
        rules = {self.entries[place].directive: self.entries[place] for place in sorted(found, reverse=True)}
        return list(rules.values())[::-1]


class PatternIndex:
    """Patterns of version 1.0: prefixes, whole subjects (a final `$`), and what holds a `*`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._none = len(patterns)
        self._same = _Same()
        wholes: dict[str, int] = {}
        prefixes: dict[str, int] = {}
        wildcards: dict[str, int] = {}
        for place, pattern in enumerate(patterns):
            if "*" not in (stem := pattern.rstrip("*")):
                if stem.endswith("$") and stem == pattern:
                    self._same.add(wholes, pattern[:-1], place)
                else:
                    self._same.add(prefixes, stem, place)
            else:
                self._same.add(wildcards, pattern, place)
        self._wholes = wholes
        self._prefixes = Prefixes(prefixes)
        self._wildcards = Wildcards([(place, Wildcard.read(pattern)) for pattern, place in wildcards.items()])

    def first(self, subject: str) -> int:
        best = self._prefixes.first(subject, self._none)
        if self._wholes:
            best = min(best, self._wholes.get(subject, best))
        return self._wildcards.first(subject, best)

    def every(self, subject: str) -> list[int]:
        found = [self._prefixes.place(prefix) for prefix in self._prefixes.every(subject)]
        found += [self._wholes[subject]] if subject in self._wholes else []
        return self._same.all_of(found + self._wildcards.every(subject, self._none))


class PrefixIndex:
    """Patterns that are prefixes to the letter (spec E6)."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._none = len(patterns)
        self._same = _Same()
        places: dict[str, int] = {}
        for place, pattern in enumerate(patterns):
            self._same.add(places, pattern, place)
        self._prefixes = Prefixes(places)

    def first(self, subject: str) -> int:
        return self._prefixes.first(subject, self._none)

    def every(self, subject: str) -> list[int]:
        return self._same.all_of(self._prefixes.place(prefix) for prefix in self._prefixes.every(subject))


class GlobIndex:
    """Patterns of version 2.0, which match whole subjects (spec F10)."""

    def __init__(self, patterns: Sequence[str]) -> None:
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
        self._outlines = Wildcards(outlines)

    def first(self, subject: str) -> int:
        below = self._wholes.get(subject, self._none)
        return next(self._matching(subject, below), below)

    def every(self, subject: str) -> list[int]:
        found = [self._wholes[subject]] if subject in self._wholes else []
        return self._same.all_of(found + list(self._matching(subject, self._none)))

    def _matching(self, subject: str, below: int) -> Iterator[int]:
        """Ascending: an outline that matches is only asked further when the answer may hang on it."""
        asked: Subject | None = None
        for place in self._outlines.every(subject, below):
            glob = self._marked.get(place)
            if glob is None:
                yield place
                continue
            asked = asked or Subject(subject)
            if glob.fits(asked):
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
