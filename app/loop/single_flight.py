"""One task per key at a time, shared by all callers."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from app.loop.background import BackgroundTask, cancel_and_wait, report

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """At most one task (flight) per key. No caller owns it, so cancelling one caller does not fail the others."""

    def __init__(self, task: BackgroundTask, expected: type[Exception] | tuple[type[Exception], ...] = ()) -> None:
        """What a flight raises is reported as a failure of `task` unless `expected`, since there may be no caller."""
        self._task = task
        self._expected = expected
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def do(self, key: K, fn: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Join the flight under way for `key`, or start one with `fn`; what it raises is raised for all callers."""
        flight = self.start(key, fn)
        # asyncio.wait leaves the flight alone when this caller is cancelled; a bare await would cancel it for all.
        await asyncio.wait([flight])
        try:
            return flight.result()
        finally:
            del flight  # or this frame is in a cycle with an exception, which refers to it

    def start(self, key: K, fn: Callable[[], Coroutine[Any, Any, V]]) -> asyncio.Task[V]:
        """The flight under way for `key`, started with `fn` if there was none; it need not be awaited.

        Wait for it with asyncio.wait only: awaiting the task itself, and being cancelled, would cancel it for all.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.create_task(fn(), name=self._task)
            flight.add_done_callback(partial(self._land, key))
        return flight

    def under_way(self, key: K) -> asyncio.Task[V] | None:
        """The flight under way for `key`, to be waited for with asyncio.wait only."""
        return self._flights.get(key)

    async def aclose(self) -> None:
        """Cancel what is under way and wait until it has ended."""
        await cancel_and_wait(self._flights.values())

    def _land(self, key: K, flight: asyncio.Task[V]) -> None:
        del self._flights[key]
        if flight.cancelled():
            return
        # Retrieving the exception keeps asyncio from warning about it.
        error = flight.exception()
        if error is not None and not isinstance(error, self._expected):
            report(self._task, key, error)
