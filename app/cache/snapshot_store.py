"""What the cache needs of the store that processes share."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from app.cache.freshness import Snapshot
from app.cache.invalidation import Event
from app.cache.ordering import Purged
from robots_core.origin import Origin


class Put(NamedTuple):
    """What the store holds after a put, and the snapshot it held before, if any.

    `unrecorded`: the last snapshots of versions that ended before that and are not in the history yet, in the order of
    their ends. The process that ended them may have been killed. `written`: whether the put changed the store, and so
    released the lease that it named.
    """

    held: Snapshot | Purged
    before: Snapshot | None
    unrecorded: Sequence[Snapshot] = ()
    written: bool = False


class SnapshotStore(Protocol):
    """Where snapshots are kept between processes. Every method is bounded in time and raises only StoreDown."""

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        """The origin's entry; None if there is none or it cannot be read."""

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float, lease: str = "") -> Put:
        """Merge the snapshot with what is stored, in the order of their fetches, and keep the result for so long.

        `lease` is the token of a lease that is released with the write.
        """

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        """Replace what began before `at`, by default now, with a Purged that is kept for so long."""

    async def now(self, origin: Origin) -> float:
        """The store's clock (Unix seconds), by which the origin's entries are ordered."""

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        """Record for so long that this instance cannot reach the origin; whether another instance has recorded it."""

    async def publish(self, event: Event, origin: Origin) -> None:
        """Publish the event to all processes that are subscribed, soon."""
