"""The leases of origins in Redis or Valkey."""

import math
from collections.abc import Callable
from typing import Final

from app.cache.codec import ENCODED_LIMIT
from app.cache.lease import Taken
from app.cache.redis_snapshots import lease_key, read_value, snapshot_key
from app.store.guarded_client import GuardedClient
from app.store.script import Script
from app.store.store_clock import server_time
from robots_core.origin import Origin

LONGEST_LEASE = 600_000
"""Milliseconds of the longest lease that is respected, more than any fetch is given; processes may differ in theirs."""

_TAKE: Final = Script.load(__package__, "take.lua", ENCODED_LIMIT=ENCODED_LIMIT)
_RENEW: Final = Script(
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
)
_RELEASE: Final = Script("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")


class RedisLeases:
    """Leases under `robots:{scheme://host:port[#profile]}:lease`, each with the token of its holder.

    `clock` is what tests put in place of the server's (Unix seconds).
    """

    def __init__(self, redis: GuardedClient, *, clock: Callable[[], float] | None = None) -> None:
        self._redis = redis
        self._clock = clock

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> Taken:
        """Take the origin's lease for so long if it is free, or `by_force`, and read its value. Raises StoreDown.

        The instant is the server's, and orders what is fetched under the lease.
        """
        keys, milliseconds = [lease_key(origin), snapshot_key(origin)], math.ceil(seconds * 1000)
        limits = (str(milliseconds), str(LONGEST_LEASE), "force" if by_force else "")
        match await _TAKE.run(self._redis, keys, token, *limits):
            case [since, found]:
                return Taken(server_time(since, self._clock), read_value(found))
            case _:
                return Taken(None, None)

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        """Extend the lease of this token to so long from now, if it still holds it; raises StoreDown."""
        key, milliseconds = lease_key(origin), str(math.ceil(seconds * 1000))
        await _RENEW.run(self._redis, [key], token, milliseconds)

    async def release(self, origin: Origin, token: str) -> None:
        """Release the lease of this token, and no other; raises StoreDown."""
        key = lease_key(origin)
        await _RELEASE.run(self._redis, [key], token)
