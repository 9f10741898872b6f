"""What is known of an origin without asking it: the snapshots of this process, and behind them the fleet's store."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from app.cache.content import same
from app.cache.freshness import KEEP, Snapshot, recall
from app.cache.memory import ByteLRU
from app.cache.news import Word
from app.origin import Origin
from app.robots.access import Successful
from app.store.calls import StoreDown
from app.store.flight import SingleFlight

_OVERHEAD = 1024  # octets that a snapshot takes beside its body and its texts: objects, its place in the cache


@dataclass(frozen=True, slots=True)
class Purged:
    """What the store holds in place of a snapshot: all that was learnt up to the instant `at` is to be forgotten."""

    at: float


class Store(Protocol):
    """Where snapshots are kept between processes. Every method is bounded in time and raises nothing but StoreDown."""

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        """What is kept of the origin; None for nothing, and for what cannot be read."""

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> None:
        """Keep the snapshot for so long, in place of what was kept of the origin."""

    async def purge(self, origin: Origin, at: float, keep_seconds: float) -> None:
        """Keep a Purged for so long, in place of what was kept of the origin."""

    async def tell(self, word: Word, origin: Origin) -> None:
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
class _Kept:
    snapshot: Snapshot
    saved: bool  # False: the store was down when this was learnt, and does not have it
    agreed_at: float | None  # when the store last agreed; None: there was news since
    era: int  # which subscription to the news it was agreed under


class Known:
    """Snapshots in memory, `memory_bytes` of them at most, each believed for `trust` seconds after the store agreed.

    News of an origin ends that trust at once, and a gap in the news ends it for all. Without any news the seconds
    alone rule. While the store is down, memory answers, and what is learnt meanwhile is given to the store later.
    Where that and what the store has are two contents, the one that gives way is told to `overruled`.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        memory_bytes: int,
        trust: float,
        *,
        overruled: Callable[[Origin, Snapshot], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._trust = trust
        self._overruled = overruled
        self._memory: ByteLRU[Origin, _Kept] = ByteLRU(memory_bytes)
        self._era = 0
        self._lookups: SingleFlight[Origin, tuple[Snapshot | None, Source]] = SingleFlight()
        self._undisturbed: set[Origin] = set()
        self._listeners: dict[Origin, asyncio.Event] = {}

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the snapshots in memory."""
        return self._memory.usage

    async def look(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """What memory, or past its trust the store, has of the origin and may still be used."""
        believed = self.believed(origin)
        if believed is not None:
            return believed, Source.MEMORY
        found, source = await self._lookups.do(origin, lambda: self._look_behind(origin))
        return self._usable(found), source

    def believed(self, origin: Origin) -> Snapshot | None:
        """What memory has and `look` would say without asking the store."""
        kept = self._memory.get(origin)
        if kept is None or kept.agreed_at is None or kept.era != self._era:
            return None
        now = self._clock()
        return recall(kept.snapshot, now) if 0 <= now - kept.agreed_at < self._trust else None

    def remembered(self, origin: Origin) -> Snapshot | None:
        """What memory has of the origin, believed or not."""
        kept = self._memory.peek(origin)
        return None if kept is None else kept.snapshot

    async def ask(self, origin: Origin) -> tuple[Snapshot | None, Source]:
        """What the store, or memory where that knows more, has of the origin; raises StoreDown."""
        before = self.remembered(origin)
        with self._listening(origin):
            found = await self._store.get(origin)
            kept = self._memory.peek(origin)
            if kept is not None and kept.snapshot is not before:
                # A refresh ended while the store was asked, and what the store said is older.
                return kept.snapshot, Source.MEMORY
            if isinstance(found, Purged):
                # What the store had before the purge is older than it, whatever the clocks say.
                if kept is None or kept.saved or kept.snapshot.checked_at <= found.at:
                    kept = None
            elif found is not None:
                if kept is None or not self._is_later(kept.snapshot, found):
                    if kept is not None and not kept.saved:  # else whoever found the other content knew of this
                        self._overrule(origin, kept.snapshot, found)
                    snapshot = found if kept is None else _as_known(kept.snapshot, found)
                    self._keep(origin, snapshot, saved=True)
                    return snapshot, Source.STORE
                self._overrule(origin, found, kept.snapshot)
        # The store has nothing, or less than we have. A purge it would remember: so it was down when this was learnt,
        # or it has lost it since, restarted empty, full, or overwritten by what cannot be read here.
        if kept is None or self._usable(kept.snapshot) is None:
            self._memory.drop(origin)
            return None, Source.NONE
        return kept.snapshot, Source.MEMORY

    async def save(self, origin: Origin, snapshot: Snapshot, *, news: bool = True) -> None:
        """Put it into memory, and into the store, which is given it later if it is down; `news`: tell the fleet."""
        # Memory first: who asks now need not wait for the store, and a failure learnt while the store is down is
        # remembered, so that the origin is not asked again by every call.
        with self._listening(origin):
            self._keep(origin, snapshot, saved=False)
            try:
                await self._store.put(origin, snapshot, KEEP)
            except StoreDown:
                return
            if self.remembered(origin) is snapshot:  # else something newer was learnt meanwhile
                self._keep(origin, snapshot, saved=True)
        if news:
            with suppress(StoreDown):  # then those who trust an older copy trust it for its seconds
                await self._store.tell(Word.CHANGED, origin)

    async def purge(self, origin: Origin) -> None:
        """Forget the origin, here at once and in the whole fleet; StoreDown where the fleet could not be told."""
        self._memory.drop(origin)
        await self._store.purge(origin, self._clock(), KEEP)
        self._memory.drop(origin)
        with suppress(StoreDown):  # the mark is in the store, where all look when their trust is over
            await self._store.tell(Word.PURGED, origin)

    def hear(self, word: Word, origin: Origin) -> None:
        """Another process has told this: believe memory no more, or forget it."""
        self._undisturbed.discard(origin)
        kept = self._memory.peek(origin)
        if kept is not None and word is Word.PURGED:
            self._memory.drop(origin)
        elif kept is not None and kept.agreed_at is not None:
            self._memory.put(origin, replace(kept, agreed_at=None), _size(kept.snapshot))
        if origin in self._listeners:
            self._listeners[origin].set()

    def missed(self) -> None:
        """There may have been news that never came: the store is to be asked again about everything."""
        self._era += 1
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
        before = self._memory.peek(origin)
        try:
            found, source = await self.ask(origin)
        except StoreDown:
            known = self.remembered(origin)
            return known, Source.NONE if known is None else Source.MEMORY
        if found is not None and before is not None and found is before.snapshot and source is Source.MEMORY:
            # The store lacks it. What was saved once is no news: two versions of this program, each unable to read
            # what the other writes, would otherwise wake one another without end.
            await self.save(origin, found, news=not before.saved)
        return found, source

    @contextmanager
    def _listening(self, origin: Origin) -> Iterator[None]:
        # The store's answer and the news of what made it an old one come on two connections, in any order. An answer
        # that was under way when news came is kept, but not believed.
        self._undisturbed.add(origin)
        try:
            yield
        finally:
            self._undisturbed.discard(origin)

    def _keep(self, origin: Origin, snapshot: Snapshot, *, saved: bool) -> None:
        agreed_at = self._clock() if origin in self._undisturbed else None
        self._memory.put(origin, _Kept(snapshot, saved, agreed_at, self._era), _size(snapshot))

    def _is_later(self, snapshot: Snapshot, found: Snapshot) -> bool:
        # An instant ahead of now is no knowledge but a clock that was wrong, and must not win for as long as it was.
        return found.checked_at < snapshot.checked_at <= self._clock()

    def _overrule(self, origin: Origin, snapshot: Snapshot, by: Snapshot) -> None:
        if not same(snapshot.access, by.access):
            self._overruled(origin, snapshot)

    def _usable(self, snapshot: Snapshot | None) -> Snapshot | None:
        return None if snapshot is None else recall(snapshot, self._clock())


def _as_known(known: Snapshot, found: Snapshot) -> Snapshot:
    """`found`, made of the objects that are known where they are equal: what is derived is kept by their identity."""
    if found == known:
        return known
    return replace(found, access=known.access) if found.access == known.access else found


def _size(snapshot: Snapshot) -> int:
    texts = [snapshot.final_url, snapshot.validators.etag, snapshot.validators.last_modified]
    body = 0
    if isinstance(snapshot.access, Successful):
        body = len(snapshot.access.body)
        texts.append(snapshot.access.content_type)
    return _OVERHEAD + body + sum(len(text) for text in texts if text is not None)
