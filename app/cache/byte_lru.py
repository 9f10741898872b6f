"""Dicts of bounded size: one bounded in bytes, least recently used first out, and one bounded in entries."""

from collections import OrderedDict
from collections.abc import Hashable
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_KEYS = 100_000
"""Queues and sites that one process remembers, at most."""


class ByteLRU(Generic[K, V]):
    """At most `entries` values with sizes of at most `limit` in total; every operation is O(1) amortised."""

    def __init__(self, limit: int, entries: float = inf) -> None:
        self._limit = limit
        self._most = entries
        self._used = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    @property
    def usage(self) -> tuple[int, int]:
        """The sum of the sizes, and how many values there are."""
        return self._used, len(self._entries)

    def get(self, key: K) -> V | None:
        """The value or None; it becomes the most recently used."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def peek(self, key: K) -> V | None:
        """The value or None; does not count as a use."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Set the value of `key`; a value larger than `limit` is not kept, and evicts nothing."""
        self.drop(key)
        if size > self._limit:
            return
        self._entries[key] = (value, size)
        self._used += size
        while self._used > self._limit or len(self._entries) > self._most:
            _, (_, freed) = self._entries.popitem(last=False)
            self._used -= freed

    def drop(self, key: K) -> None:
        """Remove `key`, if it is there."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._used -= entry[1]


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
