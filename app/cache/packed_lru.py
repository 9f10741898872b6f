"""Encoded snapshots in memory: small, and not traversed by the garbage collector.

The collector visits every object that could be part of a cycle, and so every instance of a class: a hundred thousand
snapshots of some objects each stop the process for a second. A tuple that holds only numbers, text and bytes is
untracked after its first collection.
"""

from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from app.cache.byte_lru import ByteLRU
from app.cache.codec import decode, encode
from app.cache.freshness import Snapshot
from robots_core.origin import Origin


class Entry(NamedTuple):
    """A snapshot in memory.

    `saved` is false while the store does not have it, because it was down. `doubtful`: only this process has met the
    failures of the snapshot, so they are not shared. `validated_at` is when the store last agreed with the entry, None
    after an invalidation; `generation` is the subscription under which it did. `own_date`: the snapshot is dated by
    this process's own clock, because the store's was not known yet.
    """

    snapshot: Snapshot
    saved: bool
    doubtful: bool
    validated_at: float | None
    generation: int
    own_date: bool = False

    @property
    def shared(self) -> Snapshot | None:
        """The part of the snapshot that the store is to have."""
        return self.snapshot.without_failing() if self.doubtful else self.snapshot


OVERHEAD = 400
"""Bytes that an entry takes in addition to the encoded snapshot: its key, the tuple, its slot in the table."""


class PackedLRU:
    """A ByteLRU of entries.

    `get` makes a new entry. Its snapshot is the very object that was put while that is in use, because values derived
    from a snapshot are cached by its identity.
    """

    def __init__(self, limit: int) -> None:
        self._encoded: ByteLRU[str, tuple[Any, ...]] = ByteLRU(limit)
        self._in_use: WeakValueDictionary[str, Snapshot] = WeakValueDictionary()

    @property
    def usage(self) -> tuple[int, int]:
        """The sum of the sizes, and how many entries there are."""
        return self._encoded.usage

    def get(self, origin: Origin) -> Entry | None:
        """The entry or None; it becomes the most recently used."""
        return self._entry(origin.key, self._encoded.get(origin.key))

    def peek(self, origin: Origin) -> Entry | None:
        """The entry or None; its use is not counted."""
        return self._entry(origin.key, self._encoded.peek(origin.key))

    def put(self, origin: Origin, entry: Entry) -> None:
        """Replace the origin's entry; one that is larger than the bound is not kept."""
        key, before = origin.key, self._encoded.peek(origin.key)
        snapshot, *marks = entry
        # An entry that changes in its marks only shares what was encoded before.
        same = before is not None and self._in_use.get(key) is snapshot
        data = before[0] if same and before is not None else encode(snapshot)
        self._encoded.put(key, (data, *marks), len(data) + OVERHEAD)
        self._in_use[key] = snapshot

    def drop(self, origin: Origin) -> None:
        """Remove the origin, if it is there."""
        self._encoded.drop(origin.key)
        self._in_use.pop(origin.key, None)

    def _entry(self, key: str, found: tuple[Any, ...] | None) -> Entry | None:
        if found is None:
            return None
        data, *marks = found
        snapshot = self._in_use.get(key)
        if snapshot is None:
            snapshot = decode(data)
            if snapshot is None:
                return None
            self._in_use[key] = snapshot
        return Entry(snapshot, *marks)
