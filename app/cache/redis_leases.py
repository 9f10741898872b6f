"""The leases of origins in Redis or Valkey."""

import math
from collections.abc import Callable
from typing import Final

from app.cache.redis_snapshots import snapshot_key
from app.origin import Origin
from app.redis.guarded_client import GuardedClient
from app.redis.script import Script
from app.redis.store_clock import server_time

LONGEST_LEASE = 600_000
"""Milliseconds of the longest lease that is respected, more than any fetch is given; processes may differ in theirs."""

# Returns the server's time at which the lease was taken, or nothing. A value that is not a lease, or never expires, is
# replaced. ARGV[4] is "force" to take the lease from its holder.
_TAKE: Final = Script("""
if not redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then
  local held, left = redis.pcall('get', KEYS[1]), redis.call('pttl', KEYS[1])
  local ours = type(held) == 'string' and #held <= 64 and left >= 0 and left <= tonumber(ARGV[3])
  if ours and ARGV[4] ~= 'force' then return false end
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return redis.call('time')
""")
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
        self._client = redis.client
        self._clock = clock

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> float | None:
        """Take the origin's lease for so long if it is free, or `by_force`; since when, or None. Raises StoreDown.

        The instant is the server's, and orders what is fetched under the lease.
        """
        key, milliseconds = _lease_key(origin), math.ceil(seconds * 1000)
        limits = (str(milliseconds), str(LONGEST_LEASE), "force" if by_force else "")
        reply = await _TAKE.run(self._redis, [key], token, *limits)
        return server_time(reply, self._clock)

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        """Extend the lease of this token to so long from now, if it still holds it; raises StoreDown."""
        key, milliseconds = _lease_key(origin), str(math.ceil(seconds * 1000))
        await _RENEW.run(self._redis, [key], token, milliseconds)

    async def release(self, origin: Origin, token: str) -> None:
        """Release the lease of this token, and no other; raises StoreDown."""
        key = _lease_key(origin)
        await _RELEASE.run(self._redis, [key], token)


def _lease_key(origin: Origin) -> str:
    return f"{snapshot_key(origin)}:lease"
