"""Compile rules: normalise paths and patterns, then match a path against patterns in order of precedence
(RFC 9309 2.2.2, 2.2.3, spec D, E3, F10 to F13, K8 to K12).
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import compress
from operator import attrgetter
from sys import getsizeof
from typing import Final, NamedTuple, TypeAlias

from robots_core.robots._native.matching import Matcher, Patterns, Spelling
from robots_core.robots.groups import ALLOW_CODE, RULE_LETTERS, Group
from robots_core.robots.lines import Directive, Key

STEPS: Final = 2_000_000
"""Steps that matching one path may take, in addition to work that is linear in the path and the file.

A step is a byte of the path compared with a glob, or a segment of a pattern that ends at a byte of the path. Ordinary
files and paths take less than a hundredth of this limit.
"""

INDEX_PAGE: Final = b"index.htm"
"""The prefix of the name of an index page; an Allow for one also matches its directory (spec D10)."""


# Bytes of a ruleset with its matchers, of a pattern in their index and one with a star, of a state, of a glob's byte.
_RULESET_BYTES, _PREFIX_BYTES, _WAITING_BYTES, _STATE_BYTES, _GLOB_BYTES = 600, 44, 32, 18, 9

_DELIMITED_QUERY: Final = re.compile(rb"\?[^:/?#\[\]@\r\n]*+[:/?#\[\]@]")
_TWO_FORMS: Final = re.compile(r"[:/?#\[\]@]|%(?:2[3Ff]|3[AaFf]|40|5[BbDd])")
_FROM_STAR: Final = re.compile(rb"\*[^\n]*+")
_UNRESERVED: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_BLANK: Final = bytes(range(0x21))
_IS_RULE: Final = bytes(letter in RULE_LETTERS for letter in range(256))
_NOT_ASCII: Final = bytes(range(0x80, 0x100))

rfc_subject: Final = Spelling(_BLANK + _NOT_ASCII + b"*$", _UNRESERVED)
"""A path: unreserved escapes decoded, all else encoded, including `*` and `$`, which are literal here (spec K8)."""

rfc_pattern: Final = Spelling(_NOT_ASCII + b"$", _UNRESERVED, kept_last=b"$")
"""As `rfc_subject`, but `*` remains a wildcard, a final `$` remains an anchor, and blanks are kept (spec K9)."""

google_subject: Final = Spelling(_BLANK + _NOT_ASCII, b"")
"""A path: escapes in upper case, blanks and non-ASCII encoded, nothing decoded (spec D4c, K8)."""

google_pattern: Final = Spelling(_NOT_ASCII, b"")
"""As `google_subject`, but blanks are kept (spec D4c, K9)."""

glob_subject: Final = Spelling(_BLANK + _NOT_ASCII, _UNRESERVED)
"""As `rfc_subject`, but `*` and `$` are kept, since a glob can escape them (spec F11)."""

glob_pattern: Final = Spelling(_NOT_ASCII, _UNRESERVED)
"""A glob before it is parsed: unreserved escapes decoded, non-ASCII encoded (spec F11)."""

draft_text: Final = Spelling(b"%", bytes(byte for byte in range(256) if byte not in b"/%"))
"""Paths and patterns of the draft: every escape decoded except `%2F`, which matches only itself (spec E3).

