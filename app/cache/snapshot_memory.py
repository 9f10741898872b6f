"""The snapshots that a process has in memory, and which of them may answer without asking the store."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.cache.freshness import Snapshot, moved, usable
from app.cache.packed_lru import Entry, PackedLRU
from app.store.store_clock import StoreClock
from robots_core.origin import Origin


class SnapshotMemory:
    """Snapshots in at most `memory_bytes`, each trusted for up to `trust` seconds after the store agreed with it.

    An invalidation ends the trust in one entry, and a gap in the subscription ends it for all.
    """

    def __init__(self, memory_bytes: int, clock: StoreClock, trust: float) -> None:
        self._entries = PackedLRU(memory_bytes)
        self._clock = clock
        self._trust = trust
        self._generation = 0
        self._not_invalidated: set[Origin] = set()

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the snapshots."""
        return self._entries.usage

    def get_trusted(self, origin: Origin, now: float) -> Snapshot | None:
        """The usable snapshot that may answer at `now` (Unix seconds) without asking the store."""
        entry = self._entries.get(origin)
        if entry is None or entry.validated_at is None or entry.generation != self._generation:
            return None
        return usable(entry.snapshot, now) if 0 <= now - entry.validated_at < self._trust_in(origin) else None

    def peek(self, origin: Origin) -> Entry | None:
        """The entry, trusted or not."""
        entry = self._entries.peek(origin)
        if entry is not None and entry.own_date and self._clock.known:
            # Otherwise all that was fetched before the store was reached would be too old, or new for too long.
            entry = entry._replace(snapshot=moved(entry.snapshot, self._clock.first_step), own_date=False)
            self._entries.put(origin, entry)
        return entry

    def snapshot(self, origin: Origin) -> Snapshot | None:
        """The entry's snapshot, trusted or not."""
        entry = self.peek(origin)
        return None if entry is None else entry.snapshot

    def keep(
        self, origin: Origin, snapshot: Snapshot, *, saved: bool, doubtful: bool = False, validated: bool = True
    ) -> None:
        """Store the snapshot; it is trusted if it was `validated` and no invalidation came meanwhile."""
        validated_at = self._clock() if validated and origin in self._not_invalidated else None
        own_date = not saved and not self._clock.known
        self._entries.put(origin, Entry(snapshot, saved, doubtful, validated_at, self._generation, own_date))

    def drop(self, origin: Origin) -> None:
        """Forget the origin."""
        self._entries.drop(origin)

    def invalidate(self, origin: Origin) -> Entry | None:
        """End the trust in the origin's entry; the entry, if it was trusted until now."""
        self._not_invalidated.discard(origin)
        entry = self._entries.peek(origin)
        if entry is None or entry.validated_at is None:
            return None
        self._entries.put(origin, entry._replace(validated_at=None))
        return entry

    def invalidate_all(self) -> None:
        """End the trust in all entries."""
        self._generation += 1
        self._not_invalidated.clear()

    @contextmanager
    def validating(self, origin: Origin) -> Iterator[None]:
        """Watch for invalidations during a call to the store.

        The store's answer and the invalidation that outdates it arrive on two connections, in any order. An answer
        that was under way when an invalidation came is kept, but not trusted.
        """
        self._not_invalidated.add(origin)
        try:
            yield
        finally:
            self._not_invalidated.discard(origin)

    def _trust_in(self, origin: Origin) -> float:
        # Between half and all of `trust`, so that entries that were learned together do not expire together and queue
        # up for lookups. The hash of a str differs from process to process, and so do the seconds.
        return self._trust * (0.5 + (hash(origin.key) & 0xFFFF) / 0x20000)
