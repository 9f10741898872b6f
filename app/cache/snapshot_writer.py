"""Putting what was learned of origins into memory and the store, or into the store later while it is down."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from itertools import pairwise

from app.cache.freshness import FIRST_RETRY, KEEP, Snapshot
from app.cache.invalidation import Event
from app.cache.lease import Held
from app.cache.ordering import Purged, after_purge, is_local, merge
from app.cache.outbox import Outbox
from app.cache.packed_lru import Entry
from app.cache.reconcile import as_known, combine
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.snapshot_memory import SnapshotMemory
from app.store.guarded_client import StoreDown
from app.store.store_clock import StoreClock
from robots_core.content import same
from robots_core.origin import Origin

SUSPICION = FIRST_RETRY
"""Seconds for which another process may confirm that an origin cannot be reached."""


OnVersionEnded = Callable[[Origin, Snapshot, Snapshot | None], None]
"""Called with the last snapshot of a content that has ended, and the one that replaced it; None if it was removed."""


class SnapshotWriter:
    """Saves and purges snapshots in memory and in the store.

    Snapshots that processes learned apart are merged in the order in which their fetches began; a content that ends by
    that is passed to `on_version_ended`, with the snapshot that follows. What is learned or purged while the store is
    down is delivered later.

    A failure that may be this process's own is not shared until another process has met it too. Until then it holds
    only here; if the fleet's snapshot contradicts it, `on_contradiction` is called.
    """

    def __init__(
        self,
        store: RedisSnapshots,
        memory: SnapshotMemory,
        clock: StoreClock,
        *,
        on_version_ended: OnVersionEnded,
        on_contradiction: Callable[[], None],
    ) -> None:
        self._store = store
        self._memory = memory
        self._clock = clock
        self._on_version_ended = on_version_ended
        self._on_contradiction = on_contradiction
        self._outbox = Outbox(self._deliver)

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
        now, entry, found = self._clock(), self._memory.peek(origin), snapshot
        purged = self._outbox.purged(origin)
        if purged is not None and after_purge(found, purged, now) is None:
            return None
        known = None if entry is None else entry.snapshot
        if known is not None:
            snapshot = as_known(found, merge(known, found, now))
        # Memory first: callers need not wait for the store, and a failure that is learned while the store is down is
        # remembered, so that not every call asks the origin again.
        doubtful = _is_doubtful(snapshot, entry)
        with self._memory.validating(origin):
            self._memory.keep(origin, snapshot, saved=False, doubtful=doubtful)
            try:
                result, before = await self._share(origin, snapshot, held, doubtful=doubtful)
            except StoreDown:
                self._outbox.add(origin)
                self.note_ended(origin, snapshot, found, over, known)
                return snapshot
        self.note_ended(origin, result, found, over, known, before)
        if publish:
            with suppress(StoreDown):  # other processes then trust their older copy until its time is over
                await self._store.publish(Event.CHANGED, origin)
        return result

    async def purge(self, origin: Origin) -> None:
        """Forget the origin here and in the fleet. Raises StoreDown if the fleet learns of it later."""
        self._memory.drop(origin)
        try:
            await self._store.purge(origin, KEEP)
        except StoreDown:
            self._outbox.add(origin, Purged(self._clock()))
            raise
        self._memory.drop(origin)
        with suppress(StoreDown):  # the mark is in the store, where all processes look when their trust is over
            await self._store.publish(Event.PURGED, origin)

    def delivering(self) -> AbstractAsyncContextManager[None]:
        """While the block lasts, give the store what it missed while it was down.

        Otherwise a refresh that an operator ordered in an outage would reach the fleet when this process is next asked.
        """
        return self._outbox.delivering()

    def note_ended(self, origin: Origin, result: Snapshot | None, *before: Snapshot | None) -> None:
        """Pass on one snapshot of each content that was known `before` and is not that of the result."""
        noted = [] if result is None else [result]
        for snapshot in before:
            if snapshot is not None and not any(same(snapshot.access, other.access) for other in noted):
                self._on_version_ended(origin, snapshot, result)
                noted.append(snapshot)

    async def _share(
        self, origin: Origin, snapshot: Snapshot, held: Held | None, *, doubtful: bool
    ) -> tuple[Snapshot | None, Snapshot | None]:
        """Put the snapshot, which memory holds, into the store.

        Returns what is known then, None for a purge, and what the store had before. Raises StoreDown.
        """
        doubtful = doubtful and not await self._store.suspect(origin, SUSPICION)
        if doubtful:
            result, before = await self._share_copy(origin, snapshot)
        else:
            put = await self._store.put(origin, snapshot, KEEP, "" if held is None else held.token)
            if held is not None:
                held.released = put.written
            for ended, following in pairwise((*put.unrecorded, put.before)):
                if ended is not None:
                    self._on_version_ended(origin, ended, following)
            result, before = None if isinstance(put.held, Purged) else put.held, put.before
        if result is not None:
            result = as_known(snapshot, result)
            if doubtful and result.failing is None:
                doubtful = False
                self._on_contradiction()
        if self._memory.snapshot(origin) is snapshot:  # else something newer was learned meanwhile
            if result is None:
                self._memory.drop(origin)
            else:
                self._memory.keep(origin, result, saved=True, doubtful=doubtful)
        return result, before

    async def _share_copy(self, origin: Origin, snapshot: Snapshot) -> tuple[Snapshot | None, Snapshot | None]:
        """As `_share`, but without the snapshot's failures: only a missing copy is written to the store."""
        found, now = await self._store.get(origin), self._clock()
        if isinstance(found, Snapshot):
            return merge(found, snapshot, now), found
        copy = snapshot.without_failing()
        if found is None and copy is not None:
            await self._store.put(origin, copy, KEEP)
        return combine(snapshot, found, now), None

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


def _is_doubtful(snapshot: Snapshot, entry: Entry | None) -> bool:
    """Whether its failures may be this process's own: the first one, or those after one that was not confirmed."""
    failing = snapshot.failing
    if failing is None or not is_local(failing.failure):
        return False
    return failing.attempts == 1 or (entry is not None and entry.doubtful)
