"""Checks of keys: misspelled, read only by some crawlers, or read by none."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import chain
from typing import Final, NamedTuple

from robots_core.lint.advice import Warned, directive, name_of, quote, whole, whole_lines
from robots_core.lint.checked_file import CheckedFile
from robots_core.robots.dialects.google import GOOGLE
from robots_core.robots.lines import AI_TRAINING_KEYS, BLANKS, RULE_KEYS, Form, Key, codes_of, key_of, prefixes_of
from robots_core.robots.robots_txt import absolute_url

_ODD: Final = codes_of(set(Key) - {Key.BLANK, Key.UNKNOWN}, (Form.TOLERATED,))
_BY_PREFIX: Final = codes_of(Key, (Form.BY_PREFIX,)) + codes_of(AI_TRAINING_KEYS)
_UNKNOWN: Final = codes_of({Key.UNKNOWN}) + codes_of({Key.SITEMAP}, (Form.BY_PREFIX,))
_GROUPS: Final = {ord("A"): Key.ALLOW, ord("D"): Key.DISALLOW, ord("U"): Key.USER_AGENT}

_MISSPELT: Final[Sequence[Key]] = [
    *(Key.USER_AGENT, Key.DISALLOW, Key.ALLOW, Key.SITEMAP, Key.CRAWL_DELAY, Key.REQUEST_RATE),
    *(Key.VISIT_TIME, Key.CONTENT_SIGNAL, Key.CONTENT_USAGE, Key.CLEAN_PARAM),
]
"""Keys that an unknown key may be a misspelling of."""

BEFORE: Final = re.compile(r"(?:<[a-z]+/?>|[-•·*>+\"'`“«]|[0-9]{1,3}[.)])[ \t]*", re.IGNORECASE)
AFTER: Final = re.compile(r"(?:</?[a-z]+/?>|[\"'`”»])$", re.IGNORECASE)
"""Signs of a list, a quotation or a page around a directive."""

_LONGEST_KEY: Final = 30
"""Characters of the longest key that is compared with these."""

_SAME: Final = ("", "all")
"""What may follow the name of a key, but for signs, without the line being about something else, such as AI."""

_TRAINING: Final = ("aitraining", "training")
_ABOUT_AI: Final = ("ai", "llm", "ml", "genai", "training", "inference")


class _OddLine(NamedTuple):
    """A line whose key only some crawlers read, as written, and the line that all of them read."""

    line: int
    written: str
    instead: str | None


def _odd_lines(file: CheckedFile) -> tuple[list[_OddLine], list[_OddLine]]:
    """The lines without a colon, and those with a misspelled key."""
    without: list[_OddLine] = []
    misspelt: list[_OddLine] = []
    for position in file.positions(_ODD):
        written, meant = file.scan.text(position), file.scan.directive(position)
        instead = directive(meant.key, meant.value)
        (misspelt if ":" in written else without).append(_OddLine(meant.line, written, instead))
    return without, misspelt


def _write(instead: str | None) -> str:
    return "" if instead is None else f" Write {quote(instead)}."


def no_colon(file: CheckedFile) -> Iterator[Warned]:
    """Lines without a colon, which most crawlers still read (spec B5)."""
    for line, written, instead in file.once(_odd_lines)[0]:
        yield Warned(line, f"There is no colon in {quote(written)}.{_write(instead)}", instead)


def typo_key(file: CheckedFile) -> Iterator[Warned]:
    """Misspellings of the closed list (spec B6)."""
    for line, written, instead in file.once(_odd_lines)[1]:
        key = written.partition(":")[0].rstrip()
        yield Warned(line, f"Only some crawlers read {quote(key)} as intended.{_write(instead)}", instead)


def key_read_by_prefix(file: CheckedFile) -> Iterator[Warned]:
    """Keys that Google reads as another key by their prefix (spec B6)."""
    letters = file.scan.lines.codes.translate(GOOGLE.grammar.letters)
    for position in file.positions(_BY_PREFIX):
        meant = _GROUPS.get(letters[position])
        if meant is None:
            continue
        key, value = file.scan.directive(position).key, file.scan.lines.value(position)
        written = file.scan.text(position)
        rest = _behind_name(written, meant) if key is Key.UNKNOWN else _TRAINING[0]
        message = f"Google reads {quote(written)} as {name_of(meant)}, by the beginning of its key."
        instead = None
        if rest in _SAME:
            instead = directive(meant, value)
            message += f" No other crawler that we know does.{_write(instead)}"
        elif rest in _TRAINING:
            instead = _training_preference(file, position, meant)
            message += " A Content-Signal or Content-Usage line states the same for all crawlers, and no rule."
        elif rest.startswith(_ABOUT_AI):
            message += " No other crawler that we know reads it. Content-Signal states what AI may use, and is no rule."
        else:
            message += " No other crawler that we know reads it."
        yield Warned(file.number(position), message, instead)


def _behind_name(written: str, meant: Key) -> str:
    """The letters of a line's key behind the name that Google reads, in lower case."""
    key = _letters((written.partition(":")[0] if ":" in written else written.split()[0]).lower())
    return key.removeprefix(next(name for name in map(_letters, prefixes_of(meant)) if key.startswith(name)))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _training_preference(file: CheckedFile, position: int, meant: Key) -> str | None:
    """The line that replaces a line about training.

    None if other lines about usage would decide differently with it: among lines with paths the longest counts.
    """
    path = file.scan.lines.value(position)
    stated = file.positions(codes_of({*AI_TRAINING_KEYS, Key.CONTENT_USAGE}))
    if any(at != position for at in stated) or b" " in path or b"\t" in path:
        return None
    if path in (b"/", b"/*", b"*"):
        return directive(Key.CONTENT_SIGNAL, "ai-train=yes" if meant is Key.ALLOW else "ai-train=no")
    if not path.startswith(b"/"):
        return None
    return directive(Key.CONTENT_USAGE, path + (b" train-ai=y" if meant is Key.ALLOW else b" train-ai=n"))


