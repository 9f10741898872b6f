"""The snapshots and leases of origins in Redis or Valkey, and the published invalidations."""

import hashlib
import math
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import NamedTuple

from app.cache.codec import ENCODED_LIMIT, decode, encode
from app.cache.freshness import Snapshot
from app.cache.invalidation import CHANNEL, Event, InvalidationPublisher
from app.cache.ordering import Purged, after_purge, merge
from app.store.guarded_client import GuardedClient, StoreDown, UnexpectedReply
from app.store.script import Script
from app.store.store_clock import server_time
from robots_core.content import digest, same
from robots_core.origin import Origin

WRITE_ATTEMPTS = 5
"""How often a write is tried if others change the value meanwhile; with the lease even one conflict is rare."""

UNRECORDED = 4
"""How many versions of an origin that have ended may wait in the store for the history."""

LONGEST_LEASE = 600_000
"""Milliseconds of the longest lease that is respected, more than any fetch is given; processes may differ in theirs."""

_PURGED = b"P\x01"
_PUT = Script.load(__package__, "put.lua", ENCODED_LIMIT=ENCODED_LIMIT, UNRECORDED=UNRECORDED)
_TIME = Script("return redis.call('time')")
_SUSPECT = Script.load(__package__, "suspect.lua")
_TAKE = Script.load(__package__, "take.lua", ENCODED_LIMIT=ENCODED_LIMIT, LONGEST_LEASE=LONGEST_LEASE)
_RENEW = Script("if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) end")
_RELEASE = Script("if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end")

Change = Callable[[Snapshot | Purged | None, float], Snapshot | Purged | None]
"""What replaces an origin's value, given that and the server's time; None to leave it as it is."""


class Put(NamedTuple):
    """What the store holds after a write, and the snapshot it held before, if any.

    `unrecorded`: the last snapshots of versions that ended before that and are not in the history yet, in the order of
    their ends. The process that ended them may have been killed. `written`: whether the write changed the store, and so
    released the lease that it named.
    """

    held: Snapshot | Purged | None
    before: Snapshot | None
    unrecorded: Sequence[Snapshot] = ()
    written: bool = False


class Taken(NamedTuple):
    """Since when a lease is held, by the store's clock (Unix seconds), or None; and what the origin's value was then.

    The value is None if there is none, it cannot be read, or the lease was taken by force.
    """

    since: float | None
    found: Snapshot | Purged | None


