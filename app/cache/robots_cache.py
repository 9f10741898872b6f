"""What is known of an origin's robots.txt: from memory, from the store, or fetched now, by one caller for all."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol

from app.cache.flight import SingleFlight
from app.cache.freshness import KEEP, Freshness, Recheck, Snapshot, State, freshness, recall, succeed
from app.cache.memory import ByteLRU
from app.origin import Origin
from app.robots.access import Busy, Fetched, NotModified, Successful, Validators

_OVERHEAD = 1024  # octets that a snapshot takes beside its body and its texts: objects, its place in the cache


class StoreDown(Exception):
    """The store cannot be used now; the cause is what it or the way to it said."""


class Store(Protocol):
    """Where snapshots are kept between processes. Both methods are bounded in time, and raise nothing but StoreDown."""

    async def get(self, origin: Origin) -> Snapshot | None:
        """What is kept of the origin, or None."""

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> None:
        """Keep the snapshot for so long, in place of what was kept of the origin."""


Fetch = Callable[[Origin, Validators], Awaitable[Fetched]]
"""One bounded fetch, conditional where there are validators; it raises Busy where none was made, and nothing else."""


class Source(StrEnum):
    """Where an answer comes from."""

    MEMORY = "memory"
    STORE = "store"
    FETCHED = "fetched"
    REVALIDATED = "revalidated"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of one origin now; `snapshot` and `freshness` are None while nothing is (a fetch is under way)."""

    snapshot: Snapshot | None
    freshness: Freshness | None
    source: Source


@dataclass(frozen=True, slots=True)
class _Kept:
    snapshot: Snapshot
    asked_at: float  # when the store last agreed
    saved: bool  # False: the store was down when this was learnt, and does not have it


