"""One fetch per origin for the whole fleet: the holder of the lease fetches, the others wait for the result."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain, repeat
from math import ceil
from secrets import token_hex
from typing import Protocol, TypeVar

from app.origin import Origin
from app.redis.background import background
from app.redis.guarded_client import StoreDown

MARGIN = 2.0
"""Seconds that the work may take beside the fetch: calls to the store come before and after it."""

SECONDS = 2.0
"""How long a lease outlives a holder that has died; while it lives, it renews the lease RENEWALS times as often."""

RENEWALS = 4

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between two looks while another holds the lease, the last one repeated; news cuts them short."""

V = TypeVar("V")


class LeaseStore(Protocol):
    """Where leases are kept. Every method is bounded in time, and raises nothing but StoreDown."""

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> float | None:
        """Hold the origin's lease for so long, if nobody else does or else `by_force`: since when; None if not.

        The instant is by the store's clock (Unix seconds).
        """

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        """Hold the lease for so long from now, if it is still the one that was taken with this token."""

    async def release(self, origin: Origin, token: str) -> None:
        """Give the lease up, if it is still the one that was taken with this token."""


Work = Callable[[float | None], Awaitable[V]]
"""What is done under a lease; it is given the instant at which that was taken, None where the store is down."""


class Lease:
    """Lets one process of the fleet at a time work on an origin, for `longest` seconds at most.

    It saves work and is no lock: a holder that was stopped, or whose renewals fail, is overtaken, and while the store
    is down every process works. What comes of the work is ordered by when it began, so that a late holder does no harm.
    """

    def __init__(
        self, store: LeaseStore, longest: float, *, seconds: float = SECONDS, pauses: tuple[float, ...] = PAUSES
    ) -> None:
        """`seconds` and `pauses`: see SECONDS and PAUSES."""
        self._store = store
        self._longest = longest
        self._seconds = seconds
        self._pauses = pauses

    async def once(
        self,
        origin: Origin,
        learnt: Callable[[], Awaitable[V | None]],
        work: Work[V],
        news: asyncio.Event,
    ) -> V:
        """The result of `work`, or `learnt` as soon as that is not None: another has done it and left it in the store.

        `learnt` may raise StoreDown. `news` is set when looking is worth while; without it, looking is repeated. After
        waiting for as long as two works take, this process works too.
        """
        token = token_hex(16)
        try:
            found, since = await self._wait(origin, token, learnt, news)
            return await self._working(origin, token, since, work) if found is None else found
        finally:
            # Also when nothing is held: a call that was given up as late may have taken it afterwards. The token is
            # compared, so that a late holder never ends the lease of the next one.
            await self._release(origin, token)

    async def always(self, origin: Origin, work: Work[V]) -> V:
        """The result of `work`, begun now, while all others wait for it."""
        token = token_hex(16)
        try:
            since = await self._take_by_force(origin, token)
            return await self._working(origin, token, since, work)
        finally:
            await self._release(origin, token)

    async def _wait(
        self, origin: Origin, token: str, learnt: Callable[[], Awaitable[V | None]], news: asyncio.Event
    ) -> tuple[V | None, float | None]:
        """What was learnt; or None when it is our turn to work, and since when."""
        try:
            async with asyncio.timeout(2 * self._longest):
                for pause in chain(self._pauses, repeat(self._pauses[-1])):
                    news.clear()
                    since = await self._store.take(origin, token, self._seconds)
                    # Look after winning, too: between our last look and this moment, another may have taken the
                    # lease, done the work and given it back.
                    found = await learnt()
                    if since is not None or found is not None:
                        return found, since
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await news.wait()
        except StoreDown:
            return None, None
        except TimeoutError:
            # By force, since what holds for so long is no lease of ours: a foreign value without an end would make
            # everybody wait each time.
            return None, await self._take_by_force(origin, token)
        return None, None

    async def _working(self, origin: Origin, token: str, since: float | None, work: Work[V]) -> V:
        async with background(self._renew(origin, token)):
            return await work(since)

    async def _renew(self, origin: Origin, token: str) -> None:
        pause = self._seconds / RENEWALS
        # For as long as the work may take, and no longer: one that hangs must not keep all others waiting.
        for _ in range(ceil(self._longest / pause)):
            await asyncio.sleep(pause)
            with suppress(StoreDown):
                await self._store.renew(origin, token, self._seconds)

    async def _take_by_force(self, origin: Origin, token: str) -> float | None:
        with suppress(StoreDown):
            return await self._store.take(origin, token, self._seconds, by_force=True)
        return None

    async def _release(self, origin: Origin, token: str) -> None:
        with suppress(StoreDown):  # then it ends by itself
            await self._store.release(origin, token)