A percent sign is always encoded, so that no other text looks like `%2F`.
"""

query_form: Final = Spelling(b":/?#[]@", b"")
"""The text after the first `?`, with general delimiters encoded: the second form of spec X5 (RFC 9309 figure 4)."""


class NormalisedRule(NamedTuple):
    """A rule and its normalised pattern; a rule may have two patterns (spec D10)."""

    directive: Directive
    pattern: str

    @property
    def allows(self) -> bool:
        """Whether it is an Allow."""
        return self.directive.key is Key.ALLOW

    @property
    def length(self) -> int:
        """Bytes of the normalised pattern, including `*` and `$`, which determine precedence (spec D7)."""
        return len(self.pattern)


class _Rules:
    """Rules while they are compiled: the position of each and its normalised pattern, in parallel lists."""

    def __init__(self, groups: Sequence[Group], spell: Spelling, *, allow_first: bool = True) -> None:
        self.groups = groups
        self.spell = spell
        letters, lines = groups[0].letters, groups[0].scan.lines
        self.positions: list[int] = []
        for group in groups:
            is_rule = letters[group.start : group.end].translate(_IS_RULE)
            self.positions += compress(range(group.start, group.end), is_rule)
        if allow_first:
            self.positions.sort(key=letters.__getitem__)  # "A" sorts before "D"
        self.patterns = spell.each(lines.values(self.positions))
        self.directories: frozenset[int] = frozenset()
        """Indexes of the patterns that are directories of index pages."""
        if b"" in self.patterns:
            # An empty rule restricts nothing (spec B11).
            self._keep([number for number, pattern in enumerate(self.patterns) if pattern])

    def add_directories(self) -> None:
        """Add the directory of each index page that has an Allow (spec D10)."""
        if INDEX_PAGE not in b"\n".join(self.patterns):
            return
        letters, rules, directories = (
            self.groups[0].letters,
            list(zip(self.positions, self.patterns, strict=True)),
            set(),
        )
        self.positions, self.patterns = [], []
        for position, pattern in rules:
            self.positions.append(position)
            self.patterns.append(pattern)
            if letters[position] == ALLOW_CODE and INDEX_PAGE in pattern and _is_index_page(pattern):
                directories.add(len(self.positions))
                self.positions.append(position)
                self.patterns.append(_directory(pattern))
        self.directories = frozenset(directories)

    def longest_first(self) -> None:
        """Sort by length, longest first; on ties Allow precedes Disallow, then file order (RFC 9309 2.2.2, spec D7)."""
        lengths = list(map(len, self.patterns))
        # Python's sort is stable with reverse=True too.
        order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
        if self.directories:
            self.directories = frozenset(number for number, old in enumerate(order) if old in self.directories)
        self._keep(order)

    def _keep(self, order: Sequence[int]) -> None:
        self.positions = [self.positions[number] for number in order]
        self.patterns = [self.patterns[number] for number in order]


class Ruleset:
    """The rules of the groups that bind an agent, in order of precedence."""

    __slots__ = (
        "_by_query",
        "_directories",
        "_groups",
        "_has_second_forms",
        "_index_bytes",
        "_positions",
        "_spell",
        "has_query_form",
        "matcher",
        "subject",
    )

    def __init__(self, rules: _Rules, matcher: Matcher, subject: Spelling) -> None:
        self._groups = rules.groups
        self._positions = array("I", rules.positions)
        self._directories = rules.directories
        self._spell = rules.spell
        self._by_query: Matcher | None = None
        self._has_second_forms: bool | None = None
        self._index_bytes = _bytes_of_index(rules.patterns, subject)
        self.has_query_form = subject is rfc_subject
        self.matcher = matcher
        self.subject = subject

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def memory(self) -> int:
        """The bytes of memory that it takes now, about."""
        directories = 40 * len(self._directories) + getsizeof(self._directories)
        return _RULESET_BYTES + 4 * len(self) + directories + self._index_bytes

    def first(self, path: str) -> int:
        """The number of the first rule that matches a path and query; `len(self)` if none does, -1 past STEPS."""
        return self._matcher_for(path).first(path)

    def _matcher_for(self, path: str) -> Matcher:
        return (self._by_query or self._for_query(path)) if self.has_query_form and "?" in path else self.matcher

    @property
    def with_query(self) -> Matcher:
        """The matcher for any path with a query."""
        # A query with a delimiter may have two forms, so this is the matcher that has both, if they can differ.
        return self._matcher_for("/?:")

    def _for_query(self, path: str) -> Matcher:
        """The matcher for a path with a query. It has a second index if the two forms can differ (spec X5)."""
        lines, patterns = self._groups[0].scan.lines, self.matcher.patterns
        if self._has_second_forms is None:
            self._has_second_forms = has_second_forms(lines.body)
        if self._has_second_forms:
            if not _TWO_FORMS.search(path, path.find("?") + 1):
                # The query has no delimiters or escapes of them, so it has only one form.
                return self.matcher
            texts = self._spell.each(lines.values(list(self._positions)))
            forms = [_query_form(text) if b"?" in text else text for text in texts]
            self._index_bytes += _bytes_of_index(forms, self.subject)
            patterns = _path_patterns(forms)
        self._by_query = Matcher(rfc_subject, self.matcher.patterns, query_form, patterns)
        return self._by_query

    def rule(self, number: int) -> Directive:
        """The rule with this number, as written."""
        position, groups = self._positions[number], self._groups
        at = 0 if len(groups) == 1 else bisect_right(groups, position, key=attrgetter("start")) - 1
        return groups[at].rule(position)

    def entry(self, number: int) -> NormalisedRule:
        """The rule with this number and its pattern."""
        rule = self.rule(number)
        pattern = self._spell(rule.value)
        if number in self._directories:
            pattern = _directory(pattern)
        return NormalisedRule(rule, pattern.decode("latin-1"))

    def matches(self, path: str, limit: int) -> tuple[list[NormalisedRule], int]:
        """The first `limit` rules that match `path`, in order of precedence, and the number of all that match.

        A rule with two patterns counts once, with the first one that matches. Past STEPS, the result is incomplete.
        """
        by_position: dict[int, int] = {}
        for number in self._matcher_for(path).every(path):
            by_position.setdefault(self._positions[number], number)
        return [self.entry(number) for number in list(by_position.values())[:limit]], len(by_position)


def _bytes_of_index(patterns: Sequence[bytes], subject: Spelling) -> int:
    """The bytes of what finds patterns, about: a prefix for each, and a state for each byte behind a star."""
    lines = b"\n".join(patterns)
    if subject is glob_subject:
        return _GLOB_BYTES * (len(lines) + 1)
    wild = [] if subject is draft_text else _FROM_STAR.findall(lines)
    states = sum(map(len, wild))
    return len(lines) + (_PREFIX_BYTES - 1) * len(patterns) + _WAITING_BYTES * len(wild) + _STATE_BYTES * states


Compile: TypeAlias = Callable[[Sequence[Group]], Ruleset]
"""Compiles the rules of an agent's groups; empty rules are left out (spec B11)."""


