"""One fetch per origin for the whole fleet: who holds the lease fetches, the others wait for what that brings."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain, repeat
from secrets import token_hex
from typing import Protocol, TypeVar

from app.origin import Origin
from app.store.calls import StoreDown

MARGIN = 2.0
"""Seconds that a lease is longer than the work it is for: calls to the store come before and after the fetch."""

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between two looks while another holds the lease, the last one repeated; news cuts them short."""

V = TypeVar("V")


class LeaseStore(Protocol):
    """Where leases are kept. Both methods are bounded in time, and raise nothing but StoreDown."""

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> bool:
        """Hold the origin's lease for so long, if nobody else holds it, or else `by_force`; whether it is held now."""

    async def release(self, origin: Origin, token: str) -> None:
        """Give the lease up, if it is still the one that was taken with this token."""


class Lease:
    """Lets one process of the fleet at a time work on an origin, for `seconds` at most.

    It saves work, and is no lock: a holder who is late is not stopped, and where the store is down everyone works for
    himself. So the work has to be right when it is done twice.
    """

    def __init__(self, store: LeaseStore, seconds: float, *, pauses: tuple[float, ...] = PAUSES) -> None:
        self._store = store
        self._seconds = seconds
        self._pauses = pauses

    async def once(
        self,
        origin: Origin,
        learnt: Callable[[], Awaitable[V | None]],
        work: Callable[[], Awaitable[V]],
        news: asyncio.Event,
    ) -> V:
        """The result of `work`, or `learnt` as soon as that is not None: another has done it and left it in the store.

        `learnt` may raise StoreDown. `news` is set when looking is worth while; without it, looking is repeated. Who
        has waited for two leases (one holder who died, and the one after him) works himself.
        """
        token = token_hex(16)
        try:
            found = await self._wait(origin, token, learnt, news)
            return await work() if found is None else found
        finally:
            # Also when nothing is held: a call that was given up as late may have taken it afterwards. The token is
            # compared, so that a holder who is late never ends the lease of the next one.
            await self._release(origin, token)

    async def always(self, origin: Origin, work: Callable[[], Awaitable[V]]) -> V:
        """The result of `work`, begun now, while all others wait for it."""
        token = token_hex(16)
        try:
            with suppress(StoreDown):
                await self._store.take(origin, token, self._seconds, by_force=True)
            return await work()
        finally:
            await self._release(origin, token)

    async def _wait(
        self, origin: Origin, token: str, learnt: Callable[[], Awaitable[V | None]], news: asyncio.Event
    ) -> V | None:
        """What was learnt, or None when it is our turn to work."""
        try:
            async with asyncio.timeout(2 * self._seconds):
                for pause in chain(self._pauses, repeat(self._pauses[-1])):
                    news.clear()
                    won = await self._store.take(origin, token, self._seconds)
                    # Look after winning, too: between our last look and this moment, another may have taken the
                    # lease, done the work and given it back.
                    found = await learnt()
                    if won or found is not None:
                        return found
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await news.wait()
        except StoreDown:
            return None
        except TimeoutError:
            # By force, since what holds for so long is no lease of ours: a foreign value without an end would make
            # everybody wait each time.
            with suppress(StoreDown):
                await self._store.take(origin, token, self._seconds, by_force=True)
        return None

    async def _release(self, origin: Origin, token: str) -> None:
        with suppress(StoreDown):  # then it ends by itself
            await self._store.release(origin, token)
