"""Directives to groups: whose rules they are (RFC 9309 2.1, 2.2.1, spec B8 to B15, K3, K4)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from app.robots.access import BODY_LIMIT
from app.robots.syntax import Directive, Key, Scan, readable, scan

RULE_KEYS = frozenset({Key.ALLOW, Key.DISALLOW})
MEMBER_KEYS = frozenset(
    {
        Key.CRAWL_DELAY,
        Key.REQUEST_RATE,
        Key.VISIT_TIME,
        Key.ROBOT_VERSION,
        Key.CONTENT_SIGNAL,
        Key.CONTENT_USAGE,
        Key.NOINDEX,
        Key.COMMENT,
    }
)
"""What belongs to a group beside its rules; Sitemap, Host and Clean-param belong to the file (spec B14, G11)."""

REPORTED_KEYS = frozenset({Key.HOST, Key.CLEAN_PARAM, Key.NOINDEX, Key.COMMENT})

_VERSION_2 = re.compile(r"2(\.0(\.[0-9]{1,9})?)?")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]+")


class Grammar(NamedTuple):
    """How lines make groups, where the dialects differ (spec B5, B6, B9, E5, F12).

    `tolerant` accepts misspelt keys and missing colons; `members_end_run` lets a Crawl-delay or its like end a run of
    user-agent lines as a rule does; `blank_ends_record` lets an empty line end the group.
    """

    tolerant: bool = True
    members_end_run: bool = False
    blank_ends_record: bool = False


Member: TypeAlias = tuple[int, Key, str, int]
"""A Directive and how many of the group's agents were listed above it: those it speaks for (spec G11)."""


@dataclass(slots=True, eq=False)
class Group:
    """User-agent lines and what they share: `line` is the first one's, `agents` their values, trimmed octets.

    `rules` are its Allow and Disallow lines, the empty ones too; `version_2`: Robot-version 2.0 stands in its place.
    Nobody changes it but `read_groups` while it reads; to be frozen, it would cost as much as its lines do.
    """

    line: int
    agents: Sequence[str]
    rules: Sequence[Directive]
    members: Sequence[Member]
    version_2: bool = False


class Groups(NamedTuple):
    """A file as one grammar reads it: its groups in file order, and the member lines that no group owns."""

    groups: Sequence[Group]
    orphans: Sequence[Directive]


class Document:
    """One file: its lines read once, its groups once per grammar, and only when somebody asks. Any bytes are one."""

    def __init__(self, body: bytes, *, truncated: bool = False) -> None:
        self.body = body
        self.scan = scan(body, truncated=truncated)
        self._groups: dict[Grammar, Groups] = {}

    def groups(self, grammar: Grammar) -> Groups:
        """The file's groups by `grammar`."""
        groups = self._groups.get(grammar)
        if groups is None:
            # Of two threads that read them at once, both go on with the groups of the same one.
            groups = self._groups.setdefault(grammar, read_groups(self.scan, grammar))
        return groups

    @cached_property
    def sitemaps(self) -> tuple[str, ...]:
        """Sitemap values that are absolute URLs, in file order, each once (spec B14)."""
        values = (readable(value) for _, key, value in self.scan.directives if key is Key.SITEMAP)
        return tuple(dict.fromkeys(value for value in values if _ABSOLUTE.fullmatch(value)))

    @property
    def extensions(self) -> tuple[Directive, ...]:
        """Lines that are reported and decide nothing, in file order (spec G6 to G9)."""
        return tuple(directive for directive in self.scan.directives if directive[1] in REPORTED_KEYS)

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the body is UTF-8."""
        try:
            self.body.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    @property
    def is_html(self) -> bool:
        """Whether the body is markup that holds no directive: somebody's page instead of a file (spec Q9)."""
        markup = self.body[:BODY_LIMIT].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
        return markup and all(key is Key.BLANK for _, key, _ in self.scan.directives)


# What a member of an enum costs to look up is more than all else that is done for a line.
_USER_AGENT, _BLANK = Key.USER_AGENT, Key.BLANK


def read_groups(lines: Scan, grammar: Grammar) -> Groups:
    """Put the directives of `lines` into groups as `grammar` says (spec K3)."""
    groups: list[Group] = []
    orphans: list[Directive] = []
    group: Group | None = None
    closed = True  # whether the next user-agent line opens a new group
    # The open group's, which it holds as its own.
    agents: list[str] = []
    rules: list[Directive] = []
    members: list[Member] = []
    directives, marks = _accepted(lines, grammar)
    after = 0
    for at in (*marks, len(directives)):
        if after < at:
            if group is None:
                orphans += directives[after:at]
            else:
                rules += directives[after:at]
                closed = True
        if at == len(directives):
            break
        after = at + 1
        line, key, value = directives[at]
        if key is _USER_AGENT:
            if closed:
                agents, rules, members = [], [], []
                group = Group(line, agents, rules, members)
                groups.append(group)
                closed = False
            agents.append(value)
        elif key is _BLANK:
            if grammar.blank_ends_record:
                group, closed = None, True
        elif key in MEMBER_KEYS:
            if group is None:
                orphans.append(directives[at])
                continue
            if key is Key.ROBOT_VERSION and not rules and not members:
                group.version_2 = _VERSION_2.fullmatch(value) is not None
            members.append((line, key, value, len(agents)))
            closed = closed or grammar.members_end_run
    return Groups(groups, orphans)


def _accepted(lines: Scan, grammar: Grammar) -> tuple[Sequence[Directive], Sequence[int]]:
    """The directives that `grammar` takes, and the places of those among them that are no rules."""
    if grammar.tolerant or not lines.oddities:
        return lines.directives, lines.marks
    accepted = [directive for directive in lines.directives if directive[0] not in lines.oddities]
    return accepted, [at for at, (_, key, _) in enumerate(accepted) if key not in RULE_KEYS]
