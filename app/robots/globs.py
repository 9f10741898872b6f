"""The globs of Robot-version 2.0: `*`, `?`, `\\c`, `[set]`, `[!set]`, ranges, against the whole URL (spec F10, F11)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from app.robots.paths import Wildcard

ALPHABET = 0x80  # what `paths.glob_subject` returns is ASCII
ANY = (1 << ALPHABET) - 1
_BITS = tuple(1 << octet for octet in range(ALPHABET))
# For each octet the table that turns it into the digit 1 and all others into 0.
_DIGITS = tuple(b"0" * octet + b"1" + b"0" * (0xFF - octet) for octet in range(ALPHABET))

_KEPT = 1 << 25
"""Bits of sets of places that are kept while a subject is matched: a file can name tens of thousands of sets."""
_FEW = 8
"""Kinds of runs of a stretch that are looked for as they come."""
_OUTLINED = 8
"""Texts of an outline between its first and its last: of a pattern with thousands, more of them would cost too much."""

_Place: TypeAlias = int | None
"""The characters that one place takes, a bit each; None is a star."""


def read_glob(pattern: str) -> "Wildcard | Glob":
    """A normalised 2.0 pattern, ready to match whole subjects; any text is one."""
    places = list(_places(pattern))
    pieces = _pieces(places)
    if len(pieces) == 1 + places.count(None):
        return Wildcard.of(pieces, anchored=True)
    first, *texts, last = pieces
    outline = Wildcard.of([first, *[text for text in texts if text][:_OUTLINED], last], anchored=True)
    opening, *between = _stretches(places)
    closing = between.pop() if between else ()
    return Glob(
        outline,
        len(opening),
        _more_than_text(opening),
        tuple((len(stretch), _runs(stretch)) for stretch in between if stretch),
        len(closing),
        _more_than_text(closing),
        None not in places,
    )


Stretch: TypeAlias = tuple[int, ...]
"""Places with no star between them: the characters that each takes, a bit each."""
Run: TypeAlias = int
"""So many places side by side that take the same: the characters, a bit each, and above them how many more than one."""
Runs: TypeAlias = tuple[tuple[Run, tuple[int, ...]], ...]
"""Each kind of run, and how far behind where their stretch begins there is one."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A glob with `?` or sets: `outline`, a few of its texts with stars between them, matches all that it does.

    What stands before its first star is `begin` characters long, what stands behind its last `back`; where that is more
    than a text, it is `opening` and `closing`. `between` are the stretches between stars, each as its length and what
    it asks for. `whole`: it has no star.
    """

    outline: Wildcard
    begin: int
    opening: Stretch
    between: tuple[tuple[int, Runs], ...]
    back: int
    closing: Stretch
    whole: bool

    def matches(self, subject: str) -> bool:
        return self.outline.matches(subject) and self.fits(Subject(subject))

    def fits(self, subject: "Subject") -> bool:
        """Whether it matches the whole of `subject`, of which its outline is known to match; no pattern makes this go
        back.

        What has a fixed place is compared there. Each stretch between stars is taken at its first place, for a later
        one could only leave less for the rest; it is found by following all places where it can begin at once, a bit
        each: as many operations on integers of the subject's length as the stretch has runs.
        """
        at, until = self.begin, subject.length - self.back
        if at > until or (self.whole and at != until):
            return False
        if not (subject.begins(self.opening) and subject.ends(self.closing)):
            return False
        known = subject.known
        for length, runs in self.between:
            begins = -1  # all places, the first of them at `at`
            # What stands at few places leaves the fewest, and soon none: that spares most of thousands of runs.
            for run, offsets in runs if len(runs) < _FEW else sorted(runs, key=subject.count):
                places = known.get(run)
                places = subject.places(run) if places is None else places
                for offset in offsets:
                    begins &= places >> offset + at
                    if not begins:
                        return False
            at += (begins & -begins).bit_length() - 1 + length
            if at > until:
                return False
        return True


class Subject:
    """A normalised subject while globs are matched against it: where it has which characters is found once."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        self._everywhere = (1 << len(text)) - 1
        self.known: dict[int, int] = {0: 0}
        self._counts: dict[int, int] = {}
        self._room = _KEPT // (len(text) + 400)
        self._octets = text.encode("ascii")
        self._backwards = self._octets[::-1]
        self._characters = 0  # those it has, a bit each
        for octet in set(self._octets):
            self._characters |= _BITS[octet]

    def begins(self, stretch: Stretch) -> bool:
        """Whether `stretch`, no longer than the subject, takes its first characters."""
        return not stretch or _takes(stretch, self._octets)

    def ends(self, stretch: Stretch) -> bool:
        """Whether `stretch`, no longer than the subject, takes its last characters."""
        return not stretch or _takes(stretch[::-1], self._backwards)

    def places(self, run: int) -> int:
        """The places where the run begins, a bit each."""
        places = self.known.get(run)
        if places is None:
            more = run >> ALPHABET
            if more:
                half = (more + 1) // 2
                shorter = self.places(run - (half << ALPHABET))
                places = shorter & (shorter >> half)
            else:
                places = self._places_of(run & self._characters)
            if len(self.known) < self._room:
                self.known[run] = places
        return places

    def count(self, runs: tuple[Run, tuple[int, ...]]) -> int:
        """At how many places such a run begins."""
        run = runs[0]
        count = self._counts.get(run)
        if count is None:
            count = self._counts[run] = self.places(run).bit_count()
        return count

    def _places_of(self, characters: int) -> int:
        """The places where one of `characters`, all of which it has, stands, a bit each."""
        others = self._characters ^ characters
        if others.bit_count() < characters.bit_count():
            return self._everywhere ^ self._sum(others)
        if characters and not characters & (characters - 1):
            return int(self._backwards.translate(_DIGITS[characters.bit_length() - 1]), 2)
        return self._sum(characters)

    def _sum(self, characters: int) -> int:
        places = 0
        while characters:
            character = characters & -characters
            known = self.known.get(character)
            places |= self.places(character) if known is None else known
            characters &= characters - 1
        return places


def _takes(stretch: Stretch, octets: bytes) -> bool:
    return all(members >> octet & 1 for members, octet in zip(stretch, octets, strict=False))


def _stretches(places: Sequence[_Place]) -> list[Stretch]:
    """The places, cut at the stars."""
    stretches: list[list[int]] = [[]]
    for place in places:
        if place is None:
            stretches.append([])
        else:
            stretches[-1].append(place)
    return [tuple(stretch) for stretch in stretches]


def _more_than_text(stretch: Stretch) -> Stretch:
    """Nothing, where the stretch is a text: then the outline has it."""
    return stretch if any(members.bit_count() != 1 for members in stretch) else ()


def _runs(stretch: Stretch) -> Runs:
    """What `stretch` asks for: a place that takes anything asks for nothing, but has to lie within the subject."""
    runs: dict[Run, list[int]] = {}
    begin = 0
    for members, places in groupby(stretch):
        count = len(list(places))
        if members != ANY:
            runs.setdefault(members | count - 1 << ALPHABET, []).append(begin)
        begin += count
    return tuple((run, tuple(offsets)) for run, offsets in runs.items())


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
            yield ANY
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
    return ANY ^ members if negated else members
