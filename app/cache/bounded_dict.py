"""A dict of bounded size, for values that are cheap to lose."""

from collections import OrderedDict
from typing import TypeVar

MAX_KEYS = 100_000
"""Queues and sites that one process remembers, at most."""

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """The values of the `most` keys that were set last, the oldest first."""

    def __init__(self, most: int = MAX_KEYS) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
