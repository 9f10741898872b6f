"""How often an origin is visited: a decayed mean, counted in memory and added to the fleet's at intervals.

Every instant is Unix seconds; a half-life is 7 days.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from app.cache.freshness import DAY, HOUR
from app.origin import Origin
from app.redis.guarded_client import StoreDown
from app.redis.single_flight import SingleFlight

HALF_LIFE = 7 * DAY

EXPIRY = 5 * HALF_LIFE
"""Seconds after its last visit for which an origin's tally is kept; a thirtieth of it is left then."""

LEAST_TIME = 1.0
"""Days over which a mean is taken at least: a first visit makes no origin one of a million visits a day."""

ORIGINS = 50_000
"""How many origins' tallies are held in memory: those not written yet, and as many read from the store."""

BATCH = 100
"""How many tallies are written at once: a few milliseconds of the event loop."""

READ_FOR = HOUR
"""Seconds for which a tally read from the store is used; a visit renews it."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Visits counted since `since`: `weight` is their number, each halved for every half-life between it and `at`."""

    weight: float
    at: float
    since: float

    def __add__(self, other: "Tally") -> "Tally":
        """The two counts as one; neither clock is set back."""
        at = max(self.at, other.at)
        return Tally(self._weight(at) + other._weight(at), at, min(self.since, other.since))

    def per_day(self, now: float) -> float:
        """The mean of visits per day over the time they were counted for, recent ones weighing more."""
        at = max(self.at, now)
        # The days count as the visits in them do: else an origin that is new here would look like one seldom visited.
        days = HALF_LIFE / DAY / math.log(2) * -math.expm1(-math.log(2) * (at - self.since) / HALF_LIFE)
        return self._weight(at) / max(days, LEAST_TIME)

    def _weight(self, at: float) -> float:
        return self.weight * 2 ** ((self.at - at) / HALF_LIFE)


class VisitStore(Protocol):
    """Where the fleet's tallies are. Both methods are bounded in time and raise only StoreDown."""

    async def read(self, origin: Origin) -> Tally | None:
        """What the fleet counted; None for nothing, and for what cannot be read. Callers wait for this."""

    async def add(self, tallies: Mapping[Origin, Tally]) -> Mapping[Origin, Tally | None]:
        """Add these to the fleet's: what these then are, without those that could not be written."""


@dataclass(frozen=True, slots=True)
class _FleetTally:
    tally: Tally | None
    at: float


class Visits:
    """The visits of one process, added to those of the fleet as last read from the store.

    Counting is memory alone. While the store is down, what was counted is kept for it, for `origins` origins at most:
    beyond, the one that waits the longest goes. A batch whose end is not known may come to count twice, never not.
    """

    def __init__(self, store: VisitStore, clock: Callable[[], float], *, origins: int = ORIGINS) -> None:
        self._store = store
        self._clock = clock
        self._origins = origins
        self._counted: dict[Origin, Tally] = {}
        self._sent: Mapping[Origin, Tally] = {}
        self._fleet: OrderedDict[Origin, _FleetTally] = OrderedDict()
        self._reads: SingleFlight[Origin, None] = SingleFlight()
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._ends = False

    async def visit(self, origin: Origin) -> float:
        """Count a visit; how many the origin has a day, with it. Waits as `per_day` does."""
        self.count(origin)
        return await self.per_day(origin)

    def count(self, origin: Origin) -> None:
        """Count a visit."""
        now = self._clock()
        self._count(origin, Tally(1.0, now, now))

    async def per_day(self, origin: Origin) -> float:
        """How many visits a day the origin has; waits for the store once per origin and process, as a rule."""
        if not self._has_fleet_tally(origin):
            await self._reads.do(origin, lambda: self._read(origin))
        return self._per_day(origin)

    def with_one_more(self, origin: Origin) -> float | None:
        """What `visit` would say now, and nothing is counted; None where it would wait for the store."""
        now = self._clock()
        return self._per_day(origin, Tally(1.0, now, now)) if self._has_fleet_tally(origin) else None

    def _has_fleet_tally(self, origin: Origin) -> bool:
        known = self._fleet.get(origin)
        if known is None or not 0 <= self._clock() - known.at < READ_FOR:
            return False
        self._fleet.move_to_end(origin)
        return True

    def _per_day(self, origin: Origin, more: Tally | None = None) -> float:
        now = self._clock()
        known = [more, self._counted.get(origin), self._sent.get(origin), self._fleet_tally(origin)]
        tallies = [tally for tally in known if tally is not None]
        return sum(tallies[1:], start=tallies[0]).per_day(now) if tallies else 0.0

    async def write_back(self) -> None:
        """Add all that was counted so far to the fleet's tallies, or keep it where they cannot be had."""
        async with self._writing:
            left = len(self._counted)
            while left > 0:
                self._sent = {origin: self._counted.pop(origin) for origin in list(self._counted)[: min(BATCH, left)]}
                left -= len(self._sent)
                if not await self._send():
                    return

    @asynccontextmanager
    async def writing_back(self, every: float = 60.0) -> AsyncIterator[None]:
        """While the block lasts, write back every so many seconds, or sooner when memory fills; and at its end."""
        writing = asyncio.create_task(self._keep_writing(every))
        try:
            yield
        finally:
            # It is not cancelled: a batch that is given up in the middle may come to count twice.
            self._ends = True
            self._wake.set()
            await asyncio.wait([writing])
            await self.write_back()
            await self._reads.aclose()

    def _count(self, origin: Origin, tally: Tally) -> None:
        counted = self._counted.get(origin)
        if counted is not None:
            self._counted[origin] = counted + tally
            return
        if len(self._counted) >= self._origins:
            del self._counted[next(iter(self._counted))]
        self._counted[origin] = tally
        # Once on the way up, so that a store that is down is not tried again and again.
        if len(self._counted) == self._origins // 2:
            self._wake.set()

    def _fleet_tally(self, origin: Origin) -> Tally | None:
        known = self._fleet.get(origin)
        return None if known is None else known.tally

    async def _read(self, origin: Origin) -> None:
        before = self._fleet.get(origin)
        try:
            tally = await self._store.read(origin)
        except StoreDown:
            return
        if self._fleet.get(origin) is before:  # else a batch was written meanwhile, and its result is newer
            self._hear(origin, tally)

    def _hear(self, origin: Origin, tally: Tally | None) -> None:
        self._fleet[origin] = _FleetTally(tally, self._clock())
        self._fleet.move_to_end(origin)
        if len(self._fleet) > self._origins:
            self._fleet.popitem(last=False)

    async def _send(self) -> bool:
        """Whether all that is sent was written; what was not is counted again, also when this is cancelled."""
        written: Mapping[Origin, Tally | None] = {}
        try:
            with suppress(StoreDown):
                written = await self._store.add(self._sent)
        finally:
            sent, self._sent = self._sent, {}
            for origin, tally in written.items():
                self._hear(origin, tally)
            for origin in sent.keys() - written.keys():
                self._count(origin, sent[origin])
        return written.keys() >= sent.keys()

    async def _keep_writing(self, every: float) -> None:
        while not self._ends:
            with suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await self._wake.wait()
            self._wake.clear()
            await self.write_back()
