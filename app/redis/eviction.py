"""The eviction policy of the store, which decides what a full store drops."""

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from app.redis.connect import Client
from app.redis.failures import FAILURES
from app.redis.guarded_client import GuardedClient

PATIENCE = 1.0
"""Seconds that the store has to report its policy."""

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
            # Not through the circuit breaker: a user without permission for INFO can do all that the service needs.
            async with asyncio.timeout(PATIENCE):
                servers = await _memory(self._redis.client)
        except ResponseError as error:
            if self._reported:
                _log.info("The store does not report its maxmemory-policy: %s", error)
            self._reported = False
            servers = []
        except FAILURES:
            return
        else:
            self._reported = True
        self._next = self._monotonic() + EVICTION_EVERY
        risk = next(filter(None, map(_risk, servers)), None)
        if risk not in (None, self.risk):
            _log.warning(
                "The store's maxmemory-policy %s may evict %s. Set volatile-lru, volatile-lfu or noeviction.",
                risk,
                "what operators have set" if risk.startswith("allkeys") else "pacing before files",
            )
        self.risk = risk


async def _memory(client: Client) -> list[Any]:
    """The memory section of INFO, for each master."""
    if isinstance(client, Redis):
        return [await client.info("memory")]
    found: dict[str, Any] = await client.info("memory", target_nodes=client.PRIMARIES)
    # For one master redis-py returns its reply, and for several a dict of replies.
    return [found] if "maxmemory_policy" in found else list(found.values())


def _risk(memory: Any) -> str | None:
    """The policy if it may evict keys without expiry, or pacing before files."""
    if not isinstance(memory, dict) or not memory.get("maxmemory"):
        return None
    policy = str(memory.get("maxmemory_policy"))[:40]
    return policy if policy.startswith("allkeys") or policy in ("volatile-ttl", "volatile-random") else None
