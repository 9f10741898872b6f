"""Checks of lines as they are written, before any other: several directives in one, and characters that nobody sees.

What the other checks would say of such a line is about a key or a value that was not meant.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from robots_core.lint.advice import Warned, directive, quote, whole_lines
from robots_core.lint.checked_file import LINES_CHECKED, CheckedFile, without_comment
from robots_core.lint.keys import AFTER, BEFORE, key_named
from robots_core.robots.lines import BLANKS, LINE_LIMIT, RULE_KEYS, Key, readable
from robots_core.robots.robots_txt import absolute_url
from robots_core.robots.user_agent import TOKEN

_GLUED: Final = "user-agent|disallow|allow|sitemap|crawl-delay"
_NAME: Final = (
    rf"user[-_ ]?agents?|{_GLUED}|site-map|request-rate|visit-time|clean-param|content-signal|content-usage|noindex"
    r"|host|license"
)
_DIRECTIVE: Final = re.compile(rf"({_NAME})[ \t]*:", re.IGNORECASE)
_SECOND: Final = re.compile(rf"(?<=[^\r\n])(?:{_NAME})[ \t]*:".encode(), re.IGNORECASE)
_RULES_AND_AGENTS: Final = re.compile(rb"[UAD]")

_EVERYONE: Final = re.compile(r"user-?agent[ \t]*:[ \t]*\*", re.IGNORECASE)

_SEPARATORS: Final = " \t,;|"
_TAG: Final = re.compile(r"<(?:/p|br)[ \t]*/?>", re.IGNORECASE)
_LINE_ENDS: Final = ("\\n", "\\r")
"""Line ends as a program writes them, which are text in a file."""

_STARTS: Final[Mapping[str, re.Pattern[str]]] = {
    "allow": (_RULE := re.compile(rf"[ \t]*(?:[/*]|$|\\[nr]|(?:{_NAME})[ \t]*:)", re.IGNORECASE)),
    "disallow": _RULE,
    "sitemap": (_URL := re.compile(r"[ \t]*(?:https?:|/|www\.)", re.IGNORECASE)),
    "site-map": _URL,
    "license": _URL,
}
"""What a value begins with, by the name in front of it."""

_ANY: Final = re.compile(r"[ \t]*[*A-Za-z0-9]")

_COLONS: Final = ":\uff1a\ufe55\u2236\ufe13"
_KEY: Final = re.compile(rf"([^{_COLONS}]{{3,40}})([{_COLONS}])(.*)", re.DOTALL)
_UNSEEN: Final = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_BLANK: Final = "\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SEEN: Final = re.compile(rf"[^{_UNSEEN}{_BLANK} \t]")
_DASHES: Final = "\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_LIKE_LETTERS: Final = str.maketrans("АВЕКМНОРСТХаеорсухіѕԁ", "ABEKMHOPCTXaeopcyxisd")
_LIKE_SIGNS: Final = str.maketrans("\uff0f\u2215\u2044\uff0a\u2217", "///**")
# A joiner or a mark of direction belongs to the text beside letters that are not ASCII.
_UNSEEN_INSIDE: Final = re.compile(
    rf"(?<![^\x00-\x7f])[{_UNSEEN}](?![^\x00-\x7f])|[\u00ad\u180e\u200b\u2060-\u2064\ufeff]"
)
_BLANK_INSIDE: Final = re.compile(rf"[{_BLANK}]")
_COLON_TWICE: Final = re.compile(rf"(?:[{_COLONS}][ \t]*)+(?=[/*A-Za-z0-9])")
_CHARACTERS_NAMED: Final = 3


class _Written(NamedTuple):
    """One of several directives of a line."""

    key: Key
    value: str

    @property
    def is_clear(self) -> bool:
        """Whether the value is a whole one."""
        if self.key in RULE_KEYS:
            return not self.value or (self.value[0] in "/*" and not any(map(str.isspace, self.value)))
        if self.key is Key.USER_AGENT:
            name = self.value.partition("/")[0]
            return self.value == "*" or (TOKEN.fullmatch(name) is not None and "(" not in self.value)
        if self.key in (Key.SITEMAP, Key.LICENSE):
            return absolute_url(self.value) == self.value
        return bool(self.value)


class Faults(NamedTuple):
    """Lines with several directives, and with characters that nobody sees or that look like others."""

    several: list[Warned]
    characters: list[Warned]


def faults(file: CheckedFile) -> Faults:
    """Up to LINES_CHECKED of both together."""
    body = file.scan.lines.body
    joined = not file.robots.is_html and _SECOND.search(body) is not None
    odd = not file.robots.is_html and (not body.isascii() or b"::" in body or b": :" in body)
    if not joined and not odd:
        return Faults([], [])
    parts: dict[int, tuple[str, list[_Written]]] = {}
    characters: list[Warned] = []
    for number, whole in enumerate(body.splitlines(), 1):
        line = whole[:LINE_LIMIT]
        if len(parts) + len(characters) == LINES_CHECKED:
            break
        if joined and _SECOND.search(line) is not None:
            text = readable(without_comment(line))
            found = _directives(text)
            if len(found) > 1:
                parts[number] = text, found
                continue
        if odd and (not line.isascii() or b":" in line.partition(b":")[2]):
            warned = _characters(number, readable(without_comment(line)))
            if warned is not None:
                characters.append(warned)
    return Faults(list(_several(file, parts)), characters)


def several_directives_in_one_line(file: CheckedFile) -> Iterator[Warned]:
    """Directives whose line ends were lost."""
    yield from file.once(faults).several


def odd_character(file: CheckedFile) -> Iterator[Warned]:
    """Characters that are not seen, or look like others, and a colon that stands twice."""
    yield from file.once(faults).characters


def _directives(text: str) -> list[_Written]:
    """The directives of a line; fewer than two if it does not begin with one, or has no other."""
    if (mark := BEFORE.match(text)) is not None:
        text = AFTER.sub("", text[mark.end() :]).rstrip(" \t")
    begins = [found.start() for found in _DIRECTIVE.finditer(text, 1) if _is_separate(text, found)]
    first = _first(text[: begins[0]]) if begins else None
    if first is None:
        return []
    found = [first]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        name, _, value = text[begin:end].partition(":")
        key = key_named(name)
        if key is None:
            return []
        # A sign at the end of the line may belong to the value, one between two directives does not.
        found.append(_Written(key, _bare(value, _SEPARATORS if end < len(text) else " \t")))
    return found


def _is_separate(text: str, found: re.Match[str]) -> bool:
    """Whether what looks like the name of a directive within a line is one."""
    name, before, at = found[1].lower(), text[found.start() - 1], found.end()
    if _STARTS.get(name, _ANY).match(text, at) is None:
        return False
    if (
        before in _SEPARATORS
        or text.endswith(_LINE_ENDS, 0, found.start())
        or _EVERYONE.fullmatch(text, 0, found.start())
    ):
        return True
    if name not in _GLUED.split("|") or before == ":":
        return False
    if found[1][0].isupper() and not before.isupper():
        return True
    return text[at : at + 1] in (" ", "\t") and not (name == "allow" and before.isalpha())


def _first(text: str) -> _Written | None:
    name, colon, value = text.partition(":")
    if colon:
        key = key_named(name.strip())
        return None if key is None else _Written(key, _bare(value, _SEPARATORS))
    name, _, value = text.strip(_SEPARATORS).partition(" ")
    key = key_named(name)
    part = None if key is None else _Written(key, _bare(value, _SEPARATORS))
    return part if part is not None and part.value and part.is_clear else None


def _trimmed(text: str) -> str:
    """The text without blanks and characters that are not seen around it."""
    first, last = _SEEN.search(text), _SEEN.search(text[::-1])
    return text[first.start() : len(text) - last.start()] if first and last else ""


def _bare(value: str, around: str) -> str:
    value = value.rstrip(" \t")
    while (tag := value.rfind("<")) >= 0 and _TAG.fullmatch(value, tag):
        value = value[:tag].rstrip(" \t")
    value = value.strip(around)
    while value.endswith(_LINE_ENDS):
        value = value[:-2].strip(around)
    return value


def _several(file: CheckedFile, lines: Mapping[int, tuple[str, list[_Written]]]) -> Iterator[Warned]:
    marks = _marks(file) if lines else []
    alone: set[int] = set()
    for number, (text, parts) in lines.items():
        if parts[0] == (parts[1].key, ""):
            parts = parts[1:]  # its name stands twice
        at = bisect_left(marks, (number, b""))
        if _shares_with_none(parts, marks[max(0, at - 1) : at], lines, alone):
            alone.add(number)
        keeps = _leaves_rules(number, parts, marks[at : at + 2], lines) and (number in alone)
        clear = keeps and all(part.is_clear for part in parts)
        literal = any(end in text for end in _LINE_ENDS)
        why = " '\\n' is text in a file, and ends no line." if literal else ""
        message = f"This line holds several directives, and is read as one.{why} Give each a line of its own."
        yield Warned(number, message, whole_lines(directive(*part) for part in parts) if clear else None)


def _marks(file: CheckedFile) -> list[tuple[int, bytes]]:
    """The numbers and letters of the User-agent lines and rules."""
    found = _RULES_AND_AGENTS.finditer(file.groups.letters)
    return [(file.number(mark.start()), mark[0]) for mark in found]


def _shares_with_none(
    parts: Sequence[_Written],
    above: Sequence[tuple[int, bytes]],
    lines: Mapping[int, tuple[str, list[_Written]]],
    alone: Container[int],
) -> bool:
    """Whether no agent above, without rules as yet, would share the rules of this line; or one of such a line, with the
    same rules.
    """
    if not above or above[0][1] != b"U" or parts[0].key is not Key.USER_AGENT or len(parts) == 1:
        return True
    number, _ = above[0]
    if number not in alone or number not in lines:
        return False
    first, *rest = lines[number][1]
    return rest == parts[1:] and (first.value != "*" or parts[0].value == "*")


def _leaves_rules(
    number: int,
    parts: Sequence[_Written],
    following: Sequence[tuple[int, bytes]],
    lines: Mapping[int, tuple[str, list[_Written]]],
) -> bool:
    """Whether the last agent of this line has the rules of the next ones."""
    last = next((part.key for part in reversed(parts) if part.key in (*RULE_KEYS, Key.USER_AGENT)), None)
    if last is not Key.USER_AGENT:
        return True
    below = [mark for mark in following if mark[0] > number]
    return bool(below) and below[0][1] != b"U" and below[0][0] not in lines


def _characters(number: int, text: str) -> Warned | None:
    found = _KEY.match(text)
    if found is None:
        return None
    name, colon, value = found.groups()
    bare = _trimmed(_UNSEEN_INSIDE.sub("", name))
    bare = re.sub(f"[{_DASHES}]", "-", unicodedata.normalize("NFKC", bare)).translate(_LIKE_LETTERS)
    key = key_named(bare)
    if key is None or (key is not Key.USER_AGENT and not bare.isascii()):
        return None
    stripped = _trimmed(value)
    twice = _COLON_TWICE.match(stripped)
    stripped = stripped[twice.end() :] if twice else stripped
    meant = _UNSEEN_INSIDE.sub("", stripped)
    meant = meant[:1].translate(_LIKE_SIGNS) + meant[1:]
    same = colon == ":" and bare == name.strip(" \t") and meant == value.strip(BLANKS.decode())
    if same and (_BLANK_INSIDE.search(meant) is None or key not in (*RULE_KEYS, Key.USER_AGENT)):
        return None
    odd = [char for char in dict.fromkeys(text) if char not in bare + meant + ": \t" or _BLANK_INSIDE.match(char)]
    named = ", ".join(f"U+{ord(char):04X}" for char in odd[:_CHARACTERS_NAMED])
    if named:
        what = f"{quote(text)} holds characters that are not seen or look like others: {named}."
    else:
        what = f"A colon stands twice in {quote(text)}."
    instead = None if _BLANK_INSIDE.search(meant) else directive(key, meant)
    return Warned(number, f"{what} {f'Write {quote(instead)}.' if instead else 'Type the line again.'}", instead)
