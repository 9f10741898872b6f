"""Snapshots in Redis or Valkey, the leases of those who fetch, and the news of what was fetched."""

import math
from secrets import token_hex

from app.cache import news
from app.cache.codec import ENCODED_LIMIT, decode, encode
from app.cache.freshness import Snapshot
from app.cache.known import Purged
from app.origin import Origin
from app.store.calls import Calls

_PURGED = b"P\x01"
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
        data = await self.calls.read(lambda: self._client.getrange(snapshot_key(origin), 0, ENCODED_LIMIT))
        if not isinstance(data, bytes):
            return None
        return _read_purged(data) if data.startswith(_PURGED) else decode(data)

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> None:
        """Keep the snapshot for so long, in place of anything that is there; raises StoreDown."""
        data = encode(snapshot)
        await self.calls.write(lambda: self._client.set(snapshot_key(origin), data, ex=max(1, math.ceil(keep_seconds))))

    async def purge(self, origin: Origin, at: float, keep_seconds: float) -> None:
        """Keep a mark for so long, in place of anything that is there; raises StoreDown."""
        # A mark, not a gap: a gap may also be what a store has lost, and is given again by who remembers it.
        mark = _PURGED + repr(at).encode()
        await self.calls.write(lambda: self._client.set(snapshot_key(origin), mark, ex=max(1, math.ceil(keep_seconds))))

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> bool:
        """Hold the origin's lease for so long if nobody does, or `by_force`; raises StoreDown."""
        key, milliseconds = _lease_key(origin), math.ceil(seconds * 1000)
        return bool(await self.calls.write(lambda: self._client.set(key, token, nx=not by_force, px=milliseconds)))

    async def release(self, origin: Origin, token: str) -> None:
        """Give up the lease that was taken with this token, and no other; raises StoreDown."""
        await self.calls.write(lambda: self._client.eval(_RELEASE, 1, _lease_key(origin), token))

    async def tell(self, word: news.Word, origin: Origin) -> None:
        """Say it to all processes that listen now; raises StoreDown."""
        await self.calls.read(lambda: self._client.publish(news.CHANNEL, news.write(self.name, word, origin)))


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
