"""Calls with a timeout: the caller of a late call continues without its answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from app.background import cancel_and_wait

SLICES = 10
"""How many parts the timeout of a call is divided into."""

LATE_CALL_SECONDS = 5.0
"""Seconds after which a late call is cancelled; connecting over a slow network may take long."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a call may take in seconds, how many run at once, and how many late ones in addition.

    Each call holds a connection, so the calls to a shard need `concurrent + late` of them.
    """

    timeout: float
    concurrent: int
    late: int

    @classmethod
    def within(cls, connections: int, timeout: float) -> "Limits":
        """The limits for a process that may have so many connections, at least 5, to a shard."""
        # One is the subscriber's, one finds the other nodes of a cluster, and one is shared by all commands but those
        # that are redirected.
        left = connections - 3
        late = (left + 2) // 4
        return cls(timeout, left - late, late)


class TimedCalls:
    """Runs calls, each for at most `timeout` seconds; up to `late` late calls continue for LATE_CALL_SECONDS."""

    def __init__(self, timeout: float, late: int) -> None:
        self._timeout = timeout
        self._late_limit = late
        self._late: set[asyncio.Task[object]] = set()

    async def run(self, command: Callable[[], Awaitable[T]]) -> T:
        """Run the command; raises what it raises, and TimeoutError if it is late."""
        call = asyncio.create_task(_bounded(command))
        try:
            # In slices, each started after the one before has ended: if it was this process that stalled, the stall
            # counts as one slice, and an answer that arrived meanwhile is still read.
            for _ in range(SLICES):
                await asyncio.wait([call], timeout=self._timeout / SLICES)
                if call.done():
                    break
        finally:
            if not call.done():
                self._leave(call)
            elif not call.cancelled():
                call.exception()  # retrieved even if the caller is cancelled now, or asyncio would log it
        if not call.done():
            raise TimeoutError
        try:
            return call.result()
        finally:
            del call  # or this frame is in a cycle with an exception, which refers to it

    async def aclose(self) -> None:
        """Cancel the late calls and wait for them."""
        await cancel_and_wait(self._late)

    def _leave(self, call: asyncio.Task[T]) -> None:
        # A late call continues, because it may be connecting: a distant server would never be reached if every attempt
        # ended after the timeout of a command. Once connected, the next call finds the connection.
        if len(self._late) >= self._late_limit:
            call.cancel()
        self._late.add(call)
        call.add_done_callback(self._forget)

    def _forget(self, call: asyncio.Task[T]) -> None:
        self._late.discard(call)
        if not call.cancelled():
            call.exception()  # retrieved, or asyncio would log it


async def _bounded(command: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(LATE_CALL_SECONDS):
        return await command()
