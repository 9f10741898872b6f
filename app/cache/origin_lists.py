"""Lists of the fleet's origins: those that fail, are slow, stale or in backoff, and those asked about most.

Every process notes scores in memory and writes them every FLUSH_EVERY seconds. A list holds at most LISTED names and
their scores; the facts are read from the snapshots with the list, so that a list never contradicts an answer.
Lists are approximate: a process that is killed loses its notes, and a full list drops the lowest scores.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from app.cache.freshness import Snapshot
from app.loop.background import BackgroundTask, periodically
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin
from robots_core.robots.access import Blocked, Successful

LISTED = 1000
"""The largest number of origins in a list."""

SLOW = 1.0
"""Seconds from which a fetch is listed as slow."""

FLUSH_EVERY = 10.0
"""Seconds between two writes of the notes."""

NOTED = 10_000
"""Origins that wait to be written; beyond that, new ones are not noted."""

MOST_ASKED = 100
"""How many of the origins asked about since the last write are written: those asked about most."""


class Order(StrEnum):
    """What a list is ordered by, the first being the highest."""

    FAILING = "failing"
    """The last fetch failed; the latest failure first."""

    SLOW = "slow"
    """The last fetch took SLOW seconds or longer; the slowest first."""

    STALE = "stale"
    """A copy answers because refreshing it fails; the oldest copy first."""

    BACKOFF = "backoff"
    """The origin is in backoff; the longest backoff first."""

    ASKED = "asked"
    """Decisions in the current hour and the one before; the most first."""

    REFUSED = "refused"
    """Callers reported refused pages; the latest report first. Kept with the edge facts, not in a list of its own."""


@dataclass(slots=True)
class Notes:
    """Scores of origins that belong in a list, and origins that were fetched, to be written."""

    listed: dict[Order, dict[str, float]] = field(default_factory=lambda: {order: {} for order in Order})
    cleared: set[str] = field(default_factory=set)
    """Origins that were fetched: they leave FAILING, SLOW and STALE unless `listed` has them."""

    def __bool__(self) -> bool:
        return bool(self.cleared) or any(self.listed.values())


class OriginListStore(Protocol):
    """Where the fleet's lists are. Both methods are bounded in time and raise only StoreDown."""

    async def write(self, notes: Notes, now: float) -> None:
        """Write the notes into the lists; scores of ASKED are added to those there."""

    async def read(self, order: Order, now: float) -> Sequence[tuple[Origin, float]]:
        """A list, the highest score first."""


class OriginLists:
    """The lists of the fleet, and the notes of this process; `clock` is Unix seconds."""

    def __init__(self, store: OriginListStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._notes = Notes()
        self._asked: dict[str, int] = {}

    def note_fetch(self, origin: Origin, snapshot: Snapshot, seconds: float) -> None:
        """Note a fetch that took so many seconds and led to this snapshot."""
        key, notes = origin.key, self._notes
        if key not in notes.cleared and len(notes.cleared) >= NOTED:
            return
        notes.cleared.add(key)
        failing = snapshot.failing is not None
        scores = {
            Order.FAILING: snapshot.checked_at if failing or isinstance(snapshot.access, Blocked) else None,
            Order.SLOW: seconds if seconds >= SLOW else None,
            Order.STALE: -snapshot.fetched_at if failing and isinstance(snapshot.access, Successful) else None,
        }
        for order, score in scores.items():
            if score is None:
                notes.listed[order].pop(key, None)
            else:
                notes.listed[order][key] = score

    def note_asked(self, key: str) -> None:
        """Note a decision about the origin with this key."""
        asked = self._asked
        if key in asked:
            asked[key] += 1
        elif len(asked) < NOTED:
            asked[key] = 1

    def note_backoff(self, key: str, until: float) -> None:
        """Note that the origin with this key is in backoff until then (Unix seconds)."""
        backoffs = self._notes.listed[Order.BACKOFF]
        if key in backoffs or len(backoffs) < NOTED:
            backoffs[key] = until

    async def read(self, order: Order) -> Sequence[tuple[Origin, float]]:
        """The fleet's list, this process's notes included; raises StoreDown."""
        await self.flush()
        return await self._store.read(order, self._clock())

    async def flush(self) -> None:
        """Write the notes; raises StoreDown, and then keeps them for the next time."""
        notes, asked = self._notes, self._asked
        if not notes and not asked:
            return
        self._notes, self._asked = Notes(), {}
        notes.listed[Order.ASKED] = dict(Counter(asked).most_common(MOST_ASKED))
        try:
            await self._store.write(notes, self._clock())
        except StoreDown:
            # Notes taken meanwhile are newer. Counts are dropped: they would be added to the wrong hour.
            notes.listed[Order.ASKED] = {}
            newer, self._notes = self._notes, notes
            self._merge(newer)
            raise

    @asynccontextmanager
    async def flushing(self, every: float = FLUSH_EVERY) -> AsyncIterator[None]:
        """While the block lasts, write the notes every so many seconds, and once more at its end."""
        async with periodically(BackgroundTask.ORIGIN_LISTS, self.flush, every, ignoring=StoreDown):
            yield
        with suppress(StoreDown):
            await self.flush()

    def _merge(self, newer: Notes) -> None:
        notes = self._notes
        for key in newer.cleared:
            for order in (Order.FAILING, Order.SLOW, Order.STALE):
                notes.listed[order].pop(key, None)
        notes.cleared |= newer.cleared
        for order, scores in newer.listed.items():
            notes.listed[order] |= scores
