"""How often an origin is visited: a decaying mean, counted in memory and added to the fleet's at intervals.

Every instant is Unix seconds; a half-life is 7 days.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from app.cache.byte_lru import BoundedDict
from app.cache.freshness import DAY, HOUR
from app.cache.redis_snapshots import snapshot_key
from app.loop.background import BackgroundTask, in_batches
from app.loop.single_flight import SingleFlight
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script
from robots_core.origin import Origin

HALF_LIFE = 7 * DAY

TALLY_EXPIRY = 5 * HALF_LIFE
"""Seconds for which an origin's tally is kept after the last visit; by then it has decayed to a thirtieth."""

LEAST_TIME = 1.0
"""The least number of days that a mean is taken over, so that a first visit does not count as a million a day."""

TALLIES = 50_000
"""Tallies in memory, at most: this many not written yet, and as many read from the store."""

TALLIES_PER_WRITE = 100
"""How many tallies are written at once, which takes a few milliseconds of the event loop."""

READ_FOR = HOUR
"""Seconds for which a tally read from the store is used."""


HEAVIEST = 1e15
"""The largest weight that is accepted."""

WRITER_AHEAD = HOUR
"""Seconds by which the clock of another writer may be ahead of ours."""

_VALUE_LIMIT = 64

_VALUE: Final = re.compile(rb"V1 ([0-9.e+-]{1,20}) ([0-9]{1,12}) ([0-9]{1,12})")

_ADD: Final = Script.load(
    __package__,
    "add_visits.lua",
    VALUE_LIMIT=_VALUE_LIMIT,
    HEAVIEST=round(HEAVIEST),
    HALF_LIFE=round(HALF_LIFE),
    EXPIRY=round(TALLY_EXPIRY),
)


@dataclass(frozen=True, slots=True)
class Tally:
    """Visits counted since `since`: `weight` is their number, each halved for every half-life between it and `at`."""

    weight: float
    at: float
    since: float

    def __add__(self, other: "Tally") -> "Tally":
        """The sum of two counts, at the later of their instants."""
        at = max(self.at, other.at)
        return Tally(self._weight(at) + other._weight(at), at, min(self.since, other.since))

    def per_day(self, now: float) -> float:
        """The mean of visits per day since the first one; recent visits weigh more."""
        at = max(self.at, now)
        # Days are weighted like the visits in them, or a new origin would look like one that is seldom visited.
        days = HALF_LIFE / DAY / math.log(2) * -math.expm1(-math.log(2) * (at - self.since) / HALF_LIFE)
        return self._weight(at) / max(days, LEAST_TIME)

    def _weight(self, at: float) -> float:
        return self.weight * 2 ** ((self.at - at) / HALF_LIFE)


class RedisVisits:
    """Tallies under `robots:{scheme://host:port[#profile]}:visits`, which expire TALLY_EXPIRY after the last."""

    def __init__(self, redis: GuardedClient, *, clock: Callable[[], float]) -> None:
        self._redis = redis
        self._clock = clock

    async def read(self, origin: Origin) -> Tally | None:
        """The origin's value; None if there is none or it cannot be read. Raises StoreDown."""
        own = key(origin)
        data = await self._redis.command(own, "GETRANGE", own, 0, _VALUE_LIMIT)
        return read_value(data, self._clock())

    async def add(self, tallies: Mapping[Origin, Tally]) -> Mapping[Origin, Tally | None]:
        """Add these to the stored tallies; returns the sums, without those that were refused. Raises StoreDown."""
        # A server that hangs would run what it was sent once it resumes. So all have to respond first.
        await self._redis.ping()
        adding = [self._add(origin, tally) for origin, tally in tallies.items()]
        results = await asyncio.gather(*adding, return_exceptions=True)
        sums: dict[Origin, Tally | None] = {}
        for origin, result in zip(tallies, results, strict=True):
            if isinstance(result, BaseException):
                if not isinstance(result, StoreDown):
                    raise result
            else:
                sums[origin] = result
        return sums

    async def _add(self, origin: Origin, tally: Tally) -> Tally | None:
        now = self._clock()
        values = (tally.weight, ".9g"), (tally.at, ".0f"), (tally.since, ".0f"), (now + WRITER_AHEAD, ".0f")
        return read_value(await _ADD.run(self._redis, [key(origin)], *(format(*value) for value in values)), now)


def key(origin: Origin) -> str:
    """The key of the origin's tally, in the same cluster slot as its snapshot."""
    return f"{snapshot_key(origin)}:visits"


def read_value(data: object, now: float) -> Tally | None:
    """Read a stored tally; None for any other value."""
    written = _VALUE.fullmatch(data) if isinstance(data, bytes) else None
    if written is None:
        return None
    try:
        tally = Tally(*map(float, written.groups()))
    except ValueError:
        return None
    return tally if 0 <= tally.weight <= HEAVIEST and tally.since <= tally.at <= now + WRITER_AHEAD else None


