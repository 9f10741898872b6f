"""Rules ready to be asked about paths: one spelling for both sides, then the first pattern in order of precedence
(RFC 9309 2.2.2, 2.2.3, spec D, E3, F10 to F13, K8 to K12).
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from app.robots._native.matching import Matcher, Patterns, Spelling
from app.robots.groups import ALLOW, RULE_LETTERS, Group
from app.robots.lines import Directive, Key

STEPS: Final = 2_000_000
"""Steps of matching that one decision may take beside those that are linear in path and file.

A step is a byte of a path compared with a glob, or a segment of a pattern that ends at a byte of a path. Honest files
and paths take less than a hundredth of it.
"""

INDEX_PAGE: Final = b"index.htm"
"""What the name of an index page begins with: an Allow of one matches its directory, too (spec D10)."""

_DELIMITED_QUERY: Final = re.compile(rb"\?[^:/?#\[\]@\r\n]*+[:/?#\[\]@]")
_UNRESERVED: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_BLANK: Final = bytes(range(0x21))
_NOT_ASCII: Final = bytes(range(0x80, 0x100))

rfc_subject: Final = Spelling(_BLANK + _NOT_ASCII + b"*$", _UNRESERVED)
"""A path with unreserved escapes decoded and all else encoded, `*` and `$` too, which are literal there (spec K8)."""

rfc_pattern: Final = Spelling(_NOT_ASCII + b"$", _UNRESERVED, kept_last=b"$")
"""As the subject, but `*` stays a wildcard, a final `$` an anchor, and blanks stay as they are (spec K9)."""

google_subject: Final = Spelling(_BLANK + _NOT_ASCII, b"")
"""A path with escapes in upper case, blanks and non-ASCII encoded, nothing decoded (spec D4c, K8)."""

google_pattern: Final = Spelling(_NOT_ASCII, b"")
"""As the subject, but blanks stay as they are (spec D4c, K9)."""

glob_subject: Final = Spelling(_BLANK + _NOT_ASCII, _UNRESERVED)
"""As `rfc_subject`, but `*` and `$` stay: a glob can name them (spec F11)."""

glob_pattern: Final = Spelling(_NOT_ASCII, _UNRESERVED)
"""Unreserved escapes decoded and non-ASCII encoded, before the glob is read (spec F11)."""

draft_text: Final = Spelling(b"%", bytes(byte for byte in range(256) if byte not in b"/%"))
"""Both sides of the draft: every escape decoded but that of `/`, which equals only itself (spec E3).

