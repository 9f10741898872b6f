"""The snapshots of this process, in front of those in the store: read from both, written to both, without fetching."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise

from app.cache.fetch_health import FetchHealth
from app.cache.freshness import FIRST_RETRY, KEEP, Snapshot, usable
from app.cache.invalidation import Event
from app.cache.lease import Held, Read
from app.cache.ordering import Purged, after_purge, merge
from app.cache.outbox import Outbox
from app.cache.reconcile import as_known, combine, is_doubtful, reconcile
from app.cache.redis_snapshots import Put, RedisSnapshots
from app.cache.result import Source
from app.cache.snapshot_memory import SnapshotMemory
from app.loop.background import BackgroundTask
from app.loop.single_flight import SingleFlight
from app.store.guarded_client import StoreDown
from app.store.store_clock import StoreClock
from robots_core.content import same
from robots_core.origin import Origin

SUSPICION = FIRST_RETRY
"""Seconds for which another process may confirm that an origin cannot be reached."""

OnTaken = Callable[[Origin, Snapshot], None]
"""Called with a snapshot from the store whose content this process did not have."""

OnVersionEnded = Callable[[Origin, Snapshot, Snapshot | None], None]
"""Called with the last snapshot of a content that has ended, and the one that replaced it; None if it was removed."""


@dataclass(eq=False)
class TieredSnapshots:
    """Snapshots in memory, compared with those in the store when they are no longer trusted.

    While the store is down, memory answers, and what is learned or purged is delivered later.

    Snapshots that processes learned apart are merged in the order in which their fetches began; a content that ends by
    that is passed to `on_version_ended`, with the snapshot that follows. For `on_taken`, see OnTaken.

    A failure that may be this process's own is not shared until another process has met it too. Until then it holds
    only here; if the fleet's snapshot contradicts it, that is noted in `health`.
    """

    store: RedisSnapshots
    memory: SnapshotMemory
    clock: StoreClock
    health: FetchHealth
    on_version_ended: OnVersionEnded
    on_taken: OnTaken | None = None

    def __post_init__(self) -> None:
        self._lookups: SingleFlight[Origin, tuple[Snapshot | None, Source]] = SingleFlight(BackgroundTask.LOOKUPS)
        self._waiting: dict[Origin, asyncio.Event] = {}
        self.outbox = Outbox(self._deliver)

    async def get(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """The usable snapshot in memory, or in the store if memory is not trusted."""
        trusted = self.memory.get_trusted(origin, self.clock())
        if trusted is not None:
            return trusted, Source.MEMORY
        found, source = await self._lookups.do(origin, lambda: self._validate(origin))
        return None if found is None else usable(found, self.clock()), source

    async def get_from_store(self, origin: Origin, read: Read) -> tuple[Snapshot | None, Source]:
        """The store's snapshot as `read`, or memory's if that is newer; raises StoreDown."""
        found, source, _ = await self._compare(origin, read)
        return found, source

    async def facts(self, origin: Origin) -> Snapshot | None:
        """The snapshot of store and memory together, failures that are not shared included; raises StoreDown.

        Nothing of it is kept.
        """
        return combine(self.memory.snapshot(origin), await self.store.get(origin), self.clock())

    async def save(
        self,
        origin: Origin,
        snapshot: Snapshot,
        over: Snapshot | None = None,
        *,
        publish: bool = True,
        held: Held | None = None,
    ) -> Snapshot | None:
        """Merge the snapshot into memory and the store; None if a purge has overtaken it.

        If the store is down, it is delivered later. `over` is the snapshot known before. `publish`: invalidate
        other processes. `held` is the lease that is released with the write.
        """
        now, entry, found = self.clock(), self.memory.peek(origin), snapshot
        purged = self.outbox.purged(origin)
        if purged is not None and after_purge(found, purged, now) is None:
            return None
        known = None if entry is None else entry.snapshot
        if known is not None:
            snapshot = as_known(found, merge(known, found, now))
        # Memory first: callers need not wait for the store, and a failure that is learned while the store is down is
        # remembered, so that not every call asks the origin again.
        doubtful = is_doubtful(snapshot, entry)
        with self.memory.validating(origin):
            self.memory.keep(origin, snapshot, saved=False, doubtful=doubtful)
            try:
                result, before = await self._share(origin, snapshot, held, doubtful=doubtful)
            except StoreDown:
                self.outbox.add(origin)
                self._note_ended(origin, snapshot, found, over, known)
                return snapshot
        self._note_ended(origin, result, found, over, known, before)
        if publish:
            with suppress(StoreDown):  # other processes then trust their older copy until its time is over
                await self.store.publish(Event.CHANGED, origin)
        return result

    async def purge(self, origin: Origin) -> None:
        """Forget the origin here and in the fleet. Raises StoreDown if the fleet learns of it later."""
        self.memory.drop(origin)
        try:
            await self.store.purge(origin, KEEP)
        except StoreDown:
            self.outbox.add(origin, Purged(self.clock()))
            raise
        self.memory.drop(origin)
        with suppress(StoreDown):  # the mark is in the store, where all processes look when their trust is over
            await self.store.publish(Event.PURGED, origin)

    def on_event(self, event: Event, origin: Origin) -> None:
        """Apply an invalidation that another process published."""
        entry = self.memory.invalidate(origin)
        if event is Event.PURGED:
            self.memory.drop(origin)
        elif entry is not None and entry.doubtful:
            # Another process has learned something of an origin that could not be reached from here.
            self._lookups.start(origin, lambda: self._validate(origin))
        if origin in self._waiting:
            self._waiting[origin].set()

    def on_gap(self) -> None:
        """Trust nothing in memory: invalidations may have been missed."""
        self.memory.invalidate_all()
        for event in self._waiting.values():
            event.set()

    @contextmanager
    def waiting(self, origin: Origin) -> Iterator[asyncio.Event]:
        """An event that every invalidation of the origin sets; one block at a time for each origin."""
        event = self._waiting[origin] = asyncio.Event()
        try:
            yield event
        finally:
            del self._waiting[origin]

    async def aclose(self) -> None:
        """Cancel what is under way; the store is its owner's to close."""
        await self._lookups.aclose()

    async def _validate(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """Merge memory and store, and write what the store lacks; memory's snapshot if the store is down."""
        try:
            found, source, lacking = await self._compare(origin, self.store.get)
        except StoreDown:
            known = self.memory.snapshot(origin)
            return known, Source.NONE if known is None else Source.MEMORY
        if found is not None and lacking:
            # A saved snapshot is not published again: two releases that cannot read each other's values would
            # invalidate each other without end.
            entry = self.memory.peek(origin)
            found = await self.save(origin, found, publish=entry is None or not entry.saved)
        return found, Source.NONE if found is None else source

    async def _compare(self, origin: Origin, read: Read) -> tuple[Snapshot | None, Source, bool]:
        """The snapshot of memory and store, and whether the store lacks some of it; raises StoreDown."""
        before = self.memory.snapshot(origin)
        with self.memory.validating(origin):
            found = await read(origin)
            now = None
            if found is not None and self.memory.snapshot(origin) not in (None, found):
                now = await self.store.now(origin)
            changed = self.memory.snapshot(origin) is not before
            if now is not None:
                self.clock.sync(now)  # which may correct the dates of what is in memory
            entry = self.memory.peek(origin)
            if entry is not None and changed:
                # A refresh ended while the store was asked, and the store's answer is older.
                return entry.snapshot, Source.MEMORY, False
            result = reconcile(entry, found, self.clock())
            if result.contradicted:
                self.health.note_contradiction()
            self._note_ended(origin, result.snapshot, *result.ended)
            if result.snapshot is None:
                self.memory.drop(origin)
                return None, Source.NONE, False
            is_new = entry is None or entry.snapshot.access is not result.snapshot.access
            if self.on_taken is not None and result.from_store and is_new:
                self.on_taken(origin, result.snapshot)
            self.memory.keep(
                origin, result.snapshot, saved=result.saved, doubtful=result.doubtful, validated=not result.lacking
            )
            return result.snapshot, Source.STORE if result.from_store else Source.MEMORY, result.lacking

    async def _share(
        self, origin: Origin, snapshot: Snapshot, held: Held | None, *, doubtful: bool
    ) -> tuple[Snapshot | None, Snapshot | None]:
        """Put the snapshot, which memory holds, into the store; a doubtful failure only once another has met it.

        Returns what is known then, None for a purge, and what the store had before. Raises StoreDown.
        """
        doubtful = doubtful and not await self.store.suspect(origin, SUSPICION)
        shared = snapshot.without_failing() if doubtful else snapshot
        if shared is None:
            stored = await self.store.get(origin)
            put = Put(stored, stored if isinstance(stored, Snapshot) else None)
        else:
            put = await self.store.put(origin, shared, KEEP, "" if held is None else held.token)
        if held is not None:
            held.released = put.written
        for ended, following in pairwise((*put.unrecorded, put.before)):
            if ended is not None:
                self.on_version_ended(origin, ended, following)
        result = combine(snapshot, put.held, self.clock()) if doubtful else put.held
        known = as_known(snapshot, result) if isinstance(result, Snapshot) else None
        if doubtful and known is not None and known.failing is None:
            doubtful = False
            self.health.note_contradiction()
        if self.memory.snapshot(origin) is snapshot:  # else something newer was learned meanwhile
            if known is None:
                self.memory.drop(origin)
            else:
                self.memory.keep(origin, known, saved=True, doubtful=doubtful)
        return known, put.before

    async def _deliver(self, origin: Origin, purged: Purged | None) -> None:
        """Give the store a purge that it missed, and what was learned after it; raises StoreDown."""
        if purged is not None:
            await self.store.purge(origin, KEEP, purged.at)
            await self.store.publish(Event.PURGED, origin)
        entry = self.memory.peek(origin)
        if entry is not None and not entry.saved:
            await self.save(origin, entry.snapshot)
            entry = self.memory.peek(origin)
            if entry is not None and not entry.saved:
                raise StoreDown("the store is still down")

    def _note_ended(self, origin: Origin, result: Snapshot | None, *before: Snapshot | None) -> None:
        """Pass on one snapshot of each content that was known `before` and is not that of the result."""
        noted = [] if result is None else [result]
        for snapshot in before:
            if snapshot is not None and not any(same(snapshot.access, other.access) for other in noted):
                self.on_version_ended(origin, snapshot, result)
                noted.append(snapshot)
