"""Bytes to directives: the lines of a robots.txt, whoever reads them (RFC 9309 2.2, spec B, K1, K2).

Text is handled as one `str` character per octet (latin-1), so every byte survives and line lengths are in octets;
`readable` turns a value back into what its author meant. What only some dialects accept is accepted here and noted
as an Oddity: a grammar that is stricter leaves those lines out.
"""

import re
from collections.abc import Iterable, Sequence
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

    Of empty lines with no directive between them only the first is a directive. `marks` are the places in `directives`
    of those that are neither Allow nor Disallow: between two of them lies a run of rules.
    """

    directives: tuple[Directive, ...]
    marks: Sequence[int]
    oddities: dict[int, Oddity]
    unknown_keys: dict[int, str]
    long_lines: Sequence[int]
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
# What a line begins with, up to its colon, where it is written as nearly all are.
_USUAL = {
    form + blank: key
    for name, key in _EXACT.items()
    for form in (name, name.capitalize(), name.title(), name.upper())
    for blank in ("", " ")
}
_NO_COLON = re.compile(r"([^ \t]+)[ \t]+([^ \t]+)")

# An enum is slow to tell its members: the two take as long as a line does.
_ALLOW, _DISALLOW, _BLANK, _UNKNOWN = Key.ALLOW, Key.DISALLOW, Key.BLANK, Key.UNKNOWN

_Reading: TypeAlias = tuple[Key, Oddity | None]
_EMPTY = (_BLANK, "", None)


def scan(body: bytes, *, truncated: bool = False) -> Scan:
    """Read any bytes; `truncated` says that the body was already cut, so that its last line is no whole line."""
    lines, long_lines, bom, truncated = _split(body, truncated=truncated)
    directives: list[Directive] = []
    marks: list[int] = []
    oddities: dict[int, Oddity] = {}
    unknown: dict[int, str] = {}
    keys: dict[str, _Reading] = {}
    usual, allow, disallow, blanks = _USUAL.get, _ALLOW, _DISALLOW, BLANKS  # looked up once, not once a line
    for number, line in enumerate(lines, 1):
        raw, colon, value = line.partition(":")
        key = usual(raw)
        if key is None or not colon or "#" in value:
            read = _read_line(line, keys)
            if read is None:
                continue
            key, value, oddity = read
            if key is _UNKNOWN:
                unknown[number] = value
                continue
            if key is _BLANK and (not directives or directives[-1][1] is _BLANK):
                continue  # of a run of empty lines, one says it all
            if oddity is not None:
                oddities[number] = oddity
        if key is not disallow and key is not allow:
            marks.append(len(directives))
        directives.append((number, key, value.strip(blanks)))
    return Scan(tuple(directives), marks, oddities, unknown, long_lines, bom, truncated, len(lines))


def line_texts(body: bytes, numbers: Iterable[int]) -> dict[int, str]:
    """Those lines as written, without outer blanks and comment, for people to read."""
    lines, *_ = _split(body, truncated=False)
    return {number: readable(lines[number - 1].partition("#")[0].strip(BLANKS)) for number in numbers}


def readable(value: str) -> str:
    """A value as its author wrote it: its octets read as UTF-8, what is none shown as U+FFFD."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def _read_line(line: str, keys: dict[str, _Reading]) -> tuple[Key, str, Oddity | None] | None:
    """What a line says that is not written as nearly all are: its key and value, of an UNKNOWN one the key itself.

    None for a comment, and for words that are no directive. `keys` are those of the file that were read so before.
    """
    text, comment, _ = line.partition("#")
    if not text or not (text := text.strip(BLANKS)):
        return None if comment else _EMPTY
    raw, colon, value = text.partition(":")
    if not colon:
        # Key and value, if they are just two words (spec B5).
        words = _NO_COLON.fullmatch(text)
        if words is None:
            return None
        raw, value = words[1], words[2]
    key, oddity = keys.get(raw) or keys.setdefault(raw, _read_key(raw))
    if key is _UNKNOWN:
        return key, raw.strip(BLANKS), None
    return key, value, oddity if colon else Oddity.NO_COLON


def _read_key(raw: str) -> _Reading:
    key = raw.strip(BLANKS).lower()
    exact = _EXACT.get(key)
    if exact is not None:
        return exact, None
    for meant, prefixes in _PREFIXES:
        if key.startswith(prefixes):
            return meant, Oddity.TYPO_KEY
    return Key.UNKNOWN, None


def _split(body: bytes, *, truncated: bool) -> tuple[list[str], Sequence[int], bool, bool]:
    """The lines as they are read, the numbers of those that were cut, whether there was a mark, whether an end."""
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
    long_lines: Sequence[int] = ()
    if len(text) > LINE_LIMIT:
        long_lines = [number for number, line in enumerate(lines, 1) if len(line) > LINE_LIMIT]
        for number in long_lines:
            lines[number - 1] = lines[number - 1][:LINE_LIMIT]
    if "\0" in text:
        lines = [line.partition("\0")[0] for line in lines]
    return lines, long_lines, bom, truncated


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