class RedisSnapshots:
    """Snapshots under `robots:{scheme://host:port[#profile]}`; any other value under such a key is a miss.

    A write that ends a version keeps its last snapshot under `...:unrecorded`, until the history has the version. If
    the process is killed before it writes the history, the next process that puts a snapshot of the origin gets it.
    Leases are under `...:lease`, each with the token of its holder.

    `name` identifies this process in its invalidations, and `instance` the processes that share a network: the
    workers of one service. `clock` is what tests put in place of the server's (Unix seconds). Every method is bounded
    in time and raises only StoreDown.
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
        """The origin's value; None if there is none or it cannot be read."""
        # GETRANGE, not GET: bounds what is read, whatever is there.
        key = snapshot_key(origin)
        data = await self.redis.command(key, "GETRANGE", key, 0, ENCODED_LIMIT)
        return read_value(data)

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float, lease: str = "") -> Put:
        """Merge the snapshot with the stored one, see `ordering`, and keep the result for so long.

        `lease` is the token of a lease that is released with the write.
        """

        def change(stored: Snapshot | Purged | None, now: float) -> Snapshot | Purged | None:
            match stored:
                case Snapshot():
                    merged = merge(stored, snapshot, now)
                    return None if merged == stored else merged
                case Purged():
                    return after_purge(snapshot, stored, now)
                case None:
                    return snapshot

        # Most origins that are put are new: there is nothing to read first.
        return await self._write(origin, _digest(b""), snapshot, change, keep_seconds, lease)

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        """Replace what began before `at`, by default now, with a Purged that is kept for so long."""

        # A mark, because a missing value may also have been lost, and a process that has it in memory would restore it.
        def change(stored: Snapshot | Purged | None, now: float) -> Snapshot | Purged | None:
            purged = Purged(now if at is None else min(at, now))
            if isinstance(stored, Purged) and purged.at <= stored.at <= now:
                return None
            left = None
            if isinstance(stored, Snapshot) and stored.checked_at <= now:
                left = after_purge(stored, purged, now)
            return purged if left is None else None if left == stored else left

        await self._write(origin, "", None, change, keep_seconds)  # no value has this SHA-1

    async def now(self, origin: Origin) -> float:
        """The server's time (Unix seconds), by which the origin's values are ordered."""
        reply = await _TIME.run(self.redis, [snapshot_key(origin)])
        now = server_time(reply, self._clock)
        if now is None:
            raise UnexpectedReply(reply)
        return now

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        """Record for so long that this instance cannot reach the origin; whether another has recorded it."""
        key = f"{snapshot_key(origin)}:suspect"
        return bool(await _SUSPECT.run(self.redis, [key], self._instance, _milliseconds(seconds)))

    async def publish(self, event: Event, origin: Origin) -> None:
        """Publish the event to all processes that are subscribed, now or with others in a moment."""
        await self._invalidations.publish(event, origin)

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> Taken:
        """Take the origin's lease for so long if it is free, or `by_force`, and read the origin's value.

        The instant is the server's, and orders what is fetched under the lease.
        """
        keys, force = [lease_key(origin), snapshot_key(origin)], "force" if by_force else ""
        match await _TAKE.run(self.redis, keys, token, _milliseconds(seconds), force):
            case [since, found]:
                return Taken(server_time(since, self._clock), read_value(found))
            case _:
                return Taken(None, None)

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        """Extend the lease to so long from now, if this token still holds it."""
        await _RENEW.run(self.redis, [lease_key(origin)], token, _milliseconds(seconds))

    async def release(self, origin: Origin, token: str) -> None:
        """Give the lease up, if this token still holds it."""
        await _RELEASE.run(self.redis, [lease_key(origin)], token)

    async def aclose(self) -> None:
        """Publish the invalidations that wait for others."""
        await self._invalidations.aclose()

    async def _send(self, message: bytes) -> None:
        await self.redis.command(None, "PUBLISH", CHANNEL, message)

    async def _write(
        self,
        origin: Origin,
        seen: str,
        value: Snapshot | Purged | None,
        change: Change,
        keep_seconds: float,
        lease: str = "",
    ) -> Put:
        """Replace a value whose SHA-1 is `seen` by `value`, or whichever else there is by what `change` makes of it."""
        keys = (snapshot_key(origin), unrecorded_key(origin), lease_key(origin))
        seconds = str(max(1, math.ceil(keep_seconds)))
        before: Snapshot | None = None
        for _ in range(WRITE_ATTEMPTS):
            ended = _ended(before, value)
            reply = await _PUT.run(self.redis, keys, seen, _as_bytes(value), seconds, ended, lease)
            match reply:
                case [1, *kept]:
                    return Put(value, before, _unrecorded(kept, before), written=True)
                case [0, bytes(data), *time] if (now := server_time(time, self._clock)) is not None:
                    seen, stored = _digest(data), read_value(data)
                case _:
                    raise UnexpectedReply(reply)
            before = stored if isinstance(stored, Snapshot) else None
            value = change(stored, now)
            if value is None:
                return Put(stored, before)
        raise StoreDown(f"the snapshot of {origin.key} was changed by other processes {WRITE_ATTEMPTS} times meanwhile")


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


def _milliseconds(seconds: float) -> str:
    return str(math.ceil(seconds * 1000))


def _digest(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _ended(before: Snapshot | None, after: Snapshot | Purged | None) -> bytes:
    """The digest of the content that ends when `after` replaces `before`; empty if none ends."""
    if before is None or (isinstance(after, Snapshot) and same(before.access, after.access)):
        return b""
    return digest(before.access)


def _unrecorded(kept: Sequence[object], before: Snapshot | None) -> Sequence[Snapshot]:
    """The versions that ended before the snapshot `before` and wait for the history, in the order of their ends."""
    found = [decode(data) for data in kept if isinstance(data, bytes)]
    ended = [it for it in found if it is not None and (before is None or not same(it.access, before.access))]
    return sorted(ended, key=lambda it: it.fetched_at)


def _as_bytes(value: Snapshot | Purged | None) -> bytes:
    match value:
        case Snapshot():
            return encode(value)
        case Purged(at):
            return _PURGED + repr(at).encode()
        case None:
            return b""


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
