"""Lines to groups, and the groups that bind an agent (RFC 9309 2.1, 2.2.1, spec B8 to B15, C, E2, K3 to K6).

Each line is one letter of a text, by what it does to the groups: `U` a User-agent line, `A` and `D` a rule, `V`
Robot-version, `M` another member, `S` a statement that never ends a run of agents, `B` an empty line, `.` all others.
How a dialect groups lines is then a regular expression, none of which ever goes back over what it has read.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from app.robots.agents import STAR, Agent
from app.robots.lines import (
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
ALLOW, _IGNORED = b"A."
RULE_LETTERS: Final = b"AD"
_MEMBERS: Final = codes_of(MEMBER_KEYS)
_AGENT: Final = re.compile(rb"U")
_MEMBER: Final = re.compile(b"[" + re.escape(_MEMBERS) + b"]")


def _find(letters: bytes, wanted: bytes, start: int, end: int) -> list[int]:
    return [place for place in range(start, end) if letters[place] in wanted]


def token_pattern(members: str) -> re.Pattern[str]:
    """What finds the token in each line of a text in lower case: a set of `members`, or `*` by itself (spec C2, C3)."""
    return re.compile(rf"^(\*(?=[ \t\v\f]|$)|[{members}]*+)[^\n]*+", re.MULTILINE)


def tokens_of(values: Sequence[bytes], token: re.Pattern[str]) -> list[str]:
    """The lower-case product tokens that values of agent lines begin with, STAR, or "" for those that name no robot."""
    return token.findall(b"\n".join(values).lower().decode("latin-1")) if values else []


class Grammar(NamedTuple):
    """How lines make groups, where the dialects differ: what each line is, and which lines one group takes."""

    letters: bytes
    group: re.Pattern[bytes]


def grammar(group: bytes, *, forms: Sequence[Form], by_prefix: Mapping[Key, Key] | None = None) -> Grammar:
    """A grammar that reads keys in these `forms`, and those of `by_prefix` as others (spec B6)."""
    letters = bytearray(b"." * 256)
    for key, letter in _LETTERS.items():
        for form in (Form.PROPER,) if key is Key.BLANK else forms:
            letters[code_of(key, form)] = letter[0]
    for key, meant in (by_prefix or {}).items():
        for form in forms:
            letters[code_of(key, form)] = _LETTERS[meant][0]
    return Grammar(bytes(letters), re.compile(group))


class Group:
    """User-agent lines and what they share, as one grammar reads them. A group is equal to itself alone.

    Its lines are [start, end) of the file's; `letters` are those of the whole file.
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
    def agent_places(self) -> list[int]:
        """Where its User-agent lines are."""
        return _find(self.letters, b"U", self.start, self.end)

    @property
    def agents(self) -> tuple[bytes, ...]:
        """The values of its User-agent lines."""
        return tuple(self.scan.lines.values(self.agent_places))

    @property
    def rule_places(self) -> list[int]:
        """Where its Allow and Disallow lines are, the empty ones too."""
        return _find(self.letters, RULE_LETTERS, self.start, self.end)

    def rule(self, place: int) -> Directive:
        """The rule at `place`, with the key that this grammar reads."""
        key = Key.ALLOW if self.letters[place] == ALLOW else Key.DISALLOW
        return Directive(self.scan.lines.number(place), key, self.scan.lines.value(place))

    @property
    def rules(self) -> tuple[Directive, ...]:
        """Its Allow and Disallow lines, the empty ones too."""
        return tuple(map(self.rule, self.rule_places))

    @property
    def member_places(self) -> list[int]:
        """Where its other lines are, in file order."""
        places = _find(self.scan.lines.codes, _MEMBERS, self.start, self.end)
        return [place for place in places if self.letters[place] != _IGNORED]

    @property
    def members(self) -> tuple[Directive, ...]:
        """What it says beside its rules."""
        return self.scan.directives(self.member_places)

    @property
    def version_place(self) -> int | None:
        """Where Robot-version stands right below its agents (spec F12, K4)."""
        rest = self.letters[self.start : self.end].lstrip(b"U.B")
        return self.end - len(rest) if rest.startswith(b"V") else None

    @property
    def version_2(self) -> bool:
        """Whether it is of version 2.0."""
        place = self.version_place
        return place is not None and _VERSION_2.fullmatch(self.scan.lines.value(place)) is not None


