"""Fetching an origin's file for the fleet: under its lease, and ordered by when the fetch began."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from app.cache.fetch_health import FetchHealth
from app.cache.freshness import HidesRules, Snapshot, doubted, next_snapshot
from app.cache.lease import Held, Lease, Read
from app.cache.result import Source
from app.cache.tiered_snapshots import TieredSnapshots
from app.store.store_clock import StoreClock
from robots_core.origin import Origin
from robots_core.robots.access import Fetched, NotModified, Successful, Unreachable, Validators

Fetch = Callable[[Origin, Validators, str], Awaitable[Fetched]]
"""One bounded fetch, conditional if there are validators, for a caller (an API key, or an address).

It raises Busy if none could be made, and nothing else.
"""

OnFetch = Callable[[Origin, Snapshot, float, str], None]
"""Called after every fetch with the snapshot that it led to, the seconds that it took, and the caller it was for."""

IsFresh = Callable[[Snapshot, bool], bool]
"""Whether a snapshot needs no fetch; the flag is true if another process fetched it while this caller waited."""


@dataclass(frozen=True, eq=False)
class Refresher:
    """Fetches origins, one process of the fleet at a time, and saves what is found.

    `on_fetch` and `health` are called after every fetch. `hides_rules`: see doubted().
    """

    snapshots: TieredSnapshots
    lease: Lease
    fetch: Fetch
    clock: StoreClock
    on_fetch: OnFetch
    health: FetchHealth
    hides_rules: HidesRules

    async def refresh(
        self, origin: Origin, seen: Snapshot | None, is_fresh: IsFresh, caller: str
    ) -> tuple[Snapshot, Source]:
        """Fetch for a caller unless a fresh snapshot is found first; `seen` is the one that was due. Raises Busy."""
        # A refresh may have ended between the caller's lookup and now. Its flight is over, so this is a new one, and
        # without this check every caller whom the store answered late would fetch again. Memory is enough: what a
        # refresh of this process learns is put there first.
        known = self.snapshots.memory.snapshot(origin)
        if known is not None and known is not seen and is_fresh(known, False):
            return known, Source.MEMORY
        checked, before = False, None

        async def lookup(read: Read) -> tuple[Snapshot, Source] | None:
            nonlocal checked, before
            found, source = await self.snapshots.get_from_store(origin, read)
            waited_for = checked and found is not None and (before is None or found.checked_at > before.checked_at)
            checked, before = True, before if checked else found
            return (found, source) if found is not None and is_fresh(found, waited_for) else None

        with self.snapshots.waiting(origin) as invalidated:
            fetch = partial(self._fetch_and_save, origin, seen, caller)
            return await self.lease.run_once(origin, lookup, fetch, invalidated)

    async def fetch_now(self, origin: Origin, caller: str) -> tuple[Snapshot, Source]:
        """Fetch the whole file at once for a caller, while the rest of the fleet waits. Raises Busy."""
        known, _ = await self.snapshots.get(origin)
        return await self.lease.run_now(origin, partial(self._fetch_and_save, origin, known, caller, whole=True))

    async def _fetch_and_save(
        self, origin: Origin, seen: Snapshot | None, caller: str, held: Held, *, whole: bool = False
    ) -> tuple[Snapshot, Source]:
        """Fetch under a lease, and save what is found, which releases the lease. `whole`: unconditionally."""
        if held.since is not None:
            self.clock.sync(held.since)
        fetched, snapshot = await self._fetch_once(origin, seen, caller, held.since, whole=whole)
        kept = await self.snapshots.save(origin, snapshot, seen, held=held)
        if kept is None:
            # Purged meanwhile, so a fetch that began before does not count. If it is purged again, callers from
            # before that purge still get the second result, but it is not kept.
            fetched, snapshot = await self._fetch_once(origin, None, caller, None, whole=True)
            kept = await self.snapshots.save(origin, snapshot, held=held) or snapshot
        if kept.checked_at != snapshot.checked_at:
            return kept, Source.STORE
        if kept.failing is not None and isinstance(kept.access, Successful):
            return kept, Source.MEMORY
        return kept, Source.REVALIDATED if isinstance(fetched.access, NotModified) else Source.FETCHED

    async def _fetch_once(
        self, origin: Origin, seen: Snapshot | None, caller: str, began: float | None, *, whole: bool
    ) -> tuple[Fetched, Snapshot]:
        """What one fetch finds, and the snapshot that follows what was known when it began."""
        began = self.clock() if began is None else began
        known = self.snapshots.memory.snapshot(origin) or seen
        # A 304 about a file that a caller sent would confirm bytes that this service never received.
        received = known is not None and isinstance(known.access, Successful) and known.ingested is None
        conditional = received and not whole
        now = asyncio.get_running_loop().time
        started = now()
        validators = known.validators if known is not None and conditional else Validators()
        fetched = await self.fetch(origin, validators, caller)
        seconds = now() - started
        self.health.note_fetch(fetched.access)
        fetched = doubted(known, fetched, began, self.hides_rules)
        snapshot = next_snapshot(known, _dated_to_beginning(fetched, seconds), began)
        self.on_fetch(origin, snapshot, seconds, caller)
        return fetched, snapshot


def _dated_to_beginning(fetched: Fetched, seconds: float) -> Fetched:
    """The result with its Retry-After counted from the beginning of the fetch, which took `seconds`."""
    failure = fetched.access
    if not isinstance(failure, Unreachable) or failure.retry_after is None:
        return fetched
    return replace(fetched, access=replace(failure, retry_after=failure.retry_after + max(0, math.ceil(seconds))))
