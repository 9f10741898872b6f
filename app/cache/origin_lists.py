"""Which origins of the fleet deserve a look: those that fail, are slow, stale or held back, and those asked about most.

Every process notes in memory what its fetches and callers bring, and writes it all together every FLUSH_EVERY seconds.
The lists hold names and scores only, LISTED of each at most; the facts are read from the snapshots when a list is
asked for, so that no list contradicts an answer. They are approximate: a process that is killed loses what it noted,
and a list that is full drops the lowest scores.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from app.cache.freshness import Snapshot
from app.origin import Origin
from app.redis.background import background
from app.redis.guarded_client import StoreDown
from app.robots.access import Blocked, Successful

LISTED = 1000
"""Origins in a list at most."""

SLOW = 1.0
"""Seconds that a fetch takes at least to be listed as a slow one."""

FLUSH_EVERY = 10.0
"""Seconds between two writings of what was noted."""

NOTED = 10_000
"""Origins that wait to be written at most; beyond, new ones are not noted."""

MOST_ASKED = 100
"""Of the origins asked about between two writings, how many are written: those asked about most."""


class Order(StrEnum):
    """What a list is ordered by, the first being the highest."""

    FAILING = "failing"
    """The last fetch failed; the latest failure first."""

    SLOW = "slow"
    """The last fetch took SLOW seconds or longer; the slowest first."""

    STALE = "stale"
    """A copy stands in, since refreshing it fails; the oldest copy first."""

    BACKOFF = "backoff"
    """Callers were told to hold back; the one held back for longest first."""

    ASKED = "asked"
    """Decisions given in the present hour and the one before, by the clock; the most first."""


@dataclass(slots=True)
class Notes:
    """What is to be written: the scores of origins that belong in a list, and the origins that no longer do."""

    listed: dict[Order, dict[str, float]] = field(default_factory=lambda: {order: {} for order in Order})
    cleared: set[str] = field(default_factory=set)
    """Fetched, and in none of FAILING, SLOW and STALE unless `listed` says so."""

    def __bool__(self) -> bool:
        return bool(self.cleared) or any(self.listed.values())


class OriginListStore(Protocol):
    """Where the fleet's lists are. Both methods are bounded in time, and raise nothing but StoreDown."""

    async def write(self, notes: Notes, now: float) -> None:
        """Put these into the lists; scores of ASKED are added to what is there."""

    async def read(self, order: Order, now: float) -> Sequence[tuple[Origin, float]]:
        """A list, the highest score first."""


class OriginLists:
    """The lists of the fleet, and what this process has noted for them; `clock` is Unix seconds."""

    def __init__(self, store: OriginListStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._notes = Notes()
        self._asked: dict[str, int] = {}

    def note_fetch(self, origin: Origin, snapshot: Snapshot, seconds: float) -> None:
        """A fetch that took so many seconds led to this snapshot."""
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
        """A decision was given about the origin with this key."""
        asked = self._asked
        if key in asked:
            asked[key] += 1
        elif len(asked) < NOTED:
            asked[key] = 1

    def note_backoff(self, key: str, until: float) -> None:
        """Callers hold back from the origin with this key until then (Unix seconds)."""
        held = self._notes.listed[Order.BACKOFF]
        if key in held or len(held) < NOTED:
            held[key] = until

    async def read(self, order: Order) -> Sequence[tuple[Origin, float]]:
        """The fleet's list, what this process has noted included; raises StoreDown."""
        await self.flush()
        return await self._store.read(order, self._clock())

    async def flush(self) -> None:
        """Write what was noted; raises StoreDown, and what was noted is then kept for the next time."""
        notes, asked = self._notes, self._asked
        if not notes and not asked:
            return
        self._notes, self._asked = Notes(), {}
        notes.listed[Order.ASKED] = dict(Counter(asked).most_common(MOST_ASKED))
        try:
            await self._store.write(notes, self._clock())
        except StoreDown:
            # What was noted meanwhile is newer. Counts are dropped: they would go to an hour that they are not of.
            notes.listed[Order.ASKED] = {}
            newer, self._notes = self._notes, notes
            self._merge(newer)
            raise

    @asynccontextmanager
    async def flushed(self, every: float = FLUSH_EVERY) -> AsyncIterator[None]:
        """While the block lasts, write what was noted every so many seconds, and once more at its end."""
        async with background(self._keep_flushing(every)):
            yield
        with suppress(StoreDown):
            await self.flush()

    async def _keep_flushing(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
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
