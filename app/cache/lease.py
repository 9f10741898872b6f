"""The lease of an origin: one process of the fleet fetches it, and the others wait for the result."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from math import ceil
from secrets import token_hex
from typing import Protocol, TypeVar

from app.background import BackgroundTask, Surviving, background
from app.origin import Origin
from app.redis.guarded_client import StoreDown

MARGIN = 2.0
"""Seconds that the work may take in addition to the fetch, for calls to the store."""

LEASE_SECONDS = 2.0
"""Seconds after which the lease of a dead holder expires; a live one renews it RENEWALS times in that time."""

RENEWALS = 4

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between two lookups while another process holds the lease, the last one repeated."""

V = TypeVar("V")


class LeaseStore(Protocol):
    """Where leases are kept. Every method is bounded in time and raises only StoreDown."""

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> float | None:
        """Take the origin's lease for so long if it is free, or `by_force`; since when, or None if it was not taken.

        The instant is by the store's clock (Unix seconds).
        """

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        """Extend the lease to so long from now, if this token still holds it."""

    async def release(self, origin: Origin, token: str) -> None:
        """Give the lease up, if this token still holds it."""


Work = Callable[[float | None], Awaitable[V]]
"""Work under a lease; it is passed the instant at which the lease was taken, or None if the store is down."""


class Lease:
    """Lets one process of the fleet at a time work on an origin, for `longest` seconds at most.

    It saves work and is not a lock: a holder that was stopped, or whose renewals fail, is overtaken, and while the
    store is down every process works. Results are ordered by when their work began, so a late holder does no harm.
    """

    def __init__(
        self, store: LeaseStore, longest: float, *, seconds: float = LEASE_SECONDS, pauses: tuple[float, ...] = PAUSES
    ) -> None:
        """`seconds` and `pauses`: see LEASE_SECONDS and PAUSES."""
        self._store = store
        self._longest = longest
        self._seconds = seconds
        self._pauses = pauses

    async def run_once(
        self,
        origin: Origin,
        lookup: Callable[[], Awaitable[V | None]],
        work: Work[V],
        wake: asyncio.Event,
    ) -> V:
        """Do the work, unless `lookup` first finds what another process has left in the store.

        `lookup` may raise StoreDown. It is repeated while another process holds the lease, and at once when `wake` is
        set. After waiting for twice the longest work, this process works too.
        """
        token = token_hex(16)
        try:
            found, since = await self._wait(origin, token, lookup, wake)
            return await self._work(origin, token, since, work) if found is None else found
        finally:
            # Even if the lease was not taken: a call that timed out may have taken it afterwards. The token is
            # compared, so a late holder never releases the lease of the next one.
            await self._release(origin, token)

    async def run_now(self, origin: Origin, work: Work[V]) -> V:
        """Do the work at once, while all other processes wait for it."""
        token = token_hex(16)
        try:
            since = await self._take_by_force(origin, token)
            return await self._work(origin, token, since, work)
        finally:
            await self._release(origin, token)

    async def _wait(
        self, origin: Origin, token: str, lookup: Callable[[], Awaitable[V | None]], wake: asyncio.Event
    ) -> tuple[V | None, float | None]:
        """What `lookup` found; or None once this process may work, and since when it has the lease."""
        try:
            async with asyncio.timeout(2 * self._longest):
                for pause in chain(self._pauses, repeat(self._pauses[-1])):
                    wake.clear()
                    since = await self._store.take(origin, token, self._seconds)
                    # Look up after taking the lease, too: since the last lookup another process may have taken it,
                    # done the work and released it.
                    found = await lookup()
                    if since is not None or found is not None:
                        return found, since
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await wake.wait()
        except StoreDown:
            return None, None
        except TimeoutError:
            # By force: a lease of ours does not last that long, and a foreign value without an expiry would make
            # every caller wait each time.
            return None, await self._take_by_force(origin, token)
        return None, None

    async def _work(self, origin: Origin, token: str, since: float | None, work: Work[V]) -> V:
        async with background(BackgroundTask.LEASES, partial(self._renew, origin, token)):
            return await work(since)

    async def _renew(self, origin: Origin, token: str) -> None:
        pause = self._seconds / RENEWALS
        # For as long as the work may take and no longer: work that hangs must not keep the fleet waiting.
        for _ in range(ceil(self._longest / pause)):
            await asyncio.sleep(pause)
            with Surviving(BackgroundTask.LEASES, origin.key), suppress(StoreDown):
                await self._store.renew(origin, token, self._seconds)

    async def _take_by_force(self, origin: Origin, token: str) -> float | None:
        with suppress(StoreDown):
            return await self._store.take(origin, token, self._seconds, by_force=True)
        return None

    async def _release(self, origin: Origin, token: str) -> None:
        with suppress(StoreDown):  # then it expires
            await self._store.release(origin, token)
