"""Many patterns with `*` asked at once, without trying each: a trie of the texts between their stars.

Patterns that begin alike share the search for what they begin with. Where a node has many branches, only those are
entered that have a gram standing in the subject, behind what has been matched so far.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from app.robots.paths import Wildcard
from app.robots.prefixes import Prefixes

_FEW = 12
"""So many are tried one by one sooner than a subject is cut into grams."""
_GRAM = 4
"""Of the grams that open a gate; longer ones let in fewer, but more texts are shorter than they are."""
_PLACED_GRAM = 3
"""Of the grams whose places are noted: what is shorter is searched for each time."""
_SAMPLED_TEXTS, _SAMPLED_GRAMS = 4, 8  # of a branch, when its gate is chosen: what that costs has to have a bound
_MANY = 200
"""For so many open gates the places of a subject's grams are worth finding."""
_LONG = 1000
"""A search through so many characters costs more than a look at where its gram stands."""


class Wildcards:
    """Patterns by their places; the lowest comes first in precedence."""

    def __init__(self, patterns: Sequence[tuple[int, Wildcard]]) -> None:
        """`patterns` come in ascending order of place."""
        few = len(patterns) <= _FEW
        self._few = patterns if few else ()
        self._many = None if few else _Trie(patterns)

    def first(self, subject: str, below: int) -> int:
        """The lowest place below `below` of a pattern that matches, or `below`."""
        for place, pattern in self._few:
            if place >= below:
                return below
            if pattern.matches(subject):
                return place
        return min(self._many.found(subject, below, narrow=True), default=below) if self._many else below

    def every(self, subject: str, below: int) -> list[int]:
        """The places below `below` of all patterns that match, ascending."""
        if self._many:
            return sorted(self._many.found(subject, below, narrow=False))
        return [place for place, pattern in self._few if place < below and pattern.matches(subject)]


class _Trie:
    """The patterns by their heads, what stands before the first star; and behind each, the node where they go on."""

    def __init__(self, patterns: Sequence[tuple[int, Wildcard]]) -> None:
        paths: dict[str, list[_Path]] = {}
        for place, pattern in patterns:
            paths.setdefault(pattern.segments[0], []).append(_Path.of(place, pattern))
        self._nodes = {head: _Node(found, 0) for head, found in paths.items()}
        self._heads = Prefixes({head: node.lowest for head, node in self._nodes.items()})

    def found(self, subject: str, below: int, *, narrow: bool) -> list[int]:
        """Places of patterns that match; with `narrow`, only those below the ones found before."""
        found: list[int] = []
        view = _View(subject)
        # Not by recursion: a pattern can have thousands of stars.
        open_nodes = [(self._nodes[head], len(head)) for head in self._heads.every(subject)]
        while open_nodes:
            node, at = open_nodes.pop()
            if node.lowest >= below:
                continue
            for text in node.texts:
                at = view.find(text, at)
                if at < 0:
                    break
                at += len(text)
            else:
                for place in node.places_at(subject, at):
                    if place < below:
                        found.append(place)
                        below = place if narrow else below
                open_nodes += [(branch, at) for branch in node.open_branches(view, at, below)]
        return found


class _Path:
    """A pattern behind its head: texts to be found one after another, and what it ends with, where that is fixed."""

    __slots__ = ("end", "place", "texts")

    def __init__(self, place: int, texts: tuple[str, ...], end: str | None) -> None:
        self.place = place
        self.texts = texts
        self.end = end

    @classmethod
    def of(cls, place: int, pattern: Wildcard) -> "_Path":
        *texts, last = pattern.segments[1:]
        if pattern.anchored:
            return cls(place, tuple(texts), last)
        return cls(place, (*texts, last) if last else tuple(texts), None)


