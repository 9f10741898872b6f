"""The eviction policy of the store, which decides what a full store drops."""

import logging
import math
from collections.abc import Callable

from redis.exceptions import ResponseError

from app.loop.background import as_value
from app.store.guarded_client import GuardedClient, Send, StoreDown

EVICTION_EVERY = 300.0
"""Seconds after which the policy is read again: an operator may change it while the service runs."""

_log = logging.getLogger(__name__)


class EvictionPolicy:
    """The `maxmemory-policy` of the store; `risk` names one that may evict what must not be lost."""

    def __init__(self, redis: GuardedClient, monotonic: Callable[[], float]) -> None:
        self._redis = redis
        self._monotonic = monotonic
        self._next = -math.inf
        self._reported = True
        self.risk: str | None = None

    async def read(self) -> None:
        """Read the policy, every EVICTION_EVERY seconds at most; a store that is down is asked again next time."""
        if self._monotonic() < self._next or self._redis.degraded:
            return
        try:
            servers = [await self._redis.on_shard(shard, _memory) for shard in self._redis.shards]
        except StoreDown:
            return
        refusal = next((reply for reply in servers if isinstance(reply, ResponseError)), None)
        if refusal is not None and self._reported:
            _log.info("The store does not report its maxmemory-policy: %s", refusal)
        self._reported = refusal is None
        self._next = self._monotonic() + EVICTION_EVERY
        risk = next(filter(None, map(_risk, servers)), None)
        if risk not in (None, self.risk):
            _log.warning(
                "The store's maxmemory-policy %s may evict %s. Set volatile-lru, volatile-lfu or noeviction.",
                risk,
                "what operators have set" if risk.startswith("allkeys") else "pacing before files",
            )
        self.risk = risk


async def _memory(send: Send) -> object:
    """The memory section of INFO, or why there is none: a user who may not run it can do all that is needed."""
    try:
        return await send("INFO", "memory")
    except ResponseError as error:
        return as_value(error)


def _risk(memory: object) -> str | None:
    """The policy if it may evict keys without expiry, or pacing before files."""
    if not isinstance(memory, bytes):
        return None
    fields = dict(line.split(":", 1) for line in memory.decode(errors="replace").splitlines() if ":" in line)
    policy = fields.get("maxmemory_policy", "")[:40]
    if fields.get("maxmemory", "0") == "0":
        return None
    return policy if policy.startswith("allkeys") or policy in ("volatile-ttl", "volatile-random") else None
