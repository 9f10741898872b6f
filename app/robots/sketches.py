"""Many globs with sets struck out at once, by where a few of the characters that they ask for can stand.

A glob that is asked by itself is followed place by place, and a file can hold tens of thousands that all have to be.
So each has a sketch: of every stretch between its stars a few places side by side that take few characters, written
out as all the grams that they take. Where the subject has these is found once and looked up for all globs together,
and only those that may match are followed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from app.robots.chains import PLACE_BITS, PLACES, Rows
from app.robots.globs import ALPHABET, ANY, Glob, Runs

_Ints = npt.NDArray[np.int64]
_Gram: TypeAlias = tuple[int, ...]
"""The characters that each of some places side by side takes, a bit each; no place for whatever there is."""

_WIDEST = 4
"""Places of the widest gram."""
_TAKEN = 16
"""A sketch has no gram that takes more than so many."""
_LOOKED_AT = 12
"""Kinds of runs of a stretch, and of each so many, among which its gram is chosen: a stretch can hold thousands."""
_LETTER_BITS = ALPHABET.bit_length() - 1
_STRETCHES = 8
"""Stretches of a glob that a sketch has; the others are left to those who follow it."""
_FIXED = 4
"""Places before the first star and behind the last that a sketch has."""
_USUAL = 32
"""Of so many characters one is a given one, as a rule: by that a wider gram is rarer."""
_RARITY = [_USUAL**-width for width in range(_WIDEST + 1)]
_FOLLOWED = 300
"""So many globs are sooner followed than their grams are looked for behind one another."""
_TABLE = 1 << 21
"""Numbers of the largest table of where grams stand."""
_BEYOND = 1 << 60
_WORD = (1 << 64) - 1


@dataclass(slots=True)
class _Left:
    """Globs that are not struck out, by their place among those asked about: how far each has come, and may go."""

    which: _Ints
    globs: _Ints
    at: _Ints
    until: _Ints

    def only(self, stays: npt.NDArray[np.bool_]) -> "_Left":
        """Those of them."""
        if stays.all():
            return self
        return _Left(self.which[stays], self.globs[stays], self.at[stays], self.until[stays])


class Sketches:
    """Of globs by their places, ascending; `followed` of them are few."""

    def __init__(self, globs: Sequence[tuple[int, Glob]], *, followed: int = _FOLLOWED) -> None:
        self._followed = followed
        self._places = np.array([place for place, _ in globs], np.int32)
        self._begins = np.array([glob.begin for _, glob in globs], np.int32)
        self._backs = np.array([glob.back for _, glob in globs], np.int32)
        between = [glob.between[:_STRETCHES] for _, glob in globs]
        self._starts = np.cumsum([0, *map(len, between)], dtype=np.int32)
        self._lengths = np.array([length for stretches in between for length, _ in stretches], np.int32)
        runs = [runs for stretches in between for _, runs in stretches]
        numbers: dict[_Gram, int] = {(): 0}
        chosen = [_rarest(stretch) for stretch in runs]
        self._grams = np.array([numbers.setdefault(gram, len(numbers)) for _, gram in chosen], np.int32)
        self._offsets = np.array([offset for offset, _ in chosen], np.int32)
        codes = [_codes(gram) for gram in numbers]
        self._bounds = np.cumsum([0, *map(len, codes)], dtype=np.int32)
        # Each gram has its codes between two bounds, by their places in the ascending ones.
        self._codes, places = np.unique(np.array([code for of_gram in codes for code in of_gram]), return_inverse=True)
        self._numbers = places.astype(np.int32)
        self._widths = np.array([(int(code).bit_length() - 1) // _LETTER_BITS for code in self._codes], np.int32)
        self._wide = set(self._widths.tolist())
        fixed = [_fixed(glob) for _, glob in globs]
        most = max(map(len, fixed))
        fixed = [places + [(0, ANY)] * (most - len(places)) for places in fixed]
        self._fixed = np.array([[place for place, _ in places] for places in fixed], np.int32)
        members: dict[int, int] = {}
        taken = [[members.setdefault(taken, len(members)) for _, taken in places] for places in fixed]
        self._fixed_members = np.array(taken, np.int32)
        words = [(taken >> 64 * half) & _WORD for taken in members for half in range(2)]
        self._members = np.array(words, np.uint64).reshape(-1, 2)

    def left(self, places: Sequence[int], subject: str) -> list[int]:
        """Those at `places` that may match `subject`, in that order; whatever has no sketch may."""
        asked = np.array(places, np.int64)
        globs = np.minimum(np.searchsorted(self._places, asked), len(self._places) - 1)
        known = self._places[globs] == asked
        octets = np.frombuffer(subject.encode("ascii"), np.uint8).astype(np.int64)
        which = np.flatnonzero(known & self._ends_fit(globs, octets))
        standing = self._standing(octets)
        first, last = self._ends(standing)
        which = which[self._stand(globs[which], first, last, len(octets))]
        if len(which) > self._followed:
            which = which[self._follow(globs[which], first, standing, len(octets))]
        stays = ~known
        stays[which] = True
        found: list[int] = asked[stays].tolist()
        return found

    def _ends_fit(self, globs: _Ints, octets: _Ints) -> npt.NDArray[np.bool_]:
        """Which of `globs` have room in the subject, and what they ask for before and behind all stars."""
        fit = self._begins[globs] + self._backs[globs] <= len(octets)
        if len(octets):
            for place, members in zip(self._fixed[globs].T, self._fixed_members[globs].T, strict=True):
                # Where there is no room, any place will do.
                octet = octets[np.where(fit, place, 0)]
                fit &= (self._members[members, octet >> 6] >> (octet & 63).astype(np.uint64) & np.uint64(1)) > 0
        return fit

    def _standing(self, octets: _Ints) -> _Ints:
        """All grams that some sketch has, each as the number of its code and its place in one number, ascending."""
        codes = octets[:0]
        keys = []
        for width in range(1, max(self._wide) + 1):
            # The one in front tells a gram from the wider ones.
            codes = octets + ALPHABET if width == 1 else codes[:-1] * ALPHABET + octets[width - 1 :]
            if width not in self._wide:
                continue
            # What is sorted is found several times as fast.
            ordered = np.sort(codes << PLACE_BITS | np.arange(len(codes)))
            known = ordered >> PLACE_BITS
            number = np.minimum(np.searchsorted(self._codes, known), len(self._codes) - 1)
            is_one = self._codes[number] == known
            keys.append((number << PLACE_BITS | ordered & PLACES)[is_one])
        return np.sort(np.concatenate([octets[:0], *keys]))

    def _stand(self, globs: _Ints, first: _Ints, last: _Ints, length: int) -> _Ints:
        """Which of `globs` have the gram of each stretch, and its last place behind the first of the stretches before.

        That is a mere look-up of two places for each gram.
        """
        left, done = self._all(globs, length), []
        for stretch in range(_STRETCHES):
            left, number, ended = self._next(left, stretch)
            done.append(ended)
            if not len(left.which):
                break
            gram, offset = self._grams[number], self._offsets[number]
            at = np.maximum(left.at, first[gram] - offset)
            left.at = at + self._lengths[number]
            left = left.only((at <= last[gram] - offset) & (left.at <= left.until))
        return np.sort(np.concatenate([*done, left.which]))

    def _ends(self, standing: _Ints) -> tuple[_Ints, _Ints]:
        """For each gram where in the subject it first and where it last stands."""
        first, last = np.full(len(self._codes), _BEYOND), np.full(len(self._codes), -1)
        codes, places = standing >> PLACE_BITS, standing & PLACES
        first[codes[::-1]] = places[::-1]  # of several for one code, the last that is written stays
        last[codes] = places
        starts = self._bounds[:-1]
        firsts = np.minimum.reduceat(first[self._numbers], starts)
        lasts = np.maximum.reduceat(last[self._numbers], starts)
        firsts[0], lasts[0] = 0, _BEYOND  # what is no place stands everywhere
        return firsts, lasts

    def _follow(self, globs: _Ints, first: _Ints, standing: _Ints, length: int) -> _Ints:
        """Which of `globs` have the gram of each stretch where it stands first behind the stretches before."""
        left, done = self._all(globs, length), []
        # A text that stands nowhere has to be in a row, too.
        rows = Rows(standing, np.arange(len(self._codes)), self._widths, length, turned=False, table=_TABLE)
        for stretch in range(_STRETCHES):
            left, number, ended = self._next(left, stretch)
            done.append(ended)
            if not len(left.which):
                break
            gram, offset = self._grams[number], self._offsets[number]
            # Most often its first place is behind them, and need not be looked for.
            at, begins = left.at + offset, first[gram]
            late = np.flatnonzero((begins < at) & (gram > 0))
            begins[late] = self._behind(rows, gram[late], at[late])
            left.at = np.maximum(at, begins) - offset + self._lengths[number]
            left = left.only(left.at <= left.until)
        return np.sort(np.concatenate([*done, left.which]))

    def _behind(self, rows: Rows, grams: npt.NDArray[np.int32], at: _Ints) -> _Ints:
        """Where each of `grams` first stands at its place in `at` or behind it."""
        counts = self._bounds[grams + 1] - self._bounds[grams]
        begins = np.cumsum(counts) - counts
        which = np.repeat(np.arange(len(grams)), counts)
        codes = self._numbers[np.arange(len(which)) + (self._bounds[grams] - begins)[which]]
        ends = rows.follow(codes[None], np.minimum(at + 1, rows.beyond)[which], [len(which)])
        places = np.where(ends < rows.beyond, ends - self._widths[codes] - 1, _BEYOND)
        found: _Ints = np.minimum.reduceat(places, begins) if len(places) else places
        return found

    def _all(self, globs: _Ints, length: int) -> _Left:
        begins, backs = self._begins[globs].astype(np.int64), self._backs[globs].astype(np.int64)
        return _Left(np.arange(len(globs)), globs, begins, length - backs)

    def _next(self, left: _Left, stretch: int) -> tuple[_Left, _Ints, _Ints]:
        """Those that have such a stretch, and its number; and those that have come to their end."""
        number = self._starts[left.globs].astype(np.int64) + stretch
        going = number < self._starts[left.globs + 1]
        return left.only(going), number[going], left.which[~going]


def _rarest(runs: Runs) -> tuple[int, _Gram]:
    """The gram of a stretch that is looked for, and how far behind the stretch's begin it stands."""
    # What the first few of each kind of run take, and the places beside them, as far as they are known.
    takes: dict[int, int] = {}
    for run, offsets in runs[:_LOOKED_AT]:
        for offset in offsets[:_LOOKED_AT]:
            for more in range(min(run >> ALPHABET, _WIDEST - 1) + 1):
                takes[offset + more] = run & ANY
    best, rarest = 1.0, (0, 0)
    counts = {offset: members.bit_count() for offset, members in takes.items()}
    for offset in takes:
        taken, most, width = 1, 0, 0
        while width < _WIDEST:
            count = counts.get(offset + width, 0)
            taken *= count
            if not 0 < taken <= _TAKEN:
                break
            most = max(most, count)
            width += 1
            # Texts are what the outline has already: they are not worth much.
            rarity = 1 - _RARITY[width] if most == 1 else taken * _RARITY[width]
            if rarity < best:
                best, rarest = rarity, (offset, width)
    offset, width = rarest
    return offset, tuple(takes[offset + place] for place in range(width))


def _fixed(glob: Glob) -> list[tuple[int, int]]:
    """The rarest of the places that are none of a stretch, those behind the last star counted from the end."""
    places = [*enumerate(glob.opening[:_LOOKED_AT]), *enumerate(glob.closing[:_LOOKED_AT], -glob.back)]
    return sorted(places, key=lambda it: it[1].bit_count())[:_FIXED]


def _codes(gram: _Gram) -> list[int]:
    """The codes of all grams that it takes: their letters, and one in front."""
    codes = []
    for octets in product(*map(_bits, gram)):
        code = 1
        for octet in octets:
            code = code * ALPHABET + octet
        codes.append(code)
    return codes


def _bits(members: int) -> list[int]:
    bits = []
    while members:
        bits.append((members & -members).bit_length() - 1)
        members &= members - 1
    return bits
