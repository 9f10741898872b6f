"""Many prefixes asked at once: which of them does a subject begin with?"""

from bisect import bisect_right
from collections.abc import Mapping

_FEW = 16


class Prefixes:
    """Prefixes in sorted order: all that a subject begins with lie on one chain of ancestors, each the next longest.

    So it is one search, and a walk up to the first that fits. Each has a place, its rank among patterns; the lowest
    place on a chain is known before anybody asks.
    """

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        # A few are asked one by one sooner than a search is begun, and most often all of them at once are told no.
        self._few = tuple(sorted(places, key=places.__getitem__)) if len(places) <= _FEW else None
        self.glance: tuple[str, ...] = ("",) if self._few is None else self._few
        """What begins with none of these begins with no prefix: to be asked before anything else, by `startswith`."""
        self._ordered: list[str] = []
        self._parents: list[int] = []  # where the longest proper prefix stands; -1: nowhere
        self._lowest: list[int] = []  # the lowest place among it and its ancestors
        if self._few is None:
            self._order()

    def _order(self) -> None:
        self._ordered = sorted(self._places)
        above: list[int] = []
        for at, prefix in enumerate(self._ordered):
            while above and not prefix.startswith(self._ordered[above[-1]]):
                above.pop()
            parent = above[-1] if above else -1
            place = self._places[prefix]
            self._parents.append(parent)
            self._lowest.append(place if parent < 0 else min(place, self._lowest[parent]))
            above.append(at)

    def first(self, subject: str, none: int) -> int:
        """The lowest place of those that `subject` begins with, or `none`."""
        if self._few is not None:
            for prefix in self._few:
                if subject.startswith(prefix):
                    return self._places[prefix]
            return none
        ordered = self._ordered
        at = bisect_right(ordered, subject) - 1
        while at >= 0:
            if subject.startswith(ordered[at]):
                return self._lowest[at]
            at = self._parents[at]
        return none

    def every(self, subject: str) -> list[str]:
        """All that `subject` begins with, the longest first."""
        if self._few is not None:
            return sorted(filter(subject.startswith, self._few), key=len, reverse=True)
        found: list[str] = []
        at = bisect_right(self._ordered, subject) - 1
        while at >= 0:
            if found or subject.startswith(self._ordered[at]):
                found.append(self._ordered[at])
            at = self._parents[at]
        return found

    def place(self, prefix: str) -> int:
        """The place of one of them."""
        return self._places[prefix]
