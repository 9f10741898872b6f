"""Thousands of patterns with `*` asked at once: arrays of where texts stand, in place of a search for each.

A file can hold patterns that all have to be looked at: tens of thousands whose texts stand in the subject, each in an
order that it does not ask for. So it is found out for all their texts together where in the subject they first and
last stand; and patterns are struck out by a comparison of these. Only what is left is followed text by text, still
together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.robots.chains import Chains, Rows, both_ways, follow
from app.robots.chains import Ints as _Ints
from app.robots.grams import HASHED, Found, Subject, counting, levels
from app.robots.paths import Wildcard
from app.robots.prefixes import Prefixes

_NONE = -1
_STEP, _TURNED_STEP = 6, 16
"""Numbers of a table that save what a step along a chain costs without, if it goes one way or both."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When patterns are sooner tried one by one than together.

    `haste` makes that cheaper or dearer than it is; more than `places` of all texts are not looked at together; `table`
    is how many numbers a table of the ends of texts may have; fewer patterns than `few` are followed from both ends, so
    many `rounds` at once.
    """

    haste: float = 1.0
    places: int = 1 << 18
    table: int = 1 << 22
    few: int = 1000
    rounds: int = 256

    def alone(
        self, texts_left: _Ints, subject: int, reach: int, together: float, a_round: tuple[float, float] = (0, 0)
    ) -> bool:
        """Whether to try patterns one by one that have so many texts left, of up to `reach` characters.

        `subject` is its length, `together` what the rest of their common way costs, and `a_round` what each round does
        beside, and each pattern in it; in units of a tenth of a microsecond, what a search for a near text takes.
        """
        count = len(texts_left)
        if not count:
            return True
        rounds = int(texts_left.max()) * (a_round[0] + count * a_round[1])
        # `str.find` can look at a whole text, if it is not very long, at every place where it does not stand.
        alone = float(texts_left.sum()) + count * subject * min(reach, _SEARCHED_WELL) * _COMPARISON
        return alone < (together + rounds) * self.haste


_STRUCK_BY = 4
_SEARCHED_WELL = 100
_COMPARISON, _PER_PLACE = 1 / 700, 1 / 4


class Crowd:
    """Patterns by their places, ascending."""

    def __init__(self, patterns: Sequence[tuple[int, Wildcard]], limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._patterns = patterns
        heads: dict[str, int] = {}
        ends: dict[str | None, int] = {None: 0}
        numbers: dict[str, int] = {}
        head_of, end_of, starts, texts_of = [], [], [0], []
        for _, pattern in patterns:
            head, *texts = pattern.segments
            end = texts.pop() if pattern.anchored else None
            if end is None and not texts[-1]:
                texts.pop()
            head_of.append(heads.setdefault(head, len(heads)))
            end_of.append(ends.setdefault(end, len(ends)))
            texts_of += [numbers.setdefault(text, len(numbers)) for text in texts]
            starts.append(len(texts_of))
        self._heads, self._ends = heads, ends
        self._head_prefixes = Prefixes(heads)
        self._end_prefixes = Prefixes({end[::-1]: number for end, number in ends.items() if end is not None})
        self._places = np.array([place for place, _ in patterns], np.int32)
        self._head_of, self._end_of = np.array(head_of, np.int32), np.array(end_of, np.int32)
        self._starts = np.array(starts, np.int32)
        # Texts are numbered by their length, so that those of a level lie side by side.
        ordered = sorted(numbers, key=len)
        renumbered = np.empty(len(ordered), np.int32)
        renumbered[[numbers[text] for text in ordered]] = np.arange(len(ordered), dtype=np.int32)
        self._texts_of = renumbered[np.array(texts_of, np.int64)]
        self._lengths = np.array([len(text) for text in ordered], np.int32)
        self._levels = list(levels(ordered))
        self._reach = int(self._lengths.max(initial=0))
        self._first_hashed = int(np.searchsorted(self._lengths, HASHED))

    def matching(self, subject: str, below: int) -> Iterator[int]:
        """The places below `below` of the patterns that match, ascending; each is worked for when it is asked for."""
        live, at, until = self._begin(subject, below)
        live, known = self._follow(Subject(subject), live, at, until)
        sure = (self._starts[live + 1] == self._starts[live]) | known
        if sure.all():
            return iter(self._places[live].tolist())
        return self._tried(subject, live.tolist(), sure.tolist())

    def _tried(self, subject: str, live: Sequence[int], known: Sequence[bool]) -> Iterator[int]:
        for number, sure in zip(live, known, strict=True):
            place, pattern = self._patterns[number]
            if sure or pattern.matches(subject):
                yield place

    def _begin(self, subject: str, below: int) -> tuple[_Ints, _Ints, _Ints]:
        """The patterns whose head and end fit; for each where its texts may begin, and where they must have ended."""
        at_heads = np.full(len(self._heads), _NONE, np.int64)
        for head in self._head_prefixes.every(subject):
            at_heads[self._heads[head]] = len(head)
        until_ends = np.full(len(self._ends), _NONE, np.int64)
        until_ends[0] = len(subject)
        for end in self._end_prefixes.every(subject[::-1]):
            until_ends[self._ends[end[::-1]]] = len(subject) - len(end)
        count = int(np.searchsorted(self._places, below))
        at, until = at_heads[self._head_of[:count]], until_ends[self._end_of[:count]]
        live = np.flatnonzero((at >= 0) & (at <= until))
        return live, at[live], until[live]

    def _follow(self, subject: Subject, live: _Ints, at: _Ints, until: _Ints) -> tuple[_Ints, bool]:
        """Those of `live` that are not struck out, and whether it is known that they match."""
        found = Found(len(self._lengths))
        for done, level in enumerate(reversed(self._levels)):
            texts_left = self._starts[live + 1] - self._starts[live]
            levels_left = len(self._levels) - done
            together = (levels_left * subject.length * _PER_PLACE) + len(self._texts_of) / 10
            if self._limits.alone(texts_left, subject.length, self._reach, together):
                return live, False
            level.find(subject, found)
            lacking = found.first[level.begin : level.end] > found.last[level.begin : level.end]
            if lacking.any():
                stays = ~self._having(np.flatnonzero(lacking) + level.begin)[live]
                live, at, until = live[stays], at[stays], until[stays]
        # First without regard to which place of a text goes with which of the next, since that is a mere look-up.
        left = self._strike(found, live, at, until)
        return self._chain(subject, found, live[left], at[left], until[left])

    def _having(self, texts: _Ints) -> npt.NDArray[np.bool_]:
        """Which of all patterns have one of `texts`."""
        among = np.full(len(self._lengths), False)
        among[texts] = True
        before = np.concatenate(([0], np.cumsum(among[self._texts_of])))
        return before[self._starts[1:]] > before[self._starts[:-1]]

    def _strike(self, found: Found, live: _Ints, at: _Ints, until: _Ints) -> _Ints:
        """Which of `live` have their first few texts, each somewhere behind the first place of the one before."""
        left = np.arange(len(live))
        next_text, last_text = self._starts[live].astype(np.int64), self._starts[live + 1].astype(np.int64)
        done: list[_Ints] = []
        for _ in range(_STRUCK_BY):
            ended = next_text >= last_text
            if ended.any():
                done.append(left[ended])
                going = ~ended
                left, at, until, next_text, last_text = (
                    left[going], at[going], until[going], next_text[going], last_text[going],
                )  # fmt: skip
            if not len(left):
                break
            texts = self._texts_of[next_text]
            at = np.maximum(at, found.first[texts])
            stands = at <= found.last[texts]
            at = at + self._lengths[texts]
            stands &= at <= until
            next_text = next_text + 1
            if not stands.all():
                left, at, until, next_text, last_text = (
                    left[stands], at[stands], until[stands], next_text[stands], last_text[stands],
                )  # fmt: skip
        return np.sort(np.concatenate([*done, left]))

    def _chain(self, subject: Subject, found: Found, live: _Ints, at: _Ints, until: _Ints) -> tuple[_Ints, bool]:
        """Those of `live` whose texts stand one behind the other, as far as that is found out for all together."""
        counts = (self._starts[live + 1] - self._starts[live]).astype(np.int64)
        if self._limits.alone(counts, subject.length, self._reach, 2000):
            return live, False
        wanted = self._wanted(found, live, counts)
        standing = self._standing(subject, found, wanted)
        if standing is None:
            return live, False
        turned = both_ways(counts, self._limits.few)
        # A larger table is not worth its making.
        table = min(self._limits.table, (_TURNED_STEP if turned else _STEP) * int(counts.sum()))
        rows = Rows(standing, wanted, self._lengths, subject.length, turned=turned, table=table)

        def alone(left: _Ints, a_round: tuple[float, float]) -> bool:
            return self._limits.alone(left, subject.length, self._reach, 0, a_round)

        chains = Chains(live, self._starts[live].astype(np.int64), counts, at, until)
        live, known = follow(chains, self._texts_of, rows, self._limits.rounds, alone)
        return live, known and int(wanted.max(initial=0)) < self._first_hashed

    def _wanted(self, found: Found, live: _Ints, counts: _Ints) -> _Ints:
        """The texts of `live`, ascending, and perhaps others that stand; each has so many as in `counts`."""
        if 2 * int(counts.sum()) > len(self._texts_of):
            return np.flatnonzero(found.first <= found.last)
        among = np.full(len(self._lengths), False)
        among[self._texts_of[np.repeat(self._starts[live].astype(np.int64), counts) + counting(counts)]] = True
        return np.flatnonzero(among)

    def _standing(self, subject: Subject, found: Found, wanted: _Ints) -> _Ints | None:
        """Every place of every text in `wanted`, ascending by text and place; None where that is too many."""
        asked = []
        for level in self._levels:
            texts = wanted[(wanted >= level.begin) & (wanted < level.end)]
            if len(texts):
                asked.append((level, texts, level.counts(found, texts)))
        if sum(int(counts.sum()) for _, _, counts in asked) > self._limits.places:
            return None
        parts = [level.places(subject, found, texts, counts) for level, texts, counts in asked]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
