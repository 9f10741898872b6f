"""Recovery of a shard of the store: probe it until it answers, then report what was given without it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from app.cache.byte_lru import BoundedDict
from app.loop.background import BackgroundTask, Surviving
from app.loop.single_flight import SingleFlight
from app.pacing.known_backoffs import KnownBackoffs
from app.pacing.redis_pacer import RedisPacer
from app.pacing.shard_state import PROBE_INTERVAL, SLACK, ShardState
from app.pacing.slots import PaceKey, QueueState
from app.store.guarded_client import StoreDown

_log = logging.getLogger(__name__)

REPORT_ATTEMPTS = 4
"""Attempts at each report to a shard that is back."""


class Recovery:
    """Probes and reports, in the background. `queues` and `backoffs` are what the pacer remembers.

    After a brief failure, it reports the backoffs that began meanwhile. If the shard was away for longer, or has lost
    what was written last, it reports all that it remembers, for processes that were not asked about a pool before.
    """

    def __init__(
        self,
        store: RedisPacer,
        queues: BoundedDict[PaceKey, QueueState],
        backoffs: KnownBackoffs,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        given_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`given_back` is called for every backoff that the shard did not know."""
        self._store = store
        self._queues = queues
        self._backoffs = backoffs
        self._given_back = given_back
        self._sleep = sleep
        self._probes: SingleFlight[int, None] = SingleFlight(BackgroundTask.RECOVERY)
        self._reports: SingleFlight[int, None] = SingleFlight(BackgroundTask.RECOVERY)

    async def aclose(self) -> None:
        """Cancel all probes and reports."""
        await self._probes.aclose()
        await self._reports.aclose()

    def on_failure(self, state: ShardState) -> float:
        """Note that a call to the shard failed, and probe it; return since when it has failed."""
        if state.failing_since is None:
            state.failing_since = state.clock.steady()
            self._probes.start(state.shard, partial(self._probe, state))
        return state.failing_since

    def on_success(self, state: ShardState) -> None:
        """Note that the shard answered, and report to it what was given without it."""
        if state.recover():
            self.on_loss(state)
        elif state.unreported_backoffs:
            self._reports.start(state.shard, partial(self._report, state))

    def on_loss(self, state: ShardState) -> None:
        """Report all that is remembered: the shard may have lost it."""
        for key in self._backoffs.running():
            if self._store.shard_of(key) == state.shard:
                state.unreported_backoffs[key] = None
        self._reports.start(state.shard, partial(self._report, state))

    async def _probe(self, state: ShardState) -> None:
        # Probe even if no caller requests slots: other processes may wait for this one's report.
        while state.failing_since is not None:
            await self._sleep(PROBE_INTERVAL)
            with Surviving(BackgroundTask.RECOVERY):
                try:
                    await self._store.ping(state.shard)
                except StoreDown:
                    state.local = state.failing_since is not None  # None if another call has succeeded meanwhile
                else:
                    self.on_success(state)

    async def _report(self, state: ShardState) -> None:
        """Report backoffs and slots; the shard's queues are closed meanwhile if it was away for long."""
        given_back = await self._report_backoffs(state)
        if given_back:
            _log.warning("Gave %d backoffs back to the store, which had lost or not received them", given_back)
        await self._report_slots(state)

    async def _report_backoffs(self, state: ShardState) -> int:
        """How many the shard did not know."""
        given_back = 0

        async def give_back(key: PaceKey) -> None:
            nonlocal given_back
            if await self._store.give_back(key, self._backoffs.left(key.pool)):
                given_back += 1
                self._given_back()

        while state.unreported_backoffs:
            key, _ = state.unreported_backoffs.popitem(last=False)
            if self._backoffs.left(key.pool) > SLACK and not await self._retried(key, partial(give_back, key)):
                state.unreported_backoffs[key] = None
                self.on_failure(state)
                break
        return given_back

    async def _report_slots(self, state: ShardState) -> None:
        while state.unreported_slots:
            key, slot = state.unreported_slots.popitem(last=False)
            now = state.clock.steady()
            if slot.ends <= now:
                continue
            known = QueueState(slot.ends, self._queues.get(key, QueueState()).given, now)
            # A negative max_wait reserves nothing: the call only tells the store where the queue ends.
            request = slot.request._replace(max_wait=-1.0, fetched_at=0.0)
            closed_for = state.closed_for()
            report = partial(
                self._store.reserve, request, known, closed_for=max(closed_for, SLACK), closed_if_behind=closed_for
            )
            if not await self._retried(key, report):
                state.unreported_slots[key] = slot
                self.on_failure(state)
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
