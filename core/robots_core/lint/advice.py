"""Warnings: their text, quoted lines, and replacements."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from robots_core.robots.lines import Key, readable

ADVICE_QUOTED: Final = 80
"""Characters of a line or value that a message quotes."""

INSTEAD_LIMIT: Final = 2000
"""Characters of the longest replacement; a longer one is left out."""

_NAMES: Final[Mapping[Key, str]] = {
    Key.CONTENT_SIGNAL: "Content-Signal",
    Key.CONTENT_USAGE: "Content-Usage",
    Key.DISALLOW_AI_TRAINING: "DisallowAITraining",
    Key.ALLOW_AI_TRAINING: "AllowAITraining",
    Key.LLM_POLICY: "LLM-policy",
    Key.LLMS: "LLMs",
}


class Warned(NamedTuple):
    """A finding of a check: a line (1-based), what is wrong with it, and what to write instead.

    `instead` is one or more lines, without a comment and the last line end; None if there is no replacement.
    """

    line: int
    message: str
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What the owner of a file should know about one of its lines; `instead` is what to write in place of the line."""

    code: str
    line: int
    message: str
    instead: str | None


def name_of(key: Key) -> str:
    """A key as site owners write it."""
    return _NAMES.get(key) or str(key).capitalize()


def show(value: bytes) -> str:
    """A value as text, shortened and in quotes."""
    return quote(readable(value))


def quote(text: str) -> str:
    """A text shortened to ADVICE_QUOTED characters, in quotes."""
    return repr(text if len(text) <= ADVICE_QUOTED else text[:ADVICE_QUOTED] + "…")


def directive(key: Key, value: bytes | str) -> str | None:
    """The line with this key and value, or None (see `whole`)."""
    text = value if isinstance(value, str) else readable(value)
    return whole(f"{name_of(key)}: {text}" if text else f"{name_of(key)}:")


def whole_lines(lines: Iterable[str | None]) -> str | None:
    """Several lines as one replacement; None if one of them is None, or if they are too long together."""
    found = list(lines)
    text = "\n".join(filter(None, found))
    return text if all(found) and len(text) <= INSTEAD_LIMIT else None


def whole(line: str) -> str | None:
    """The line; None if it is too long, not UTF-8, or has invisible characters."""
    return line if len(line) <= INSTEAD_LIMIT and line.isprintable() and "\ufffd" not in line else None
