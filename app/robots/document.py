"""Directives to groups: whose rules they are (RFC 9309 2.1, 2.2.1, spec B8 to B15, K3, K4)."""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from app.robots.access import BODY_LIMIT
from app.robots.compiled.lines import Group as Group
from app.robots.compiled.lines import Groups, scan
from app.robots.syntax import Directive, Key, readable

REPORTED_KEYS = frozenset({Key.HOST, Key.CLEAN_PARAM, Key.NOINDEX, Key.COMMENT})

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s]+")


class Grammar(NamedTuple):
    """How lines make groups, where the dialects differ (spec B5, B6, B9, E5, F12).

    `tolerant` accepts misspelt keys and missing colons; `members_end_run` lets a Crawl-delay or its like end a run of
    user-agent lines as a rule does; `blank_ends_record` lets an empty line end the group.
    """

    tolerant: bool = True
    members_end_run: bool = False
    blank_ends_record: bool = False


class Document:
    """One file: its lines read once, its groups once per grammar, and only when somebody asks. Any bytes are one."""

    def __init__(self, body: bytes, *, truncated: bool = False) -> None:
        self.body = body
        self.scan = scan(body, truncated=truncated)
        self._groups: dict[Grammar, Groups] = {}

    def groups(self, grammar: Grammar) -> Groups:
        """The file's groups by `grammar`, each always the same object."""
        groups = self._groups.get(grammar)
        if groups is None:
            # Of two threads that read them at once, both go on with the groups of the same one.
            groups = self._groups.setdefault(grammar, Groups(self.scan, *grammar))
        return groups

    @cached_property
    def sitemaps(self) -> tuple[str, ...]:
        """Sitemap values that are absolute URLs, in file order, each once (spec B14)."""
        values = (readable(value) for _, _, value in self.scan.with_keys({Key.SITEMAP}))
        return tuple(dict.fromkeys(value for value in values if _ABSOLUTE.fullmatch(value)))

    @property
    def extensions(self) -> tuple[Directive, ...]:
        """Lines that are reported and decide nothing, in file order (spec G6 to G9)."""
        return self.scan.with_keys(REPORTED_KEYS)

    def line_texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Those lines as written, without outer blanks and comment, for people to read."""
        return {number: readable(text) for number, text in self.scan.texts(numbers).items()}

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
        return markup and self.scan.count({Key.BLANK}) == len(self.scan)
