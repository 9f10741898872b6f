"""The interface of the store for pacing."""

from typing import Protocol

from app.pacing.page_times import NO_PAGES, PageReports
from app.pacing.slots import PaceKey, QueueState, QueueView, SlotRequest, SlotResult


class PaceStore(Protocol):
    """The fleet's queues of slots. Every call is bounded in time, and raises only StoreDown."""

    def shard_of(self, key: PaceKey) -> int:
        """The shard that holds the key's queue; shards fail independently."""
        ...

    async def reserve(
        self,
        request: SlotRequest,
        known: QueueState,
        backoff: float = 0.0,
        *,
        closed_for: float,
        closed_if_behind: float,
        pages: PageReports = NO_PAGES,
    ) -> tuple[SlotResult, QueueView]:
        """Reserve the next free slot; see `RedisPacer`."""
        ...

    async def release(self, key: PaceKey, name: str) -> bool:
        """Free a slot; False if there is none of that name."""
        ...

    async def back_off(self, key: PaceKey, retry_after: float, reporter: str | None, known: float = 0.0) -> float:
        """Back off from the key's site, as reported by `reporter` or an operator (None); return the seconds.

        `known` is how many seconds are left of a backoff that this process remembers.
        """
        ...

    async def backoff_left(self, key: PaceKey) -> float:
        """Seconds left of the backoff from the key's site."""
        ...

    async def give_back(self, key: PaceKey, backoff: float) -> bool:
        """Tell the store that a backoff from the key's site has so many seconds left; whether it did not know."""
        ...

    async def ping(self, shard: int) -> None:
        """Check that the shard answers."""
        ...
