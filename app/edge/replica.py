"""Each process's replica of the edge facts: complete, in memory, and at most a few seconds behind the store."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from app.edge.facts import FACT_ORIGINS, REFUSALS, EdgeFact, EdgeTable
from app.edge.redis_edge import ORIGINS_PER_CALL, RedisEdge
from app.loop.background import BackgroundTask, Surviving, periodically
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin, read_target

FACTS_EVERY = 3.0
"""Seconds between two reads of the changes: a process may be this far behind the others."""


class EdgeFacts:
    """The fleet's facts; `table` is what decisions look up. While the store is down, the last known ones are kept."""

    def __init__(self, store: RedisEdge, clock: Callable[[], float]) -> None:
        self.table = EdgeTable()
        self._store = store
        self._clock = clock
        self._version = 0

    async def report(
        self, origin: str, agent: str, status: int, slot: str = "", price: str = "", page: str = ""
    ) -> None:
        """Record what a page answered to an agent: a refusal, or a success, which ends a fact; raises StoreDown.

        Other statuses say nothing. A success where this process knows no fact is not sent to the store. One slot
        counts once, unless its name is "". `price` is what a 402 asked for `page`.
        """
        success = 200 <= status < 300 and self.table.find(origin, agent, self._clock()) is not None
        if success or status in REFUSALS:
            changed = await self._store.report(origin, agent, status, slot, price, page)
            if changed is not None:
                self.table.put(changed)

    def agents(self, origin: Origin) -> Mapping[str, EdgeFact]:
        """The facts of an origin, by agent key."""
        return self.table.agents(origin.key, self._clock())

    def latest(self) -> Sequence[Origin]:
        """The origins that have facts, the latest change first."""
        return [read_target(key).origin for key in self.table.latest(self._clock())]

    async def sync(self) -> None:
        """Read what has changed in the store; raises StoreDown."""
        for _ in range(FACT_ORIGINS // ORIGINS_PER_CALL + 2):
            known = self.table.newest
            changes = await self._store.changes(self._version)
            lost = changes.newest < known
            if lost or not changes.newest:
                self.table.clear()
                self._version = 0
            if lost and changes.newest:
                continue  # read all that has been reported since
            for entry in changes.entries:
                with Surviving(BackgroundTask.EDGE_FACTS, entry.origin):
                    self.table.put(entry)
                self._version = max(self._version, entry.version)
            self.table.drop_before(changes.oldest)
            if len(changes.entries) < ORIGINS_PER_CALL:
                return

    def syncing(self, every: float = FACTS_EVERY) -> AbstractAsyncContextManager[None]:
        """While the block lasts, read changes every so many seconds; the block begins after the first read."""
        return periodically(BackgroundTask.EDGE_FACTS, self.sync, every, ignoring=StoreDown, at_once=True)