def has_second_forms(body: bytes) -> bool:
    """Whether patterns of a file may have a second form (spec X5)."""
    return _DELIMITED_QUERY.search(body) is not None


def _path_patterns(patterns: list[bytes]) -> Patterns:
    return Patterns(patterns, steps=STEPS)


def compile_rfc(groups: Sequence[Group]) -> Ruleset:
    """RFC 9309: the longest rule wins; a pattern with a query matches in either form (spec D, X5)."""
    rules = _Rules(groups, rfc_pattern)
    rules.longest_first()
    return Ruleset(rules, Matcher(rfc_subject, _path_patterns(rules.patterns)), rfc_subject)


def compile_google(groups: Sequence[Group]) -> Ruleset:
    """Google: as RFC 9309 without decoding; an Allow for an index page also allows its directory (spec D4c, D10)."""
    rules = _Rules(groups, google_pattern)
    rules.add_directories()
    rules.longest_first()
    return Ruleset(rules, Matcher(google_subject, _path_patterns(rules.patterns)), google_subject)


def compile_draft(groups: Sequence[Group]) -> Ruleset:
    """The draft of 1996: the first rule that is a prefix of the path wins; `*` and `$` are literal (spec E1, E6)."""
    rules = _Rules(groups, draft_text, allow_first=False)
    patterns = Patterns(rules.patterns, steps=STEPS, literal=True)
    return Ruleset(rules, Matcher(draft_text, patterns), draft_text)


def compile_seznam(groups: Sequence[Group]) -> Ruleset:
    """Globs for groups of version 2.0, else RFC 9309; a selection never mixes versions (spec F10 to F13, K6)."""
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
