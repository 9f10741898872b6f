"""A file's lines, groups and agents, kept as places in its octets: what lines.pyx compiles.

Of everything here, tuples and texts are made anew for whoever asks; only the groups are kept. A text has one character
per octet (latin-1).
"""

from collections.abc import Collection, Iterable, Sequence
from typing import final

from app.robots.agents import Agent
from app.robots.syntax import Directive, Key, Member, Oddity

@final
class Scan:
    """A file's directives in file order, and what was met on the way: lines by number, counted as CRLF = one.

    Of empty lines with no directive between them only the first is a directive. `len` is the number of directives.
    12 octets are kept of each, and the octets of the file.
    """

    @property
    def directives(self) -> tuple[Directive, ...]: ...
    def with_keys(self, keys: Collection[Key]) -> tuple[Directive, ...]:
        """The directives that have one of `keys`."""

    def count(self, keys: Collection[Key]) -> int:
        """How many these are."""

    def patterns(self) -> tuple[int, int, int]:
        """About what an index is made of: how many patterns, of how many octets, and of these, from a wildcard on.

        No pattern of its rules is longer as any dialect spells it, and one counts twice whose query has a second form.
        """

    @property
    def oddities(self) -> dict[int, Oddity]:
        """What is strange about a line, by its number."""

    @property
    def unknown_keys(self) -> dict[int, str]:
        """The keys that have no meaning, by line: read anew for whoever asks."""

    @property
    def long_lines(self) -> list[int]:
        """The lines that were cut at LINE_LIMIT: read anew for whoever asks."""

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Those of the lines that the file has, without outer blanks and comment: read anew for whoever asks."""

    @property
    def bom(self) -> bool:
        """Whether the file starts with a byte order mark, or a part of one (spec B2)."""

    @property
    def truncated(self) -> bool:
        """Whether the file was cut, so that its last line was dropped."""

    @property
    def lines(self) -> int:
        """How many there are, with those that say nothing."""

    def __len__(self) -> int: ...

def scan(body: bytes, *, truncated: bool = False) -> Scan:
    """Read any bytes; `truncated` says that the body was already cut, so that its last line is no whole line."""

@final
class Group:
    """User-agent lines and what they share, as one grammar reads them. A group is equal to itself alone."""

    @property
    def line(self) -> int:
        """The first User-agent line."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The values of its User-agent lines."""

    @property
    def rules(self) -> tuple[Directive, ...]:
        """Its Allow and Disallow lines, the empty ones too."""

    @property
    def rules_count(self) -> int:
        """How many these are."""

    @property
    def members(self) -> tuple[Member, ...]:
        """What it says beside its rules."""

    @property
    def version_2(self) -> bool:
        """Whether Robot-version 2.0 stands in its place (spec F12)."""

def group_of(rules: Sequence[Directive], *, version_2: bool = False) -> Group:
    """A group that no file has, of rules that files have; OverflowError where one is longer than any line is read."""

@final
class Groups:
    """A file as one grammar reads it (document.Grammar); `len` is the number of its groups.

    12 octets are kept of each, and more of those that were asked for.
    """

    def __init__(self, scan: Scan, tolerant: bool, members_end_run: bool, blank_ends_record: bool) -> None: ...
    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups in file order, each the same object every time."""

    @property
    def orphans(self) -> tuple[Directive, ...]:
        """The rules and members that no group owns."""

    def __len__(self) -> int: ...

@final
class Cut:
    """A User-agent line's value -> its lower-case token, STAR, or "" where it names nobody (spec C2, C3)."""

    def __init__(self, alphabet: bytes) -> None:
        """`alphabet` are the octets of a token; ValueError where they are not ASCII."""

    def __call__(self, value: str) -> str: ...

@final
class MergedGroups:
    """All groups of the first token in the chain that has any, read as one (RFC 9309 2.2.1).

    `prefer_version_2`: a site that offers 1.0 and 2.0 to the same agent means the 2.0 groups for a robot that honours
    them (spec F12, K6). At most 28 octets are kept of each User-agent line.
    """

    def __init__(self, groups: Groups, cut: Cut, *, prefer_version_2: bool = False) -> None: ...
    def token(self, agent: Agent) -> str | None: ...
    def groups(self, token: str) -> tuple[Group, ...]: ...
    def stretches(self, token: str) -> tuple[tuple[int, int], ...]: ...
    def said(self, token: str, key: Key) -> list[str]: ...
    def lines(self, key: Key) -> tuple[list[int], list[str]]: ...

@final
class FirstRecord:
    """The first record with the robot's name inside an agent line, else the first with `*`; one only (spec E2)."""

    def __init__(self, groups: Groups) -> None: ...
    def token(self, agent: Agent) -> str | None: ...
    def groups(self, token: str) -> tuple[Group, ...]: ...
    def stretches(self, token: str) -> tuple[tuple[int, int], ...]: ...
    def said(self, token: str, key: Key) -> list[str]: ...
    def lines(self, key: Key) -> tuple[list[int], list[str]]: ...
