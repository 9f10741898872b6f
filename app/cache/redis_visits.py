"""The fleet's tallies of visits in Redis or Valkey."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Final

from app.cache.freshness import HOUR
from app.cache.redis_snapshots import snapshot_key
from app.cache.visits import HALF_LIFE, TALLY_EXPIRY, Tally
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script
from robots_core.origin import Origin

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
