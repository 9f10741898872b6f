"""Lists of the fleet's origins: those that fail, are slow, stale or in backoff, and those asked about most.

Every process notes scores in memory and writes them every FLUSH_EVERY seconds. A list holds at most LISTED names and
their scores; the facts are read from the snapshots with the list, so that a list never contradicts an answer.
Lists are approximate: a process that is killed loses its notes, and a full list drops the lowest scores.
"""

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.cache.freshness import HOUR, Snapshot
from app.loop.background import BackgroundTask, periodically
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script
from robots_core.origin import Origin, read_key
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

LIST_EXPIRY = 7 * 86_400
"""Seconds after the last addition for which a list is kept."""

_SLOT = "robots:{origins}"  # what all keys begin with, so that one slot of a cluster has them
_ASKED_EXPIRY = 2 * 3600
_LONGEST_KEY = 300  # bytes of an origin's key; a host name has 253, and the name of a profile 32
_BATCH = 500  # origins of one call, so that none holds the server for long

_READ: Final = Script.load(__package__, "read_list.lua", LISTED=LISTED, LONGEST_KEY=_LONGEST_KEY)
_NOTE: Final = Script.load(__package__, "note_list.lua", LISTED=LISTED)


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
    """What is to be written of origins, by their keys.

    `fetched` has scores in FAILING, SLOW and STALE, None for an origin that leaves that list; `backoffs` until when
    they are in backoff (Unix seconds); `asked` how often they were asked about.
    """

    fetched: dict[str, Mapping[Order, float | None]] = field(default_factory=dict)
    backoffs: dict[str, float] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)


class RedisOriginLists:
    """Sorted sets `robots:{origins}:ORDER` of origins' keys, LISTED in each; for ASKED, one for each hour.

    A value of another type is replaced, and a member that is not the key of an origin is ignored.
    """

    def __init__(self, redis: GuardedClient) -> None:
        self._redis = redis

    async def write(self, notes: Notes, now: float) -> None:
        """Write the notes into the lists; scores of ASKED are added to those there. Raises StoreDown."""
        for order in (Order.FAILING, Order.SLOW, Order.STALE):
            await self._write(order, ((key, scores[order]) for key, scores in notes.fetched.items()))
        await self._write(Order.BACKOFF, notes.backoffs.items(), least=str(now))
        asked = Counter(notes.asked).most_common(MOST_ASKED)
        await self._write(_asked_in(now), asked, how="sum", seconds=_ASKED_EXPIRY)

    async def _write(
        self,
        name: str,
        scores: Iterable[tuple[str, float | None]],
        *,
        how: str = "",
        seconds: int = LIST_EXPIRY,
        least: str = "",
    ) -> None:
        lines = [f"{'-' if score is None else score} {key}" for key, score in scores]
        for start in range(0, len(lines), _BATCH):
            batch = "\n".join(lines[start : start + _BATCH])
            await _NOTE.run(self._redis, [f"{_SLOT}:{name}"], batch, how, str(seconds), least)

    async def read(self, order: Order, now: float) -> Sequence[tuple[Origin, float]]:
        """A list, the highest score first; raises StoreDown."""
        total: dict[Origin, float] = {}
        for name in (_asked_in(now), _asked_in(now - HOUR)) if order is Order.ASKED else (order,):
            reply = await _READ.run(self._redis, [f"{_SLOT}:{name}"])
            values = reply if isinstance(reply, list) else []
            for key, text in zip(values[::2], values[1::2], strict=False):
                origin, score = _origin(key), _score(text)
                if origin is not None and math.isfinite(score):
                    total[origin] = total.get(origin, 0.0) + score
        return sorted(total.items(), key=lambda item: item[1], reverse=True)[:LISTED]


def _asked_in(at: float) -> str:
    """The name of the list for the hour of an instant."""
    return f"{Order.ASKED}:{int(at // HOUR)}"


def _origin(key: object) -> Origin | None:
    return read_key(key.decode()) if isinstance(key, bytes) and key.isascii() else None


def _score(text: object) -> float:
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan


class OriginLists:
    """The lists of the fleet, and the notes of this process; `clock` is Unix seconds."""

    def __init__(self, store: RedisOriginLists, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._notes = Notes()

    def note_fetch(self, origin: Origin, snapshot: Snapshot, seconds: float) -> None:
        """Note a fetch that took so many seconds and led to this snapshot."""
        key, fetched = origin.key, self._notes.fetched
        if key not in fetched and len(fetched) >= NOTED:
            return
        failing = snapshot.failing is not None
        fetched[key] = {
            Order.FAILING: snapshot.checked_at if failing or isinstance(snapshot.access, Blocked) else None,
            Order.SLOW: seconds if seconds >= SLOW else None,
            Order.STALE: -snapshot.fetched_at if failing and isinstance(snapshot.access, Successful) else None,
        }

    def note_asked(self, key: str, times: int) -> None:
        """Note so many decisions about the origin with this key."""
        asked = self._notes.asked
        if key in asked:
            asked[key] += times
        elif len(asked) < NOTED:
            asked[key] = times

    def note_backoff(self, key: str, until: float) -> None:
        """Note that the origin with this key is in backoff until then (Unix seconds)."""
        backoffs = self._notes.backoffs
        if key in backoffs or len(backoffs) < NOTED:
            backoffs[key] = until

    async def read(self, order: Order) -> Sequence[tuple[Origin, float]]:
        """The fleet's list, this process's notes included; raises StoreDown."""
        await self.flush()
        return await self._store.read(order, self._clock())

    async def flush(self) -> None:
        """Write the notes; raises StoreDown, and then keeps them for the next time."""
        notes, self._notes = self._notes, Notes()
        try:
            await self._store.write(notes, self._clock())
        except StoreDown:
            # Notes taken meanwhile are newer. Counts are dropped: they would be added to the wrong hour.
            self._notes.fetched = notes.fetched | self._notes.fetched
            self._notes.backoffs = notes.backoffs | self._notes.backoffs
            raise

    @asynccontextmanager
    async def flushing(self, every: float = FLUSH_EVERY) -> AsyncIterator[None]:
        """While the block lasts, write the notes every so many seconds, and once more at its end."""
        async with periodically(BackgroundTask.ORIGIN_LISTS, self.flush, every, ignoring=StoreDown):
            yield
        with suppress(StoreDown):
            await self.flush()
