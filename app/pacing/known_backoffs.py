"""The backoffs that a process remembers, for times when the store does not answer, or has lost them."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from app.cache.byte_lru import BoundedDict
from app.pacing.slots import PaceKey


class _Known(NamedTuple):
    key: PaceKey
    ends: float


class KnownBackoffs:
    """The backoffs that this process has met, by pool. Their ends are by `steady`: the store's clock may be set."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._known: BoundedDict[str, _Known] = BoundedDict()

    def left(self, pool: str) -> float:
        """Seconds left of the pool's backoff, or 0."""
        known = self._known.get(pool, None)
        return 0.0 if known is None else max(0.0, known.ends - self._steady())

    def note(self, key: PaceKey, seconds: float) -> None:
        """Note how many seconds are left of the backoff from the key's pool."""
        if seconds > 0:
            self._known[key.pool] = _Known(key, self._steady() + seconds)
        else:
            self._known.pop(key.pool, None)

    def running(self) -> Iterator[PaceKey]:
        """A key of each pool with a backoff that is not over."""
        now = self._steady()
        return (known.key for known in self._known.values() if known.ends > now)
