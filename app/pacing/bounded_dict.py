"""A mapping of bounded size, for values that are cheap to lose."""

from collections import OrderedDict
from collections.abc import Collection
from typing import Final, Generic, TypeVar

MAX_KEYS = 100_000
"""Queues and sites that one process remembers, at most."""

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class BoundedDict(Generic[K, V]):
    """The values of the MAX_KEYS keys that were set last."""

    def __init__(self) -> None:
        self._values: Final[OrderedDict[K, V]] = OrderedDict()

    def __setitem__(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > MAX_KEYS:
            self._values.popitem(last=False)

    def __bool__(self) -> bool:
        return bool(self._values)

    def get(self, key: K, default: D) -> V | D:
        """The value of the key, or `default`."""
        return self._values.get(key, default)

    def values(self) -> Collection[V]:
        """All values, the oldest first."""
        return self._values.values()

    def pop(self, key: K) -> V | None:
        """Remove the key, and return its value or None."""
        return self._values.pop(key, None)

    def popitem(self) -> tuple[K, V]:
        """Remove and return the oldest item."""
        return self._values.popitem(last=False)
