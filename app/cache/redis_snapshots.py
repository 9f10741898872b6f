"""Snapshots in Redis or Valkey, the leases of origins, and the published invalidations."""

import hashlib
import math
from collections.abc import Callable
from secrets import token_hex

from app.cache import invalidation
from app.cache.codec import ENCODED_LIMIT, decode, encode
from app.cache.freshness import Snapshot
from app.cache.ordering import Purged, after_purge, merge
from app.cache.snapshot_store import Put
from app.origin import Origin
from app.redis.guarded_client import GuardedClient, StoreDown

LONGEST_LEASE = 600_000
"""Milliseconds of the longest lease that is respected, more than any fetch is given; processes may differ in theirs."""

ATTEMPTS = 5
"""How often a write is tried that others overtake; the lease makes even one conflict rare."""

_PURGED = b"P\x01"
# Compare and set: ARGV is the SHA-1 of the value that the new one was worked out from, the new value and its seconds.
# Where another value is there, nothing is written, and it is returned with the server's time. A key of another type
# counts as empty, and no more of a value is read than a snapshot can have.
_PUT = f"""
local held = redis.pcall('getrange', KEYS[1], 0, {ENCODED_LIMIT})
if type(held) ~= 'string' then held = '' end
if redis.sha1hex(held) == ARGV[1] then
  redis.call('set', KEYS[1], ARGV[2], 'ex', ARGV[3])
  return 1
end
local time = redis.call('time')
return {{held, time[1], time[2]}}
"""
# Returns the server's time at which the lease was taken, or nothing. A value that is not a lease, or never expires, is
# replaced. ARGV[4] is "force" to take the lease from its holder.
_TAKE = """
if not redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then
  local held, left = redis.pcall('get', KEYS[1]), redis.call('pttl', KEYS[1])
  local ours = type(held) == 'string' and #held <= 64 and left >= 0 and left <= tonumber(ARGV[3])
  if ours and ARGV[4] ~= 'force' then return false end
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return redis.call('time')
"""
_TIME = "return redis.call('time')"
_RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
# Whether another instance has left its name here; else ours is left, for so many milliseconds.
_SUSPECT = """
local held = redis.pcall('get', KEYS[1])
if type(held) == 'string' and held ~= ARGV[1] then return 1 end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return 0
"""


