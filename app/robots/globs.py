"""The globs of Robot-version 2.0: `*`, `?`, `\\c`, `[set]`, `[!set]`, ranges, against the whole URL (spec F10, F11)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.robots.paths import Wildcard

_ALPHABET = 0x80  # what `paths.glob_subject` returns is ASCII
_ANY = (1 << _ALPHABET) - 1
_BITS = tuple(1 << octet for octet in range(_ALPHABET))
# For each octet the table that turns it into the digit 1 and all others into 0.
_DIGITS = tuple(b"0" * octet + b"1" + b"0" * (0xFF - octet) for octet in range(_ALPHABET))

_Place: TypeAlias = int | None
"""The characters that one place takes, a bit each; None is a star."""


def read_glob(pattern: str) -> "Wildcard | Glob":
    """A normalised 2.0 pattern, ready to match whole subjects; any text is one."""
    places = list(_places(pattern))
    pieces = _pieces(places)
    outline = Wildcard.of(pieces, anchored=True)
    return outline if len(pieces) == 1 + places.count(None) else Glob(outline, tuple(_steps(places)))


@dataclass(frozen=True, slots=True)
class Glob:
    """A glob with `?` or sets: `outline`, with a star in place of each, matches all that it does, and more."""

    outline: Wildcard
    steps: tuple[_Place, ...]

    def matches(self, subject: str) -> bool:
        return self.outline.matches(subject) and self.fits(Subject(subject))

    def fits(self, subject: "Subject") -> bool:
        """Whether it matches the whole of `subject`; no pattern makes this go back.

        All ends that the pattern so far can have are followed at once, one bit each: it costs as many operations on
        integers of the subject's length as the pattern has places.
        """
        ends = 1
        for step in self.steps:
            if step is None:
                ends = -(ends & -ends)  # the first, and every one behind it
            elif step < 0:
                ends <<= -step
            else:
                ends = (ends & subject.places_of(step)) << 1
            if not ends:
                return False
        return bool(ends >> len(subject.text) & 1)


class Subject:
    """A normalised subject while globs are matched against it: where it has which characters is found once."""

    def __init__(self, text: str) -> None:
        self.text = text
        backwards = text[::-1].encode("ascii")
        self._everywhere = (1 << len(text)) - 1
        self._characters = 0  # those it has, a bit each
        self._places: dict[int, int] = {0: 0}
        for octet in set(backwards):
            self._characters |= _BITS[octet]
            self._places[_BITS[octet]] = int(backwards.translate(_DIGITS[octet]), 2)

    def places_of(self, characters: int) -> int:
        """The places where one of `characters` stands, a bit each."""
        characters &= self._characters
        places = self._places.get(characters)
        if places is None:
            others = self._characters ^ characters
            if others.bit_count() < characters.bit_count():
                places = self._everywhere ^ self._sum(others)
            else:
                places = self._sum(characters)
            self._places[characters] = places
        return places

    def _sum(self, characters: int) -> int:
        places = 0
        while characters:
            places |= self._places[characters & -characters]
            characters &= characters - 1
        return places


def _steps(places: Sequence[_Place]) -> Iterator[_Place]:
    """The places, but each run of those that take anything as one negative number: its length."""
    run = 0
    for place in places:
        if place == _ANY:
            run += 1
            continue
        if run:
            yield -run
            run = 0
        yield place
    if run:
        yield -run


def _pieces(places: Sequence[_Place]) -> list[str]:
    """The text between stars, marks and sets, in order; of two of those side by side, the empty text."""
    pieces: list[list[str]] = [[]]
    for place in places:
        if place is not None and place.bit_count() == 1:
            pieces[-1].append(chr(place.bit_length() - 1))
        else:
            pieces.append([])
    return ["".join(piece) for piece in pieces]


def _places(pattern: str) -> Iterator[_Place]:
    at = 0
    last_close = pattern.rfind("]")
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            yield None
        elif character == "?":
            yield _ANY
        elif character == "[" and (end := _set_end(pattern, at, last_close)) > 0:
            yield _read_set(pattern, at, end)
            at = end + 1
        else:
            if character == "\\" and at < len(pattern):
                character = pattern[at]
                at += 1
            yield _BITS[ord(character)]


def _set_end(pattern: str, at: int, last_close: int) -> int:
    """Where the set ends whose `[` stands before `at`; -1 where it never does. A `]` that stands first is a member."""
    first = at + pattern.startswith(("!", "^"), at)
    return pattern.find("]", first + 1) if first < last_close else -1


def _read_set(pattern: str, at: int, end: int) -> int:
    negated = pattern[at] in "!^"
    place = at + negated
    members = 0
    while place < end:
        low = high = ord(pattern[place])
        if pattern[place + 1] == "-" and place + 2 < end:
            high = ord(pattern[place + 2])
            place += 2
        place += 1
        if low <= high:
            members |= (1 << high + 1) - (1 << low)
    return _ANY ^ members if negated else members
