"""Where in a subject thousands of texts stand, by its grams: sorted once for each width of gram that the texts need.

A text is known by the gram it begins with and the one it ends with, of the widest that fits: both overlap, so that they
are the whole text. Grams of more than four characters are known by a hash: what is found by one is compared before it
is believed.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from random import getrandbits

import numpy as np
import numpy.typing as npt

from app.robots.chains import PLACE_BITS, PLACES, Ints

Codes = npt.NDArray[np.uint64]

BEYOND = 1 << 60
"""No place, and behind every one."""
_NOWHERE = -1  # before every place
_EXACT = 4
"""A gram of so many characters is its own number; a wider one is hashed, so that place and number fit 64 bits."""
HASHED = 2 * _EXACT
"""Characters of texts that are known by a hash, or more."""
_FACTOR, _OTHER_FACTOR = (np.uint64(getrandbits(64) | 1) for _ in range(2))  # nobody can make texts that collide
_SHIFT, _HASH_SHIFT, _PLACE_SHIFT = np.uint64(29), np.uint64(PLACE_BITS), np.uint64(PLACE_BITS)


class Subject:
    """A subject's grams, as numbers, of each width when somebody asks."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        self._codes = {1: np.frombuffer(text.encode("ascii"), np.uint8).astype(np.uint64)}

    def codes(self, width: int) -> Codes:
        """The gram of so many characters that begins at each place."""
        codes = self._codes.get(width)
        if codes is None:
            left, right = self.codes((width + 1) // 2), self.codes(width // 2)
            count = max(0, self.length - width + 1)
            codes = self._codes[width] = _joined(left[:count], right[len(right) - count :], width)
        return codes


def _joined(left: Codes, right: Codes, width: int) -> Codes:
    """The grams of `width` made of `left` and of `right` behind it, which is as wide or narrower by one."""
    if width <= _EXACT:
        return left << np.uint64(8 * (width // 2)) | right
    mixed = left * _FACTOR + right
    return (mixed ^ mixed >> _SHIFT) * _OTHER_FACTOR >> _HASH_SHIFT


def _codes_of(letters: Codes) -> Codes:
    """The number of the gram in each row of letters."""
    width = letters.shape[1]
    if width == 1:
        return letters[:, 0]
    middle = (width + 1) // 2
    return _joined(_codes_of(letters[:, :middle]), _codes_of(letters[:, middle:]), width)


class Found:
    """For each text where in the subject it may first and may last stand, and in which stretch of its level's places
    its first and its last gram have theirs.
    """

    def __init__(self, count: int) -> None:
        self.first = np.full(count, BEYOND, np.int64)
        self.last = np.full(count, _NOWHERE, np.int64)
        self.places: dict[int, Ints] = {}
        self.starts: dict[int, tuple[Ints, Ints]] = {}


def _width(text: str) -> int:
    """The width of the two grams that a text is known by."""
    return len(text) if len(text) <= _EXACT else 1 << len(text).bit_length() - 1


def levels(texts: Sequence[str]) -> Iterator["Level"]:
    """`texts`, the shortest first, cut into levels."""
    begin = 0
    for width, of_width in groupby(texts, _width):
        level = Level(width, begin, list(of_width))
        begin = level.end
        yield level


class Level:
    """Texts that are known by grams of one width, numbered from `begin` to `end`."""

    def __init__(self, width: int, begin: int, texts: Sequence[str]) -> None:
        self.begin, self.end = begin, begin + len(texts)
        self._width = width
        grams = [text[:width] for text in texts] + [text[-width:] for text in texts]
        letters = np.frombuffer("".join(grams).encode("ascii"), np.uint8)
        codes = _codes_of(letters.astype(np.uint64).reshape(len(grams), width))
        self._codes, ranks = np.unique(codes, return_inverse=True)
        self._openings, self._closings = ranks[: len(texts)].astype(np.int32), ranks[len(texts) :].astype(np.int32)
        self._between = np.array([len(text) - width for text in texts], np.int32)

    def find(self, subject: Subject, found: Found) -> None:
        """Note in `found` where these texts may stand."""
        codes = subject.codes(self._width)
        if not len(codes):
            nothing = np.zeros(len(self._codes), np.int64)
            found.places[self._width], found.starts[self._width] = nothing[:0], (nothing, nothing)
            return
        ordered = np.sort(codes << _PLACE_SHIFT | np.arange(len(codes), dtype=np.uint64))
        places = (ordered & np.uint64(PLACES)).astype(np.int64)
        ordered >>= _PLACE_SHIFT
        bounds = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [len(ordered)]))
        distinct = ordered[bounds[:-1]]
        at = np.minimum(np.searchsorted(distinct, self._codes), len(distinct) - 1)
        stands = distinct[at] == self._codes
        starts, ends = np.where(stands, bounds[at], 0), np.where(stands, bounds[at + 1], 0)
        first = np.where(stands, places[starts], BEYOND)
        last = np.where(stands, places[ends - 1], _NOWHERE)
        found.first[self.begin : self.end] = first[self._openings]
        found.last[self.begin : self.end] = last[self._closings] - self._between
        found.places[self._width] = places
        found.starts[self._width] = starts, ends

    def counts(self, found: Found, texts: Ints) -> Ints:
        """How many places have to be looked at to know those of each of `texts`."""
        starts, ends = found.starts[self._width]
        counts = ends - starts
        number = texts - self.begin
        openings = counts[self._openings[number]]
        return openings if self._width < _EXACT else np.minimum(openings, counts[self._closings[number]])

    def places(self, subject: Subject, found: Found, texts: Ints, counts: Ints) -> Ints:
        """The places of `texts`, each as text and place in one number."""
        starts, ends = found.starts[self._width]
        number = texts - self.begin
        openings = self._openings[number]
        if self._width < _EXACT:  # the gram is the text
            at = found.places[self._width][np.repeat(starts[openings], counts) + counting(counts)]
            alone: Ints = np.repeat(texts << PLACE_BITS, counts) | at
            return alone
        closings, between = self._closings[number], self._between[number]
        rarer_is_last = ends[closings] - starts[closings] < ends[openings] - starts[openings]
        begins = np.where(rarer_is_last, starts[closings], starts[openings])
        back = np.where(rarer_is_last, between, 0)
        at = found.places[self._width][np.repeat(begins, counts) + counting(counts)] - np.repeat(back, counts)
        codes = subject.codes(self._width)
        behind = at + np.repeat(between, counts)
        inside = (at >= 0) & (behind < len(codes))
        at, behind, which = at[inside], behind[inside], np.repeat(np.arange(len(texts)), counts)[inside]
        stands = (codes[at] == self._codes[openings[which]]) & (codes[behind] == self._codes[closings[which]])
        standing: Ints = texts[which[stands]].astype(np.int64) << PLACE_BITS | at[stands]
        return standing


def counting(counts: npt.NDArray[np.integer]) -> Ints:
    """From 0 up to each of `counts`, one after another."""
    ends = np.cumsum(counts, dtype=np.int64)
    numbers: Ints = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    return numbers