class _Node:
    """Patterns that agree so far: `texts` are what else they have in common, `lowest` the lowest place of them all.

    What lies behind is made when a subject first gets there.
    """

    __slots__ = ("_branches", "_ends", "_gates", "_paths", "_places", "_start", "lowest", "texts")

    def __init__(self, paths: list[_Path], start: int) -> None:
        """`paths` agree in their first `start` texts, and come in ascending order of place."""
        self.lowest = paths[0].place
        self.texts = _common(paths, start)
        self._start = start + len(self.texts)
        self._paths = paths
        self._places: list[int] = []
        self._ends: _Ends | None = None
        self._branches: list[_Node] = []
        self._gates: _Gates | None = None

    def places_at(self, subject: str, at: int) -> Iterable[int]:
        """The places of the patterns that match when `texts` have been found and `at` is where they end."""
        if self._paths:
            self._open()
        return (*self._places, *self._ends.places(subject, at)) if self._ends else self._places

    def open_branches(self, view: "_View", at: int, below: int) -> Iterable["_Node"]:
        """Branches that may go on from `at` to a place below `below`; none that does is left out."""
        return self._gates.open(view, at, below) if self._gates else self._branches

    def _open(self) -> None:
        start = self._start
        ends: dict[str, list[int]] = {}
        by_text: dict[str, list[_Path]] = {}
        for path in self._paths:
            if len(path.texts) > start:
                by_text.setdefault(path.texts[start], []).append(path)
            elif path.end is None:
                self._places.append(path.place)
            else:
                ends.setdefault(path.end, []).append(path.place)
        self._paths = []
        self._ends = _Ends(ends) if ends else None
        self._branches = [_Node(paths, start) for paths in by_text.values()]
        self._gates = _Gates(self._branches) if len(self._branches) > _FEW else None


def _common(paths: Sequence[_Path], start: int) -> tuple[str, ...]:
    """The texts from `start` on that all of them have."""
    model = paths[0].texts
    if len(paths) == 1:
        return model[start:]
    end = start
    shortest = min(len(path.texts) for path in paths)
    while end < shortest and all(path.texts[end] == model[end] for path in paths):
        end += 1
    return model[start:end]


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
        self._by_gram: dict[str, list[_Node]] = {}
        for branch, sample in zip(branches, samples, strict=True):
            rarest = min(sample, key=lambda gram: (shared[gram], gram))
            self._by_gram.setdefault(rarest, []).append(branch)
        # Texts shorter than a gram are their own: a few of them are sooner looked for than all others of their length.
        lengths = Counter(map(len, self._by_gram))
        self._lengths = [length for length, grams in lengths.items() if length == _GRAM or grams > _FEW]
        self._few = [gram for gram in self._by_gram if len(gram) not in self._lengths]

    def open(self, view: "_View", at: int, below: int) -> list[_Node]:
        by_gram = self._by_gram
        grams = {gram for gram in self._few if gram in view.subject}
        for length in self._lengths:
            grams |= by_gram.keys() & view.grams(length)  # as many steps as the smaller of them has grams
        branches = [branch for gram in grams for branch in by_gram[gram] if branch.lowest < below]
        return branches if len(branches) < _MANY else [branch for branch in branches if view.may_find(branch.texts, at)]


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


class _View:
    """A subject while it is matched, and what is learnt about it on the way."""

    __slots__ = ("_grams", "_places", "find", "subject")

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.find: Callable[[str, int], int] = subject.find
        self._grams: dict[int, set[str]] = {}
        self._places: dict[str, list[int]] = {}

    def grams(self, length: int) -> set[str]:
        """All its grams of that length."""
        grams = self._grams.get(length)
        if grams is None:
            subject = self.subject
            grams = {subject[at : at + length] for at in range(len(subject) - length + 1)}
            self._grams[length] = grams
        return grams

    def may_find(self, texts: Sequence[str], at: int) -> bool:
        """False only where `texts` cannot be found one after another from `at` on."""
        if not self._places:
            self._find_places()
        first, last = texts[0], texts[-1]
        if len(first) < _PLACED_GRAM or len(last) < _PLACED_GRAM:
            return True
        starts, tails = self._places.get(first[:_PLACED_GRAM], ()), self._places.get(last[-_PLACED_GRAM:], ())
        earliest = bisect_left(starts, at)
        if earliest == len(starts) or not tails:
            return False
        between = len(first) if len(texts) > 1 else 0
        return starts[earliest] + between <= tails[-1] + _PLACED_GRAM - len(last)

    def _find_places(self) -> None:
        """Where each gram stands, ascending; from here on long subjects are searched by that."""
        subject = self.subject
        for at in range(len(subject) - _PLACED_GRAM + 1):
            self._places.setdefault(subject[at : at + _PLACED_GRAM], []).append(at)
        if len(subject) >= _LONG:
            self.find = self._find_by_gram

    def _find_by_gram(self, text: str, at: int) -> int:
        """As `str.find`."""
        if len(text) < _PLACED_GRAM:
            return self.subject.find(text, at)
        places = self._places.get(text[:_PLACED_GRAM], ())
        start = bisect_left(places, at)
        for place in places[start : start + 4]:
            if self.subject.startswith(text, place):
                return place
        return self.subject.find(text, places[start + 4]) if len(places) > start + 4 else -1
