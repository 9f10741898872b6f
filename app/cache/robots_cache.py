"""What is known of an origin's robots.txt: from memory, from the store, or fetched now, by one caller for the fleet."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Freshness, Recheck, Snapshot, State, freshness, next_snapshot
from app.cache.invalidation import Event
from app.cache.lease import Lease, LeaseStore
from app.cache.store_clock import StoreClock
from app.cache.tiered_snapshots import Source, Store, TieredSnapshots
from app.history.versions import History, with_held
from app.origin import Origin
from app.redis.single_flight import SingleFlight
from app.robots.access import Busy, Fetched, NotModified, Successful, Unreachable, Validators

__all__ = ["CacheResult", "CacheStore", "Fetch", "HistoryStore", "RobotsCache", "Source"]


class CacheStore(Store, LeaseStore, Protocol):
    """What processes share: the snapshots, and the leases of those who fetch."""


class HistoryStore(Protocol):
    """Where it is kept what an origin's file was before; what it is now, its snapshot says."""

    async def read(self, origin: Origin) -> History:
        """What is kept of the origin; bounded in time, and raises nothing but StoreDown."""

    def note(self, origin: Origin, ended: Snapshot) -> None:
        """Keep, some time later, the version of the origin that this snapshot held to the end."""


Fetch = Callable[[Origin, Validators], Awaitable[Fetched]]
"""One bounded fetch, conditional where there are validators; it raises Busy where none was made, and nothing else."""


OnFetch = Callable[[Origin, Snapshot, float], None]
"""Called after every fetch with the snapshot that it led to, and the seconds that it took."""


def _ignore_fetch(_origin: Origin, _snapshot: Snapshot, _seconds: float) -> None:
    pass


@dataclass(frozen=True, slots=True)
class CacheResult:
    """What is known of one origin now; `snapshot` and `freshness` are None while nothing is (a fetch is under way)."""

    snapshot: Snapshot | None
    freshness: Freshness | None
    source: Source


