"""The lease of an origin: one process of the fleet fetches it, and the others wait for the result."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from math import ceil
from secrets import token_hex
from typing import TypeVar

from app.cache.freshness import Snapshot
from app.cache.ordering import Purged
from app.cache.redis_snapshots import RedisSnapshots
from app.loop.background import BackgroundTask, Surviving, background
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin

MARGIN = 2.0
"""Seconds that the work may take in addition to the fetch, for calls to the store."""

LEASE_SECONDS = 2.0
"""Seconds after which the lease of a dead holder expires; a live one renews it RENEWALS times in that time."""

RENEWALS = 4

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between two lookups while another process holds the lease, the last one repeated."""

V = TypeVar("V")


@dataclass(slots=True)
class Held:
    """A lease while its work runs: since when, None if the store is down; and whether the work has released it."""

    token: str
    since: float | None = None
    released: bool = False


Read = Callable[[Origin], Awaitable[Snapshot | Purged | None]]
"""Reads an origin's entry in the store; raises StoreDown."""

Lookup = Callable[[Read], Awaitable[V | None]]
"""Looks for a result, in what the argument reads."""

Work = Callable[[Held], Awaitable[V]]
"""Work under a lease."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Lets one process of the fleet at a time work on an origin, for `longest` seconds at most.

    It saves work and is not a lock: a holder that was stopped, or whose renewals fail, is overtaken, and while the
    store is down every process works. Results are ordered by when their work began, so a late holder does no harm.
    `seconds` and `pauses`: see LEASE_SECONDS and PAUSES.
    """

    store: RedisSnapshots
    longest: float
    seconds: float = LEASE_SECONDS
    pauses: tuple[float, ...] = PAUSES

    async def run_once(
        self,
        origin: Origin,
        lookup: Lookup[V],
        work: Work[V],
        wake: asyncio.Event,
    ) -> V:
        """Do the work, unless `lookup` first finds what another process has left in the store.

        `lookup` reads the store by the call that takes the lease, and may raise StoreDown. It is repeated while another
        process holds the lease, and at once when `wake` is set. After waiting for twice the longest work, this process
        works too.
        """
        held = Held(token_hex(16))
        try:
            found = await self._wait(origin, held, lookup, wake)
            return await self._work(origin, held, work) if found is None else found
        finally:
            await self._release(origin, held)

    async def run_now(self, origin: Origin, work: Work[V]) -> V:
        """Do the work at once, while all other processes wait for it."""
        held = Held(token_hex(16))
        try:
            await self._take_by_force(origin, held)
            return await self._work(origin, held, work)
        finally:
            await self._release(origin, held)

    async def _wait(self, origin: Origin, held: Held, lookup: Lookup[V], wake: asyncio.Event) -> V | None:
        """What `lookup` found, or None once this process may work."""

        async def take(origin: Origin) -> Snapshot | Purged | None:
            # The entry is read with the lease, too: since the last lookup another process may have taken it, done the
            # work and released it.
            held.since, found = await self.store.take(origin, held.token, self.seconds)
            return found

        try:
            async with asyncio.timeout(2 * self.longest):
                for pause in chain(self.pauses, repeat(self.pauses[-1])):
                    wake.clear()
                    found = await lookup(take)
                    if held.since is not None or found is not None:
                        return found
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await wake.wait()
        except StoreDown:
            held.since = None
        except TimeoutError:
            # By force: a lease of ours does not last that long, and a foreign value without an expiry would make
            # every caller wait each time.
            await self._take_by_force(origin, held)
        return None

    async def _work(self, origin: Origin, held: Held, work: Work[V]) -> V:
        async with background(BackgroundTask.LEASES, partial(self._renew, origin, held.token)):
            return await work(held)

    async def _renew(self, origin: Origin, token: str) -> None:
        pause = self.seconds / RENEWALS
        # For as long as the work may take and no longer: work that hangs must not keep the fleet waiting.
        for _ in range(ceil(self.longest / pause)):
            await asyncio.sleep(pause)
            with Surviving(BackgroundTask.LEASES, origin.key), suppress(StoreDown):
                await self.store.renew(origin, token, self.seconds)

    async def _take_by_force(self, origin: Origin, held: Held) -> None:
        with suppress(StoreDown):
            held.since, _ = await self.store.take(origin, held.token, self.seconds, by_force=True)

    async def _release(self, origin: Origin, held: Held) -> None:
        # Even if the lease was not taken: a call that timed out may have taken it afterwards. The token is compared, so
        # a late holder never releases the lease of the next one.
        if not held.released:
            with suppress(StoreDown):  # then it expires
                await self.store.release(origin, held.token)
