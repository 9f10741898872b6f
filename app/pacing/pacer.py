"""One pace for the whole fleet: slots from the store, or each process's share of them while the store is down."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from app.pacing.bounded_dict import BoundedDict
from app.pacing.local_pacer import LOCAL_SLOT, LocalPacer
from app.pacing.pace_store import PaceStore
from app.pacing.recovery import Recovery
from app.pacing.schedule import advance, interval_at
from app.pacing.shard_state import PROBE_INTERVAL, RECOVERY_PERIOD, SLACK, Backoff, ShardState, UnreportedSlot
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, SlotResult, WaitTooLong
from app.redis.connect import ANY
from app.redis.guarded_client import StoreDown

CLOCK_STEP_TOLERANCE = 0.1
"""Seconds by which the clocks of a master and of the replica that replaces it may differ unreported."""

_UNSEEN = QueueState()


class Grant(NamedTuple):
    """The result of a slot request. `degraded`: it was given without the store."""

    result: SlotResult
    degraded: bool


class OutcomeResult(NamedTuple):
    """The result of a reported outcome: 1 or 0 for a release, seconds for a backoff. `degraded`: without the store."""

    value: float
    degraded: bool


class Pacer:
    """Gives slots. Their instants are by the store's clock; `clock` and `monotonic` are this process's.

    Every call is bounded by the store's circuit breaker. A shard that fails once may only have been slow. If processes
    gave slots by themselves after each such moment, the fleet would stand still after it (RECOVERY_PERIOD). So callers
    are first sent away for PROBE_INTERVAL; this process gives slots by itself once the shard has also
    failed a probe.

    No slot is given twice. Without the store, slots start behind the queue as last seen, and behind what other
    processes are likely to have added. When the store is back, processes report to it the slots given without it.
    """

    def __init__(
        self,
        store: PaceStore,
        local: LocalPacer,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock_stepped: Callable[[], None] = lambda: None,
    ) -> None:
        """`clock_stepped` is called for every queue that was moved because the store's clock had been set back."""
        self._store = store
        self._local = local
        self._monotonic = monotonic
        self._clock_stepped = clock_stepped
        self._queues: BoundedDict[PaceKey, QueueState] = BoundedDict()
        self._shards: defaultdict[int, ShardState] = defaultdict(lambda: ShardState(clock, monotonic))
        self._recovery = Recovery(store, self._queues, monotonic, sleep)

    async def aclose(self) -> None:
        """Cancel what runs in the background."""
        await self._recovery.aclose()

    async def reserve(self, request: SlotRequest) -> Grant:
        """Reserve the next free slot."""
        try:
            return Grant(await self._reserve_in_store(request), degraded=False)
        except StoreDown:
            return Grant(self._reserve_locally(request), degraded=True)

    async def release(self, key: PaceKey, name: str) -> OutcomeResult:
        """Free a slot that was not used: 1 if it is free again. A slot given without the store just ends."""
        if name == LOCAL_SLOT:
            return OutcomeResult(0, self._state(key).local)
        try:
            return OutcomeResult(await self._store.release(key, name), degraded=False)
        except StoreDown:
            return OutcomeResult(0, degraded=True)

    async def back_off(self, key: PaceKey, retry_after: float, reporter: str | None = None) -> OutcomeResult:
        """Back off from the key's site, which answered 429 or 503; the result is the seconds left of the backoff.

        One `reporter` alone is believed for some minutes (`BackoffPolicy.max_unconfirmed`); None is an operator.
        """
        state = self._state(key)
        try:
            seconds = await self._store.back_off(key, retry_after, reporter)
        except StoreDown:
            # Without the store, other processes' reports cannot confirm this one.
            now = state.now()
            seconds = self._local.back_off(key.site, now, retry_after, confirmed=reporter is None)
            state.unreported_backoffs[key] = Backoff(now + seconds, reporter)
            return OutcomeResult(seconds, degraded=True)
        self._local.back_off(key.site, state.now(), seconds)
        return OutcomeResult(seconds, degraded=False)

    async def _reserve_in_store(self, request: SlotRequest) -> SlotResult:
        key, state = request.key, self._state(request.key)
        # Until a cluster has been reached, its failures are counted for ANY shard.
        closed_for = max(state.closed_for(), self._shards[ANY].closed_for())
        result, view = await self._store.reserve(
            request, self._known_queue(key, state), closed_for=closed_for, closed_if_behind=RECOVERY_PERIOD
        )
        state.set_time(view.queue.seen_at)
        self._queues[key] = view.queue
        if view.clock_step > CLOCK_STEP_TOLERANCE:
            self._clock_stepped()
        if view.backoff_until > view.queue.seen_at:
            self._local.set_backoff(key.site, view.backoff_until)
        self._recovery.on_success(self._store.shard_of(key), state)
        return result

    def _reserve_locally(self, request: SlotRequest) -> SlotResult:
        key, state = request.key, self._state(request.key)
        failing_since = self._recovery.on_failure(self._store.shard_of(key), state)
        if not state.local:
            left = max(failing_since + PROBE_INTERVAL - self._monotonic(), SLACK)
            return WaitTooLong(left, left, interval_at(request.windows, state.now()))
        not_before = self._free_from(request, state.time_at(failing_since))
        result = self._local.reserve(request, state.now(), not_before)
        if isinstance(result, Slot):
            end = advance(request.windows, result.go_at, request.cost)
            state.unreported_slots[key] = UnreportedSlot(request, end)
        return result

    def _free_from(self, request: SlotRequest, failed_at: float) -> float:
        """The instant after which no slot of the store is likely to be, if its shard failed at `failed_at`."""
        queue = self._queues.get(request.key, _UNSEEN)
        # Until then, other processes may have kept the queue as deep as it was when seen, and added one slot.
        depth = max(0.0, queue.ends - queue.seen_at)
        return max(queue.ends, failed_at + depth) + max(SLACK, interval_at(request.windows, failed_at))

    def _known_queue(self, key: PaceKey, state: ShardState) -> QueueState:
        """The queue as this process remembers it, with the slots that it gave without the store."""
        queue, local = self._queues.get(key, _UNSEEN), state.unreported_slots.get(key, None)
        ends = queue.ends if local is None else max(queue.ends, local.ends)
        slack = SLACK if state.local else 0.0
        return QueueState(ends + slack, queue.count, state.now())

    def _state(self, key: PaceKey) -> ShardState:
        return self._shards[self._store.shard_of(key)]
