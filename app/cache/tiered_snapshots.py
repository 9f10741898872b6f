"""What is known of an origin without fetching: the snapshots of this process, in front of those in the store."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.cache.freshness import Snapshot, usable
from app.cache.invalidation import Event
from app.cache.lease import Read
from app.cache.reconcile import combine, reconcile
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.result import Source
from app.cache.snapshot_memory import SnapshotMemory
from app.cache.snapshot_writer import SnapshotWriter
from app.loop.background import BackgroundTask
from app.loop.single_flight import SingleFlight
from app.store.guarded_client import StoreDown
from app.store.store_clock import StoreClock
from robots_core.origin import Origin

OnTaken = Callable[[Origin, Snapshot], None]
"""Called with a snapshot from the store whose content this process did not have."""


class TieredSnapshots:
    """Snapshots in memory, compared with those in the store when they are no longer trusted.

    While the store is down, memory answers. `on_contradiction` is called if the store has an answer of an origin that
    this process alone could not reach. `on_taken`: see OnTaken.
    """

    def __init__(
        self,
        store: RedisSnapshots,
        memory: SnapshotMemory,
        writer: SnapshotWriter,
        clock: StoreClock,
        *,
        on_contradiction: Callable[[], None],
        on_taken: OnTaken | None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._writer = writer
        self._clock = clock
        self._on_contradiction = on_contradiction
        self._on_taken = on_taken
        self._lookups: SingleFlight[Origin, tuple[Snapshot | None, Source]] = SingleFlight(BackgroundTask.LOOKUPS)
        self._waiting: dict[Origin, asyncio.Event] = {}

    async def get(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """The usable snapshot in memory, or in the store if memory is not trusted."""
        trusted = self.get_trusted(origin)
        if trusted is not None:
            return trusted, Source.MEMORY
        found, source = await self._lookups.do(origin, lambda: self._validate(origin))
        return None if found is None else usable(found, self._clock()), source

    def get_trusted(self, origin: Origin) -> Snapshot | None:
        """The usable snapshot that may answer without asking the store."""
        return self._memory.get_trusted(origin)

    def peek(self, origin: Origin) -> Snapshot | None:
        """The snapshot in memory, trusted or not."""
        return self._memory.snapshot(origin)

    async def get_from_store(self, origin: Origin, read: Read) -> tuple[Snapshot | None, Source]:
        """The store's snapshot as `read`, or memory's if that is newer; raises StoreDown."""
        found, source, _ = await self._compare(origin, read)
        return found, source

    async def facts(self, origin: Origin) -> Snapshot | None:
        """The snapshot of store and memory together, failures that are not shared included; raises StoreDown.

        Nothing of it is kept.
        """
        return combine(self.peek(origin), await self._store.get(origin), self._clock())

    def on_event(self, event: Event, origin: Origin) -> None:
        """Apply an invalidation that another process published."""
        entry = self._memory.invalidate(origin)
        if event is Event.PURGED:
            self._memory.drop(origin)
        elif entry is not None and entry.doubtful:
            # Another process has learned something of an origin that could not be reached from here.
            self._lookups.start(origin, lambda: self._validate(origin))
        if origin in self._waiting:
            self._waiting[origin].set()

    def on_gap(self) -> None:
        """Trust nothing in memory: invalidations may have been missed."""
        self._memory.invalidate_all()
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
            found, source, lacking = await self._compare(origin, self._store.get)
        except StoreDown:
            known = self.peek(origin)
            return known, Source.NONE if known is None else Source.MEMORY
        if found is not None and lacking:
            # A saved snapshot is not published again: two releases that cannot read each other's values would
            # invalidate each other without end.
            entry = self._memory.peek(origin)
            found = await self._writer.save(origin, found, publish=entry is None or not entry.saved)
        return found, Source.NONE if found is None else source

    async def _compare(self, origin: Origin, read: Read) -> tuple[Snapshot | None, Source, bool]:
        """The snapshot of memory and store, and whether the store lacks some of it; raises StoreDown."""
        before = self.peek(origin)
        with self._memory.validating(origin):
            found = await read(origin)
            now = None
            if found is not None and self.peek(origin) not in (None, found):
                now = await self._store.now(origin)
            changed = self.peek(origin) is not before
            if now is not None:
                self._clock.sync(now)  # which may correct the dates of what is in memory
            entry = self._memory.peek(origin)
            if entry is not None and changed:
                # A refresh ended while the store was asked, and the store's answer is older.
                return entry.snapshot, Source.MEMORY, False
            result = reconcile(entry, found, self._clock())
            if result.contradicted:
                self._on_contradiction()
            self._writer.note_ended(origin, result.snapshot, *result.ended)
            if result.snapshot is None:
                self._memory.drop(origin)
                return None, Source.NONE, False
            is_new = entry is None or entry.snapshot.access is not result.snapshot.access
            if self._on_taken is not None and result.from_store and is_new:
                self._on_taken(origin, result.snapshot)
            self._memory.keep(
                origin, result.snapshot, saved=result.saved, doubtful=result.doubtful, validated=not result.lacking
            )
            return result.snapshot, Source.STORE if result.from_store else Source.MEMORY, result.lacking
