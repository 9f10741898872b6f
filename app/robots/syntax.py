"""Bytes to directives: the lines of a robots.txt, whoever reads them (RFC 9309 2.2, spec B, K1, K2).

Text is handled as one `str` character per octet (latin-1), so every byte survives and line lengths are in octets;
`readable` turns a value back into what its author meant. What only some dialects accept is accepted here and noted
as an Oddity: a grammar that is stricter leaves those lines out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from app.robots.access import BODY_LIMIT

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

A bare tuple: a large file has tens of thousands, and any class would cost more than all the rest of reading a line.
"""


@dataclass(frozen=True, slots=True)
class Scan:
    """A file's directives in file order, and what was met on the way: lines by number, counted as CRLF = one."""

    directives: tuple[Directive, ...]
    oddities: dict[int, Oddity]
    unknown_keys: dict[int, str]
    long_lines: tuple[int, ...]
    bom: bool
    truncated: bool
    lines: int


# The prefixes that Google's parser takes for the four keys that matter, in its order (spec B6).
_PREFIXES = (
    (Key.USER_AGENT, ("user-agent", "useragent", "user agent")),
    (Key.ALLOW, ("allow",)),
    (Key.DISALLOW, ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")),
    (Key.SITEMAP, ("sitemap", "site-map")),
)
_EXACT = {str(key): key for key in Key if key not in (Key.BLANK, Key.UNKNOWN)}
_NO_COLON = re.compile(r"([^ \t]+)[ \t]+([^ \t]+)")

_Reading: TypeAlias = tuple[Key, Oddity | None]


def scan(body: bytes, *, truncated: bool = False) -> Scan:
    """Read any bytes; `truncated` says that the body was already cut, so that its last line is no whole line."""
    text = _split(body, truncated=truncated)
    directives: list[Directive] = []
    oddities: dict[int, Oddity] = {}
    unknown: dict[int, str] = {}
    # What each raw spelling means. A file spells a key in few ways, so nearly every line is answered from here.
    spellings: dict[str, _Reading] = {"": (Key.UNKNOWN, None)}
    for number, line in enumerate(text.lines, 1):
        if "#" in line:
            line = line[: line.index("#")]
            if not line.strip(BLANKS):
                continue
        raw, colon, value = line.partition(":")
        if not colon:
            words = _NO_COLON.fullmatch(line.strip(BLANKS))
            if words is None:
                if not line.strip(BLANKS):
                    directives.append((number, Key.BLANK, ""))
                continue
            raw, value = words.groups()
        known = spellings.get(raw)
        if known is None:
            known = spellings[raw] = _read_key(raw)
        key, oddity = known
        if key is Key.UNKNOWN:
            unknown[number] = raw.strip(BLANKS)
            continue
        if not colon:
            oddity = Oddity.NO_COLON
        if oddity is not None:
            oddities[number] = oddity
        directives.append((number, key, value.strip(BLANKS)))
    return Scan(
        directives=tuple(directives),
        oddities=oddities,
        unknown_keys=unknown,
        long_lines=text.long_lines,
        bom=text.bom,
        truncated=text.truncated,
        lines=len(text.lines),
    )


def line_texts(body: bytes, numbers: Iterable[int]) -> dict[int, str]:
    """Those lines as written, without outer blanks and comment, for people to read."""
    lines = _split(body, truncated=False).lines
    return {number: readable(lines[number - 1].partition("#")[0].strip(BLANKS)) for number in numbers}


def readable(value: str) -> str:
    """A value as its author wrote it: its octets read as UTF-8, what is none shown as U+FFFD."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _read_key(raw: str) -> _Reading:
    key = raw.strip(BLANKS).lower()
    exact = _EXACT.get(key)
    if exact is not None:
        return exact, None
    for meant, prefixes in _PREFIXES:
        if key.startswith(prefixes):
            return meant, Oddity.TYPO_KEY
    return Key.UNKNOWN, None


@dataclass(frozen=True, slots=True)
class _Text:
    lines: list[str]
    long_lines: tuple[int, ...]
    bom: bool
    truncated: bool


def _split(body: bytes, *, truncated: bool) -> _Text:
    if len(body) > BODY_LIMIT:
        body, truncated = body[:BODY_LIMIT], True
    body, bom = _without_bom(body)
    text = body.decode("latin-1")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if truncated:
        # The cut last line may be half a rule, and half a rule says more than its author did.
        text = text[: text.rfind("\n") + 1]
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()  # what follows the last line end is no line
    long_lines: tuple[int, ...] = ()
    if len(text) > LINE_LIMIT:
        long_lines = tuple(number for number, line in enumerate(lines, 1) if len(line) > LINE_LIMIT)
        for number in long_lines:
            lines[number - 1] = lines[number - 1][:LINE_LIMIT]
    if "\0" in text:
        lines = [line.partition("\0")[0] for line in lines]
    return _Text(lines, long_lines, bom, truncated)


# UTF-32 first: its little-endian mark begins with that of UTF-16.
_WIDE_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def _without_bom(body: bytes) -> tuple[bytes, bool]:
    for mark, encoding in _WIDE_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace"), True
    # Also a partial UTF-8 mark is one (spec B2).
    for length in (3, 2, 1):
        if body.startswith(b"\xef\xbb\xbf"[:length]):
            return body[length:], True
    return body, False