class RobotsCache:
    """The cache of one process, in front of a store that processes share.

    `memory_bytes` bounds the snapshots in memory, each of which is believed for `trust` seconds before the store is
    asked again. While the store is down, it goes on from memory and by fetching.
    """

    def __init__(
        self, store: Store, fetch: Fetch, clock: Callable[[], float], memory_bytes: int, trust: float = 30.0
    ) -> None:
        self._store = store
        self._fetch = fetch
        self._clock = clock
        self._trust = trust
        self._memory: ByteLRU[Origin, _Kept] = ByteLRU(memory_bytes)
        self._lookups: SingleFlight[Origin, tuple[Snapshot | None, Source]] = SingleFlight()
        self._refreshes: SingleFlight[Origin, tuple[Snapshot, Source]] = SingleFlight(expected=Busy)

    async def held(self, origin: Origin, recheck: Recheck, *, max_age: float | None = None, wait: float = 10.0) -> Held:
        """What is known of the origin, refreshed first if it is due, for which the caller waits up to `wait` seconds.

        A snapshot older than `max_age` seconds is due, unless its origin is failing and not to be tried again yet.
        Busy, where the fetch raises it, is raised here only where no copy is held that can be served instead.
        """
        known, source = await self._look(origin)
        state = State.DUE if known is None else self._state(known, origin, recheck, max_age)
        if state is State.FRESH:
            return self._answer(known, source, origin, recheck)
        refresh = self._refreshes.start(origin, partial(self._refresh, origin, known, recheck, max_age))
        if state is State.DUE and wait > 0:
            await asyncio.wait([refresh], timeout=wait)
        if state is State.GRACE or not refresh.done():
            return self._answer(known, source, origin, recheck)
        if known is not None and isinstance(known.access, Successful) and isinstance(refresh.exception(), Busy):
            return self._answer(known, source, origin, recheck)
        return self._answer(*refresh.result(), origin, recheck)

    async def aclose(self) -> None:
        """Give up what is under way; the store is its owner's to close."""
        await self._lookups.aclose()
        await self._refreshes.aclose()

    def _answer(self, snapshot: Snapshot | None, source: Source, origin: Origin, recheck: Recheck) -> Held:
        if snapshot is None:
            return Held(None, None, Source.NONE)
        return Held(snapshot, freshness(snapshot, recheck, origin.key, self._clock()), source)

    def _state(self, snapshot: Snapshot, origin: Origin, recheck: Recheck, max_age: float | None) -> State:
        now = freshness(snapshot, recheck, origin.key, self._clock())
        # A failing origin keeps its back-off, however new a copy is wanted: asking more often is no way to get one.
        too_old = max_age is not None and now.age > max_age and snapshot.failing is None
        return State.DUE if too_old else now.state

    async def _look(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """What memory, or past its trust the store, has of the origin and may still be used."""
        kept = self._memory.get(origin)
        now = self._clock()
        if kept is not None and 0 <= now - kept.asked_at < self._trust:
            found: Snapshot | None = kept.snapshot
            source = Source.MEMORY
        else:
            found, source = await self._lookups.do(origin, partial(self._ask_store, origin))
        return (None if found is None else recall(found, self._clock())), source

    async def _ask_store(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        before = self._memory.get(origin)
        try:
            found = await self._store.get(origin)
        except StoreDown:
            kept = self._memory.get(origin)
            return (None, Source.NONE) if kept is None else (kept.snapshot, Source.MEMORY)
        kept = self._memory.get(origin)
        if kept is not None and kept is not before:
            # A refresh ended while the store was asked, and what the store said is older.
            return kept.snapshot, Source.MEMORY
        if kept is not None and not kept.saved and (found is None or found.checked_at < kept.snapshot.checked_at):
            await self._save(origin, kept.snapshot)
            return kept.snapshot, Source.MEMORY
        if found is None:
            # The store has the last word, on what it once had too: another process has purged it.
            self._memory.drop(origin)
            return None, Source.NONE
        # The same object while nothing changed: what is derived from it is kept by its identity.
        snapshot = kept.snapshot if kept is not None and kept.snapshot == found else found
        self._remember(origin, snapshot, saved=True)
        return snapshot, Source.STORE

    async def _refresh(
        self, origin: Origin, seen: Snapshot | None, recheck: Recheck, max_age: float | None
    ) -> tuple[Snapshot, Source]:
        # A refresh may have ended between this caller's look and this moment: its flight is over, so this is a new
        # one, and without this second look every caller who asked the store early and heard from it late would fetch
        # again. Memory is enough to ask: what a refresh in this process learns is put there first.
        kept = self._memory.get(origin)
        known = seen if kept is None else kept.snapshot
        if known is not None and known is not seen and self._state(known, origin, recheck, max_age) is State.FRESH:
            return known, Source.MEMORY
        conditional = known is not None and isinstance(known.access, Successful)
        fetched = await self._fetch(origin, known.validators if known is not None and conditional else Validators())
        snapshot = succeed(known, fetched, self._clock())
        await self._save(origin, snapshot)
        if snapshot.failing is not None and isinstance(snapshot.access, Successful):
            return snapshot, Source.MEMORY
        return snapshot, Source.REVALIDATED if isinstance(fetched.access, NotModified) else Source.FETCHED

    async def _save(self, origin: Origin, snapshot: Snapshot) -> None:
        # Memory first: who asks now need not wait for the store, and a failure learnt while the store is down is
        # remembered, so that the origin is not asked again by every call.
        self._remember(origin, snapshot, saved=False)
        try:
            await self._store.put(origin, snapshot, KEEP)
        except StoreDown:
            return
        kept = self._memory.get(origin)
        if kept is not None and kept.snapshot is snapshot:  # else something newer was learnt meanwhile
            self._remember(origin, snapshot, saved=True)

    def _remember(self, origin: Origin, snapshot: Snapshot, *, saved: bool) -> None:
        self._memory.put(origin, _Kept(snapshot, self._clock(), saved), _size(snapshot))


def _size(snapshot: Snapshot) -> int:
    texts = [snapshot.final_url, snapshot.validators.etag, snapshot.validators.last_modified]
    body = 0
    if isinstance(snapshot.access, Successful):
        body = len(snapshot.access.body)
        texts.append(snapshot.access.content_type)
    return _OVERHEAD + body + sum(len(text) for text in texts if text is not None)
