"""The cache of robots.txt files: from memory, from the store, or fetched by one process for the fleet."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import TypeAlias

from app.cache.fetch_health import FetchHealth
from app.cache.freshness import KEEP, HidesRules, Recheck, Snapshot, State, doubted, freshness, next_snapshot, usable
from app.cache.invalidation import Event
from app.cache.lease import Lease
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.refresher import Fetch, OnFetch, Refresher
from app.cache.result import CacheResult, Source, found
from app.cache.snapshot_memory import SnapshotMemory
from app.cache.tiered_snapshots import OnTaken, OnVersionEnded, TieredSnapshots
from app.loop.background import BackgroundTask
from app.loop.single_flight import SingleFlight
from app.store.store_clock import StoreClock
from robots_core.content import same
from robots_core.origin import Origin
from robots_core.robots.access import Busy, Fetched, Successful, Unreachable

__all__ = ["Fetch", "RobotsCache"]

OnIngested = Callable[[Origin, Snapshot, Snapshot | None], None]
"""Called with what a caller sent, and the snapshot that is known then; None if what was sent is of the past alone."""

RoomForCopy = Callable[[str, int], AbstractAsyncContextManager[None]]
"""While the block lasts there is room for what a caller sent, of so many bytes, which may wait. Raises Busy."""

_Refreshes: TypeAlias = SingleFlight[Origin, tuple[Snapshot, Source]]


class RobotsCache:
    """The cache of one process, in front of a store that processes share.

    Files are dated and judged by `clock`, which all processes share, so a process whose own clock is wrong neither
    fetches for every question nor answers from a file that is too old.

    `memory_bytes` bounds the snapshots in memory, each of which is trusted for `trust` seconds before the store is
    asked again. A copy that was fetched less than `min_refetch` seconds ago is new enough for every `max_age`, so that
    callers cannot have an origin asked all the time. A fetch is to end within `lease` seconds, after which another
    process may begin one. While the store is down, the cache answers from memory and by fetching. `on_fetch` and
    `health` are called after every fetch, and `on_version_ended` with the last snapshot of each content that has ended,
    and the one that replaced it. For `on_ingested`, `room_for_copy`, `on_taken` and `hides_rules`, see OnIngested,
    RoomForCopy, OnTaken and HidesRules.
    """

    def __init__(
        self,
        store: RedisSnapshots,
        fetch: Fetch,
        clock: StoreClock,
        memory_bytes: int,
        *,
        trust: float = 30.0,
        lease: float = 12.0,
        min_refetch: float = 0.0,
        on_version_ended: OnVersionEnded = lambda _origin, _ended, _following: None,
        on_fetch: OnFetch = lambda _origin, _snapshot, _seconds, _caller: None,
        on_ingested: OnIngested = lambda _origin, _snapshot, _kept: None,
        room_for_copy: RoomForCopy | None = None,
        on_taken: OnTaken | None = None,
        health: FetchHealth | None = None,
        hides_rules: HidesRules = lambda _copy, _found: False,
    ) -> None:
        health = health or FetchHealth()
        self._clock = clock
        self._min_refetch = min_refetch
        self._hides_rules = hides_rules
        self._on_version_ended = on_version_ended
        self._on_ingested = on_ingested
        self._room_for_copy = room_for_copy or (lambda _sender, _size: nullcontext())
        self._memory = SnapshotMemory(memory_bytes, clock, trust)
        self._snapshots = TieredSnapshots(store, self._memory, clock, health, on_version_ended, on_taken)
        self._refresher = Refresher(self._snapshots, Lease(store, lease), fetch, clock, on_fetch, health, hides_rules)
        self._refreshes = _Refreshes(BackgroundTask.REFRESHES, expected=Busy)
        self._forced = _Refreshes(BackgroundTask.REFRESHES, expected=Busy)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the snapshots in memory."""
        return self._memory.usage

    def has(self, origin: Origin) -> bool:
        """Whether memory has a snapshot of the origin, whatever its age."""
        return self._memory.snapshot(origin) is not None

    def get_trusted(self, origin: Origin, now: float) -> Snapshot | None:
        """The snapshot in memory that may answer at `now` without asking the store, fresh or not."""
        return self._memory.get_trusted(origin, now)

    async def get(
        self, origin: Origin, recheck: Recheck, *, max_age: float | None = None, wait: float = 10.0, caller: str = ""
    ) -> CacheResult:
        """The origin's snapshot, refreshed first if it is due; the caller waits up to `wait` seconds for that.

        A fetch that several callers wait for is the first one's: `caller` is its API key or address. A snapshot for
        which is_too_old() holds is due. Raises Busy if the fetch does and there is no copy to serve instead.
        """
        known, source = await self._snapshots.get(origin)
        state = State.DUE if known is None else self._state(known, origin, recheck, max_age, self._clock())
        if state is State.FRESH:
            return self._result(known, source, origin, recheck)
        refresh = self._refreshes.start(origin, partial(self._refresh, origin, known, recheck, max_age, caller))
        if state is State.DUE and wait > 0:
            await asyncio.wait([refresh], timeout=wait)
        if state is State.GRACE or not refresh.done():
            return self._result(known, source, origin, recheck)
        if known is not None and isinstance(known.access, Successful) and isinstance(refresh.exception(), Busy):
            return self._result(known, source, origin, recheck)
        try:
            return self._result(*refresh.result(), origin, recheck)
        finally:
            del refresh  # or this frame is in a cycle with an exception, which refers to it

    def is_too_old(self, snapshot: Snapshot, max_age: float | None, now: float) -> bool:
        """Whether a snapshot has to be fetched again because it is older than `max_age` seconds at `now`.

        That of a failing origin is not, since asking more often would not get a new copy, nor is one that is younger
        than the shortest time between two such fetches.
        """
        if max_age is None or snapshot.failing is not None:
            return False
        return now - snapshot.fetched_at > max(max_age, self._min_refetch)

    async def refresh(self, origin: Origin, recheck: Recheck, caller: str = "") -> CacheResult:
        """Fetch the whole file now, whatever the age of the snapshot and the backoff, and invalidate it in the fleet.

        The fetch begins after this call. Raises Busy if no fetch can be made.
        """
        under_way = self._forced.under_way(origin)
        if under_way is not None:
            await asyncio.wait([under_way])  # it may have read the file before a change that this caller knows about
        ordered = self._forced.start(origin, partial(self._refresher.fetch_now, origin, caller))
        await asyncio.wait([ordered])
        try:
            return self._result(*ordered.result(), origin, recheck)
        finally:
            del ordered

    async def ingest(
        self, origin: Origin, fetched: Fetched, at: float, recheck: Recheck, sender: str
    ) -> tuple[CacheResult, bool]:
        """Take what a caller fetched, whose fetch began at `at` (Unix seconds, not after now).

        `sender` is the id of the caller's API key. Raises Busy if there is no room for it in time.

        Returns what is known then, and whether the caller's is in use: not if a later answer is known. An earlier one
        is of the past alone, and so is one older than KEEP; an earlier failure says nothing and is dropped. A file from
        before failures of fetches stands in for them.
        """
        access = fetched.access
        async with self._room_for_copy(sender, len(access.body) if isinstance(access, Successful) else 0):
            return await self._ingest(origin, fetched, at, recheck, sender)

    async def _ingest(
        self, origin: Origin, fetched: Fetched, at: float, recheck: Recheck, sender: str
    ) -> tuple[CacheResult, bool]:
        known = await self.last_found(origin)
        counted = doubted(known, fetched, at, self._hides_rules)
        earlier = known is not None and at < known.checked_at
        snapshot = next_snapshot(None if earlier else known, counted, at, ingested=sender)
        failed, kept = isinstance(counted.access, Unreachable), None
        if not _is_past(counted, at, known, self._clock()):
            kept = await self._snapshots.save(origin, snapshot, None if earlier else known)
            known = kept
        elif failed:
            return self._result(known, Source.MEMORY, origin, recheck), False
        self._on_ingested(origin, snapshot, kept)
        sent_failure = isinstance(fetched.access, Unreachable)
        in_use = (
            kept is not None
            and at == (kept.checked_at if sent_failure else kept.fetched_at)
            and (failed or same(kept.access, snapshot.access))  # of two of one instant, one is kept
        )
        return self._result(known, Source.MEMORY, origin, recheck), in_use

    async def purge(self, origin: Origin) -> None:
        """Remove the origin here and in the fleet; raises StoreDown if that is left until the store is back.

        A running fetch is repeated, since it may find what is to be removed. The removed version has ended.
        """
        known = await self.last_found(origin)
        await self._snapshots.purge(origin)
        if known is not None:
            self._on_version_ended(origin, known, None)

    async def facts(self, origin: Origin) -> Snapshot | None:
        """The origin's snapshot in the store and here; nothing in memory changes. Raises StoreDown."""
        return await self._snapshots.facts(origin)

    async def look_up(self, origin: Origin, recheck: Recheck) -> CacheResult:
        """What store and memory know of the origin and may still be used; nothing changes. Raises StoreDown."""
        known = await self.facts(origin)
        found = None if known is None else usable(known, self._clock())
        return self._result(found, Source.STORE, origin, recheck)

    async def last_found(self, origin: Origin) -> Snapshot | None:
        """The last snapshot that a fetch led to, usable or not."""
        known, _ = await self._snapshots.get(origin)
        return self._memory.snapshot(origin) or known

    def delivering(self) -> AbstractAsyncContextManager[None]:
        """While the block lasts, give the store what it missed while it was down."""
        return self._snapshots.outbox.delivering()

    def on_event(self, event: Event, origin: Origin) -> None:
        """Apply an invalidation that another process published."""
        self._snapshots.on_event(event, origin)

    def on_gap(self) -> None:
        """Trust nothing in memory: invalidations may have been missed."""
        self._snapshots.on_gap()

    async def aclose(self) -> None:
        """Cancel running fetches; the caller closes the store."""
        await self._snapshots.aclose()
        await self._refreshes.aclose()
        await self._forced.aclose()

    async def _refresh(
        self, origin: Origin, seen: Snapshot | None, recheck: Recheck, max_age: float | None, caller: str
    ) -> tuple[Snapshot, Source]:
        began = self._clock.steady()  # the clock may be set by what the store says meanwhile

        def is_fresh(snapshot: Snapshot, waited_for: bool) -> bool:
            # A snapshot that another process fetched while this one waited is new enough.
            wanted = None if waited_for else max_age
            return self._state(snapshot, origin, recheck, wanted, self._clock.at(began)) is State.FRESH

        return await self._refresher.refresh(origin, seen, is_fresh, caller)

    def _result(self, snapshot: Snapshot | None, source: Source, origin: Origin, recheck: Recheck) -> CacheResult:
        if snapshot is None:
            return CacheResult(None, None, Source.NONE)
        return found(snapshot, freshness(snapshot, recheck, origin.key, self._clock()), source)

    def _state(self, snapshot: Snapshot, origin: Origin, recheck: Recheck, max_age: float | None, now: float) -> State:
        if self.is_too_old(snapshot, max_age, now):
            return State.DUE
        return freshness(snapshot, recheck, origin.key, now).state


def _is_past(fetched: Fetched, at: float, known: Snapshot | None, now: float) -> bool:
    """Whether what was fetched at `at` cannot be in use, as a later answer is known, or it is too old."""
    if now - at > KEEP:
        return True
    if known is None or at >= known.fetched_at:
        return False
    return not isinstance(known.access, Unreachable) or not isinstance(fetched.access, Successful)
