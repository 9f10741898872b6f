"""Snapshots in Redis or Valkey, the leases of those who fetch, and the news of what was fetched."""

import math
from secrets import token_hex

from app.cache import news
from app.cache.codec import ENCODED_LIMIT, decode, encode
from app.cache.freshness import Snapshot
from app.cache.known import Purged
from app.origin import Origin
from app.store.calls import Calls

LONGEST_LEASE = 600_000
"""Milliseconds of the longest lease that is respected, more than any fetch is given; processes may differ in theirs."""

_PURGED = b"P\x01"
# What is no lease of ours, or would never end, keeps nobody waiting: it is replaced.
_TAKE = """
if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 1 end
local held, left = redis.pcall('get', KEYS[1]), redis.call('pttl', KEYS[1])
if type(held) == 'string' and #held <= 64 and left >= 0 and left <= tonumber(ARGV[3]) then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return 1
"""
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


class RedisStore:
    """Snapshots under `robots:{scheme://host:port}`; whatever else is found under such a key is a miss.

    `name` tells this process from others in its news.
    """

    def __init__(self, calls: Calls, *, name: str | None = None) -> None:
        self.name = name or token_hex(8)
        self.calls = calls
        self._client = calls.client

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        """What is kept of the origin, None also for what is not ours; raises StoreDown."""
        # GETRANGE, not GET: no more is read than could be ours, whatever is there.
        key = snapshot_key(origin)
        data = await self.calls.read(key, lambda: self._client.getrange(key, 0, ENCODED_LIMIT))
        if not isinstance(data, bytes):
            return None
        return _read_purged(data) if data.startswith(_PURGED) else decode(data)

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> None:
        """Keep the snapshot for so long, in place of anything that is there; raises StoreDown."""
        key, data = snapshot_key(origin), encode(snapshot)
        await self.calls.write(key, lambda: self._client.set(key, data, ex=max(1, math.ceil(keep_seconds))))

    async def purge(self, origin: Origin, at: float, keep_seconds: float) -> None:
        """Keep a mark for so long, in place of anything that is there; raises StoreDown."""
        # A mark, not a gap: a gap may also be what a store has lost, and is given again by who remembers it.
        key, mark = snapshot_key(origin), _PURGED + repr(at).encode()
        await self.calls.write(key, lambda: self._client.set(key, mark, ex=max(1, math.ceil(keep_seconds))))

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> bool:
        """Hold the origin's lease for so long if nobody does, or `by_force`; raises StoreDown."""
        key, milliseconds = _lease_key(origin), math.ceil(seconds * 1000)
        if by_force:
            return bool(await self.calls.write(key, lambda: self._client.set(key, token, px=milliseconds)))
        limits = (str(milliseconds), str(LONGEST_LEASE))
        return bool(await self.calls.write(key, lambda: self._client.eval(_TAKE, 1, key, token, *limits)))

    async def release(self, origin: Origin, token: str) -> None:
        """Give up the lease that was taken with this token, and no other; raises StoreDown."""
        key = _lease_key(origin)
        await self.calls.write(key, lambda: self._client.eval(_RELEASE, 1, key, token))

    async def tell(self, word: news.Word, origin: Origin) -> None:
        """Say it to all processes that listen now; raises StoreDown."""
        await self.calls.read(None, lambda: self._client.publish(news.CHANNEL, news.write(self.name, word, origin)))


def snapshot_key(origin: Origin) -> str:
    """Where the origin's snapshot is kept, and what its other keys begin with."""
    # The braces put all keys of an origin into one slot of a cluster; no host holds a brace.
    return f"robots:{{{origin.scheme}://{origin.uri_host}:{origin.port}}}"


def _lease_key(origin: Origin) -> str:
    return f"{snapshot_key(origin)}:lease"


def _read_purged(data: bytes) -> Purged | None:
    try:
        at = float(data[len(_PURGED) : len(_PURGED) + 32])
    except ValueError:
        return None
    return Purged(at) if math.isfinite(at) else None
