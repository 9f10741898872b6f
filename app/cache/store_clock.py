"""The store's clock, by which all processes order what they learn."""

from collections.abc import Callable


class StoreClock:
    """The store's clock (Unix seconds), as far ahead of this process's as it was when last read.

    Until it is read for the first time, it is this process's own clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ahead = 0.0

    def __call__(self) -> float:
        return self._clock() + self._ahead

    def sync(self, at: float) -> None:
        """Set the clock: the store reports that it is `at` now."""
        self._ahead = at - self._clock()
