"""All calls of a process to its store, with a circuit breaker for each shard: one that fails stops no others."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Final, TypeVar

from app.redis.circuit_breaker import COOLDOWN as COOLDOWN
from app.redis.circuit_breaker import CircuitBreaker, Failure, Limits, StoreDown, Trouble
from app.redis.connect import CONNECTIONS, Client, shard_name, shard_of, shards

__all__ = ["COOLDOWN", "MAX_CONCURRENT", "Failure", "GuardedClient", "StoreDown", "Trouble"]

TIMEOUT = 0.1
"""Seconds that a call to the store may take."""

MAX_CONCURRENT = Limits.within(CONNECTIONS, TIMEOUT).concurrent
"""How many calls to one shard run at once, unless set otherwise."""

_PROBE = "robots:probe"

# All that the service needs of a server: it runs scripts, lets them write, and passes messages on.
_TRY: Final = """
redis.call('set', KEYS[1], '', 'px', 1000)
redis.call('publish', 'robots:probe', '')
"""

T = TypeVar("T")


def _ignore(_event: object) -> None:
    pass


class GuardedClient:
    """Everything that a process asks of its store goes through one of these, so that all callers notice when it fails.

    A shard is what fails as a whole: a master of a cluster, or the only server. Calls to it are bounded by a circuit
    breaker of its own: `timeout` seconds for each, and as many at once as `connections` to a server allow. `failed` is
    called for every failed call, `answered` with the seconds that every answer took. `client` is for the commands.
    """

    def __init__(
        self,
        client: Client,
        *,
        monotonic: Callable[[], float],
        timeout: float = TIMEOUT,
        connections: int = CONNECTIONS,
        failed: Callable[[Failure], None] = _ignore,
        answered: Callable[[float], None] = _ignore,
    ) -> None:
        self.client = client
        limits = Limits.within(connections, timeout)
        self._new_breaker = partial(
            CircuitBreaker, limits=limits, monotonic=monotonic, failed=failed, answered=answered
        )
        self._breakers: dict[int, CircuitBreaker] = {}
        self._probes: dict[int, str] = {}

    @property
    def degraded(self) -> bool:
        """Whether any shard is degraded."""
        return any(self._breaker(shard).degraded for shard in shards(self.client))

    @property
    def trouble(self) -> Trouble | None:
        """What is wrong with the shard that has been degraded for the longest time, None while none is."""
        found = (self._breaker(shard).trouble for shard in shards(self.client))
        return max(filter(None, found), key=lambda trouble: trouble.seconds, default=None)

    async def read(self, key: str | None, command: Callable[[], Awaitable[T]]) -> T | None:
        """Run a command on the shard of `key`, or on any where that is None; raises StoreDown.

        The result is None if the key holds a value of another type than the command asks for.
        """
        return await self._breaker(self.shard_of(key)).run(command)

    async def write(self, key: str | None, command: Callable[[], Awaitable[T]]) -> T | None:
        """Run a command that writes, as `read` does."""
        return await self._breaker(self.shard_of(key)).run(command)

    def shard_of(self, key: str | None) -> int:
        """The shard that has the key; it keeps its number when a replica takes over."""
        return shard_of(self.client, key)

    async def ping(self) -> None:
        """Try every shard; raises StoreDown unless all of them do what the service needs."""
        # PING would not tell: a server that is full, a replica, and one that refuses us commands answer it as well.
        results = await asyncio.gather(*map(self.ping_shard, shards(self.client)), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def ping_shard(self, shard: int) -> None:
        """Try this shard; raises StoreDown unless it does what the service needs."""
        key = self._probe_key(shard)
        await self._breaker(shard).probe(lambda: self.client.eval(_TRY, 1, key))

    async def aclose(self) -> None:
        """Cancel the late calls; the client is its owner's to close."""
        for breaker in self._breakers.values():
            await breaker.aclose()

    def _breaker(self, shard: int) -> CircuitBreaker:
        breaker = self._breakers.get(shard)
        if breaker is None:
            breaker = self._breakers[shard] = self._new_breaker(shard_name(self.client, shard))
        return breaker

    def _probe_key(self, shard: int) -> str:
        key = self._probes.get(shard, _PROBE)
        if self.shard_of(key) != shard and shard in shards(self.client):
            key = next(key for n in count() if self.shard_of(key := f"{_PROBE}:{n}") == shard)
            self._probes[shard] = key
        return key
