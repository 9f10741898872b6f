"""Snapshots in Redis or Valkey, and the published invalidations."""

import hashlib
import math
from collections.abc import Callable, Sequence
from secrets import token_hex

from app.cache.codec import ENCODED_LIMIT, decode, encode
from app.cache.freshness import Snapshot
from app.cache.invalidation import CHANNEL, Event
from app.cache.invalidation_publisher import InvalidationPublisher
from app.cache.ordering import Purged, after_purge, merge
from app.cache.snapshot_store import Put
from app.store.guarded_client import GuardedClient, StoreDown, UnexpectedReply
from app.store.script import Script
from app.store.store_clock import server_time
from robots_core.content import digest, same
from robots_core.origin import Origin

WRITE_ATTEMPTS = 5
"""How often a write is tried if others change the value meanwhile; with the lease even one conflict is rare."""

UNRECORDED = 4
"""How many versions of an origin that have ended may wait in the store for the history."""

_PURGED = b"P\x01"
_PUT = Script.load(__package__, "put.lua", ENCODED_LIMIT=ENCODED_LIMIT, UNRECORDED=UNRECORDED)
_READ_UNRECORDED = Script.load(__package__, "read_unrecorded.lua", ENCODED_LIMIT=ENCODED_LIMIT, UNRECORDED=UNRECORDED)
_TIME = Script("return redis.call('time')")
_SUSPECT = Script.load(__package__, "suspect.lua")


class RedisSnapshots:
    """Snapshots under `robots:{scheme://host:port[#profile]}`; any other value under such a key is a miss.

    A write that ends a version keeps its last snapshot under `...:unrecorded`, until the history has the version. If
    the process is killed before it writes the history, the next process that puts a snapshot of the origin gets it.

    `name` identifies this process in its invalidations, and `instance` the processes that share a network: the
    workers of one service. `clock` is what tests put in place of the server's (Unix seconds).
    """

    def __init__(
        self,
        redis: GuardedClient,
        *,
        name: str | None = None,
        instance: str | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.name = name or token_hex(8)
        self.redis = redis
        self._instance = instance or self.name
        self._clock = clock
        self._invalidations = InvalidationPublisher(self._send, self.name)

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        """The origin's value; None if there is none or it cannot be read. Raises StoreDown."""
        # GETRANGE, not GET: bounds what is read, whatever is there.
        key = snapshot_key(origin)
        data = await self.redis.command(key, "GETRANGE", key, 0, ENCODED_LIMIT)
        return read_value(data)

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float, lease: str = "") -> Put:
        """Merge the snapshot with the stored one, see `ordering`, and keep the result for so long; raises StoreDown.

        `lease` is the token of a lease that is released with the write.
        """
        seen, result = _digest(b""), snapshot
        before: Snapshot | None = None
        for _ in range(WRITE_ATTEMPTS):
            other = await self._replace(origin, seen, encode(result), keep_seconds, _ended(before, result), lease)
            if isinstance(other, bool):
                unrecorded = await self._unrecorded(origin, before) if other else ()
                return Put(result, before, unrecorded, written=True)
            data, now = other
            seen, stored = _digest(data), read_value(data)
            before = stored if isinstance(stored, Snapshot) else None
            match stored:
                case Snapshot():
                    result = merge(stored, snapshot, now)
                    if result == stored:
                        return Put(stored, stored)
                case Purged():
                    left = after_purge(snapshot, stored, now)
                    if left is None:
                        return Put(stored, None)
                    result = left
                case None:
                    result = snapshot
        raise _overtaken(origin)

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        """Replace what began before `at`, by default now, with a mark kept for so long; raises StoreDown."""
        # A mark, because a missing value may also have been lost, and a process that has it in memory would restore it.
        seen, mark, ended = "", b"", b""  # matches no value: the first attempt reads the value and the time
        for _ in range(WRITE_ATTEMPTS):
            other = await self._replace(origin, seen, mark, keep_seconds, ended)
            if isinstance(other, bool):
                return
            data, now = other
            purged = Purged(now if at is None else min(at, now))
            stored = read_value(data)
            if isinstance(stored, Purged) and purged.at <= stored.at <= now:
                return
            left = None
            if isinstance(stored, Snapshot) and stored.checked_at <= now:
                left = after_purge(stored, purged, now)
            if left is not None and left == stored:
                return
            mark = _PURGED + repr(purged.at).encode() if left is None else encode(left)
            ended = _ended(stored if isinstance(stored, Snapshot) else None, left)
            seen = _digest(data)
        raise _overtaken(origin)

    async def now(self, origin: Origin) -> float:
        """The server's time (Unix seconds), by which the origin's values are ordered; raises StoreDown."""
        key = snapshot_key(origin)
        reply = await _TIME.run(self.redis, [key])
        now = server_time(reply, self._clock)
        if now is None:
            raise UnexpectedReply(reply)
        return now

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        """Record for so long that this instance cannot reach the origin; whether another has recorded it. StoreDown."""
        key, milliseconds = f"{snapshot_key(origin)}:suspect", math.ceil(seconds * 1000)
        return bool(await _SUSPECT.run(self.redis, [key], self._instance, str(milliseconds)))

    async def publish(self, event: Event, origin: Origin) -> None:
        """Publish the event to all processes that are subscribed, now or with others in a moment; raises StoreDown."""
        await self._invalidations.publish(event, origin)

    async def aclose(self) -> None:
        """Publish the invalidations that wait for others."""
        await self._invalidations.aclose()

    async def _send(self, message: bytes) -> None:
        await self.redis.command(None, "PUBLISH", CHANNEL, message)

    async def _replace(
        self, origin: Origin, seen: str, data: bytes, keep_seconds: float, ended: bytes, lease: str = ""
    ) -> bool | tuple[bytes, float]:
        """Replace the value with the SHA-1 `seen`; if it is another one, return that and the server's time.

        Otherwise return whether other versions wait for the history. `ended`: the digest of the content that ends with
        this write, if any. `lease`: the token of the lease that ends with it, if any.
        """
        keys = (snapshot_key(origin), unrecorded_key(origin), lease_key(origin))
        reply = await _PUT.run(self.redis, keys, seen, data, str(max(1, math.ceil(keep_seconds))), ended, lease)
        match reply:
            case 1:
                return False
            case 2:
                return True
            case [bytes(stored), *time] if (now := server_time(time, self._clock)) is not None:
                return stored, now
            case _:
                raise UnexpectedReply(reply)

    async def _unrecorded(self, origin: Origin, before: Snapshot | None) -> Sequence[Snapshot]:
        """The versions that ended before the snapshot `before` and wait for the history, in the order of their ends."""
        key = unrecorded_key(origin)
        try:
            reply = await _READ_UNRECORDED.run(self.redis, [key])
        except StoreDown:
            return ()  # the snapshot is written; the next put finds them
        found = [decode(data) for data in reply if isinstance(data, bytes)] if isinstance(reply, list) else []
        ended = [it for it in found if it is not None and (before is None or not same(it.access, before.access))]
        return sorted(ended, key=lambda it: it.fetched_at)