def unknown_key(file: CheckedFile) -> Iterator[Warned]:
    """Lines that no crawler reads, as far as we know (spec I7); an HTML page has no other warning."""
    if file.robots.is_html:
        return
    read = ((file.number(position), position) for position in file.positions(_UNKNOWN))
    lines: list[tuple[int, int | str]] = sorted(chain(read, file.unread), key=lambda it: it[0])
    for line, at in lines:
        written = at if isinstance(at, str) else file.scan.text(at)
        key, colon, value = written.partition(":")
        if isinstance(at, str) or not colon:
            yield _unread_text(line, written)
        else:
            yield _unread_key(line, key.rstrip(), value, by_google=key_of(file.scan.lines.codes[at])[1])


def _unread_key(line: int, key: str, value: str, by_google: Form) -> Warned:
    but = " but Google's" if by_google is Form.BY_PREFIX else ""
    message = f"No crawler that we know of{but} reads {quote(key)}."
    mark = BEFORE.match(key)
    meant = close_key(key[mark.end() :] if mark else key)
    value = value.strip(BLANKS.decode())
    closing = AFTER.search(value) if mark else None
    instead = None if meant is None else directive(meant, value[: closing.start()].rstrip(" \t") if closing else value)
    return Warned(line, message + (f" Did you mean {name_of(meant)}?" if instead and meant else ""), instead)


def _unread_text(line: int, written: str) -> Warned:
    first, _, rest = written.replace("\t", " ").partition(" ")
    meant = close_key(first)
    if meant is not None and rest:
        instead = _with_colon(meant, rest.strip(BLANKS.decode()))
        message = f"There is no colon in {quote(written)}, so no crawler that we know of reads it.{_write(instead)}"
        return Warned(line, message, instead)
    message = f"No crawler that we know of reads {quote(written)}. Begin the line with '#' if it is a comment."
    return Warned(line, message, whole(f"# {written}") if written[0].isalnum() else None)


def _with_colon(key: Key, value: str) -> str | None:
    """The line or lines with this key and value; None if the value may be prose, or more than one thing."""
    if key in RULE_KEYS:
        paths = value.split()
        return whole_lines(directive(key, path) for path in paths) if all(it[0] in "/*" for it in paths) else None
    if key is Key.USER_AGENT and len(value.split()) > 1:
        return None
    if key is Key.SITEMAP and absolute_url(value) != value:
        return None
    return directive(key, value)


def key_named(name: str) -> Key | None:
    """The key that a name is, or may be a misspelling of; None for text and notes."""
    try:
        key = Key(name.lower())
    except ValueError:
        return close_key(name)
    return None if key in (Key.UNKNOWN, Key.BLANK, Key.COMMENT) else key


def close_key(key: str) -> Key | None:
    """The key that this one may be a misspelling of."""
    if len(key) > _LONGEST_KEY:
        return None
    written = key.lower().replace(" ", "-")
    close = get_close_matches(written, list(map(str, _MISSPELT)), n=1, cutoff=0.8)
    if not close or (Key(close[0]) in _GROUPS.values() and _has_more(written, close[0])):
        return None
    return Key(close[0])


def _has_more(written: str, name: str) -> bool:
    """Whether a key has more than one letter that the name does not have: `ai-disallow` is no misspelt `disallow`."""
    edits = SequenceMatcher(None, name, written, autojunk=False).get_opcodes()
    return sum(max(0, (end - begin) - (stop - start)) for _, start, stop, begin, end in edits) > 1
