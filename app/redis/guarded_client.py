"""The calls of a process to the store, with a circuit breaker for each shard: a failing one affects no other."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import TypeVar

from redis.exceptions import NoPermissionError

from app.redis.circuit_breaker import COOLDOWN as COOLDOWN
from app.redis.circuit_breaker import CircuitBreaker, Failure, StoreDown, Trouble
from app.redis.commands import PROBE, PROBED
from app.redis.connect import CONNECTIONS, Client, shard_name, shard_of, shards
from app.redis.store_clock import server_time
from app.redis.timed_calls import Limits

__all__ = ["COOLDOWN", "MAX_CONCURRENT", "Failure", "GuardedClient", "StoreDown", "Trouble"]

STORE_TIMEOUT = 0.1
"""Seconds that a call to the store may take."""

MAX_CONCURRENT = Limits.within(CONNECTIONS, STORE_TIMEOUT).concurrent
"""How many calls to one shard run at once, by default."""

_PROBE = "robots:probe"

T = TypeVar("T")


def _ignore(_event: object) -> None:
    pass


class GuardedClient:
    """All calls to the store go through one instance, so that all callers notice when it fails.

    A shard fails as a whole: it is a master of a cluster, or the only server. Its circuit breaker bounds the calls to
    it: `timeout` seconds for each, and as many at once as `connections` to a server allow. `failed` is called for
    every failed call, `answered` with the seconds that every answer took. Commands are methods of `client`.
    """

    def __init__(
        self,
        client: Client,
        *,
        monotonic: Callable[[], float],
        timeout: float = STORE_TIMEOUT,
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
        """What is wrong with the shard that has been degraded for the longest time; None if none is."""
        found = (self._breaker(shard).trouble for shard in shards(self.client))
        return max(filter(None, found), key=lambda trouble: trouble.seconds, default=None)

    async def run(self, key: str | None, command: Callable[[], Awaitable[T]]) -> T | None:
        """Run a command on the shard of `key`, on any if that is None; raises StoreDown.

        The result is None if the key holds a value of another type than the command expects.
        """
        return await self._breaker(self.shard_of(key)).run(command)

    def shard_of(self, key: str | None) -> int:
        """The shard that has the key; it keeps its number when a replica takes over."""
        return shard_of(self.client, key)

    async def ping(self) -> dict[int, float]:
        """Probe every shard; the time there (Unix seconds), by shard.

        Raises StoreDown unless all of them do what the service needs.
        """
        # PING is not enough: a full server, a replica, and one whose ACL denies commands all answer it.
        every = shards(self.client)
        results = await asyncio.gather(*map(self.ping_shard, every), return_exceptions=True)
        failure = next((result for result in results if isinstance(result, BaseException)), None)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure, results  # or this frame is in a cycle with an exception, which refers to it
        return {shard: time for shard, time in zip(every, results, strict=True) if isinstance(time, float)}

    async def ping_shard(self, shard: int) -> float:
        """Probe this shard; its time (Unix seconds). Raises StoreDown unless it does what the service needs."""
        key = self._probe_key(shard)

        async def probe() -> object:
            refused, time = await self.client.eval(PROBE, 1, key, *PROBED)
            if refused:
                names = ", ".join(PROBED[example.decode()] for example in refused)
                raise NoPermissionError(f"its user may not run {names}")
            return time

        reply = await self._breaker(shard).probe(probe)
        now = server_time(reply)
        if now is None:
            raise StoreDown(f"the store answered {reply!r:.80} to TIME")
        return now

    async def aclose(self) -> None:
        """Cancel the late calls; the caller closes the client."""
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
