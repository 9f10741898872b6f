"""Checks of keys: misspelled, read only by some crawlers, or read by none."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

from app.lint.advice import Warned, directive, name_of, quote, whole
from app.lint.checked_file import CheckedFile
from app.robots.dialects.google import GOOGLE
from app.robots.lines import BLANKS, RULE_KEYS, Form, Key, codes_of, key_of

_ODD: Final = codes_of(set(Key) - {Key.BLANK, Key.UNKNOWN}, (Form.TOLERATED,))
_BY_PREFIX: Final = codes_of(Key, (Form.BY_PREFIX,)) + codes_of({Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING})
_UNKNOWN: Final = codes_of({Key.UNKNOWN}) + codes_of({Key.SITEMAP}, (Form.BY_PREFIX,))
_GROUPS: Final = {ord("A"): Key.ALLOW, ord("D"): Key.DISALLOW, ord("U"): Key.USER_AGENT}

_MISSPELT: Final[Sequence[Key]] = [
    *(Key.USER_AGENT, Key.DISALLOW, Key.ALLOW, Key.SITEMAP, Key.CRAWL_DELAY, Key.REQUEST_RATE),
    *(Key.VISIT_TIME, Key.CONTENT_SIGNAL, Key.CONTENT_USAGE, Key.CLEAN_PARAM),
]
"""Keys that an unknown key may be a misspelling of."""

_LONGEST_KEY: Final = 30
"""Characters of the longest key that is compared with these."""


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
        yield Warned(line, f"Only some crawlers read {quote(key)} as it is meant.{_write(instead)}", instead)


def key_read_by_prefix(file: CheckedFile) -> Iterator[Warned]:
    """Keys that Google reads as another key by their prefix (spec B6)."""
    letters = file.scan.lines.codes.translate(GOOGLE.grammar.letters)
    for position in file.positions(_BY_PREFIX):
        meant = _GROUPS.get(letters[position])
        if meant is None:
            continue
        key, value = file.scan.directive(position).key, file.scan.lines.value(position)
        read = f"Google reads {quote(file.scan.text(position))} as {name_of(meant)}, by the beginning of its key."
        if key is Key.UNKNOWN:
            instead = directive(meant, value)
            message = f"{read} No other crawler that we know does.{_write(instead)}"
        else:
            instead = _training_preference(meant, value)
            message = f"{read} A Content-Signal or Content-Usage line states the same for all crawlers, and no rule."
        yield Warned(file.number(position), message, instead)


def _training_preference(meant: Key, path: bytes) -> str | None:
    """The line that replaces an AllowAITraining or DisallowAITraining line with this path."""
    if path in (b"/", b"/*", b"*"):
        return directive(Key.CONTENT_SIGNAL, "ai-train=yes" if meant is Key.ALLOW else "ai-train=no")
    if not path.startswith(b"/"):
        return None
    return directive(Key.CONTENT_USAGE, path + (b" train-ai=y" if meant is Key.ALLOW else b" train-ai=n"))


def unknown_key(file: CheckedFile) -> Iterator[Warned]:
    """Lines that no crawler reads, as far as we know (spec I7); an HTML page has no other warning."""
    for position in () if file.robots.is_html else file.positions(_UNKNOWN):
        written, line = file.scan.text(position), file.number(position)
        key, colon, value = written.partition(":")
        if colon:
            yield _unread_key(line, key.rstrip(), value, by_google=key_of(file.scan.lines.codes[position])[1])
        else:
            yield _unread_text(line, written)


def _unread_key(line: int, key: str, value: str, by_google: Form) -> Warned:
    but = " but Google's" if by_google is Form.BY_PREFIX else ""
    message = f"No robot that we know{but} reads {quote(key)}."
    meant = _close_key(key)
    instead = None if meant is None else directive(meant, value.strip(BLANKS.decode()))
    return Warned(line, message + (f" Did you mean {name_of(meant)}?" if instead and meant else ""), instead)


def _unread_text(line: int, written: str) -> Warned:
    first, _, rest = written.replace("\t", " ").partition(" ")
    meant = _close_key(first)
    if meant is not None and rest:
        value = rest.strip(BLANKS.decode())
        instead = directive(meant, value) if meant not in RULE_KEYS or " " not in value else None
        message = f"There is no colon in {quote(written)}, so no robot that we know reads it.{_write(instead)}"
        return Warned(line, message, instead)
    message = f"No robot that we know reads {quote(written)}. Begin the line with '#' if it is a comment."
    return Warned(line, message, whole(f"# {written}") if written[0].isalnum() else None)


def _close_key(key: str) -> Key | None:
    """The key that this one may be a misspelling of."""
    if len(key) > _LONGEST_KEY:
        return None
    close = get_close_matches(key.lower().replace(" ", "-"), list(map(str, _MISSPELT)), n=1, cutoff=0.8)
    return Key(close[0]) if close else None
