"""What the lines of a robots.txt may say, whoever reads them (RFC 9309 2.2, spec B, K1, K2).

`compiled.lines` reads them by the tables of this module. Text is handled as one `str` character per octet (latin-1), so
every byte survives and line lengths are in octets; `readable` turns a value back into what its author meant. What only
some dialects accept is accepted and noted as an Oddity: a grammar that is stricter leaves those lines out.
"""

from enum import StrEnum
from typing import TypeAlias

LINE_LIMIT = 16_663
"""Octets of a line that are read; the rest of it is dropped and what was kept still counts (spec B7)."""

BLANKS = " \t\v\f"


class Key(StrEnum):
    """The keys that some dialect or report gives a meaning; all others are UNKNOWN. BLANK is an empty line."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    VISIT_TIME = "visit-time"
    ROBOT_VERSION = "robot-version"
    CONTENT_SIGNAL = "content-signal"
    CONTENT_USAGE = "content-usage"
    NOINDEX = "noindex"
    COMMENT = "comment"
    HOST = "host"
    CLEAN_PARAM = "clean-param"
    BLANK = ""
    UNKNOWN = "?"


class Oddity(StrEnum):
    """What is strange about a directive's writing, though its intent is plain (spec B5, B6)."""

    TYPO_KEY = "typo-key"
    NO_COLON = "no-colon"


Directive: TypeAlias = tuple[int, Key, str]
"""(line, key, value): the line counted from 1, the value trimmed, one character per octet.

A bare tuple, made when somebody asks for it: a large file has tens of thousands.
"""

Member: TypeAlias = tuple[int, Key, str, int]
"""A Directive and how many of its group's agents were listed above it: those it speaks for (spec G11)."""

PREFIXES = (
    ("user-agent", Key.USER_AGENT),
    ("useragent", Key.USER_AGENT),
    ("user agent", Key.USER_AGENT),
    ("allow", Key.ALLOW),
    ("disallow", Key.DISALLOW),
    ("dissallow", Key.DISALLOW),
    ("dissalow", Key.DISALLOW),
    ("disalow", Key.DISALLOW),
    ("diasllow", Key.DISALLOW),
    ("disallaw", Key.DISALLOW),
    ("sitemap", Key.SITEMAP),
    ("site-map", Key.SITEMAP),
)
"""What Google's parser takes for the four keys that matter, where a key begins so, in its order (spec B6)."""

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


def readable(value: str) -> str:
    """A value as its author wrote it: its octets read as UTF-8, what is none shown as U+FFFD."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")
