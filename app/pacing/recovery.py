"""Recovery of a shard of the store: probe it until it answers, then report what was given without it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from app.background import BackgroundTask, Surviving
from app.pacing.bounded_dict import BoundedDict
from app.pacing.pace_store import PaceStore
from app.pacing.shard_state import PROBE_INTERVAL, SLACK, ShardState
from app.pacing.slots import PaceKey, QueueState
from app.redis.guarded_client import StoreDown
from app.redis.single_flight import SingleFlight

REPORT_ATTEMPTS = 4
"""Attempts at each report to a shard that is back."""


class Recovery:
    """Probes and reports, in the background. `queues` are the queues as the pacer last saw them."""

    def __init__(
        self,
        store: PaceStore,
        queues: BoundedDict[PaceKey, QueueState],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._queues = queues
        self._monotonic = monotonic
        self._sleep = sleep
        self._probes: SingleFlight[int, None] = SingleFlight(BackgroundTask.RECOVERY)
        self._reports: SingleFlight[int, None] = SingleFlight(BackgroundTask.RECOVERY)

    async def aclose(self) -> None:
        """Cancel all probes and reports."""
        await self._probes.aclose()
        await self._reports.aclose()

    def on_failure(self, shard: int, state: ShardState) -> float:
        """Note that a call to the shard failed, and probe it; return since when it has failed."""
        if state.failing_since is None:
            state.failing_since = self._monotonic()
            self._probes.start(shard, partial(self._probe, shard, state))
        return state.failing_since

    def on_success(self, shard: int, state: ShardState) -> None:
        """Note that the shard answered, and report to it what was given without it."""
        if state.recover():
            self._reports.start(shard, partial(self._report, state))

    async def _probe(self, shard: int, state: ShardState) -> None:
        # Probe even if no caller requests slots: other processes may wait for this one's report.
        while state.failing_since is not None:
            await self._sleep(PROBE_INTERVAL)
            with Surviving(BackgroundTask.RECOVERY):
                try:
                    await self._store.ping(shard)
                except StoreDown:
                    state.local = state.failing_since is not None  # None if another call has succeeded meanwhile
                else:
                    self.on_success(shard, state)

    async def _report(self, state: ShardState) -> None:
        """Report backoffs and slots while the shard's queues are closed."""
        while state.unreported_backoffs:
            key, backoff = state.unreported_backoffs.popitem()
            back_off = partial(self._store.back_off, key, backoff.until - state.now(), backoff.reporter)
            if not await self._retried(key, back_off):
                state.unreported_backoffs[key] = backoff
                return
        while state.unreported_slots:
            key, slot = state.unreported_slots.popitem()
            if slot.ends <= state.now():
                continue
            known = QueueState(slot.ends, self._queues.get(key, QueueState()).count, state.now())
            # A negative max_wait reserves nothing: the call only tells the store where the queue ends.
            request = replace(slot.request, max_wait=-1.0, fetched_at=0.0)
            closed_for = state.closed_for()
            report = partial(
                self._store.reserve, request, known, closed_for=max(closed_for, SLACK), closed_if_behind=closed_for
            )
            if not await self._retried(key, report):
                state.unreported_slots[key] = slot
                return

    async def _retried(self, key: PaceKey, call: Callable[[], Awaitable[object]]) -> bool:
        """Whether the call need not be made again: one that fails unexpectedly would always fail."""
        for _ in range(REPORT_ATTEMPTS):
            with Surviving(BackgroundTask.RECOVERY, key):
                try:
                    await call()
                except StoreDown:
                    await self._sleep(PROBE_INTERVAL)
                    continue
            return True
        return False
