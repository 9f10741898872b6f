"""Bytes to directives: the lines of a robots.txt, whoever reads them (RFC 9309 2.2, spec B, K1, K2).

Text is handled as one `str` character per octet (latin-1), so every byte survives and line lengths are in octets;
`readable` turns a value back into what its author meant. What only some dialects accept is accepted here and noted
as an Oddity: a grammar that is stricter leaves those lines out.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

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


class Scan(NamedTuple):
    """A file's directives in file order, and what was met on the way: lines by number, counted as CRLF = one.

    Of empty lines with no directive between them only the first is a directive.
    """

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
_EXACT: dict[str, Key] = {str(key): key for key in Key if key not in (Key.BLANK, Key.UNKNOWN)}
_USUAL = {form: key for name, key in _EXACT.items() for form in (name, name.capitalize())}
_NO_COLON = re.compile(r"([^ \t]+)[ \t]+([^ \t]+)")

_Reading: TypeAlias = tuple[Key, Oddity | None]


def scan(body: bytes, *, truncated: bool = False) -> Scan:
    """Read any bytes; `truncated` says that the body was already cut, so that its last line is no whole line."""
    text = _split(body, truncated=truncated)
    directives: list[Directive] = []
    oddities: dict[int, Oddity] = {}
    unknown: dict[int, str] = {}
    # How this file writes its keys, and what each means: nearly every line is answered from the first.
    plain = dict(_USUAL)
    others: dict[str, _Reading] = {}
    blank = True  # whether the last line that says anything was an empty one: of a run of those, one says it all
    for number, line in enumerate(text.lines, 1):
        if "#" in line:
            line = line[: line.index("#")]
            if not line.strip(BLANKS):
                continue
        raw, colon, value = line.partition(":")
        key = plain.get(raw) if colon else None
        if key is None:
            if not colon:
                raw, value = _two_words(line)
            if not colon and not raw:
                if not blank and not line.strip(BLANKS):
                    directives.append((number, Key.BLANK, ""))
                    blank = True
                continue
            key, oddity = others.get(raw) or others.setdefault(raw, _read_key(raw))
            if key is Key.UNKNOWN:
                unknown[number] = raw.strip(BLANKS)
                continue
            if oddity or not colon:
                oddities[number] = Oddity.TYPO_KEY if colon else Oddity.NO_COLON
            else:
                plain[raw] = key
        directives.append((number, key, value.strip(BLANKS)))
        blank = False
    return Scan(tuple(directives), oddities, unknown, text.long_lines, text.bom, text.truncated, len(text.lines))


def line_texts(body: bytes, numbers: Iterable[int]) -> dict[int, str]:
    """Those lines as written, without outer blanks and comment, for people to read."""
    lines = _split(body, truncated=False).lines
    return {number: readable(lines[number - 1].partition("#")[0].strip(BLANKS)) for number in numbers}


def readable(value: str) -> str:
    """A value as its author wrote it: its octets read as UTF-8, what is none shown as U+FFFD."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _two_words(line: str) -> tuple[str, str]:
    """Key and value of a line without a colon, if it has just two words (spec B5); else two empty texts."""
    line = line.strip(BLANKS)
    words = _NO_COLON.fullmatch(line) if " " in line or "\t" in line else None
    return (words[1], words[2]) if words else ("", "")


def _read_key(raw: str) -> _Reading:
    key = raw.strip(BLANKS).lower()
    exact = _EXACT.get(key)
    if exact is not None:
        return exact, None
    for meant, prefixes in _PREFIXES:
        if key.startswith(prefixes):
            return meant, Oddity.TYPO_KEY
    return Key.UNKNOWN, None


class _Text(NamedTuple):
    lines: list[str]
    long_lines: tuple[int, ...]
    bom: bool
    truncated: bool


def _split(body: bytes, *, truncated: bool) -> _Text:
    if len(body) > BODY_LIMIT:
        body, truncated = body[:BODY_LIMIT], True
    body, bom = _without_bom(body) if body.startswith(_FIRST_OF_MARKS) else (body, False)
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
_FIRST_OF_MARKS = (b"\xef", b"\xff", b"\xfe", b"\0")


def _without_bom(body: bytes) -> tuple[bytes, bool]:
    for mark, encoding in _WIDE_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace"), True
    # Also a partial UTF-8 mark is one (spec B2).
    for length in (3, 2, 1):
        if body.startswith(b"\xef\xbb\xbf"[:length]):
            return body[length:], True
    return body, False
