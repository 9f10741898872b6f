"""What is known of an origin without fetching: the snapshots of this process, in front of those in the store."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from enum import StrEnum

from app.cache.content import same
from app.cache.freshness import FIRST_RETRY, KEEP, Snapshot, usable
from app.cache.invalidation import Event
from app.cache.ordering import Purged, after_purge, is_local, merge
from app.cache.outbox import Outbox
from app.cache.reconcile import as_known, reconcile
from app.cache.snapshot_memory import Entry, SnapshotMemory
from app.cache.snapshot_store import SnapshotStore
from app.cache.store_clock import StoreClock
from app.origin import Origin
from app.redis.guarded_client import StoreDown
from app.redis.single_flight import SingleFlight

SUSPICION = FIRST_RETRY
"""Seconds for which another process may confirm that an origin cannot be reached."""


class Source(StrEnum):
    """Where an answer's snapshot comes from."""

    MEMORY = "memory"
    STORE = "store"
    FETCHED = "fetched"
    REVALIDATED = "revalidated"
    HISTORY = "history"
    NONE = "none"


class TieredSnapshots:
    """Snapshots in memory in front of those in the store.

    While the store is down, memory answers, and the outbox delivers later what was learned or purged meanwhile.
    Snapshots that processes learned apart are merged in the order in which their fetches began; a content that ends by
    that is passed to `on_version_ended`.

    A failure that may be this process's own is not shared until another process has met it too. It holds here alone;
    if the fleet's snapshot comes to say something else, `on_contradiction` is called.
    """

    def __init__(
        self,
        store: SnapshotStore,
        memory: SnapshotMemory,
        clock: Callable[[], float],
        *,
        store_clock: StoreClock,
        on_version_ended: Callable[[Origin, Snapshot], None],
        on_contradiction: Callable[[], None],
    ) -> None:
        self._store = store
        self._memory = memory
        self._clock = clock
        self._store_clock = store_clock
        self._on_version_ended = on_version_ended
        self._on_contradiction = on_contradiction
        self._lookups: SingleFlight[Origin, tuple[Snapshot | None, Source]] = SingleFlight()
        self._waiting: dict[Origin, asyncio.Event] = {}
        self._outbox = Outbox(self._deliver)

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
        return _snapshot(self._memory.peek(origin))

    async def get_from_store(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """The store's snapshot, or memory's if that is newer; raises StoreDown."""
        found, source, _ = await self._compare(origin)
        return found, source

    async def facts(self, origin: Origin) -> Snapshot | None:
        """The snapshot of store and memory together, failures that are not shared included; raises StoreDown.

        Nothing of it is kept.
        """
        return _combined(self.peek(origin), await self._store.get(origin), self._store_clock())

    async def save(
        self, origin: Origin, snapshot: Snapshot, over: Snapshot | None = None, *, publish: bool = True
    ) -> Snapshot | None:
        """Merge the snapshot into memory and the store; None if a purge has overtaken it.

        A store that is down is given it later. `over` is what was known before; `publish`: invalidate other processes.
        """
        now, entry, found = self._store_clock(), self._memory.peek(origin), snapshot
        purged = self._outbox.purged(origin)
        if purged is not None and after_purge(found, purged, now) is None:
            return None
        if entry is not None:
            snapshot = as_known(found, merge(entry.snapshot, found, now))
        # Memory first: callers need not wait for the store, and a failure that is learned while the store is down is
        # remembered, so that not every call asks the origin again.
        with self._memory.validating(origin):
            self._memory.keep(origin, snapshot, saved=False, doubtful=_is_doubtful(snapshot, entry))
            try:
                result, before = await self._share(origin, snapshot, doubtful=_is_doubtful(snapshot, entry))
            except StoreDown:
                self._outbox.add(origin)
                self._note_ended(origin, snapshot, found, over, _snapshot(entry))
                return snapshot
        self._note_ended(origin, result, found, over, _snapshot(entry), before)
        if publish:
            with suppress(StoreDown):  # other processes then trust their older copy until its time is over
                await self._store.publish(Event.CHANGED, origin)
        return result

    async def purge(self, origin: Origin) -> None:
        """Forget the origin, here at once and in the fleet; raises StoreDown if the fleet is told later."""
        self._memory.drop(origin)
        try:
            await self._store.purge(origin, KEEP)
        except StoreDown:
            self._outbox.add(origin, Purged(self._store_clock()))
            raise
        self._memory.drop(origin)
        with suppress(StoreDown):  # the mark is in the store, where all processes look when their trust is over
            await self._store.publish(Event.PURGED, origin)

    def delivering(self) -> AbstractAsyncContextManager[None]:
        """While the block lasts, give the store what it missed while it was down.

        Otherwise a refresh that an operator ordered in an outage would reach the fleet when this process is next asked.
        """
        return self._outbox.delivering()

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
        """The snapshot of memory and store, and a store that lacks some of it is given it; memory's if it is down."""
        try:
            found, source, lacking = await self._compare(origin)
        except StoreDown:
            known = self.peek(origin)
            return known, Source.NONE if known is None else Source.MEMORY
        if found is not None and lacking:
            # What was saved once is not published again: two releases that cannot read each other's values would
            # invalidate each other without end.
            entry = self._memory.peek(origin)
            found = await self.save(origin, found, publish=entry is None or not entry.saved)
        return found, Source.NONE if found is None else source

    async def _compare(self, origin: Origin) -> tuple[Snapshot | None, Source, bool]:
        """The snapshot of memory and store, and whether the store lacks some of it; raises StoreDown."""
        before = self.peek(origin)
        with self._memory.validating(origin):
            found = await self._store.get(origin)
            if found is not None and self.peek(origin) not in (None, found):
                self._store_clock.sync(await self._store.now(origin))
            entry = self._memory.peek(origin)
            if entry is not None and entry.snapshot is not before:
                # A refresh ended while the store was asked, and the store's answer is older.
                return entry.snapshot, Source.MEMORY, False
            result = reconcile(entry, found, self._clock(), self._store_clock())
            if result.contradicted:
                self._on_contradiction()
            self._note_ended(origin, result.snapshot, *result.ended)
            if result.snapshot is None:
                self._memory.drop(origin)
                return None, Source.NONE, False
            self._memory.keep(
                origin, result.snapshot, saved=result.saved, doubtful=result.doubtful, validated=not result.lacking
            )
            return result.snapshot, Source.STORE if result.from_store else Source.MEMORY, result.lacking

    async def _share(
        self, origin: Origin, snapshot: Snapshot, *, doubtful: bool
    ) -> tuple[Snapshot | None, Snapshot | None]:
        """Put the snapshot, which memory holds, into the store.

        Returns what is known then, None for a purge, and what the store had before. Raises StoreDown.
        """
        doubtful = doubtful and not await self._store.suspect(origin, SUSPICION)
        if doubtful:
            result, before = await self._share_copy(origin, snapshot)
        else:
            put = await self._store.put(origin, snapshot, KEEP)
            result, before = None if isinstance(put.held, Purged) else put.held, put.before
        if result is not None:
            result = as_known(snapshot, result)
            if doubtful and result.failing is None:
                doubtful = False
                self._on_contradiction()
        if self.peek(origin) is snapshot:  # else something newer was learned meanwhile
            if result is None:
                self._memory.drop(origin)
            else:
                self._memory.keep(origin, result, saved=True, doubtful=doubtful)
        return result, before

    async def _share_copy(self, origin: Origin, snapshot: Snapshot) -> tuple[Snapshot | None, Snapshot | None]:
        """As `_share`, where the failures of the snapshot stay here: a store that lacks the copy is given that."""
        found, now = await self._store.get(origin), self._store_clock()
        if isinstance(found, Snapshot):
            return merge(found, snapshot, now), found
        copy = snapshot.without_failing()
        if found is None and copy is not None:
            await self._store.put(origin, copy, KEEP)
        return _combined(snapshot, found, now), None

    async def _deliver(self, origin: Origin, purged: Purged | None) -> None:
        """Give the store a purge that it missed, and what was learned after it; raises StoreDown."""
        if purged is not None:
            await self._store.purge(origin, KEEP, purged.at)
            await self._store.publish(Event.PURGED, origin)
        entry = self._memory.peek(origin)
        if entry is not None and not entry.saved:
            await self.save(origin, entry.snapshot)
            entry = self._memory.peek(origin)
            if entry is not None and not entry.saved:
                raise StoreDown("the store is still down")

    def _note_ended(self, origin: Origin, result: Snapshot | None, *ended: Snapshot | None) -> None:
        """Pass on each content among `ended` that is not the result's."""
        noted = [] if result is None else [result]
        for snapshot in ended:
            if snapshot is not None and not any(same(snapshot.access, other.access) for other in noted):
                self._on_version_ended(origin, snapshot)
                noted.append(snapshot)


def _combined(own: Snapshot | None, found: Snapshot | Purged | None, now: float) -> Snapshot | None:
    match found:
        case Snapshot():
            return found if own is None else merge(own, found, now)
        case Purged():
            return None if own is None else after_purge(own, found, now)
        case None:
            return own


def _is_doubtful(snapshot: Snapshot, entry: Entry | None) -> bool:
    """Whether its failures may be this process's own: the first one, or those after one that was not confirmed."""
    failing = snapshot.failing
    if failing is None or not is_local(failing.failure):
        return False
    return failing.attempts == 1 or (entry is not None and entry.doubtful)


def _snapshot(entry: Entry | None) -> Snapshot | None:
    return None if entry is None else entry.snapshot
