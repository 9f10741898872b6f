"""Sitemap, License, Content-Signal and Content-Usage (spec B14, I)."""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from robots_core.lint.advice import Warned, directive, name_of, quote, show, whole_lines
from robots_core.lint.checked_file import CheckedFile
from robots_core.robots.agents import STAR
from robots_core.robots.groups import RULE_LETTERS
from robots_core.robots.lines import Directive, Key, codes_of, readable
from robots_core.robots.robots_txt import absolute_url
from robots_core.robots.usage import read_dictionary, read_simple_dictionary, signal_parts, split_path

_URLS: Final = re.compile(r"\s+|[,;](?=https?://)", re.IGNORECASE)
_SCHEME_TWICE: Final = re.compile(r"https?:?/{0,2}(https?://[^\s/:]+\.\S*)", re.IGNORECASE)
_HOST_FIRST: Final = re.compile(r"(?:www\.|//)[^\s/]++\S*+")

_PURPOSES: Final = ("search", "ai-input", "ai-train")
_USES: Final = ("immediate", "reference", "full")
_CATEGORIES: Final = ("train-ai", "search")
_LONGEST_WORD: Final = 30
_PARTS: Final = 20
"""How many parts of a line are compared with known words."""

_NAMED: Final = 3
"""Crawlers that a message names."""

_LIST: Final = bytes.maketrans(b";", b",")
_QUOTES: Final = "\"'`“”"

_YES: Final = frozenset({"yes", "y", "true", "1", "allow", "allowed"})
_NO: Final = frozenset({"no", "n", "false", "0", "deny", "disallow", "disallowed"})


def not_absolute(key: Key) -> Callable[[CheckedFile], Iterator[Warned]]:
    """A check for lines with this key whose value is not one absolute URL (spec B14, I6)."""

    def check(file: CheckedFile) -> Iterator[Warned]:
        for line, _, value in file.lines(key):
            several = _several(readable(value))
            if several:
                message = f"{name_of(key)} has one URL, and {show(value)} is read as a single one."
                instead = whole_lines(directive(key, url) for url in several)
                yield Warned(line, f"{message} Give each URL a line of its own.", instead)
            elif twice := _SCHEME_TWICE.fullmatch(readable(value)):
                instead = directive(key, twice[1])
                yield Warned(line, f"A scheme stands twice in {show(value)}. Write {instead!r}.", instead)
            elif absolute_url(readable(value)) is None:
                url = _absolute(readable(value), file.site)
                instead = None if url is None else directive(key, url)
                write = f"Write {instead!r}." if instead else "Write it with scheme and host: https://host/path."
                yield Warned(
                    line, f"{name_of(key)} {show(value)} is not an absolute URL, so it is ignored. {write}", instead
                )

    return check


def _several(value: str) -> list[str]:
    """The URLs of a list; empty unless all of several words are absolute URLs."""
    words = [word.strip(",;") for word in _URLS.split(value)]
    return words if len(words) > 1 and all(absolute_url(word) for word in words) else []


def _absolute(value: str, site: str | None) -> str | None:
    """The intended URL, if its host is known."""
    if _HOST_FIRST.fullmatch(value):
        return f"https://{value.removeprefix('//')}"
    if site is None or not value or any(char.isspace() for char in value) or ":" in value:
        return None
    if value.lower().startswith(("http/", "https/")):  # a scheme without its colon
        return None
    return f"{site}/{value.removeprefix('/')}"


def usage_malformed(file: CheckedFile) -> Iterator[Warned]:
    """Preferences with unknown words (spec I9)."""
    for line in file.lines(Key.CONTENT_USAGE, Key.CONTENT_SIGNAL):
        usage = line.key is Key.CONTENT_USAGE
        if _usage_understood(line) if usage else _signal_understood(line):
            continue
        known = "train-ai and search, each y or n" if usage else "search, ai-input and ai-train, each yes or no"
        instead = _usage_meant(line.value) if usage else _signal_meant(line.value)
        write = f" Write {instead!r}." if instead else ""
        message = f"Not all of {show(line.value)} is understood. The words that are known are {known}.{write}"
        yield Warned(line.line, message, instead)


