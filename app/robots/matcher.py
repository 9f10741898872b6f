"""A group's rules compiled to an index: a decision costs what its path costs, not what the file costs.

The dialect brings rules into its order of precedence; what is asked here is always the same question: which is the
first pattern of a list that matches? `PatternIndex` answers it for the patterns of version 1.0 (`*`, final `$`),
`GlobIndex` for those of version 2.0.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from app.robots.paths import Wildcard, query_escaped
from app.robots.prefixes import Prefixes
from app.robots.syntax import Directive, Key
from app.robots.wildcards import Wildcards

HEAVY = 100_000
"""The weight of an index that can make a decision take milliseconds."""

_FEW = 12
"""So many patterns with stars are asked one by one."""


class Index(Protocol):
    """Patterns in order of precedence; `weight` are the characters of those that may have to be tried one by one."""

    weight: int

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
        self.heavy = self._index.weight >= HEAVY
        self._make_index = index
        self._query_forms = query_forms
        self._rewritten: tuple[list[int], Index] | None = None

    def _rewrite(self) -> tuple[list[int], Index]:
        """The places of the patterns that have delimiters in their query, and an index of them with those escaped.

        As they are written these never match a subject whose query is escaped; all others are the same in either form.
        """
        asking = [(place, entry.pattern) for place, entry in enumerate(self.entries) if "?" in entry.pattern]
        forms = {place: form for place, pattern in asking if (form := query_escaped(pattern)) != pattern}
        return list(forms), self._make_index(list(forms.values())) if forms else _NOTHING

    def first(self, path: str) -> int:
        """The place of the rule that decides about `path`; the number of entries where none matches."""
        subject = self.subject(path)
        place = self._index.first(subject)
        if self._query_forms and "?" in subject:
            place = min(place, self._first_escaped(subject))
        return place

    def best(self, path: str) -> Entry | None:
        """The rule that decides about `path`, or None where none matches."""
        place = self.first(path)
        return self.entries[place] if place < len(self.entries) else None

    def _first_escaped(self, subject: str) -> int:
        escaped = query_escaped(subject)
        place = self._index.first(escaped) if escaped != subject else len(self.entries)
        self._rewritten = self._rewritten or self._rewrite()
        places, index = self._rewritten
        rewritten = index.first(escaped) if places else 0
        return min(place, places[rewritten]) if rewritten < len(places) else place

    def every(self, path: str) -> list[Entry]:
        """All rules that match `path`, in order of precedence, each once."""
        subject = self.subject(path)
        found = set(self._index.every(subject))
        if self._query_forms and "?" in subject:
            escaped = query_escaped(subject)
            self._rewritten = self._rewritten or self._rewrite()
            places, index = self._rewritten
            found.update(self._index.every(escaped), (places[place] for place in index.every(escaped)))
        rules: dict[Directive, Entry] = {}
        for place in sorted(found):  # a rule with two patterns counts by the one that comes first
            rules.setdefault(self.entries[place].directive, self.entries[place])
        return list(rules.values())


class PatternIndex:
    """Patterns of version 1.0: prefixes, whole subjects (a final `$`), and what holds a `*`."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._none = len(patterns)
        self._same = _Same()
        wholes: dict[str, int] = {}
        prefixes: dict[str, int] = {}
        wildcards: dict[str, int] = {}
        for place, pattern in enumerate(patterns):
            stem = pattern.rstrip("*")
            if "*" in stem:
                kind, text = wildcards, pattern
            elif pattern.endswith("$"):
                kind, text = wholes, pattern[:-1]
            else:
                kind, text = prefixes, stem
            if kind.setdefault(text, place) != place:
                self._same.add(kind, text, place)
        self._wholes = wholes
        self._prefixes = Prefixes(prefixes)
        self._glance = self._prefixes.glance
        self.weight = sum(map(len, wildcards))
        read = [(place, Wildcard.read(pattern)) for pattern, place in wildcards.items()]
        # Most paths do not even hold the longest text of a pattern; where patterns are few, that is the quickest no.
        self._few = [(place, max(it.segments, key=len), it) for place, it in read] if len(read) <= _FEW else None
        self._wildcards = Wildcards(read)
        self._reach = self._wildcards.reach

    def first(self, subject: str) -> int:
        best = self._none
        if subject.startswith(self._glance):
            best = self._prefixes.first(subject, best)
        if self._wholes:
            best = min(best, self._wholes.get(subject, best))
        if self._few is None or len(subject) >= self._reach:
            return self._wildcards.first(subject, best)
        for place, text, pattern in self._few:
            if place >= best:
                break
            if text in subject and pattern.matches(subject):
                return place
        return best

    def every(self, subject: str) -> list[int]:
        found = [self._prefixes.place(prefix) for prefix in self._prefixes.every(subject)]
        found += [self._wholes[subject]] if subject in self._wholes else []
        return self._same.all_of([*found, *self._wildcards.every(subject, self._none)])


class PrefixIndex:
    """Patterns that are prefixes to the letter (spec E6)."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.weight = 0
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


_NOTHING = PatternIndex(())