class RobotsCache:
    """The cache of one process, in front of a store that processes share.

    `memory_bytes` bounds the snapshots in memory, each of which is believed for `trust` seconds before the store is
    asked again. A fetch is to end within `lease` seconds, after which another process may begin one. While the store
    is down, the cache goes on from memory and by fetching. `on_fetch` and `health` hear of every fetch.
    """

    def __init__(
        self,
        store: CacheStore,
        fetch: Fetch,
        clock: Callable[[], float],
        memory_bytes: int,
        *,
        trust: float = 30.0,
        lease: float = 12.0,
        history: HistoryStore | None = None,
        on_fetch: OnFetch = _ignore_fetch,
        health: FetchHealth | None = None,
    ) -> None:
        self._fetch = fetch
        self._on_fetch = on_fetch
        self._history = history
        self._clock = clock
        self._health = health or FetchHealth()
        self._store_clock = StoreClock(clock)
        self._known = TieredSnapshots(
            store,
            clock,
            memory_bytes,
            trust,
            store_clock=self._store_clock,
            overruled=self._note,
            contradicted=self._health.contradict,
        )
        self._lease = Lease(store, lease)
        self._refreshes: SingleFlight[Origin, tuple[Snapshot, Source]] = SingleFlight(expected=Busy)
        self._orders: SingleFlight[Origin, tuple[Snapshot, Source]] = SingleFlight(expected=Busy)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the snapshots in memory."""
        return self._known.usage

    def get_trusted(self, origin: Origin) -> Snapshot | None:
        """What memory has of the origin and is to be believed without asking the store, fresh or not."""
        return self._known.get_trusted(origin)

    async def held(
        self, origin: Origin, recheck: Recheck, *, max_age: float | None = None, wait: float = 10.0
    ) -> CacheResult:
        """What is known of the origin, refreshed first if it is due, for which the caller waits up to `wait` seconds.

        A snapshot older than `max_age` seconds is due, unless its origin is failing and not to be tried again yet.
        Busy, where the fetch raises it, is raised here only where no copy is held that can be served instead.
        """
        known, source = await self._known.look(origin)
        state = State.DUE if known is None else self._state(known, origin, recheck, max_age, self._clock())
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

    async def refresh(self, origin: Origin, recheck: Recheck) -> CacheResult:
        """What a whole fetch finds that begins after this call, however new what is known, and back-off or not.

        The fleet is told of it. Raises Busy where no fetch can be made.
        """
        under_way = self._orders.under_way(origin)
        if under_way is not None:
            await asyncio.wait([under_way])  # it may have looked before the change that this caller knows of
        order = self._orders.start(origin, partial(self._fetch_now, origin))
        await asyncio.wait([order])
        return self._answer(*order.result(), origin, recheck)

    async def purge(self, origin: Origin) -> None:
        """Forget the origin here and in the whole fleet; StoreDown where the fleet is told when the store is back.

        A fetch that is under way is made again: what it finds may be what is to be forgotten. What is forgotten goes
        into the history.
        """
        known = await self._last_known(origin)
        await self._known.purge(origin)
        if known is not None:
            self._note(origin, known)

    async def facts(self, origin: Origin) -> Snapshot | None:
        """What is known of the origin in the store and here, and nothing is kept of it; raises StoreDown."""
        return await self._known.facts(origin)

    def delivering(self) -> AbstractAsyncContextManager[None]:
        """While the block lasts, the store is told what it missed while it was down."""
        return self._known.delivering()

    async def history(self, origin: Origin) -> History:
        """What the origin's file is and was, oldest first, without asking the origin; raises StoreDown.

        What is held now is its last.
        """
        # This before what is written: what it is when it changes meanwhile may not be written yet.
        known = await self._last_known(origin)
        kept = () if self._history is None else await self._history.read(origin)
        # In a thread: what has to be packed first may be large.
        return kept if known is None else await asyncio.to_thread(with_held, kept, known, self._clock())

    def hear(self, word: Event, origin: Origin) -> None:
        """Another process tells that it has learnt of, or purged, the origin."""
        self._known.hear(word, origin)

    def missed(self) -> None:
        """Other processes may have told what was not heard."""
        self._known.missed()

    async def aclose(self) -> None:
        """Give up what is under way; the store is its owner's to close."""
        await self._known.aclose()
        await self._refreshes.aclose()
        await self._orders.aclose()

    def _answer(self, snapshot: Snapshot | None, source: Source, origin: Origin, recheck: Recheck) -> CacheResult:
        if snapshot is None:
            return CacheResult(None, None, Source.NONE)
        return CacheResult(snapshot, freshness(snapshot, recheck, origin.key, self._clock()), source)

    def _state(self, snapshot: Snapshot, origin: Origin, recheck: Recheck, max_age: float | None, now: float) -> State:
        fresh = freshness(snapshot, recheck, origin.key, now)
        # A failing origin keeps its back-off, however new a copy is wanted: asking more often is no way to get one.
        too_old = max_age is not None and fresh.age > max_age and snapshot.failing is None
        return State.DUE if too_old else fresh.state

    async def _refresh(
        self, origin: Origin, seen: Snapshot | None, recheck: Recheck, max_age: float | None
    ) -> tuple[Snapshot, Source]:
        began = self._clock()
        looked, before = False, None

        def will_do(snapshot: Snapshot) -> bool:
            return self._state(snapshot, origin, recheck, max_age, began) is State.FRESH

        async def learnt() -> tuple[Snapshot, Source] | None:
            nonlocal looked, before
            found, source = await self._known.ask(origin)
            awaited = looked and found is not None and (before is None or found.checked_at > before.checked_at)
            looked, before = True, before if looked else found
            # What another process fetched while this one waited is as new as can be had.
            wanted = None if awaited else max_age
            fresh = found is not None and self._state(found, origin, recheck, wanted, began) is State.FRESH
            return (found, source) if found is not None and fresh else None

        # A refresh may have ended between this caller's look and this moment: its flight is over, so this is a new
        # one, and without this second look every caller who asked the store early and heard from it late would fetch
        # again. Memory is enough to ask: what a refresh in this process learns is put there first.
        known = self._known.peek(origin)
        if known is not None and known is not seen and will_do(known):
            return known, Source.MEMORY
        with self._known.awaiting(origin) as news:
            return await self._lease.once(origin, learnt, partial(self._fetch_and_save, origin, seen), news)

    async def _fetch_now(self, origin: Origin) -> tuple[Snapshot, Source]:
        known, _ = await self._known.look(origin)
        return await self._lease.always(origin, partial(self._fetch_and_save, origin, known, whole=True))

    async def _fetch_and_save(
        self, origin: Origin, seen: Snapshot | None, began: float | None, *, whole: bool = False
    ) -> tuple[Snapshot, Source]:
        """Fetch, beginning at `began` by the store's clock, None: now; `whole`: unconditionally."""
        if began is not None:
            self._store_clock.heard(began)
        fetched, snapshot = await self._fetch_once(origin, seen, began, whole=whole)
        kept = await self._known.save(origin, snapshot, seen)
        if kept is None:
            # Purged meanwhile: what began before that is no answer any more. One that is purged again is given all
            # the same to those who asked before, and is not kept.
            fetched, snapshot = await self._fetch_once(origin, None, None, whole=True)
            kept = await self._known.save(origin, snapshot) or snapshot
        if kept.checked_at != snapshot.checked_at:
            return kept, Source.STORE
        if kept.failing is not None and isinstance(kept.access, Successful):
            return kept, Source.MEMORY
        return kept, Source.REVALIDATED if isinstance(fetched.access, NotModified) else Source.FETCHED

    async def _fetch_once(
        self, origin: Origin, seen: Snapshot | None, began: float | None, *, whole: bool
    ) -> tuple[Fetched, Snapshot]:
        """What one fetch finds, and the snapshot that follows what was known when it began."""
        began = self._store_clock() if began is None else began
        known = self._known.peek(origin) or seen
        conditional = known is not None and isinstance(known.access, Successful) and not whole
        begun = asyncio.get_running_loop().time()
        fetched = await self._fetch(origin, known.validators if known is not None and conditional else Validators())
        seconds = asyncio.get_running_loop().time() - begun
        self._health.fetched(fetched.access)
        snapshot = next_snapshot(known, _since_the_beginning(fetched, seconds), began)
        self._on_fetch(origin, snapshot, seconds)
        return fetched, snapshot

    async def _last_known(self, origin: Origin) -> Snapshot | None:
        known, _ = await self._known.look(origin)
        # As a fetch found it: a copy that may not be used any more is history all the same.
        return self._known.peek(origin) or known

    def _note(self, origin: Origin, ended: Snapshot) -> None:
        if self._history is not None:
            self._history.note(origin, ended)


def _since_the_beginning(fetched: Fetched, seconds: float) -> Fetched:
    """The result of a fetch that took so long: its Retry-After counts from the answer, and all else from the begin."""
    failure = fetched.access
    if not isinstance(failure, Unreachable) or failure.retry_after is None:
        return fetched
    return replace(fetched, access=replace(failure, retry_after=failure.retry_after + max(0, math.ceil(seconds))))
