"""Try the addresses of a host without waiting for one that says nothing: the next begins 250 ms later (RFC 8305 5)."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from app.fetch.exchange import Exchange

NEXT_AFTER = 0.25
"""Seconds after which the next address is tried if the last attempt has no connection yet (RFC 8305 8)."""


class AddressBusy(Exception):
    """No connection was tried: to every address of the host, the permitted number of connections stayed open."""


class Progress:
    """How far an attempt is. `connected` is set once it has a connection, and only TLS is left."""

    def __init__(self, winner: "asyncio.Future[Exchange]") -> None:
        self.connected = False
        self.is_winner = False
        self._winner = winner

    def won(self, exchange: Exchange) -> bool:
        """Whether this attempt is the first whose connection is open. If so, its request is sent."""
        if self._winner.done():
            return False
        self._winner.set_result(exchange)
        self.is_winner = True
        exchange.begin()
        return True


Attempt: TypeAlias = Callable[[Progress], Coroutine[Any, Any, None]]
"""Connects to an address, calls `won` once it has, and closes the connection at the end, also when it is cancelled.

Raises AddressBusy and OSError if another address may do better, and other exceptions if none can.
"""


class Race:
    """Attempts to reach a host, of which the first one with an open connection wins. It ends at `deadline`."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._winner: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()
        self._running: dict[asyncio.Task[None], Progress] = {}

    async def first(self, attempts: Sequence[Attempt]) -> Exchange:
        """The exchange of the attempt that wins; raises the failure that says most if none does."""
        failures: list[BaseException] = []
        left = list(attempts)
        try:
            while not any(map(_is_final, failures)) and (left or self._running):
                if left:
                    progress = Progress(self._winner)
                    self._running[asyncio.create_task(left.pop(0)(progress))] = progress
                failures += await self._until_next(len(left))
                if self._winner.done():
                    await _end([attempt for attempt, of in self._running.items() if not of.is_winner])
                    return self._winner.result()
            raise max(reversed(failures), key=_says)  # the last, if they say alike
        finally:
            del failures  # or this frame is in a cycle with an exception, which refers to it

    async def aclose(self) -> None:
        """End all attempts, and with them their connections."""
        self._winner.cancel()
        await _end(list(self._running))

    async def _until_next(self, left: int) -> list[BaseException]:
        """Wait until an attempt wins or fails, or the next of the `left` addresses is due; returns the failures."""
        failures = await self._wait(NEXT_AFTER if left else None)
        if left and not failures and not self._winner.done() and [*self._running.values()][-1].connected:
            # A server that is far away takes longer for TLS, and must not be asked twice for it. One that stalls must
            # not use up the time of the other addresses: it gets an equal share, and one remains for the request.
            failures = await self._wait((self._deadline - asyncio.get_running_loop().time()) / (left + 2))
        return failures

    async def _wait(self, seconds: float | None) -> list[BaseException]:
        either: list[asyncio.Future[Any]] = [*self._running, self._winner]
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._winner.done():
            return []
        ended = [attempt for attempt in self._running if attempt.done()]
        for attempt in ended:
            del self._running[attempt]
        return [failure for attempt in ended if (failure := attempt.exception()) is not None]


async def _end(attempts: Sequence["asyncio.Task[None]"]) -> None:
    """Cancel the attempts, and wait until they have closed their connections."""
    for attempt in attempts:
        attempt.cancel()
    if attempts:
        await asyncio.wait(attempts)
    for attempt in attempts:
        if not attempt.cancelled():
            attempt.exception()  # or it would be logged as never retrieved


def _is_final(failure: BaseException) -> bool:
    """Whether no other address can do better."""
    return not isinstance(failure, AddressBusy | OSError)


def _says(failure: BaseException) -> tuple[bool, bool]:
    """A key that orders failures by how much they say."""
    # An address that was not tried might have answered, so the failures of the others do not count.
    return _is_final(failure), isinstance(failure, AddressBusy)
