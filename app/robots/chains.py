"""Chains of texts, each of which has to stand behind the one before, followed for many patterns at once.

In every round all chains go on by one text, each by looking up where its next one stands. Few long chains are followed
from both their ends at once, for a round costs little more for twice as many: what is left to tell is whether the
halves meet. The half from the end is followed in the subject turned round, where it is a chain like any other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
PLACE_BITS = 20  # a subject has at most 3 * 16,384 characters
PLACES = (1 << PLACE_BITS) - 1

_LONGER = 8
"""Chains of fewer texts are not worth to be followed from both ends."""
_OPEN = 3
"""A table that leaves something open is worth to have so many times fewer numbers than one that does not."""
_PREPARED = 1 << 17
"""Steps of all chains that are prepared together, at most."""


@dataclass(slots=True)
class Chains:
    """Chains by their `numbers`: texts from `begins` on, so many as `counts`, in between `at` and `until`."""

    numbers: Ints
    begins: Ints
    counts: Ints
    at: Ints
    until: Ints

    def only(self, which: Ints | npt.NDArray[np.bool_]) -> "Chains":
        """Those of them, or all of them in that order."""
        return Chains(*(getattr(self, field.name)[which] for field in fields(self)))


class Rows:
    """Where in a subject texts stand: the first at a place or behind it.

    Places count from one, `beyond` being behind all of them. A text has a row of that many places, and with `turned`
    another one of the places in the subject turned round; all rows together are one range of numbers.
    """

    def __init__(
        self,
        standing: Ints,
        wanted: Ints,
        lengths: npt.NDArray[np.int32],
        subject: int,
        *,
        turned: bool,
        table: int,
    ) -> None:
        """`standing` are the places of the texts `wanted`, each as text and place in one number, ascending.

        Where a table of all places has more than `table` numbers, it is one of stretches of the subject, and where it
        leaves open which place of a stretch it is, that is searched for.
        """
        self.beyond, self.turned = subject + 2, turned
        self.turn = len(lengths)
        self._width = subject + 3
        rows = len(wanted) * (1 + turned)
        self._shift = 0
        if rows * (self.beyond + 1) > table:
            while rows * ((self.beyond >> self._shift) + 1) > table // _OPEN and self.beyond >> self._shift:
                self._shift += 1
        stretches = (self.beyond >> self._shift) + 1
        row_of = np.zeros(len(lengths), np.int64)
        row_of[wanted] = np.arange(len(wanted))
        text, place = standing >> PLACE_BITS, (standing & PLACES) + 1
        length, row = lengths[text], row_of[text]
        if turned:
            row = np.concatenate((row, rows - 1 - row[::-1]))
            place = np.concatenate((place, (self.beyond - place - length)[::-1]))
            length = np.concatenate((length, length[::-1]))
        # At the end of its row, a text that stands nowhere any more is taken to stand.
        counts = np.bincount(row, minlength=rows) + 1
        begins = np.full(len(row) + rows, self.beyond)
        ends = begins.copy()
        at = np.arange(len(row)) + row
        begins[at], ends[at] = place, place + length
        row = np.repeat(np.arange(rows), counts)
        self._begins, self._ends = row * self._width + begins, ends
        # From behind each place up to the next of the same row, the answer is the same.
        known = row * stretches + (begins >> self._shift)
        kept, times = np.uint16 if self._width < 1 << 16 else np.int32, np.diff(known, prepend=-1)
        self._table = np.repeat(ends.astype(kept), times)
        if self._shift:
            self._table_of_begins = np.repeat(begins.astype(kept), times)
        # By number of text, and of those turned round behind them.
        if turned:
            row_of = np.concatenate((row_of, rows - 1 - row_of))
        self._row_begins, self._stretch_begins = row_of * self._width, row_of * stretches

    @property
    def cost(self) -> tuple[float, float]:
        """What a round costs, and each chain in it, in tenths of a microsecond."""
        return (60.0, 0.1) if self._shift else (10.0, 0.04)

    def follow(self, texts: npt.NDArray[np.integer], at: Ints, going: Sequence[int]) -> Ints:
        """Where the chains come to by a line of `texts` for each round; of a text turned round, the number is `turn`ed.

        In each round, so many chains as it has in `going` go on, the first ones; one at least.
        """
        rows = self._row_begins[texts]
        whole = going[-1] == len(at)
        if not self._shift:
            if whole:
                for row in rows:
                    at = self._table[row + at]
                return at.astype(np.int64)
            at = at.copy()
            for row, count in zip(rows, going, strict=True):
                at[:count] = self._table[row[:count] + at[:count]]
            return at
        stretches = self._stretch_begins[texts]
        at = at.copy()
        if whole:
            for row, stretch in zip(rows, stretches, strict=True):
                at = self._ends_at(row, stretch, at)
            return at.astype(np.int64)
        for row, stretch, count in zip(rows, stretches, going, strict=True):
            at[:count] = self._ends_at(row[:count], stretch[:count], at[:count])
        return at

    def _ends_at(self, row: Ints, stretch: Ints, at: Ints) -> Ints:
        which = stretch + (at >> self._shift)
        ends: Ints = self._table[which]
        # The first of its stretch may stand before the place, whoever is meant to be behind it.
        late = self._table_of_begins[which] < at
        if np.count_nonzero(late):
            (which,) = late.nonzero()
            ends[which] = self._ends[self._begins.searchsorted(row[which] + at[which])]
        return ends


def both_ways(counts: Ints, few: int) -> bool:
    """Whether chains of so many texts, of which fewer than `few` are few, are followed from both ends."""
    return len(counts) < few and int(counts.max(initial=0)) >= _LONGER


def follow(
    chains: Chains,
    texts: npt.NDArray[np.int32],
    rows: Rows,
    at_once: int,
    alone: Callable[[Ints, tuple[float, float]], bool],
) -> tuple[Ints, bool]:
    """The numbers of those chains, of `texts`, that stand; or of those that may, and False, if it is not told of all.

    Where there are rows of the subject turned round, they are followed from both ends. Every so many rounds as are
    made `at_once`, it is looked which are left; and `alone` is asked, of the texts that are left of each and the cost
    of a round, whether to leave it at that.
    """
    chains = chains.only(np.argsort(-chains.counts, kind="stable"))
    ways = 1 + rows.turned
    # How far each has come, and from the other end.
    ahead, back = chains.at + 1, rows.beyond - chains.until - 1
    odd = np.flatnonzero(chains.counts % ways)
    if len(odd):
        ahead[odd] = rows.follow(texts[chains.begins[odd]][None], ahead[odd], [len(odd)])
    begins, ends = chains.begins + chains.counts % ways, chains.begins + chains.counts - 1
    numbers, counts = chains.numbers, chains.counts // ways
    done = 0
    while True:
        stays = ahead + back <= rows.beyond
        if not stays.all():
            numbers, begins, ends, counts, ahead, back = (
                it[stays] for it in (numbers, begins, ends, counts, ahead, back)
            )  # fmt: skip
        left = counts[counts > done] - done
        if not len(left):
            return np.sort(numbers), True
        if alone(left * ways, rows.cost):
            return np.sort(numbers), False
        until = min(int(counts[0]), done + min(at_once, max(1, _PREPARED // (len(left) * ways))))
        steps = np.arange(done, until)[:, None]
        going = ways * np.searchsorted(-counts, -steps[:, 0])  # in each round, those with more texts than that
        if rows.turned:
            # Each is two that lie side by side, one that goes ahead and one that goes back.
            forth, turned = np.array([1, -1] * len(numbers)), np.array([0, rows.turn] * len(numbers))
            which = np.stack((begins, ends), axis=1).reshape(-1) + steps * forth
            at = rows.follow(
                texts.take(which, mode="clip") + turned, np.stack((ahead, back), axis=1).reshape(-1), going.tolist()
            )
            ahead, back = at[::2], at[1::2]
        else:
            ahead = rows.follow(texts.take(begins + steps, mode="clip"), ahead, going.tolist())
        done = until