So that no text can be taken for that escape, a percent sign is always written as its own.
"""

query_form: Final = Spelling(b":/?#[]@", b"")
"""What follows the first `?`, with its general delimiters encoded: the other form of spec X5 (RFC 9309 figure 4)."""


class Entry(NamedTuple):
    """A rule with the normalised pattern that it is matched by; a rule may have two (spec D10)."""

    directive: Directive
    pattern: str

    @property
    def allows(self) -> bool:
        """Whether it is an Allow."""
        return self.directive.key is Key.ALLOW

    @property
    def length(self) -> int:
        """Bytes of the normalised pattern, `*` and `$` counted: what precedence goes by (spec D7)."""
        return len(self.pattern)


class _Rules:
    """Rules side by side, while they are compiled: where each is, and its normalised pattern."""

    def __init__(self, groups: Sequence[Group], spell: Spelling) -> None:
        self.groups = groups
        self.spell = spell
        letters, lines = groups[0].letters, groups[0].scan.lines
        self.places = [
            place for group in groups for place in range(group.start, group.end) if letters[place] in RULE_LETTERS
        ]
        self.patterns = spell.each(lines.values(self.places))
        self.directories = 0
        """So many at the end are the directories of index pages."""
        if b"" in self.patterns:
            # An empty rule restricts nothing (spec B11).
            self._keep([number for number, pattern in enumerate(self.patterns) if pattern])

    def add_directories(self) -> None:
        """Let each Allow of an index page stand for its directory, too (spec D10)."""
        letters = self.groups[0].letters
        for place, pattern in list(zip(self.places, self.patterns, strict=True)):
            if letters[place] == ALLOW and INDEX_PAGE in pattern and _is_index_page(pattern):
                self.places.append(place)
                self.patterns.append(_directory(pattern))
                self.directories += 1

    def longest_first(self) -> frozenset[int]:
        """The longest pattern first, of those as long an Allow, of those the first (RFC 9309 2.2.2, spec D7).

        Return which are then the directories of index pages.
        """
        # The letter of an Allow comes before that of a Disallow.
        letters = self.groups[0].letters
        ranks = [letters[place] - 256 * len(pattern) for place, pattern in zip(self.places, self.patterns, strict=True)]
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        first_directory = len(ranks) - self.directories
        directories = frozenset(
            number for number, place in enumerate(order if self.directories else ()) if place >= first_directory
        )
        self._keep(order)
        return directories

    def _keep(self, order: Sequence[int]) -> None:
        self.places = [self.places[number] for number in order]
        self.patterns = [self.patterns[number] for number in order]


class Ruleset:
    """The rules of the groups that bind an agent, in order of precedence."""

    __slots__ = ("_by_query", "_directories", "_groups", "_places", "_spell", "has_query_form", "matcher", "subject")

    def __init__(
        self, rules: _Rules, matcher: Matcher, subject: Spelling, directories: frozenset[int] = frozenset()
    ) -> None:
        self._groups = rules.groups
        self._places = array("I", rules.places)
        self._directories = directories
        self._spell = rules.spell
        self._by_query: Matcher | None = None
        self.has_query_form = subject is rfc_subject
        self.matcher = matcher
        self.subject = subject

    def __len__(self) -> int:
        return len(self._places)

    def first(self, path: str) -> int:
        """The number of the first rule that matches a URL's path and query: `len` of all for none, -1 past STEPS."""
        if self.has_query_form and "?" in path:
            return self.by_query.first(path)
        return self.matcher.first(path)

    @property
    def by_query(self) -> Matcher:
        """Asked about paths with a query, in either of two forms; a second index only if those differ (spec X5)."""
        if self._by_query is None:
            lines, patterns = self._groups[0].scan.lines, self.matcher.patterns
            if _DELIMITED_QUERY.search(lines.body):
                texts = self._spell.each(lines.values(list(self._places)))
                patterns = _path_patterns([_query_form(text) if b"?" in text else text for text in texts])
            self._by_query = Matcher(rfc_subject, self.matcher.patterns, query_form, patterns)
        return self._by_query

    def entry(self, number: int) -> Entry:
        """The rule with this number, and the pattern that it is matched by."""
        place = self._places[number]
        rule = self._groups[bisect_right(self._groups, place, key=attrgetter("start")) - 1].rule(place)
        pattern = self._spell(rule.value)
        if number in self._directories:
            pattern = _directory(pattern)
        return Entry(rule, pattern.decode("latin-1"))

    def best(self, path: str) -> Entry | None:
        """The rule that decides about `path`; None where none matches, and past STEPS."""
        number = self.first(path)
        return self.entry(number) if 0 <= number < len(self) else None

    def matches(self, path: str, limit: int) -> tuple[list[Entry], int]:
        """The first rules that match `path`, at most `limit`, in order of precedence; and how many there are in all.

        A rule with two patterns counts once, by the one that comes first. Past STEPS not all of them are found.
        """
        by_place: dict[int, int] = {}
        matcher = self.by_query if self.has_query_form and "?" in path else self.matcher
        for number in matcher.every(path):
            by_place.setdefault(self._places[number], number)
        return [self.entry(number) for number in list(by_place.values())[:limit]], len(by_place)


Compile: TypeAlias = Callable[[Sequence[Group]], Ruleset]
"""Makes the rules of an agent's groups ready to be asked; an empty rule is none (spec B11)."""


def _path_patterns(patterns: list[bytes]) -> Patterns:
    return Patterns(patterns, steps=STEPS)


def compile_rfc(groups: Sequence[Group]) -> Ruleset:
    """RFC 9309: the longest rule wins; a pattern with a query matches in either of its forms (spec D, X5)."""
    rules = _Rules(groups, rfc_pattern)
    rules.longest_first()
    return Ruleset(rules, Matcher(rfc_subject, _path_patterns(rules.patterns)), rfc_subject)


def compile_google(groups: Sequence[Group]) -> Ruleset:
    """Google: as RFC 9309 without decoding, and with an index page's directory for its Allow (spec D4c, D10)."""
    rules = _Rules(groups, google_pattern)
    rules.add_directories()
    directories = rules.longest_first()
    return Ruleset(rules, Matcher(google_subject, _path_patterns(rules.patterns)), google_subject, directories)


def compile_draft(groups: Sequence[Group]) -> Ruleset:
    """The draft of 1996: the first rule that is a prefix of the path; `*` and `$` are characters (spec E1, E6)."""
    rules = _Rules(groups, draft_text)
    patterns = Patterns(rules.patterns, steps=STEPS, literal=True)
    return Ruleset(rules, Matcher(draft_text, patterns), draft_text)


def compile_seznam(groups: Sequence[Group]) -> Ruleset:
    """Globs for groups of version 2.0, others as RFC 9309: selection never mixes the two (spec F10 to F13, K6)."""
    if not groups[0].version_2:
        return compile_rfc(groups)
    rules = _Rules(groups, glob_pattern)
    rules.longest_first()
    return Ruleset(rules, Matcher(glob_subject, Patterns(rules.patterns, steps=STEPS, globs=True)), glob_subject)


def _query_form(pattern: bytes) -> bytes:
    head, mark, query = pattern.partition(b"?")
    return head + mark + query_form(query)


def _is_index_page(pattern: bytes) -> bool:
    _, slash, page = pattern.rpartition(b"/")
    return bool(slash) and page.startswith(INDEX_PAGE)


def _directory(pattern: bytes) -> bytes:
    return pattern.rpartition(b"/")[0] + b"/$"
