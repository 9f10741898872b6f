"""Many prefixes asked at once: which of them does a subject begin with?"""

from bisect import bisect_right
from collections.abc import Mapping


class Prefixes:
    """Prefixes in sorted order: all that a subject begins with lie on one chain of ancestors, each the next longest.

    So it is one search, and a walk up to the first that fits. Each has a place, its rank among patterns; the lowest
    place on a chain is known before anybody asks.
    """

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places = places
        self._ordered = sorted(places)
        self._parents: list[int] = []  # where the longest proper prefix stands; -1: nowhere
        self._lowest: list[int] = []  # the lowest place among it and its ancestors
        above: list[int] = []
        for at, prefix in enumerate(self._ordered):
            while above and not prefix.startswith(self._ordered[above[-1]]):
                above.pop()
            parent = above[-1] if above else -1
            place = places[prefix]
            self._parents.append(parent)
            self._lowest.append(place if parent < 0 else min(place, self._lowest[parent]))
            above.append(at)

    def first(self, subject: str, none: int) -> int:
        """The lowest place of those that `subject` begins with, or `none`."""
        ordered = self._ordered
        at = bisect_right(ordered, subject) - 1
        while at >= 0:
            if subject.startswith(ordered[at]):
                return self._lowest[at]
            at = self._parents[at]
        return none

    def every(self, subject: str) -> list[str]:
        """All that `subject` begins with, the longest first."""
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
