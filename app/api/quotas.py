"""How many requests each key has left: counted here, and settled with all other processes every second.

A quota is a bucket of `burst` requests that fills up again at its own pace. What is missing from it is its debt, in
seconds until it is full (the generic cell rate algorithm). Every process counts its own requests at once, and tells the
store every second what came to it since; the store adds up, and tells the debt of the whole fleet. So processes let
through, together, no more than the quota and what comes to them within a second; and what was too much is paid for
afterwards, since it is in the debt. While the store is down each process counts alone, and settles when it is back.
"""

import math
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from app.api.problems import Problem
from app.auth.keys import Limit
from app.background import periodically
from app.redis.guarded_client import GuardedClient, StoreDown

EVERY = 1.0
"""Seconds between two settlements."""

LONGEST_DEBT = 86_400.0
"""Seconds of debt that are remembered at most: no value in the store, whoever wrote it, shuts a key out for longer."""

_AT_ONCE = 200
_DEBT = re.compile(rb"[0-9]{1,6}\.[0-9]{6}")

# The store's own clock counts, so that the processes' need not agree. What is there may be anybody's.
_SETTLE: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local most = tonumber(ARGV[#ARGV])
local debts = {}
for i, key in ipairs(KEYS) do
  local debt = 0
  local held = redis.pcall('GET', key)
  if type(held) == 'string' and #held <= 32 and string.match(held, '^%d+%.%d+$') then
    local left = tonumber(held) - now
    if left > 0 and left <= most + 1 then debt = left end
  end
  debt = math.min(debt + tonumber(ARGV[i]), most)
  if debt > 0 then
    redis.call('SET', key, string.format('%.6f', now + debt), 'PX', math.ceil(debt * 1000) + 1000)
  end
  debts[i] = string.format('%.6f', debt)
end
return debts
"""


@dataclass(slots=True)
class _Bucket:
    """`full_at`, on the process's own clock; `unsettled`, in seconds, is what of its debt the store does not know."""

    full_at: float = 0.0
    unsettled: float = 0.0


class Quotas:
    """The buckets of the keys that have sent something lately. `monotonic` is in seconds."""

    def __init__(self, calls: GuardedClient, monotonic: Callable[[], float], exceeded: Callable[[str], None]) -> None:
        """`exceeded` is called with the id of the key of every request that is refused."""
        self._calls = calls
        self._monotonic = monotonic
        self._exceeded = exceeded
        self._buckets: dict[str, _Bucket] = {}

    def spending(self, id_: str, limit: Limit) -> "Spending":
        """What the key of that id is to be charged by."""
        return Spending(self, id_, limit)

    def debt(self, id_: str) -> float:
        """Seconds until the bucket is full."""
        bucket = self._buckets.get(id_)
        return 0.0 if bucket is None else max(bucket.full_at - self._monotonic(), 0.0)

    def add(self, id_: str, seconds: float) -> None:
        """Take so much from the bucket."""
        bucket = self._buckets.setdefault(id_, _Bucket())
        now = self._monotonic()
        bucket.full_at = min(max(bucket.full_at, now) + seconds, now + LONGEST_DEBT)
        bucket.unsettled = min(bucket.unsettled + seconds, LONGEST_DEBT)

    def exceeded(self, id_: str) -> None:
        """A request of the key of that id was refused."""
        self._exceeded(id_)

    async def settle(self) -> None:
        """Tell the store what came since the last time, and learn the debts of the fleet; raises StoreDown."""
        self._forget_the_full()
        ids = list(self._buckets)
        for start in range(0, len(ids), _AT_ONCE):
            await self._settle(ids[start : start + _AT_ONCE])

    @asynccontextmanager
    async def settled(self, every: float = EVERY) -> AsyncIterator[None]:
        """While the block lasts, settle every so many seconds."""
        async with periodically(self.settle, every, ignoring=StoreDown):
            yield

    async def _settle(self, ids: list[str]) -> None:
        buckets = [self._buckets[id_] for id_ in ids]
        sent = [bucket.unsettled for bucket in buckets]
        for bucket in buckets:
            bucket.unsettled = 0.0
        debts: Mapping[int, float] = {}
        keys = [f"robots:{{quotas}}:{id_}" for id_ in ids]
        amounts = [f"{seconds:.6f}" for seconds in sent]
        try:
            told = await self._calls.run(
                keys[0], lambda: self._calls.client.eval(_SETTLE, len(keys), *keys, *amounts, f"{LONGEST_DEBT:.0f}")
            )
            debts = _read_debts(told)
        finally:
            # What may have been settled is settled again where that is not known: a key is then charged twice for a
            # second, and never for nothing.
            now = self._monotonic()
            for at, bucket in enumerate(buckets):
                if at in debts:
                    bucket.full_at = now + debts[at] + bucket.unsettled
                else:
                    bucket.unsettled = min(bucket.unsettled + sent[at], LONGEST_DEBT)

    def _forget_the_full(self) -> None:
        now = self._monotonic()
        for id_, bucket in list(self._buckets.items()):
            if bucket.full_at <= now and bucket.unsettled == 0:
                del self._buckets[id_]


@dataclass(frozen=True, slots=True)
class Spending:
    """What one request's key is charged by, and what it is told of that."""

    quotas: Quotas
    id: str
    limit: Limit

    def charge(self, cost: int, *, begun: int = 0) -> None:
        """Take so many requests from the quota, or raise 429 where they are not in it.

        A cost that is more than the whole quota is let through by a full one, and paid for afterwards; `begun` is what
        has been taken for the same work already, so that a quota is full but for that.
        """
        missing = self.take(cost, begun=begun)
        if missing:
            self.quotas.exceeded(self.id)
            seconds = max(1, math.ceil(missing))
            detail = (
                f"The API key {self.id!r} may send {self.limit.requests} requests in {self.limit.seconds} s, "
                f"{self.limit.burst} of them at once, and has sent them. Ask again in {seconds} s."
            )
            raise Problem(429, "quota-exceeded", detail, {"Retry-After": str(seconds)})

    def take(self, cost: int, *, begun: int = 0) -> float:
        """As `charge`, but 0 where they are taken, and else the seconds until they can be."""
        interval, burst = self.limit.interval, self.limit.burst
        debt = max(self.quotas.debt(self.id) - begun * interval, 0.0)
        missing = debt + (min(cost + begun, burst) - burst) * interval
        # The clock has its own grain: a millionth of a request is no reason to refuse one.
        if missing > interval * 1e-6:
            return missing
        self.quotas.add(self.id, cost * interval)
        return 0.0

    def owe(self, cost: int) -> None:
        """Take them, whether they are in the quota or not."""
        self.quotas.add(self.id, cost * self.limit.interval)

    def fields(self) -> Mapping[str, str]:
        """The fields of draft-ietf-httpapi-ratelimit-headers: the quota, what is left, and when it is whole again."""
        interval, burst = self.limit.interval, self.limit.burst
        debt = self.quotas.debt(self.id)
        left = max(0, math.floor(burst - debt / interval + 1e-6))
        return {
            "RateLimit-Policy": f'"default";q={burst};w={max(1, math.ceil(burst * interval))}',
            "RateLimit": f'"default";r={left};t={math.ceil(debt)}',
        }


def _read_debts(told: Any) -> Mapping[int, float]:
    values = told if isinstance(told, list) else []
    return {at: float(value) for at, value in enumerate(values) if isinstance(value, bytes) and _DEBT.fullmatch(value)}
