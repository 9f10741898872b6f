"""The globs of Robot-version 2.0: `*`, `?`, `\\c`, `[set]`, `[!set]`, ranges, against the whole URL (spec F10, F11)."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from app.robots.paths import Wildcard

_ALPHABET = frozenset(map(chr, range(0x80)))  # what `paths.glob_subject` returns is made of

_Element: TypeAlias = frozenset[str] | None
"""The characters that one place takes; None is a star."""


def read_glob(pattern: str) -> "Wildcard | Glob":
    """A normalised 2.0 pattern, ready to match whole subjects; any text is one."""
    elements = list(_elements(pattern))
    pieces = _pieces(elements)
    if all(element is None or len(element) == 1 for element in elements):
        return Wildcard.of(pieces, anchored=True)
    return Glob(elements)


class Glob:
    """A glob with `?` or sets, matched by following all its states at once, one bit each: nothing makes it go back.

    State i is "the first i places are matched"; a star keeps the state that stands before it alive.
    """

    def __init__(self, elements: Sequence[_Element]) -> None:
        self._places: list[frozenset[str]] = []
        self._loops = 0
        for element in elements:
            if element is None:
                self._loops |= 1 << len(self._places)
            else:
                self._places.append(element)
        self.pieces = tuple(_pieces(elements))
        """Texts that every subject it matches holds."""

    @cached_property
    def _takes(self) -> dict[str, int]:
        """For each character, the places that take it, as bits."""
        bits: dict[str, list[str]] = {character: [] for character in _ALPHABET}
        for place in reversed(self._places):
            for character, taken in bits.items():
                taken.append("1" if character in place else "0")
        return {character: int("0" + "".join(taken), 2) for character, taken in bits.items()}

    def matches(self, subject: str) -> bool:
        if not all(piece in subject for piece in self.pieces):
            return False
        takes, loops = self._takes, self._loops
        states = 1
        for character in subject:
            states = (states & takes[character]) << 1 | states & loops
            if not states:
                return False
        return bool(states >> len(self._places) & 1)


def _pieces(elements: Sequence[_Element]) -> list[str]:
    """The text between stars, marks and sets, in order; of two of those side by side, the empty text."""
    pieces: list[list[str]] = [[]]
    for element in elements:
        if element is not None and len(element) == 1:
            pieces[-1].extend(element)
        else:
            pieces.append([])
    return ["".join(piece) for piece in pieces]


def _elements(pattern: str) -> Iterator[_Element]:
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            yield None
        elif character == "?":
            yield _ALPHABET
        elif character == "[" and (found := _read_set(pattern, at)) is not None:
            members, at = found
            yield members
        else:
            if character == "\\" and at < len(pattern):
                character = pattern[at]
                at += 1
            yield frozenset(character)


def _read_set(pattern: str, at: int) -> tuple[frozenset[str], int] | None:
    """The members of the set whose `[` stands before `at`, and where it ends; None where it never ends."""
    negated = pattern.startswith(("!", "^"), at)
    place = at + negated
    end = pattern.find("]", place + 1)  # a `]` that stands first is a member
    if end < 0:
        return None
    members: set[str] = set()
    while place < end:
        if pattern[place + 1] == "-" and place + 2 < end:
            members.update(map(chr, range(ord(pattern[place]), ord(pattern[place + 2]) + 1)))
            place += 3
        else:
            members.add(pattern[place])
            place += 1
    return _ALPHABET - members if negated else frozenset(members), end + 1
