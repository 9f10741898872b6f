"""Group lines, and select the groups that bind an agent (RFC 9309 2.1, 2.2.1, spec B8 to B15, C, E2, K3 to K6).

Each line is encoded as one letter, by its effect on groups: `U` for User-agent, `A` and `D` for rules, `V` for
Robot-version, `M` for other members, `S` for statements that never end a run of User-agent lines, `B` for an empty
line, `.` for all others. A dialect's grammar is a regular expression over these letters; none of them backtracks.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from robots_core.robots.agents import STAR, Agent
from robots_core.robots.lines import (
    AI_TRAINING_KEYS,
    MEMBER_KEYS,
    Directive,
    Form,
    Key,
    Scan,
    code_of,
    codes_of,
)

_LETTERS: Final[Mapping[Key, bytes]] = {
    **dict.fromkeys(MEMBER_KEYS, b"M"),
    **dict.fromkeys(AI_TRAINING_KEYS, b"S"),
    Key.ROBOT_VERSION: b"V",
    Key.USER_AGENT: b"U",
    Key.ALLOW: b"A",
    Key.DISALLOW: b"D",
    Key.BLANK: b"B",
}
_VERSION_2: Final = re.compile(rb"2|2\.0|2\.0\.[0-9]{1,9}")
ALLOW_CODE, _IGNORED = b"A."
RULE_LETTERS: Final = b"AD"
_MEMBERS: Final = codes_of(MEMBER_KEYS)
_AGENT: Final = re.compile(rb"U")
_MEMBER: Final = re.compile(b"[" + re.escape(_MEMBERS) + b"]")


def _find(letters: bytes, wanted: bytes, start: int, end: int) -> list[int]:
    return [position for position in range(start, end) if letters[position] in wanted]


def token_pattern(members: str) -> re.Pattern[str]:
    """A pattern for the token of each line of lower-case text: characters of `members`, or a lone `*` (spec C2, C3)."""
    return re.compile(rf"^(\*(?=[ \t\v\f]|$)|[{members}]*+)[^\n]*+", re.MULTILINE)


def tokens_of(values: Sequence[bytes], token: re.Pattern[str]) -> list[str]:
    """The lower-case product token, STAR or "" (no token) at the beginning of each User-agent value."""
    return token.findall(b"\n".join(values).lower().decode("latin-1")) if values else []


class Grammar(NamedTuple):
    """How a dialect groups lines: the letter for each code of `Lines.codes`, and the pattern of a group."""

    letters: bytes
    group: re.Pattern[bytes]


def grammar(group: bytes, *, forms: Sequence[Form], by_prefix: Mapping[Key, Key] | None = None) -> Grammar:
    """A grammar that accepts keys in these `forms`, and reads each key of `by_prefix` as its value (spec B6)."""
    letters = bytearray(b"." * 256)
    for key, letter in _LETTERS.items():
        for form in (Form.PROPER,) if key is Key.BLANK else forms:
            letters[code_of(key, form)] = letter[0]
    for key, meant in (by_prefix or {}).items():
        for form in forms:
            letters[code_of(key, form)] = _LETTERS[meant][0]
    return Grammar(bytes(letters), re.compile(group))


def spans_of(letters: bytes, grammar: Grammar) -> list[tuple[int, int]]:
    """The begin and end of each group."""
    return [found.span() for found in grammar.group.finditer(letters)]


class Group:
    """User-agent lines and the lines that belong to them, under one grammar. Groups compare by identity.

    The group has the lines [start, end) of the file; `letters` are those of the whole file.
    """

    __slots__ = ("end", "letters", "scan", "start")

    def __init__(self, scan: Scan, letters: bytes, start: int, end: int) -> None:
        self.scan = scan
        self.letters = letters
        self.start = start
        self.end = end

    @property
    def line(self) -> int:
        """The first User-agent line."""
        return self.scan.lines.number(self.start)

    @property
    def agent_positions(self) -> list[int]:
        """The positions of its User-agent lines."""
        return _find(self.letters, b"U", self.start, self.end)

    @property
    def agents(self) -> tuple[bytes, ...]:
        """The values of its User-agent lines."""
        return tuple(self.scan.lines.values(self.agent_positions))

    @property
    def rule_positions(self) -> list[int]:
        """The positions of its Allow and Disallow lines, including empty ones."""
        return _find(self.letters, RULE_LETTERS, self.start, self.end)

    def rule(self, position: int) -> Directive:
        """The rule at `position`, with its key as this grammar reads it."""
        key = Key.ALLOW if self.letters[position] == ALLOW_CODE else Key.DISALLOW
        return Directive(self.scan.lines.number(position), key, self.scan.lines.value(position))

    @property
    def rules(self) -> tuple[Directive, ...]:
        """Its Allow and Disallow lines, including empty ones."""
        return tuple(map(self.rule, self.rule_positions))

    @property
    def member_positions(self) -> list[int]:
        """The positions of its member lines, in file order."""
        positions = _find(self.scan.lines.codes, _MEMBERS, self.start, self.end)
        return [position for position in positions if self.letters[position] != _IGNORED]

    @property
    def members(self) -> tuple[Directive, ...]:
        """Its member lines, in file order."""
        return self.scan.directives(self.member_positions)

    @property
    def version_position(self) -> int | None:
        """The position of a Robot-version directly below its User-agent lines (spec F12, K4)."""
        rest = self.letters[self.start : self.end].lstrip(b"U.B")
        return self.end - len(rest) if rest.startswith(b"V") else None

    @property
    def version_2(self) -> bool:
        """Whether its Robot-version is 2.0."""
        position = self.version_position
        return position is not None and _VERSION_2.fullmatch(self.scan.lines.value(position)) is not None


class Groups:
    """The groups of a file under one grammar, in file order; each is created once."""

    def __init__(self, scan: Scan, grammar: Grammar) -> None:
        self.scan = scan
        self.letters = scan.lines.codes.translate(grammar.letters)
        self.spans = spans_of(self.letters, grammar)
        self.has_version = b"V" in self.letters
        self._made: dict[int, Group] = {}

    def __len__(self) -> int:
        return len(self.spans)

    def pick(self, numbers: Iterable[int]) -> tuple[Group, ...]:
        """The groups with these numbers."""
        made, scan, letters, spans = self._made, self.scan, self.letters, self.spans
        # If two threads create the same group at once, both get the first one.
        return tuple([made.get(it) or made.setdefault(it, Group(scan, letters, *spans[it])) for it in numbers])

    def __iter__(self) -> Iterator[Group]:
        return iter(self.pick(range(len(self.spans))))

    @cached_property
    def member_positions(self) -> Sequence[int]:
        """The positions of the member lines of all groups, in file order."""
        found = (match.start() for match in _MEMBER.finditer(self.scan.lines.codes))
        return array("I", (position for position in found if self.letters[position] != _IGNORED))

    @property
    def agent_positions(self) -> list[int]:
        """The positions of all User-agent lines."""
        return [found.start() for found in _AGENT.finditer(self.letters)]

    @property
    def orphans(self) -> tuple[Directive, ...]:
        """The rules and members outside all groups, which bind no agent (spec B10, I8)."""
        positions: list[int] = []
        at = 0
        for start, end in (*self.spans, (len(self.letters), 0)):
            positions += _find(self.letters, b"ADVMS", at, start)
            at = end
        return self.scan.directives(positions)


class Selection(NamedTuple):
    """The groups that bind an agent, in file order, and the token that selected them (STAR for `*`)."""

    token: str
    groups: tuple[Group, ...]


class Selector(Protocol):
    """Selects the groups of a file that bind an agent."""

    def token(self, agent: Agent) -> str | None:
        """The token of the groups that bind `agent`; None if neither its tokens nor `*` has a group."""
        ...

    def groups(self, token: str) -> tuple[Group, ...]:
        """The groups for a token, in file order; none if the file has no group for it."""
        ...

    def members(self, token: str) -> Iterator[int]:
        """The positions of the member lines in those groups, below a User-agent line with this token (spec G11)."""
        ...


class MergedGroups:
    """All groups of the first token in the chain that has any, merged (RFC 9309 2.2.1).

    `token` is a token_pattern. With `version_2`, groups of Robot-version 2.0 replace those of 1.0 for the same token
    (spec F12, K6).
    """

    __slots__ = ("_by_token", "_groups", "_preferred", "_version_2")

    def __init__(self, groups: Groups, token: re.Pattern[str], *, version_2: bool = False) -> None:
        self._groups = groups
        self._version_2 = version_2 and groups.has_version
        # token -> (number of the group, position of the first User-agent line with the token) for each group.
        found: dict[str, list[tuple[int, int]]] = {}
        spans, number, positions = groups.spans, 0, groups.agent_positions
        for position, name in zip(positions, tokens_of(groups.scan.lines.values(positions), token), strict=True):
            while spans[number][1] <= position:
                number += 1
            entries = found.setdefault(name, [])
            if not entries or entries[-1][0] != number:
                entries.append((number, position))
        found.pop("", None)
        self._by_token: Mapping[str, list[tuple[int, int]]] = found
        self._preferred: dict[str, list[tuple[int, int]]] = {}

    def token(self, agent: Agent) -> str | None:
        """See Selector."""
        by_token = self._by_token
        for token in agent.chain:
            if token in by_token:
                return token
        return STAR if agent.star and STAR in by_token else None

    def _chosen(self, token: str) -> list[tuple[int, int]]:
        entries = self._by_token.get(token, [])
        if not self._version_2:
            return entries
        if token not in self._preferred:
            groups = self._groups.pick(number for number, _ in entries)
            newer = [entry for entry, group in zip(entries, groups, strict=True) if group.version_2]
            self._preferred[token] = newer or entries
        return self._preferred[token]

    def groups(self, token: str) -> tuple[Group, ...]:
        """See Selector."""
        return self._groups.pick(number for number, _ in self._chosen(token))

    def members(self, token: str) -> Iterator[int]:
        """See Selector."""
        positions, spans = self._groups.member_positions, self._groups.spans
        for number, named in self._chosen(token) if positions else ():
            yield from positions[bisect_right(positions, named) : bisect_left(positions, spans[number][1])]


class FirstRecord:
    """The first record whose User-agent line contains the robot's name, else the first one for `*` (spec E2)."""

    __slots__ = ("_groups", "_names", "_positions", "_star", "_starts")

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        lines = groups.scan.lines
        self._positions = groups.agent_positions
        values = lines.values(self._positions)
        self._star = next(
            (position for position, value in zip(self._positions, values, strict=True) if value == b"*"), None
        )
        # All User-agent lines as one text, which is searched once for each name; `_starts` has the offset of each line.
        self._names = b"\n".join(values).lower()
        self._starts = [0, *accumulate(len(value) + 1 for value in values)]

    def _named(self, token: str) -> int | None:
        """The position of the first User-agent line with the token."""
        if token == STAR:
            return self._star
        found = self._names.find(token.encode())
        return None if found < 0 else self._positions[bisect_right(self._starts, found) - 1]

    def token(self, agent: Agent) -> str | None:
        """See Selector."""
        found = next((name for name in agent.names if name != STAR and self._named(name) is not None), None)
        if found is not None:
            return found
        return None if self._star is None else STAR

    def groups(self, token: str) -> tuple[Group, ...]:
        """See Selector."""
        position = self._named(token)
        if position is None:
            return ()
        return self._groups.pick([bisect_right(self._groups.spans, (position, len(self._groups.letters))) - 1])

    def members(self, token: str) -> Iterator[int]:
        """See Selector."""
        named = self._named(token)
        if named is not None:
            for group in self.groups(token):
                yield from (position for position in group.member_positions if position > named)