def snapshot_key(origin: Origin) -> str:
    """The key of the origin's snapshot, and the prefix of its other keys."""
    # The braces put all keys of an origin into one slot of a cluster; a host cannot contain any.
    profile = "" if origin.profile is None else f"#{origin.profile}"
    return f"robots:{{{origin.scheme}://{origin.uri_host}:{origin.port}{profile}}}"


def lease_key(origin: Origin) -> str:
    """The key of the origin's lease."""
    return f"{snapshot_key(origin)}:lease"


def unrecorded_key(origin: Origin) -> str:
    """The key of the origin's versions that have ended and are not in the history yet: snapshots by digest."""
    return f"{snapshot_key(origin)}:unrecorded"


def _digest(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _ended(before: Snapshot | None, after: Snapshot | None) -> bytes:
    """The digest of the content that ends when `after` replaces `before`; empty if none ends."""
    if before is None or (after is not None and same(before.access, after.access)):
        return b""
    return digest(before.access)


def _overtaken(origin: Origin) -> StoreDown:
    return StoreDown(f"the snapshot of {origin.key} was changed by other processes {WRITE_ATTEMPTS} times meanwhile")


def read_value(data: object) -> Snapshot | Purged | None:
    """What a value of the server says; None for anything that is not one of ours."""
    if not isinstance(data, bytes):
        return None
    return _read_purged(data) if data.startswith(_PURGED) else decode(data)


def _read_purged(data: bytes) -> Purged | None:
    try:
        at = float(data[len(_PURGED) : len(_PURGED) + 32])
    except ValueError:
        return None
    return Purged(at) if math.isfinite(at) else None
