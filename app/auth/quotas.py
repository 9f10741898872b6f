"""The quotas of API keys: counted in each process, and settled with the rest of the fleet every second.

A quota is a bucket of `burst` requests that refills at a constant rate. What is missing from it is the key's debt, in
seconds until the bucket is full (the generic cell rate algorithm). Each process charges its own requests at once. Every
second it adds what it charged to the debt in the store, and takes over the debt of the whole fleet. So a fleet admits
at most the quota and what arrives within one second beyond it; and since the excess is in the debt, it delays later
requests. While the store is down, each process counts alone, and settles when the store is back.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final

from app.auth.keys import Limit
from app.loop.background import BackgroundTask, in_batches, periodically
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script

SETTLE_INTERVAL = 1.0
"""Seconds between two settlements."""

MAX_DEBT = 86_400.0
"""Seconds of the largest debt: no value in the store, even a foreign one, blocks a key for longer."""

_BATCH = 200
_DEBT = re.compile(rb"[0-9]{1,6}\.[0-9]{6}")

_SETTLE: Final = Script.load(__package__, "settle.lua")


class QuotaExceeded(Exception):
    """A request that exceeds its key's quota, which will admit it in `retry_after` seconds."""

    def __init__(self, key_id: str, limit: Limit, retry_after: float) -> None:
        super().__init__(
            f"The API key {key_id!r} has used up its quota of {limit.requests} requests in {limit.seconds} s, "
            f"with at most {limit.burst} at once."
        )
        self.retry_after = retry_after


@dataclass(slots=True)
class _Bucket:
    """`full_at` is by the process's clock; `unsettled` is the debt, in seconds, that the store does not know yet."""

    full_at: float = 0.0
    unsettled: float = 0.0


class Quotas:
    """The buckets of all keys that were used lately. `monotonic` is in seconds."""

    def __init__(
        self, store: GuardedClient, monotonic: Callable[[], float], on_exceeded: Callable[[str], None]
    ) -> None:
        """`on_exceeded` is called with the id of the key for every request that is refused."""
        self._store = store
        self._monotonic = monotonic
        self.on_exceeded = on_exceeded
        self._buckets: dict[str, _Bucket] = {}

    def account(self, key_id: str, limit: Limit) -> "QuotaAccount":
        """The account that the requests of a key are charged to."""
        return QuotaAccount(self, key_id, limit)

    def debt(self, key_id: str) -> float:
        """Seconds until the key's bucket is full."""
        bucket = self._buckets.get(key_id)
        return 0.0 if bucket is None else max(bucket.full_at - self._monotonic(), 0.0)

    def add_debt(self, key_id: str, seconds: float) -> None:
        """Add to the key's debt."""
        bucket = self._buckets.setdefault(key_id, _Bucket())
        now = self._monotonic()
        bucket.full_at = min(max(bucket.full_at, now) + seconds, now + MAX_DEBT)
        bucket.unsettled = min(bucket.unsettled + seconds, MAX_DEBT)

    async def settle(self) -> None:
        """Add all unsettled debts to the store, and take over the fleet's debts. Raises StoreDown."""
        self._drop_full_buckets()
        await in_batches(BackgroundTask.QUOTAS, list(self._buckets), _BATCH, self._settle, unless=StoreDown)

    def running(self, interval: float = SETTLE_INTERVAL) -> AbstractAsyncContextManager[None]:
        """Settle every `interval` seconds for as long as the block lasts."""
        return periodically(BackgroundTask.QUOTAS, self.settle, interval, ignoring=StoreDown)

    async def _settle(self, ids: Sequence[str]) -> None:
        buckets = [self._buckets[key_id] for key_id in ids]
        sent = [bucket.unsettled for bucket in buckets]
        for bucket in buckets:
            bucket.unsettled = 0.0
        debts: Mapping[int, float] = {}
        keys = [f"robots:{{quotas}}:{key_id}" for key_id in ids]
        amounts = [f"{seconds:.6f}" for seconds in sent]
        try:
            reply = await _SETTLE.run(self._store, keys, *amounts, f"{MAX_DEBT:.0f}")
            debts = _read_debts(reply)
        finally:
            # If it is not known whether a debt was settled, it is settled again: the key may be charged twice for one
            # second, but is never charged too little.
            now = self._monotonic()
            for i, bucket in enumerate(buckets):
                if i in debts:
                    bucket.full_at = now + debts[i] + bucket.unsettled
                else:
                    bucket.unsettled = min(bucket.unsettled + sent[i], MAX_DEBT)

    def _drop_full_buckets(self) -> None:
        now = self._monotonic()
        for key_id, bucket in list(self._buckets.items()):
            if bucket.full_at <= now and bucket.unsettled == 0:
                del self._buckets[key_id]


@dataclass(frozen=True, slots=True)
class QuotaAccount:
    """One key's quota, as its requests are charged to it. Costs are in requests."""

    quotas: Quotas
    key_id: str
    limit: Limit

    def charge(self, cost: int, *, prepaid: int = 0) -> None:
        """Take `cost` requests from the quota. Raises QuotaExceeded if they exceed it.

        A cost above the whole quota is admitted if the quota is full, and leaves a debt. `prepaid` was already charged
        for the same work; the quota counts as full if only that is missing.
        """
        missing = self.try_charge(cost, prepaid=prepaid)
        if missing:
            self.quotas.on_exceeded(self.key_id)
            raise QuotaExceeded(self.key_id, self.limit, missing)

    def try_charge(self, cost: int, *, prepaid: int = 0) -> float:
        """Do as `charge`, but return 0 if the requests were taken, else the seconds until they can be."""
        interval, burst = self.limit.interval, self.limit.burst
        debt = max(self.quotas.debt(self.key_id) - prepaid * interval, 0.0)
        missing = debt + (min(cost + prepaid, burst) - burst) * interval
        # The clock is not exact, so a millionth of a request is not refused.
        if missing > interval * 1e-6:
            return missing
        self.quotas.add_debt(self.key_id, cost * interval)
        return 0.0

    def charge_on_credit(self, cost: int) -> None:
        """Take `cost` requests even if they exceed the quota."""
        self.quotas.add_debt(self.key_id, cost * self.limit.interval)

    @property
    def debt(self) -> float:
        """Seconds until the quota is whole again."""
        return self.quotas.debt(self.key_id)


def _read_debts(reply: Any) -> Mapping[int, float]:
    values = reply if isinstance(reply, list) else []
    return {i: float(value) for i, value in enumerate(values) if isinstance(value, bytes) and _DEBT.fullmatch(value)}
