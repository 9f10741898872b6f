"""One pace for the whole fleet: slots from the store, or each process's share of them while the store is down."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from app.cache.byte_lru import BoundedDict
from app.pacing.known_backoffs import KnownBackoffs
from app.pacing.law import advance
from app.pacing.local_pacer import LOCAL_SLOT, LocalPacer
from app.pacing.page_times import PageTimes
from app.pacing.permit import SlotRef
from app.pacing.recovery import Recovery
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import Bound, at_least, interval_at
from app.pacing.shard_state import PROBE_INTERVAL, RECOVERY_PERIOD, SLACK, ShardState, UnreportedSlot
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest, SlotResult, WaitTooLong, backoff_alone
from app.store.cluster import ANY
from app.store.guarded_client import StoreDown
from app.store.store_clock import StoreClocks

CLOCK_STEP_TOLERANCE = 0.1
"""Seconds by which the clocks of a master and of the replica that replaces it may differ unreported."""

_UNSEEN = QueueState()


class _Least(NamedTuple):
    """The interval that the store set last for a queue. Without the store it holds on, and nothing is learned."""

    interval: float
    bound: Bound


_NO_LEAST = _Least(0.0, "latency")


class Grant(NamedTuple):
    """The result of a slot request. `degraded`: it was given without the store."""

    result: SlotResult
    degraded: bool


class OutcomeResult(NamedTuple):
    """The result of a reported outcome: 1 or 0 for a release, seconds for a backoff. `degraded`: without the store."""

    value: float
    degraded: bool


class Pacer:
    """Gives slots. Their instants are by the clocks of the store's servers, `clocks`.

    Every call is bounded by the store's circuit breaker. A shard that fails once may only have been slow. If processes
    gave slots by themselves after each such moment, the fleet would stand still after it (RECOVERY_PERIOD). So callers
    are first sent away for PROBE_INTERVAL; this process gives slots by itself once the shard has also
    failed a probe.

    What the process remembers of a queue and of a backoff goes to the store with every call, so a store that comes back
    empty, or as it was before, knows again what any process knows that is asked.

    No slot is given twice. Without the store, slots start behind the queue as last seen, and behind what other
    processes are likely to have added. When the store is back, processes report to it the slots given without it.
    """

    def __init__(
        self,
        store: RedisPacer,
        local: LocalPacer,
        clocks: StoreClocks,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock_stepped: Callable[[], None] = lambda: None,
        backoff_given_back: Callable[[], None] = lambda: None,
    ) -> None:
        """`clock_stepped` is called for every queue that was moved because the store's clock had been set.

        `backoff_given_back` is called for every backoff that the store did not know and this process did.
        """
        self._store = store
        self._local = local
        self._clock_stepped = clock_stepped
        self._given_back = backoff_given_back
        self._pages = PageTimes()
        self._least: BoundedDict[PaceKey, _Least] = BoundedDict()
        self._queues: BoundedDict[PaceKey, QueueState] = BoundedDict()
        self._shards = _Shards(clocks)
        self._backoffs = KnownBackoffs(self._shards[ANY].clock.steady)
        self._recovery = Recovery(store, self._queues, self._backoffs, sleep, backoff_given_back)

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
        """Back off from the key's pool, where an origin answered 429 or 503; the result is the backoff's seconds left.

        One `reporter` alone is believed for some minutes (MAX_UNCONFIRMED); None is an operator.
        """
        state = self._state(key)
        known = self._backoffs.left(key.pool)
        try:
            seconds = await self._store.back_off(key, retry_after, reporter, known)
        except StoreDown:
            # Without the store, other processes' reports cannot confirm this one.
            seconds = max(known, backoff_alone(retry_after, confirmed=reporter is None))
            self._backoffs.note(key, seconds)
            state.unreported_backoffs[key] = None
            self._recovery.on_failure(state)
            return OutcomeResult(seconds, degraded=True)
        self._backoffs.note(key, seconds)
        self._recovery.on_success(state)
        return OutcomeResult(seconds, degraded=False)

    def note_page(self, key: PaceKey, slot: SlotRef, status: int | None, elapsed: float | None) -> None:
        """Note the page of a slot, in the queue `key`, and how long it took; a status of None: it was not answered."""
        self._pages.note(key, slot, status, elapsed, self._state(slot.key).clock())

    def note_fetch(self, pool: str, seconds: float) -> None:
        """Note how long the service's own fetch of a robots.txt of the pool took."""
        self._pages.note_fetch(pool, seconds)

    def on_loss(self) -> None:
        """Report all backoffs that this process remembers: the store has lost what was written last."""
        for state in self._shards.values():
            self._recovery.on_loss(state)

    async def _reserve_in_store(self, request: SlotRequest) -> SlotResult:
        key, state = request.key, self._state(request.key)
        # Until a cluster has been reached, its failures are counted for ANY shard.
        closed_for = max(state.closed_for(), self._shards[ANY].closed_for())
        pages = self._pages.take(key)
        try:
            result, view = await self._store.reserve(
                request,
                self._known_queue(key, state),
                self._backoffs.left(key.pool),
                closed_for=closed_for,
                closed_if_behind=RECOVERY_PERIOD,
                pages=pages,
            )
        except BaseException:
            self._pages.put_back(key, pages)
            raise
        self._pages.learned(key, view.latency)
        self._least[key] = _Least(view.least, view.bound)
        at = state.clock()
        self._local.note(key, interval_at(request.windows, at), at)
        queue, now = view.queue, state.clock.steady()
        self._queues[key] = QueueState(now + queue.ends - queue.seen_at, queue.given, now)
        self._backoffs.note(key, view.backoff_until - queue.seen_at)
        if abs(view.clock_step) > CLOCK_STEP_TOLERANCE:
            self._clock_stepped()
        if view.given_back:
            self._given_back()
        self._recovery.on_success(state)
        return result

    def _reserve_locally(self, request: SlotRequest) -> SlotResult:
        key, state, least = request.key, self._state(request.key), self._least.get(request.key, _NO_LEAST)
        request = request._replace(windows=at_least(request.windows, _rounded_up(least.interval), least.bound))
        failing_since = self._recovery.on_failure(state)
        if not state.local:
            left = max(failing_since + PROBE_INTERVAL - state.clock.steady(), SLACK)
            return WaitTooLong(left, left, interval_at(request.windows, state.clock()))
        now = state.clock()
        not_before = max(self._free_from(request, state, failing_since), now + self._backoffs.left(key.pool))
        result = self._local.reserve(request, now, not_before)
        if isinstance(result, Slot):
            end = advance(request.windows, result.go_at, request.cost)
            state.unreported_slots[key] = UnreportedSlot(request, state.clock.steady() + end - now)
        return result

    def _free_from(self, request: SlotRequest, state: ShardState, failing_since: float) -> float:
        """The instant after which no slot of the store is likely to be, if its shard has failed for so long."""
        queue = self._queues.get(request.key, _UNSEEN)
        # Until then, other processes may have kept the queue as deep as it was when seen, and added one slot.
        depth = max(0.0, queue.ends - queue.seen_at)
        interval = interval_at(request.windows, state.clock.at(failing_since))
        return state.clock.at(max(queue.ends, failing_since + depth)) + max(SLACK, interval)

    def _known_queue(self, key: PaceKey, state: ShardState) -> QueueState:
        """The queue as this process remembers it, with the slots that it gave without the store."""
        queue, local = self._queues.get(key, _UNSEEN), state.unreported_slots.get(key, None)
        ends = queue.ends if local is None else max(queue.ends, local.ends)
        slack = SLACK if state.local else 0.0
        return QueueState(ends + slack, queue.given, state.clock.steady())

    def _state(self, key: PaceKey) -> ShardState:
        return self._shards[self._store.shard_of(key)]


def _rounded_up(interval: float) -> float:
    """The next power of two seconds. Slots of processes keep apart only if their intervals are the same.

    What the store set last differs a little between processes.
    """
    return 2.0 ** math.ceil(math.log2(interval)) if interval > 0 else 0.0


class _Shards(dict[int, ShardState]):
    """The states of shards, made when they are first needed."""

    def __init__(self, clocks: StoreClocks) -> None:
        super().__init__()
        self._clocks = clocks

    def __missing__(self, shard: int) -> ShardState:
        state = self[shard] = ShardState(shard, self._clocks.of(shard))
        return state
