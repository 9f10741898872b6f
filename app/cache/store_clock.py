"""The store's clock, by which all processes order what they learn."""

from collections.abc import Callable


class StoreClock:
    """The store's clock (Unix seconds), as far ahead of this process's as it was when it was last heard.

    Until it is heard, and while the store is down, this process's own clock is the best that there is.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ahead = 0.0

    def __call__(self) -> float:
        return self._clock() + self._ahead

    def heard(self, at: float) -> None:
        """The store says that it is `at` now."""
        self._ahead = at - self._clock()
