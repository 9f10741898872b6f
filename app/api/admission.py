"""Bounds on the requests that are under way at the same time, in all and for each caller."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import Scope

from app.api.middleware.auth import caller_of
from app.api.problems import Problem


class Admission:
    """Admits at most `at_once` requests, and `per_caller` for each API key, or address without keys."""

    def __init__(
        self, at_once: int, per_caller: int, too_many: str, retry_after: int, *, refused: Callable[[], None]
    ) -> None:
        """`too_many` is the sentence that refuses a request, which may be sent again in `retry_after` seconds.

        `refused` is called for each request that is refused.
        """
        self._at_once = at_once
        self._per_caller = per_caller
        self._detail = f"{too_many}; try again in {retry_after} s."
        self._refused = refused
        self._retry_after = retry_after
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def admit(self, scope: Scope) -> Iterator[None]:
        """Count a request while the block lasts; raises Problem (503) if there are too many."""
        caller = caller_of(scope)
        if self._under_way.total() >= self._at_once or self._under_way[caller] >= self._per_caller:
            self._refused()
            raise Problem(503, "overloaded", self._detail, retry_after=self._retry_after)
        self._under_way[caller] += 1
        try:
            yield
        finally:
            self._under_way[caller] -= 1
            self._under_way += Counter()  # drop callers whose count is 0