class RedisSnapshots:
    """Snapshots under `robots:{scheme://host:port}`; any other value under such a key is a miss.

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
        self._client = redis.client
        self._instance = instance or self.name
        self._clock = clock

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        """The origin's value; None if there is none or it cannot be read. Raises StoreDown."""
        # GETRANGE, not GET: bounds what is read, whatever is there.
        key = snapshot_key(origin)
        data = await self.redis.run(key, lambda: self._client.getrange(key, 0, ENCODED_LIMIT))
        return _read(data)

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> Put:
        """Merge the snapshot with the stored one, see `ordering`, and keep the result for so long; raises StoreDown."""
        seen, held, result = _digest(b""), None, snapshot
        for _ in range(ATTEMPTS):
            other = await self._replace(origin, seen, encode(result), keep_seconds)
            if other is None:
                return Put(result, held if isinstance(held, Snapshot) else None)
            data, now = other
            seen, held = _digest(data), _read(data)
            match held:
                case Snapshot():
                    result = merge(held, snapshot, now)
                    if result == held:
                        return Put(held, held)
                case Purged():
                    left = after_purge(snapshot, held, now)
                    if left is None:
                        return Put(held, None)
                    result = left
                case None:
                    result = snapshot
        raise _overtaken(origin)

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        """Replace what began before `at`, by default now, with a mark kept for so long; raises StoreDown."""
        # A mark, because a missing value may also have been lost, and a process that has it in memory would restore it.
        seen, mark = "", b""  # of no value: the first attempt is to learn what is there, and the time
        for _ in range(ATTEMPTS):
            other = await self._replace(origin, seen, mark, keep_seconds)
            if other is None:
                return
            data, now = other
            purged = Purged(now if at is None else min(at, now))
            held = _read(data)
            if isinstance(held, Purged) and purged.at <= held.at <= now:
                return
            left = after_purge(held, purged, now) if isinstance(held, Snapshot) and held.checked_at <= now else None
            if left is not None and left == held:
                return
            mark = _PURGED + repr(purged.at).encode() if left is None else encode(left)
            seen = _digest(data)
        raise _overtaken(origin)

    async def now(self, origin: Origin) -> float:
        """The server's time (Unix seconds), by which the origin's values are ordered; raises StoreDown."""
        key = snapshot_key(origin)
        said = await self.redis.run(key, lambda: self._client.eval(_TIME, 1, key))
        now = self._instant(said)
        if now is None:
            raise StoreDown(f"the store answers {said!r:.80} where it was asked for the time")
        return now

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        """Record for so long that this instance cannot reach the origin; whether another has recorded it. StoreDown."""
        key, milliseconds = f"{snapshot_key(origin)}:suspect", math.ceil(seconds * 1000)
        return bool(
            await self.redis.run(key, lambda: self._client.eval(_SUSPECT, 1, key, self._instance, str(milliseconds)))
        )

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> float | None:
        """Take the origin's lease for so long if it is free, or `by_force`; since when, or None. Raises StoreDown.

        The instant is the server's, and orders what is fetched under the lease.
        """
        key, milliseconds = _lease_key(origin), math.ceil(seconds * 1000)
        limits = (str(milliseconds), str(LONGEST_LEASE), "force" if by_force else "")
        return self._instant(await self.redis.run(key, lambda: self._client.eval(_TAKE, 1, key, token, *limits)))

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        """Extend the lease of this token to so long from now, if it still holds it; raises StoreDown."""
        key, milliseconds = _lease_key(origin), str(math.ceil(seconds * 1000))
        await self.redis.run(key, lambda: self._client.eval(_RENEW, 1, key, token, milliseconds))

    async def release(self, origin: Origin, token: str) -> None:
        """Release the lease of this token, and no other; raises StoreDown."""
        key = _lease_key(origin)
        await self.redis.run(key, lambda: self._client.eval(_RELEASE, 1, key, token))

    async def publish(self, event: invalidation.Event, origin: Origin) -> None:
        """Publish the event to all processes that are subscribed now; raises StoreDown."""
        message = invalidation.encode(self.name, event, origin)
        await self.redis.run(None, lambda: self._client.publish(invalidation.CHANNEL, message))

    async def _replace(self, origin: Origin, seen: str, data: bytes, keep_seconds: float) -> tuple[bytes, float] | None:
        """Put the data where what was `seen` (a SHA-1) is kept; else what is there, and the server's time."""
        key, arguments = snapshot_key(origin), (seen, data, str(max(1, math.ceil(keep_seconds))))
        # The client accepts bytes, which its annotations do not say.
        said = await self.redis.run(key, lambda: self._client.eval(_PUT, 1, key, *arguments))
        match said:
            case 1:
                return None
            case [bytes(held), *time] if (now := self._instant(time)) is not None:
                return held, now
            case _:
                raise StoreDown(f"the store answers {said!r:.80} where a value was put")

    def _instant(self, time: object) -> float | None:
        """What TIME says, in Unix seconds; None for anything else."""
        match time:
            case [bytes(seconds), bytes(micros)] if seconds.isdigit() and micros.isdigit() and len(seconds) < 12:
                return int(seconds) + int(micros[:6]) / 1e6 if self._clock is None else self._clock()
            case _:
                return None


def snapshot_key(origin: Origin) -> str:
    """Where the origin's snapshot is kept, and what its other keys begin with."""
    # The braces put all keys of an origin into one slot of a cluster; no host holds a brace.
    return f"robots:{{{origin.scheme}://{origin.uri_host}:{origin.port}}}"


def _lease_key(origin: Origin) -> str:
    return f"{snapshot_key(origin)}:lease"


def _digest(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _overtaken(origin: Origin) -> StoreDown:
    return StoreDown(f"the snapshot of {origin.key} was changed by others {ATTEMPTS} times meanwhile")


def _read(data: object) -> Snapshot | Purged | None:
    if not isinstance(data, bytes):
        return None
    return _read_purged(data) if data.startswith(_PURGED) else decode(data)


def _read_purged(data: bytes) -> Purged | None:
    try:
        at = float(data[len(_PURGED) : len(_PURGED) + 32])
    except ValueError:
        return None
    return Purged(at) if math.isfinite(at) else None
