"""The histories of origins in Redis or Valkey, written in the background."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from secrets import token_bytes
from typing import Final, NamedTuple

from app.cache.freshness import Snapshot
from app.cache.redis_snapshots import snapshot_key, unrecorded_key
from app.history import versions as history
from app.history.redis_changes import RedisChanges
from app.history.versions import HISTORY_BYTES, HISTORY_EXPIRY, TAGGED, History
from app.loop.background import BackgroundTask, Surviving, cancel_and_wait
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script
from robots_core.content import digest
from robots_core.origin import Origin
from robots_core.robots.access import Successful

WAITING_VERSION_BYTES = 16 * 1024 * 1024
"""Bytes of versions that wait while the store is down or slow; beyond that, the oldest is dropped."""

RETRY_PAUSE = 5.0
"""Seconds after which a store that failed is tried again."""

HISTORY_CLOSING_TIME = 1.0
"""Seconds in which waiting versions are written when the process stops."""

_ATTEMPTS = 5
_OVERHEAD = 1024  # bytes of a snapshot without the body

_REPLACE: Final = Script.load(__package__, "replace.lua", HEAD=TAGGED, EXPIRY=round(HISTORY_EXPIRY))


class _Waiting(NamedTuple):
    origin: Origin
    ended: Snapshot
    following: Snapshot | None
    size: int
    is_change: bool


class RedisHistory:
    """Histories under `robots:{scheme://host:port[#profile]}:history`, which expire HISTORY_EXPIRY after a write.

    No decision waits for a write: versions are written later, one after the other. `lost` is called for each that is
    dropped, because WAITING_VERSION_BYTES are exceeded or it cannot be written. A foreign value is replaced.
    """

    def __init__(
        self,
        redis: GuardedClient,
        clock: Callable[[], float],
        *,
        lost: Callable[[], None],
        changes: RedisChanges | None = None,
    ) -> None:
        """`clock`: Unix seconds; `changes`: where changes go."""
        self._redis = redis
        self._clock = clock
        self._lost = lost
        self._changes = changes
        self._room = WAITING_VERSION_BYTES
        self._waiting: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._ends = asyncio.Event()

    async def read(self, origin: Origin) -> History:
        """The stored versions and those waiting to be written; a foreign value counts as empty. Raises StoreDown."""
        # Before the store is read: a version that is written meanwhile may be missing there, and no longer waits.
        ended = [waiting.ended for waiting in self._waiting if waiting.origin == origin]
        stored = history.read(await self._read(origin))
        return await asyncio.to_thread(self._with, stored, ended) if ended else stored

    def note(self, origin: Origin, ended: Snapshot, following: Snapshot | None = None) -> None:
        """Write the version that ended with this snapshot, in the background. `following`: None after a purge."""
        size = _size(ended) + (0 if following is None else _size(following))
        self._write_later(_Waiting(origin, ended, following, size, is_change=True))

    def note_past(self, origin: Origin, found: Snapshot) -> None:
        """Write a version that was in use before the current one, in the background. It is not a change of today."""
        self._write_later(_Waiting(origin, found, None, _size(found), is_change=False))

    def _write_later(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)
        self._room -= waiting.size
        while self._room < 0 and self._waiting:
            self._room += self._waiting.popleft().size
            self._lost()
        if self._waiting and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_all(), name=BackgroundTask.HISTORY)

    async def aclose(self) -> None:
        """Write the waiting versions, for HISTORY_CLOSING_TIME at most and only while the store accepts them."""
        self._ends.set()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=HISTORY_CLOSING_TIME)
            await cancel_and_wait([self._writing])
        for _ in self._waiting:
            self._lost()

    async def _write_all(self) -> None:
        while self._waiting:
            waiting = self._waiting[0]
            with Surviving(BackgroundTask.HISTORY, waiting.origin.key) as survival:
                try:
                    await self._write(waiting)
                except StoreDown:
                    if self._ends.is_set():
                        return
                    # To the end of the queue, so that a version that is always refused delays no other. Versions may
                    # be added in any order.
                    self._waiting.rotate(-1)
                    await self._sleep()
                    continue
            if self._waiting and self._waiting[0] is waiting:  # else it was dropped meanwhile, and counted
                self._waiting.popleft()
                self._room += waiting.size
                if survival.failed:
                    self._lost()

    async def _sleep(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_PAUSE):
                await self._ends.wait()

    async def _write(self, waiting: _Waiting) -> None:
        key, name = history_key(waiting.origin), digest(waiting.ended.access)
        keys = key, unrecorded_key(waiting.origin)
        for _ in range(_ATTEMPTS):
            stored = await self._read(waiting.origin)
            known = history.read(stored)
            if self._changes is not None and waiting.is_change and await self._is_new(known, waiting.ended):
                # First, or a process that is killed in between would leave a change that no process reports.
                await self._changes.add(waiting.origin, waiting.ended, waiting.following)
            # In a thread: compressing half a megabyte would block the event loop.
            versions = await asyncio.to_thread(self._with, known, [waiting.ended])
            if versions == known:  # another process was first
                await self._redis.command(key, "HDEL", keys[1], name)
                return
            data = history.write(versions, token_bytes(8))
            if await _REPLACE.run(self._redis, keys, stored[:TAGGED], data, name):
                return
        raise StoreDown(f"the history of {waiting.origin.key} was changed by others {_ATTEMPTS} times meanwhile")

    async def _is_new(self, known: History, ended: Snapshot) -> bool:
        # In a thread: it may unpack and scan every version that is known.
        return await asyncio.to_thread(history.is_new, known, ended)

    def _with(self, stored: History, ended: Iterable[Snapshot]) -> History:
        return history.add(stored, map(history.version_of, ended), self._clock())

    async def _read(self, origin: Origin) -> bytes:
        # At most one byte more than a history can have, which is how a value that is too long is noticed.
        key = history_key(origin)
        data = await self._redis.command(key, "GETRANGE", key, 0, HISTORY_BYTES)
        return data if isinstance(data, bytes) else b""


def history_key(origin: Origin) -> str:
    """The key of the origin's history, in the same cluster slot as its snapshot."""
    return f"{snapshot_key(origin)}:history"


def _size(snapshot: Snapshot) -> int:
    return _OVERHEAD + (len(snapshot.access.body) if isinstance(snapshot.access, Successful) else 0)