_UNKNOWN: Final = None, -math.inf


class Visits:
    """The visits that one process counts, added to those of the fleet as last read from the store.

    Counting is done in memory. While the store is down, counts are kept for it, of the `origins` origins visited last.
    If it is not known whether a batch was written, it may be counted twice, but is never lost.
    """

    def __init__(self, store: RedisVisits, clock: Callable[[], float], *, origins: int = TALLIES) -> None:
        self._store = store
        self._clock = clock
        self._limit = origins
        self._counted: BoundedDict[Origin, Tally] = BoundedDict(origins)
        self._sent: Mapping[Origin, Tally] = {}
        self._fleet: BoundedDict[Origin, tuple[Tally | None, float]] = BoundedDict(origins)  # as known at an instant
        self._reads: SingleFlight[Origin, None] = SingleFlight(BackgroundTask.VISITS)
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._ends = False

    async def visit(self, origin: Origin) -> float:
        """Count a visit, and return the visits per day with it. Waits as `per_day` does."""
        self.count(origin)
        return await self.per_day(origin)

    def count(self, origin: Origin) -> None:
        """Count a visit."""
        now = self._clock()
        self._count(origin, Tally(1.0, now, now))

    async def per_day(self, origin: Origin) -> float:
        """The origin's visits per day; waits for the store, usually once for each origin and process."""
        if not self._is_recent(origin):
            await self._reads.do(origin, lambda: self._read(origin))
        return self._per_day(origin)

    def with_one_more(self, origin: Origin) -> float | None:
        """What `visit` would return now, without counting one; None if it would wait for the store."""
        now = self._clock()
        return self._per_day(origin, Tally(1.0, now, now)) if self._is_recent(origin) else None

    async def write_back(self) -> None:
        """Add all that was counted so far to the fleet's tallies; counts that cannot be written are kept."""
        async with self._writing:
            with suppress(StoreDown):
                bad = await in_batches(
                    BackgroundTask.VISITS, list(self._counted), TALLIES_PER_WRITE, self._send, unless=StoreDown
                )
                for origin in bad:
                    self._counted.pop(origin, None)

    @asynccontextmanager
    async def writing_back(self, every: float = 60.0) -> AsyncIterator[None]:
        """While the block lasts, write back every so many seconds, or sooner if memory fills up; and at its end."""
        writing = asyncio.create_task(self._keep_writing(every), name=BackgroundTask.VISITS)
        try:
            yield
        finally:
            # Not cancelled: a batch that is abandoned in the middle may be counted twice.
            self._ends = True
            self._wake.set()
            await asyncio.wait([writing])
            await self.write_back()
            await self._reads.aclose()

    def _is_recent(self, origin: Origin) -> bool:
        """Whether the fleet's tally is known well enough."""
        return 0 <= self._clock() - self._fleet.get(origin, _UNKNOWN)[1] < READ_FOR

    def _per_day(self, origin: Origin, more: Tally | None = None) -> float:
        found = [more, self._counted.get(origin), self._sent.get(origin), self._fleet.get(origin, _UNKNOWN)[0]]
        tallies = [tally for tally in found if tally is not None]
        return sum(tallies[1:], start=tallies[0]).per_day(self._clock()) if tallies else 0.0

    def _count(self, origin: Origin, tally: Tally) -> None:
        counted = self._counted.get(origin)
        self._counted[origin] = tally if counted is None else counted + tally
        # Once on the way up, so that a store that is down is not tried again and again.
        if counted is None and len(self._counted) == self._limit // 2:
            self._wake.set()

    async def _read(self, origin: Origin) -> None:
        before = self._fleet.get(origin)
        try:
            tally = await self._store.read(origin)
        except StoreDown:
            return
        if self._fleet.get(origin) is before:  # else a batch was written meanwhile, and its result is newer
            self._fleet[origin] = tally, self._clock()

    async def _send(self, origins: Sequence[Origin]) -> None:
        """Write the counts of the origins; what is not written is counted again, also if this is cancelled.

        Raises StoreDown unless all are written.
        """
        self._sent = {origin: self._counted.pop(origin) for origin in origins if origin in self._counted}
        written: Mapping[Origin, Tally | None] = {}
        try:
            written = await self._store.add(self._sent)
        finally:
            sent, self._sent = self._sent, {}
            for origin, tally in written.items():
                self._fleet[origin] = tally, self._clock()
            for origin in sent.keys() - written.keys():
                self._count(origin, sent[origin])
        if not written.keys() >= sent.keys():
            raise StoreDown(f"the store took {len(written)} of {len(sent)} tallies")

    async def _keep_writing(self, every: float) -> None:
        while not self._ends:
            with suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await self._wake.wait()
            self._wake.clear()
            await self.write_back()
