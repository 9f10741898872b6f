"""What is known of an origin without asking it: the snapshots of this process, and behind them the fleet's store."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol

from app.cache.content import same
from app.cache.freshness import FIRST_RETRY, KEEP, Snapshot, usable
from app.cache.invalidation import Event
from app.cache.ordering import Purged, after_purge, is_local, merge
from app.cache.outbox import Outbox
from app.cache.packed_lru import PackedLRU
from app.cache.store_clock import StoreClock
from app.origin import Origin
from app.redis.guarded_client import StoreDown
from app.redis.single_flight import SingleFlight
from app.robots.access import Successful

SUSPICION = FIRST_RETRY
"""Seconds for which another process may confirm that an origin cannot be reached."""


class Put(NamedTuple):
    """What the store holds now, and what it held before, None for nothing."""

    held: Snapshot | Purged
    before: Snapshot | None


class Store(Protocol):
    """Where snapshots are kept between processes. Every method is bounded in time and raises nothing but StoreDown."""

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        """What is kept of the origin; None for nothing, and for what cannot be read."""

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> Put:
        """Keep for so long what the snapshot and what is kept of the origin come to, in the order of their fetches."""

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        """Keep a Purged for so long, in place of what began before now, or before `at`."""

    async def now(self, origin: Origin) -> float:
        """The instant by the store's clock (Unix seconds), by which what is kept of the origin is ordered."""

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        """Leave word for so long that the origin could not be reached; whether another instance has left it too."""

    async def tell(self, word: Event, origin: Origin) -> None:
        """Say it to all processes that listen now."""


class Source(StrEnum):
    """Where an answer comes from."""

    MEMORY = "memory"
    STORE = "store"
    FETCHED = "fetched"
    REVALIDATED = "revalidated"
    HISTORY = "history"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class _Entry:
    snapshot: Snapshot
    saved: bool  # False: the store was down when this was learnt, and does not have it
    doubtful: bool  # its failures were met by this process alone, and are not shared
    validated_at: float | None  # when the store last agreed; None: there was news since
    generation: int  # which subscription to the news it was agreed under