class Groups:
    """A file as one grammar reads it: its groups in file order, each made once."""

    def __init__(self, scan: Scan, grammar: Grammar) -> None:
        self.scan = scan
        self.letters = scan.lines.codes.translate(grammar.letters)
        self.spans = [found.span() for found in grammar.group.finditer(self.letters)]
        self.has_version = b"V" in self.letters
        self._made: dict[int, Group] = {}

    def __len__(self) -> int:
        return len(self.spans)

    def pick(self, numbers: Iterable[int]) -> tuple[Group, ...]:
        """The groups with these numbers."""
        made, scan, letters, spans = self._made, self.scan, self.letters, self.spans
        # Of two threads that make one at once, both go on with the same.
        return tuple([made.get(it) or made.setdefault(it, Group(scan, letters, *spans[it])) for it in numbers])

    def __iter__(self) -> Iterator[Group]:
        return iter(self.pick(range(len(self.spans))))

    @cached_property
    def member_places(self) -> Sequence[int]:
        """Where the lines are that groups hold beside their rules, in file order."""
        found = (match.start() for match in _MEMBER.finditer(self.scan.lines.codes))
        return array("I", (place for place in found if self.letters[place] != _IGNORED))

    @property
    def agent_places(self) -> list[int]:
        """Where all User-agent lines are."""
        return [found.start() for found in _AGENT.finditer(self.letters)]

    @property
    def orphans(self) -> tuple[Directive, ...]:
        """The rules and members above the first group and between groups, which bind no agent (spec B10, I8)."""
        places: list[int] = []
        at = 0
        for start, end in (*self.spans, (len(self.letters), 0)):
            places += _find(self.letters, b"ADVMS", at, start)
            at = end
        return self.scan.directives(places)


class Selection(NamedTuple):
    """The groups that bind an agent, in file order, and the token they were found by (STAR for `*`)."""

    token: str
    groups: tuple[Group, ...]


class Selector(Protocol):
    """A file's groups, ready to be asked for those of an agent."""

    def token(self, agent: Agent) -> str | None:
        """What the groups that bind `agent` are found by; None where neither its tokens nor `*` has one."""
        ...

    def groups(self, token: str) -> tuple[Group, ...]:
        """The groups that are found by a token that `token` returned, in file order."""
        ...

    def members(self, token: str) -> Iterator[int]:
        """Where the member lines are that stand in those groups below an agent line of this token (spec G11)."""
        ...


class MergedGroups:
    """All groups of the first token in the chain that has any, read as one (RFC 9309 2.2.1).

    `token` finds product tokens (token_pattern). A site that offers versions 1.0 and 2.0 to the
    same agent means the groups of 2.0 for a robot that honours them (spec F12, K6): `version_2`.
    """

    __slots__ = ("_by_token", "_groups", "_preferred", "_version_2")

    def __init__(self, groups: Groups, token: re.Pattern[str], *, version_2: bool = False) -> None:
        self._groups = groups
        self._version_2 = version_2 and groups.has_version
        # The groups of each token, and where it is first named in them.
        found: dict[str, list[tuple[int, int]]] = {}
        spans, number, places = groups.spans, 0, groups.agent_places
        for place, name in zip(places, tokens_of(groups.scan.lines.values(places), token), strict=True):
            while spans[number][1] <= place:
                number += 1
            entries = found.setdefault(name, [])
            if not entries or entries[-1][0] != number:
                entries.append((number, place))
        found.pop("", None)
        self._by_token: Mapping[str, list[tuple[int, int]]] = found
        self._preferred: dict[str, list[tuple[int, int]]] = {}

    def token(self, agent: Agent) -> str | None:
        """See Selector."""
        by_token = self._by_token
        for token in agent.chain:
            if token in by_token:
                return token
        return STAR if agent.obeys_star and STAR in by_token else None

    def _chosen(self, token: str) -> list[tuple[int, int]]:
        entries = self._by_token[token]
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
        places, spans = self._groups.member_places, self._groups.spans
        for number, named in self._chosen(token) if places else ():
            yield from places[bisect_right(places, named) : bisect_left(places, spans[number][1])]


class FirstRecord:
    """The first record with the robot's name inside an agent line, else the first with `*`; one only (spec E2)."""

    __slots__ = ("_groups", "_names", "_places", "_star", "_starts")

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        lines = groups.scan.lines
        self._places = groups.agent_places
        values = lines.values(self._places)
        self._star = next((place for place, value in zip(self._places, values, strict=True) if value == b"*"), None)
        # All agent lines as one text, which is searched once for each name, and where each of them begins in it.
        self._names = b"\n".join(values).lower()
        self._starts = [0, *accumulate(len(value) + 1 for value in values)]

    def _named(self, token: str) -> int | None:
        """Where the token is first named."""
        if token == STAR:
            return self._star
        found = self._names.find(token.encode())
        return None if found < 0 else self._places[bisect_right(self._starts, found) - 1]

    def token(self, agent: Agent) -> str | None:
        """See Selector."""
        found = next((name for name in agent.names if name != STAR and self._named(name) is not None), None)
        if found is not None:
            return found
        return None if self._star is None else STAR

    def groups(self, token: str) -> tuple[Group, ...]:
        """See Selector."""
        return self._groups.pick(self._number(token)[:1])

    def members(self, token: str) -> Iterator[int]:
        """See Selector."""
        number, named = self._number(token)
        return (place for place in self._groups.pick([number])[0].member_places if place > named)

    def _number(self, token: str) -> tuple[int, int]:
        place = self._named(token)
        if place is None:
            raise KeyError(token)
        return bisect_right(self._groups.spans, (place, len(self._groups.letters))) - 1, place
