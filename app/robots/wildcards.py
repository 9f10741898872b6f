"""Many patterns with `*` asked at once, without trying each: a trie of the texts between their stars.

Patterns that begin alike share the search for what they begin with. Where a node has many branches, only those are
entered that have a gram standing in the subject. Where too many are entered all the same, or the subject is long, the
trie is left for a `Crowd`, whose cost has a bound.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import TypeAlias

from app.robots.crowds import Crowd
from app.robots.paths import Wildcard
from app.robots.prefixes import Prefixes

_Pattern: TypeAlias = tuple[int, Wildcard]

_FEW = 12
"""So many are tried one by one sooner than a subject is cut into grams."""
_GRAM = 4
"""Of the grams that open a gate; longer ones let in fewer, but more texts are shorter than they are."""
_SAMPLED_TEXTS, _SAMPLED_GRAMS = 4, 8  # of a branch, when its gate is chosen: what that costs has to have a bound
_LONG = 1000
"""Characters of a subject that is cut into grams for a trie no longer: a crowd does it in less time."""
_ENTERED = 200
"""Nodes of a trie that are entered before it is left for a crowd; eight texts of one node count as one more."""
_COMPARED = 1 << 22
"""Characters that may be compared when patterns are tried one by one: `str.find` may look at a whole text, if it has
fewer than a hundred characters, at every place where it does not stand.
"""
_SEARCHED_WELL = 100


class Wildcards:
    """Patterns by their places; the lowest comes first in precedence.

    Subjects of `reach` characters or more are asked about as of a crowd: to try patterns alone may cost too much.
    """

    def __init__(
        self, patterns: Sequence[tuple[int, Wildcard]], *, entered: int = _ENTERED, reach: int = _LONG
    ) -> None:
        """`patterns` come in ascending order of place; past `entered` and `reach` they are asked as a crowd."""
        self._patterns = patterns
        self._trie: _Trie | None = None
        self._crowd: Crowd | None = None
        self._making = Lock()
        self._entered, self.reach = entered, reach
        self._is_few = len(patterns) <= _FEW
        if self._is_few:
            longest = sum(min(max(map(len, pattern.segments)), _SEARCHED_WELL) for _, pattern in patterns)
            self.reach = _COMPARED // max(1, longest)

    # Either is made once, when first it is asked for: of two threads that want the same, one waits for the other. (A
    # `cached_property` of Python 3.11 would have it wait for those of all other files as well.)

    def _make_trie(self) -> "_Trie":
        with self._making:
            trie = self._trie = self._trie or _Trie(self._patterns)
            return trie

    def _make_crowd(self) -> Crowd:
        with self._making:
            crowd = self._crowd = self._crowd or Crowd(self._patterns)
            return crowd

    def _together(self, subject: str, below: int) -> Iterator[int]:
        return (self._crowd or self._make_crowd()).matching(subject, below)

    def first(self, subject: str, below: int) -> int:
        """The lowest place below `below` of a pattern that matches, or `below`."""
        if len(subject) >= self.reach:
            return next(self._together(subject, below), below)
        if self._is_few:
            return next(self._each(subject, below), below)
        found = (self._trie or self._make_trie()).found(subject, below, self._entered, narrow=True)
        return next(self._together(subject, below), below) if found is None else min(found, default=below)

    def every(self, subject: str, below: int) -> Iterable[int]:
        """The places below `below` of all patterns that match, ascending; each may be looked for late."""
        if len(subject) >= self.reach:
            return self._together(subject, below)
        if self._is_few:
            return self._each(subject, below)
        found = (self._trie or self._make_trie()).found(subject, below, self._entered, narrow=False)
        return self._together(subject, below) if found is None else sorted(found)

    def _each(self, subject: str, below: int) -> Iterator[int]:
        for place, pattern in self._patterns:
            if place >= below:
                return
            if pattern.matches(subject):
                yield place


class _Trie:
    """The patterns by their heads, what stands before the first star; and behind each, the node where they go on."""

    def __init__(self, patterns: Iterable[_Pattern]) -> None:
        by_head: dict[str, list[_Pattern]] = {}
        for pattern in patterns:
            by_head.setdefault(pattern[1].segments[0], []).append(pattern)
        self._nodes = {head: _Node(found, 1) for head, found in by_head.items()}
        self._heads = Prefixes({head: node.lowest for head, node in self._nodes.items()})

    def found(self, subject: str, below: int, entered: int, *, narrow: bool) -> list[int] | None:
        """Places of patterns that match; with `narrow`, only those below the ones found before.

        None where more than about `entered` nodes would have to be entered.
        """
        found: list[int] = []
        find = subject.find
        grams = _Grams(subject)
        # Not by recursion: a pattern can have thousands of stars.
        open_nodes = [(self._nodes[head], len(head)) for head in self._heads.every(subject)]
        while open_nodes:
            node, at = open_nodes.pop()
            if node.lowest >= below:
                continue
            start, stop = node.start, node.stop
            entered -= 1 + (stop - start >> 3)
            if len(open_nodes) > entered:
                return None
            for text in node.segments[start:stop]:
                at = find(text, at)
                if at < 0:
                    break
                at += len(text)
            else:
                for place in node.places_at(subject, at):
                    if place < below:
                        found.append(place)
                        below = place if narrow else below
                open_nodes += [(branch, at) for branch in node.open_branches(grams, below)]
        return found


class _Node:
    """Patterns that agree so far: `segments` from `start` to `stop` are what else they have in common, `lowest` is the
    lowest place of them all.

    What lies behind is made when a subject first gets there.
    """

    __slots__ = ("_branches", "_ends", "_gates", "_patterns", "_places", "lowest", "segments", "start", "stop")

    def __init__(self, patterns: list[_Pattern], start: int) -> None:
        """`patterns` agree in their first `start` segments, and come in ascending order of place."""
        self.lowest, model = patterns[0]
        self.segments = model.segments
        self.start = start
        self.stop = _common(patterns, start)
        self._patterns = patterns
        self._places: list[int] = []
        self._ends: _Ends | None = None
        self._branches: list[_Node] = []
        self._gates: _Gates | None = None

    @property
    def texts(self) -> Sequence[str]:
        """What they have in common here."""
        return self.segments[self.start : self.stop]

    def places_at(self, subject: str, at: int) -> Iterable[int]:
        """The places of the patterns that match when `texts` have been found and `at` is where they end."""
        if patterns := self._patterns:
            self._open(patterns)
        return (*self._places, *self._ends.places(subject, at)) if self._ends else self._places

    def open_branches(self, grams: "_Grams", below: int) -> Iterable["_Node"]:
        """Branches that may go on to a place below `below`; none that does is left out."""
        return self._gates.open(grams, below) if self._gates else self._branches

    def _open(self, all_patterns: Sequence[_Pattern]) -> None:
        # Two threads may be here at once. Both make the same, and either leaves it whole: what is read behind
        # `places_at` is there before `_patterns` is empty.
        start = self.stop
        places: list[int] = []
        ends: dict[str, list[int]] = {}
        by_text: dict[str, list[_Pattern]] = {}
        for both in all_patterns:
            place, pattern = both
            if _stop(pattern) > start:
                by_text.setdefault(pattern.segments[start], []).append(both)
            elif pattern.anchored:
                ends.setdefault(pattern.segments[-1], []).append(place)
            else:
                places.append(place)
        self._places = places
        self._ends = _Ends(ends) if ends else None
        self._branches = [_Node(patterns, start) for patterns in by_text.values()]
        self._gates = _Gates(self._branches) if len(self._branches) > _FEW else None
        self._patterns = []


def _stop(pattern: Wildcard) -> int:
    """How many of its segments are its head and the texts to be found one after another."""
    segments = pattern.segments
    return len(segments) - (pattern.anchored or not segments[-1])


def _common(patterns: Sequence[_Pattern], start: int) -> int:
    """Up to which segment from `start` on they agree."""
    shortest = min(_stop(pattern) for _, pattern in patterns)
    if len(patterns) == 1:
        return shortest
    model = patterns[0][1].segments
    while start < shortest and all(pattern.segments[start] == model[start] for _, pattern in patterns):
        start += 1
    return start


class _Ends:
    """Texts that a subject may have to end with, and the places of the patterns that ask for them."""

    def __init__(self, places: dict[str, list[int]]) -> None:
        self._places = places
        self._backwards = Prefixes({text[::-1]: found[0] for text, found in places.items()})

    def places(self, subject: str, at: int) -> Iterator[int]:
        """The places of those that `subject` ends with and that begin at `at` or behind it."""
        for text in self._backwards.every(subject[at:][::-1]):
            yield from self._places[text[::-1]]


class _Gates:
    """Branches by a gram of theirs, the one that fewest share: so that what all have in common opens no gate."""

    def __init__(self, branches: Sequence[_Node]) -> None:
        samples = [_sample(branch.texts) for branch in branches]
        shared = Counter(gram for sample in samples for gram in sample)
        by_gram: dict[str, list[_Node]] = {}
        for branch, sample in zip(branches, samples, strict=True):
            rarest = min(sample, key=lambda gram: (shared[gram], gram))
            by_gram.setdefault(rarest, []).append(branch)
        self._by_gram = {gram: tuple(found) for gram, found in by_gram.items()}
        # Texts shorter than a gram are their own: a few of them are sooner looked for than all others of their length.
        lengths = Counter(map(len, self._by_gram))
        self._lengths = [length for length, grams in lengths.items() if length == _GRAM or grams > _FEW]
        self._few = [gram for gram in self._by_gram if len(gram) not in self._lengths]

    def open(self, subject: "_Grams", below: int) -> list[_Node]:
        by_gram = self._by_gram
        grams = {gram for gram in self._few if gram in subject.text}
        for length in self._lengths:
            grams |= by_gram.keys() & subject.grams(length)  # as many steps as the smaller of them has grams
        return [branch for gram in grams for branch in by_gram[gram] if branch.lowest < below]


def _sample(texts: Sequence[str]) -> set[str]:
    """Grams that stand in every subject in which `texts` do; shorter ones where no text has a whole gram."""
    texts = texts[:_SAMPLED_TEXTS]
    length = min(_GRAM, max(map(len, texts)))
    grams: set[str] = set()
    for text in texts:
        last = len(text) - length
        if last >= 0:
            step = max(1, last // (_SAMPLED_GRAMS - 1))
            grams.update(text[at : at + length] for at in range(0, last, step))
            grams.add(text[last:])
    return grams


class _Grams:
    """A subject's grams of each length, cut when they are first asked for."""

    __slots__ = ("_grams", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._grams: dict[int, set[str]] = {}

    def grams(self, length: int) -> set[str]:
        grams = self._grams.get(length)
        if grams is None:
            text = self.text
            grams = self._grams[length] = {text[at : at + length] for at in range(len(text) - length + 1)}
        return grams
