"""The histories of origins in Redis or Valkey, beside their snapshots; written in the background."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from secrets import token_bytes
from typing import Final, NamedTuple

from app.background import cancel_and_wait
from app.cache.freshness import Snapshot
from app.cache.redis_snapshots import snapshot_key
from app.history import versions as history
from app.history.versions import BYTES, EXPIRY, TAGGED, History
from app.origin import Origin
from app.redis.guarded_client import GuardedClient, StoreDown
from app.robots.access import Successful

WAITING_BYTES = 16 * 1024 * 1024
"""Bytes of versions that wait while the store is down or slow; beyond, the oldest is lost."""

PAUSE = 5.0
"""Seconds after which a store that failed is tried again."""

LAST_CHANCE = 1.0
"""Seconds that are left, at the end, for what still waits."""

_ATTEMPTS = 5
_OVERHEAD = 1024  # bytes that a snapshot takes beside the body

# Written only if the value has not changed since it was read. Comparing the head is enough: each write has its own.
_REPLACE: Final = f"""
local held = redis.pcall('GETRANGE', KEYS[1], 0, {TAGGED - 1})
if type(held) ~= 'string' then held = '' end
if held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', {EXPIRY:.0f})
return 1
"""


class _Waiting(NamedTuple):
    origin: Origin
    ended: Snapshot
    size: int


class RedisHistory:
    """Histories under `robots:{scheme://host:port}:history`, gone EXPIRY seconds after the last writing.

    No decision waits for it: versions are written later, one after the other. `lost` is called for each that is dropped
    because WAITING_BYTES are full. A foreign value under the key is replaced.
    """

    def __init__(
        self,
        redis: GuardedClient,
        clock: Callable[[], float],
        *,
        lost: Callable[[], None],
        waiting_bytes: int = WAITING_BYTES,
        pause: float = PAUSE,
    ) -> None:
        """`clock`: Unix seconds; `waiting_bytes` and `pause`: see WAITING_BYTES and PAUSE."""
        self._redis = redis
        self._client = redis.client
        self._clock = clock
        self._lost = lost
        self._room = waiting_bytes
        self._pause = pause
        self._waiting: deque[_Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._ends = asyncio.Event()

    async def read(self, origin: Origin) -> History:
        """The stored versions and those that wait to be written; a foreign value counts as empty. Raises StoreDown."""
        # Before the store is asked: what is written meanwhile may be missing from its answer, and waits no more.
        ended = [waiting.ended for waiting in self._waiting if waiting.origin == origin]
        held = await self._read(origin)
        return await asyncio.to_thread(self._with, held, ended) if ended else history.read(held)

    def note(self, origin: Origin, ended: Snapshot) -> None:
        """Write, later, the version of the origin that ended with this snapshot."""
        waiting = _Waiting(origin, ended, _size(ended))
        self._waiting.append(waiting)
        self._room -= waiting.size
        while self._room < 0 and self._waiting:
            self._room += self._waiting.popleft().size
            self._lost()
        if self._waiting and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_all())

    async def aclose(self) -> None:
        """Write what waits, for LAST_CHANCE seconds at most and only while the store accepts it."""
        self._ends.set()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=LAST_CHANCE)
            await cancel_and_wait([self._writing])
        for _ in self._waiting:
            self._lost()

    async def _write_all(self) -> None:
        while self._waiting:
            waiting = self._waiting[0]
            try:
                await self._write(waiting)
            except StoreDown:
                if self._ends.is_set():
                    return
                # To the end of the line: what is refused for a reason of its own holds up nothing else. A history
                # takes versions in any order.
                self._waiting.rotate(-1)
                await self._rest()
            else:
                if self._waiting and self._waiting[0] is waiting:  # else there was no more room for it
                    self._waiting.popleft()
                    self._room += waiting.size

    async def _rest(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._ends.wait()

    async def _write(self, waiting: _Waiting) -> None:
        key = history_key(waiting.origin)
        for _ in range(_ATTEMPTS):
            held = await self._read(waiting.origin)
            # In a thread: compressing half a megabyte would hold up every answer meanwhile.
            versions = await asyncio.to_thread(self._with, held, [waiting.ended])
            data = history.write(versions, token_bytes(8))
            if await self._redis.run(key, partial(self._replace, key, held[:TAGGED], data)):
                return
        raise StoreDown(f"the history of {waiting.origin.key} was written by others {_ATTEMPTS} times meanwhile")

    def _with(self, held: bytes, ended: Iterable[Snapshot]) -> History:
        return history.add(history.read(held), map(history.version_of, ended), self._clock())

    async def _replace(self, key: str, head: bytes, data: bytes) -> bool:
        return bool(await self._client.eval(_REPLACE, 1, key, head, data))

    async def _read(self, origin: Origin) -> bytes:
        # One byte more than a history can have, so that a longer value is noticed; no more is read, whatever is there.
        key = history_key(origin)
        data = await self._redis.run(key, lambda: self._client.getrange(key, 0, BYTES))
        return data if isinstance(data, bytes) else b""


def history_key(origin: Origin) -> str:
    """The key of the origin's history, in the slot of its snapshot."""
    return f"{snapshot_key(origin)}:history"


def _size(snapshot: Snapshot) -> int:
    return _OVERHEAD + (len(snapshot.access.body) if isinstance(snapshot.access, Successful) else 0)