class TieredSnapshots:
    """Snapshots in memory, `memory_bytes` of them at most, each believed for up to `trust` seconds.

    News of an origin ends that trust at once, and a gap in the news ends it for all. Without any news the seconds
    alone rule. While the store is down, memory answers, and what is learnt or purged meanwhile is told to the fleet
    later. What processes learnt apart is merged in the order in which their fetches began; a content that ends by
    that is told to `overruled`.

    A failure that may be this process's own is not shared until another process has met it too: it holds here alone,
    and where the fleet's snapshot comes to say something else, `contradicted` is told.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        memory_bytes: int,
        trust: float,
        *,
        store_clock: StoreClock,
        overruled: Callable[[Origin, Snapshot], None],
        contradicted: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._trust = trust
        self._overruled = overruled
        self._contradicted = contradicted
        self._memory: PackedLRU[_Entry] = PackedLRU(_Entry, memory_bytes)
        self._generation = 0
        self._lookups: SingleFlight[Origin, tuple[Snapshot | None, Source]] = SingleFlight()
        self._undisturbed: set[Origin] = set()
        self._listeners: dict[Origin, asyncio.Event] = {}
        self._outbox = Outbox(self._deliver)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the snapshots in memory."""
        return self._memory.usage

    async def look(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """What memory, or past its trust the store, has of the origin and may still be used."""
        get_trusted = self.get_trusted(origin)
        if get_trusted is not None:
            return get_trusted, Source.MEMORY
        found, source = await self._lookups.do(origin, lambda: self._look_behind(origin))
        return self._usable(found), source

    def get_trusted(self, origin: Origin) -> Snapshot | None:
        """What memory has and `look` would say without asking the store."""
        kept = self._memory.get(origin)
        if kept is None or kept.validated_at is None or kept.generation != self._generation:
            return None
        now = self._clock()
        return usable(kept.snapshot, now) if 0 <= now - kept.validated_at < self._trust_in(origin) else None

    def _trust_in(self, origin: Origin) -> float:
        # Between half and all of it: what was learnt together is not asked about together again, and callers wait for
        # no queue of lookups. The hash of text differs from one process to the next, and so do the seconds.
        return self._trust * (0.5 + (hash(origin.key) & 0xFFFF) / 0x20000)

    def peek(self, origin: Origin) -> Snapshot | None:
        """What memory has of the origin, believed or not."""
        return _snapshot(self._memory.peek(origin))

    async def ask(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """What the store, or memory where that knows more, has of the origin; raises StoreDown."""
        found, source, _ = await self._compare(origin)
        return found, source

    async def facts(self, origin: Origin) -> Snapshot | None:
        """What store and memory have of the origin, failures included that are not shared; nothing is kept of it.

        Raises StoreDown.
        """
        found, own, now = await self._store.get(origin), self.peek(origin), self._store_clock()
        match found:
            case Snapshot():
                return found if own is None else merge(own, found, now)
            case Purged():
                return None if own is None else after_purge(own, found, now)
            case None:
                return own

    async def save(
        self, origin: Origin, snapshot: Snapshot, over: Snapshot | None = None, *, news: bool = True
    ) -> Snapshot | None:
        """Keep it here and in the store, merged with what is there; None where a purge has overtaken it.

        A store that is down is given it later. `over` is what was known before; `news`: tell the fleet.
        """
        now = self._store_clock()
        known, purged, found = self._memory.peek(origin), self._outbox.purged(origin), snapshot
        if purged is not None and after_purge(found, purged, now) is None:
            return None
        if known is not None:
            snapshot = _as_known(found, merge(known.snapshot, found, now))
        doubtful = _is_doubtful(snapshot, known)
        # Memory first: who asks now need not wait for the store, and a failure learnt while the store is down is
        # remembered, so that the origin is not asked again by every call.
        with self._listening(origin):
            self._keep(origin, snapshot, saved=False, doubtful=doubtful)
            try:
                doubtful = doubtful and not await self._store.suspect(origin, SUSPICION)
                share = self._compare_doubtful if doubtful else self._share
                result, before = await share(origin, snapshot)
            except StoreDown:
                self._outbox.add(origin)
                self._note_ended(origin, snapshot, found, over, _snapshot(known))
                return snapshot
            if result is not None:
                result = _as_known(snapshot, result)
                if doubtful and result.failing is None:
                    doubtful = False
                    self._contradicted()
            if self.peek(origin) is snapshot:  # else something newer was learnt meanwhile
                if result is None:
                    self._memory.drop(origin)
                else:
                    self._keep(origin, result, saved=True, doubtful=doubtful)
        self._note_ended(origin, result, found, over, _snapshot(known), before)
        if news:
            with suppress(StoreDown):  # then those who trust an older copy trust it for its seconds
                await self._store.tell(Event.CHANGED, origin)
        return result

    async def purge(self, origin: Origin) -> None:
        """Forget the origin, here at once and in the whole fleet; StoreDown where the fleet is told later."""
        self._memory.drop(origin)
        try:
            await self._store.purge(origin, KEEP)
        except StoreDown:
            self._outbox.add(origin, Purged(self._store_clock()))
            raise
        self._memory.drop(origin)
        with suppress(StoreDown):  # the mark is in the store, where all look when their trust is over
            await self._store.tell(Event.PURGED, origin)

    def delivering(self) -> AbstractAsyncContextManager[None]:
        """While the block lasts, tell the store what it missed while it was down.

        Otherwise a refresh that an operator ordered in an outage would reach the fleet when this process is next asked.
        """
        return self._outbox.delivering()

    def hear(self, word: Event, origin: Origin) -> None:
        """Another process has told this: believe memory no more, or forget it."""
        self._undisturbed.discard(origin)
        kept = self._memory.peek(origin)
        if kept is not None and word is Event.PURGED:
            self._memory.drop(origin)
        elif kept is not None and kept.validated_at is not None:
            self._memory.put(origin, replace(kept, validated_at=None))
            if kept.doubtful:  # another process has learnt something of an origin that could not be reached from here
                self._lookups.start(origin, lambda: self._look_behind(origin))
        if origin in self._listeners:
            self._listeners[origin].set()

    def missed(self) -> None:
        """There may have been news that never came: the store is to be asked again about everything."""
        self._generation += 1
        self._undisturbed.clear()
        for event in self._listeners.values():
            event.set()

    @contextmanager
    def awaiting(self, origin: Origin) -> Iterator[asyncio.Event]:
        """An event that is set at every news of the origin; one at a time may await those of one origin."""
        event = self._listeners[origin] = asyncio.Event()
        try:
            yield event
        finally:
            del self._listeners[origin]

    async def aclose(self) -> None:
        """Give up what is under way; the store is its owner's to close."""
        await self._lookups.aclose()

    async def _look_behind(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        try:
            found, source, lacking = await self._compare(origin)
        except StoreDown:
            known = self.peek(origin)
            return known, Source.NONE if known is None else Source.MEMORY
        if found is not None and lacking:
            # What was saved once is no news: two versions of this program, each unable to read what the other writes,
            # would otherwise wake one another without end.
            kept = self._memory.peek(origin)
            found = await self.save(origin, found, news=kept is None or not kept.saved)
        return found, Source.NONE if found is None else source

    async def _compare(self, origin: Origin) -> tuple[Snapshot | None, Source, bool]:
        """What store and memory have of the origin, and whether the store lacks some of it; raises StoreDown."""
        before = self.peek(origin)
        with self._listening(origin):
            found = await self._store.get(origin)
            kept = self._memory.peek(origin)
            if kept is not None and found is not None and found != kept.snapshot:
                self._store_clock.heard(await self._store.now(origin))
                kept = self._memory.peek(origin)
            now = self._store_clock()
            if kept is not None and kept.snapshot is not before:
                # A refresh ended while the store was asked, and what the store said is older.
                return kept.snapshot, Source.MEMORY, False
            if isinstance(found, Purged):
                left = None if kept is None else after_purge(kept.snapshot, found, now)
                kept = None if kept is None or left is None else replace(kept, snapshot=left)
            elif found is not None and kept is None:
                self._keep(origin, found, saved=True)
                return found, Source.STORE, False
            elif found is not None and kept is not None:
                return self._merge(origin, kept, found, now)
            # The store has nothing, or less than we have. A purge it would remember: so it was down when this was
            # learnt, or it has lost it since, restarted empty, full, or overwritten by what cannot be read here.
            if kept is None or self._usable(kept.snapshot) is None:
                self._memory.drop(origin)
                return None, Source.NONE, False
            lacking = _shared(kept) is not None
            self._keep(origin, kept.snapshot, saved=kept.saved, doubtful=kept.doubtful, agreed=not lacking)
            return kept.snapshot, Source.MEMORY, lacking

    def _merge(self, origin: Origin, kept: _Entry, found: Snapshot, now: float) -> tuple[Snapshot | None, Source, bool]:
        """What `_compare` says where both memory and store have a snapshot."""
        merged = merge(kept.snapshot, found, now)
        if kept.doubtful and merged.failing is None:
            self._contradicted()
        if merged == found:
            if not kept.saved:  # else whoever found the other content knew of this
                self._note_ended(origin, found, kept.snapshot)
            known = _as_known(kept.snapshot, found)
            self._keep(origin, known, saved=True)
            return known, Source.STORE, False
        self._note_ended(origin, merged, found)
        lacking = not kept.doubtful or not _same_answer(merged, found)
        merged = _as_known(kept.snapshot, merged)
        self._keep(origin, merged, saved=kept.saved, doubtful=kept.doubtful, agreed=not lacking)
        return merged, Source.MEMORY, lacking

    async def _share(self, origin: Origin, snapshot: Snapshot) -> tuple[Snapshot | None, Snapshot | None]:
        """Put the snapshot into the store: what is known then, None for a purge, and what was there."""
        put = await self._store.put(origin, snapshot, KEEP)
        return (None if isinstance(put.held, Purged) else put.held), put.before

    async def _compare_doubtful(self, origin: Origin, snapshot: Snapshot) -> tuple[Snapshot | None, Snapshot | None]:
        """As `_share`, for a snapshot whose failures stay here: the store is given its copy, where it lacks that."""
        held, now = await self._store.get(origin), self._store_clock()
        match held:
            case Snapshot():
                return merge(held, snapshot, now), held
            case Purged():
                return after_purge(snapshot, held, now), None
            case None:
                copy = _without_failing(snapshot)
                if copy is not None:
                    await self._store.put(origin, copy, KEEP)
                return snapshot, None

    async def _deliver(self, origin: Origin, purged: Purged | None) -> None:
        """Tell the store of a purge that it missed, and of what was learnt after it; raises StoreDown."""
        if purged is not None:
            await self._store.purge(origin, KEEP, purged.at)
            await self._store.tell(Event.PURGED, origin)
        kept = self._memory.peek(origin)
        if kept is not None and not kept.saved:
            await self.save(origin, kept.snapshot)
            kept = self._memory.peek(origin)
            if kept is not None and not kept.saved:
                raise StoreDown("the store is still down")

    @contextmanager
    def _listening(self, origin: Origin) -> Iterator[None]:
        # The store's answer and the news of what made it an old one come on two connections, in any order. An answer
        # that was under way when news came is kept, but not believed.
        self._undisturbed.add(origin)
        try:
            yield
        finally:
            self._undisturbed.discard(origin)

    def _keep(
        self, origin: Origin, snapshot: Snapshot, *, saved: bool, doubtful: bool = False, agreed: bool = True
    ) -> None:
        validated_at = self._clock() if agreed and origin in self._undisturbed else None
        self._memory.put(origin, _Entry(snapshot, saved, doubtful, validated_at, self._generation))

    def _note_ended(self, origin: Origin, result: Snapshot | None, *ended: Snapshot | None) -> None:
        """Tell `overruled` of each content among `ended` that is not the result's."""
        noted = [] if result is None else [result]
        for snapshot in ended:
            if snapshot is not None and not any(same(snapshot.access, other.access) for other in noted):
                self._overruled(origin, snapshot)
                noted.append(snapshot)

    def _usable(self, snapshot: Snapshot | None) -> Snapshot | None:
        return None if snapshot is None else usable(snapshot, self._clock())


def _is_doubtful(snapshot: Snapshot, known: _Entry | None) -> bool:
    """Whether its failures may be this process's own: the first one, or those after one that nobody confirmed."""
    failing = snapshot.failing
    if failing is None or not is_local(failing.failure):
        return False
    return failing.attempts == 1 or (known is not None and known.doubtful)


def _snapshot(kept: _Entry | None) -> Snapshot | None:
    return None if kept is None else kept.snapshot


def _without_failing(snapshot: Snapshot) -> Snapshot | None:
    return replace(snapshot, failing=None) if isinstance(snapshot.access, Successful) else None


def _shared(kept: _Entry) -> Snapshot | None:
    """What of it the fleet is to know."""
    return _without_failing(kept.snapshot) if kept.doubtful else kept.snapshot


def _same_answer(one: Snapshot, other: Snapshot) -> bool:
    return one.fetched_at == other.fetched_at and one.access == other.access


def _as_known(known: Snapshot, found: Snapshot) -> Snapshot:
    """`found`, made of the objects that are known where they are equal: what is derived is kept by their identity."""
    if found == known:
        return known
    return replace(found, access=known.access) if found.access == known.access else found
