"""The checked file: its rules and agents, and their groups under RFC 9309."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from robots_core.robots.dialects.rfc9309 import RFC9309
from robots_core.robots.dialects.seznam import SEZNAM
from robots_core.robots.groups import ALLOW_CODE, Groups, tokens_of
from robots_core.robots.lines import BLANKS, LINE_LIMIT, Directive, Key, codes_of, readable
from robots_core.robots.robots_txt import RobotsTxt

LINES_CHECKED: Final = 10_000
"""How many lines of each kind are checked."""

_RULE: Final = re.compile(rb"[AD]")
_AGENT: Final = re.compile(rb"U")
_IN_GROUPS: Final = re.compile(rb"[ADVMS]")

T = TypeVar("T")


class GroupedRule(NamedTuple):
    """An Allow or Disallow line: its position among the lines, and the number of its group."""

    position: int
    line: int
    allows: bool
    value: bytes
    group: int

    @property
    def key(self) -> Key:
        """Allow or Disallow."""
        return Key.ALLOW if self.allows else Key.DISALLOW


class AgentLine(NamedTuple):
    """A User-agent line: its position among the lines, its product token in lower case, and the number of its group."""

    position: int
    line: int
    value: bytes
    token: str
    group: int

    @property
    def cut(self) -> bool:
        """Whether more than a version is left of the value behind the token."""
        size = len(self.token)
        return size < len(self.value) and self.value[size : size + 1] != b"/"


class CheckedFile:
    """A file, and what the checks share; `content_type` and `site` as for `lint`."""

    def __init__(self, robots: RobotsTxt, content_type: str | None = None, site: str | None = None) -> None:
        self.robots = robots
        self.scan = robots.scan
        self.content_type = content_type
        self.site = site
        self._made: dict[Callable[..., object], Any] = {}

    def once(self, make: Callable[["CheckedFile"], T]) -> T:
        """The result of `make` for the file, computed once."""
        if make not in self._made:
            self._made[make] = make(self)
        made: T = self._made[make]
        return made

    @cached_property
    def groups(self) -> Groups:
        """Its groups under RFC 9309; from the first one on, every line is in a group."""
        return self.robots.reading(RFC9309).groups

    @cached_property
    def rules(self) -> list[GroupedRule]:
        """The first LINES_CHECKED rules, in file order."""
        groups, lines = self.groups, self.scan.lines
        if not groups.spans:
            return []
        letters, allow = groups.letters, ALLOW_CODE
        found = _RULE.finditer(letters, groups.spans[0][0])
        positions = [match.start() for match in islice(found, LINES_CHECKED)]
        numbers = map(lines.number, positions)
        allows = [letters[position] == allow for position in positions]
        return list(map(GroupedRule, positions, numbers, allows, lines.values(positions), self._groups_at(positions)))

    def _groups_at(self, positions: list[int]) -> list[int]:
        """The numbers of the groups with the lines at these ascending positions."""
        spans = self.groups.spans
        if len(spans) <= 1:
            return [0] * len(positions)
        numbers: list[int] = []
        group, end = 0, spans[0][1]
        for position in positions:
            while position >= end:
                group += 1
                end = spans[group][1]
            numbers.append(group)
        return numbers

    @cached_property
    def agents(self) -> list[AgentLine]:
        """The first LINES_CHECKED User-agent lines, in file order."""
        groups, lines = self.groups, self.scan.lines
        positions = [match.start() for match in islice(_AGENT.finditer(groups.letters), LINES_CHECKED)]
        values = lines.values(positions)
        tokens = tokens_of(values, RFC9309.token)
        numbers = map(lines.number, positions)
        return list(map(AgentLine, positions, numbers, values, tokens, self._groups_at(positions)))

    @cached_property
    def tokens(self) -> Mapping[int, set[str]]:
        """The tokens of each group, by its number."""
        tokens: dict[int, set[str]] = {}
        for agent in self.agents:
            tokens.setdefault(agent.group, set()).add(agent.token)
        return tokens

    @cached_property
    def orphans(self) -> list[Directive]:
        """The first LINES_CHECKED rules and members above the first group."""
        spans, letters = self.groups.spans, self.groups.letters
        found = _IN_GROUPS.finditer(letters, 0, spans[0][0] if spans else len(letters))
        return [self.scan.directive(match.start()) for match in islice(found, LINES_CHECKED)]

    @cached_property
    def version_2_groups(self) -> Groups | None:
        """Its groups as SeznamBot reads them; they may be of version 2.0."""
        groups = self.robots.reading(SEZNAM).groups if b"V" in self.groups.letters else None
        return groups if groups and groups.has_version else None

    @cached_property
    def globs(self) -> Mapping[int, Directive]:
        """The first LINES_CHECKED rules that are globs of version 2.0, by line."""
        groups = islice(self.version_2_groups or (), LINES_CHECKED)
        rules = (group.rule(position) for group in groups if group.version_2 for position in group.rule_positions)
        return {rule.line: rule for rule in islice(rules, LINES_CHECKED)}

    @cached_property
    def paths(self) -> list[GroupedRule]:
        """Those of `rules` that are not globs and not empty."""
        rules = [rule for rule in self.rules if rule.value]
        return [rule for rule in rules if rule.line not in self.globs] if self.globs else rules

    @cached_property
    def unread(self) -> list[tuple[int, str]]:
        """The first LINES_CHECKED lines that are neither empty nor have a key, with their numbers."""
        read = set(map(self.number, range(len(self.scan.lines))))
        others = (it for it in enumerate(self.scan.lines.body.splitlines(), 1) if it[0] not in read)
        texts = ((number, without_comment(line[:LINE_LIMIT])) for number, line in others)
        return [(number, readable(text)) for number, text in islice(filter(itemgetter(1), texts), LINES_CHECKED)]

    def group_at(self, position: int) -> int:
        """The number of the group with the line at `position`, or -1."""
        return bisect_right(self.groups.spans, position, key=itemgetter(0)) - 1

    def lines(self, *keys: Key) -> Iterator[Directive]:
        """The first lines with one of these keys, in either form that most crawlers read."""
        return map(self.scan.directive, self.positions(codes_of(keys)))

    def positions(self, codes: bytes) -> list[int]:
        """The positions of the first lines with one of these codes."""
        return self.robots.positions(codes)[:LINES_CHECKED]

    def number(self, position: int) -> int:
        """The number of the line at `position`."""
        return self.scan.lines.number(position)


def without_comment(line: bytes) -> bytes:
    """The text that is read of a line (spec B3, B13)."""
    return line.partition(b"#")[0].partition(b"\0")[0].strip(BLANKS)