def signal_in_last_group(file: CheckedFile) -> Iterator[Warned]:
    """A Content-Signal below all other lines of the file, which is the last group's (spec I2)."""
    spans, letters = file.groups.spans, file.groups.letters
    last = len(spans) - 1
    if last < 0 or STAR in file.tokens.get(last, {STAR}):
        return
    signals = file.positions(codes_of({Key.CONTENT_SIGNAL}))
    if len(signals) == 1 and _is_below_rules(letters, *spans[last], signals[0]):
        names = sorted(readable(agent.value) for agent in file.agents if agent.group == last)
        shown = ", ".join(map(quote, names[:_NAMED])) + (" and others" if len(names) > _NAMED else "")
        message = f"This Content-Signal belongs to the last group, so it binds only {shown}."
        yield Warned(
            file.number(signals[0]), f"{message} Put it below 'User-agent: *' if it is meant for every crawler."
        )


def _is_below_rules(letters: bytes, start: int, end: int, position: int) -> bool:
    """Whether a member of a group stands below its rules."""
    if not start <= position < end or any(letter in RULE_LETTERS for letter in letters[position:end]):
        return False
    return any(letter in RULE_LETTERS for letter in letters[start:position])


def _usage_understood(line: Directive) -> bool:
    preferences = split_path(line.value)[1]
    parsed = read_simple_dictionary(preferences)
    parsed = read_dictionary(preferences) if parsed is None else parsed
    return bool(parsed) and all(
        category in _CATEGORIES and use in ("y", "n") for category, use in (parsed or {}).items()
    )


def _signal_understood(line: Directive) -> bool:
    return all(
        choice in _USES if purpose == "use" else purpose in _PURPOSES and choice in ("yes", "no")
        for purpose, choice in signal_parts(line.value)
    )


def _usage_meant(value: bytes) -> str | None:
    path, preferences = _split_any_path(value)
    path = path and _from_root(path)
    meant = _meant(preferences, _CATEGORIES, "y", "n")
    return None if meant is None else directive(Key.CONTENT_USAGE, f"{readable(path)} {meant}".strip())


def _split_any_path(value: bytes) -> tuple[bytes, bytes]:
    """As `split_path`, with a path that begins otherwise, such as `*.pdf`."""
    first, blank, rest = value.partition(b" ")
    is_path = blank and b"=" not in first and (b"/" in first or first[0] in b"*.")
    return (first, rest.strip()) if is_path else split_path(value)


def _from_root(path: bytes) -> bytes:
    """The path that matches as one without its first slash is meant to."""
    return path if path.startswith(b"/") else b"/*" + path if path.startswith(b".") else b"/" + path


def _signal_meant(value: bytes) -> str | None:
    path, preferences = _split_any_path(value)
    if path:
        # A Content-Signal has no path, and without one it would speak for the whole site.
        meant = _meant(preferences, _PURPOSES, "y", "n")
        if meant is None or "ai-input" in meant:
            return None
        return directive(Key.CONTENT_USAGE, f"{readable(_from_root(path))} {meant.replace('ai-train', 'train-ai')}")
    meant = _meant(value, _PURPOSES, "yes", "no")
    return None if meant is None else directive(Key.CONTENT_SIGNAL, meant)


def _meant(value: bytes, known: Sequence[str], yes: str, no: str) -> str | None:
    """The preferences with each word replaced by the closest known one; None if any has none."""
    value = value.translate(_LIST)
    if value.count(b",") >= _PARTS:
        return None
    parts = [part for part in signal_parts(value) if part != ("", "")]
    if not parts:
        return None
    written: list[str] = []
    for purpose, choice in ((purpose.strip(_QUOTES), choice.strip(_QUOTES)) for purpose, choice in parts):
        if any(sign in purpose for sign in " \t/*"):
            return None  # not a word
        close = get_close_matches(purpose[:_LONGEST_WORD], known, n=1, cutoff=0.7)
        turned = "-".join(reversed(purpose[:_LONGEST_WORD].split("-")))
        meant = turned if turned in known else close[0] if close else None
        if meant is None or choice not in _YES | _NO:
            return None
        written.append(f"{meant}={yes if choice in _YES else no}")
    return ", ".join(written)
