"""One pace for the fleet: slots from the store, and while a shard of that fails, a careful share of them from here."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

from app.pacing.local_pacer import ALONE, LocalPacer, Recent
from app.pacing.schedule import advance, interval_at
from app.pacing.shard_state import PATIENCE, RECOVERY_PERIOD, SLACK, Owed, ShardState
from app.pacing.slots import PaceKey, QueueState, QueueView, Reply, Slot, SlotRequest, WaitTooLong, wait_too_long
from app.redis.connect import ANY
from app.redis.guarded_client import StoreDown
from app.redis.single_flight import SingleFlight

MEETING = 0.1
"""The share of an interval by which a slot may be used late, so that two of them meet: a slot that begins now has begun
when the other one is asked for."""

ATTEMPTS = 4
"""So often an origin and its address are asked for a slot at the same instant."""

STEP = 0.1
"""Seconds by which the clocks of a master and of the replica that replaces it may differ unreported."""

_NOTHING = QueueState()


class PaceStore(Protocol):
    """The fleet's turns. Every method is bounded in time, and raises nothing but StoreDown."""

    def shard_of(self, lane: PaceKey) -> int:
        """Which part of the store has the lane; parts fail by themselves."""
        ...

    async def reserve(
        self, wish: SlotRequest, known: QueueState, *, hold: float, lost: float
    ) -> tuple[Reply, QueueView]:
        """The next free slot, and the lane as it is with it; see `RedisPacer`."""
        ...

    async def release(self, lane: PaceKey, name: str) -> bool:
        """Give a slot back; False where it is none."""
        ...

    async def hold_back(self, lane: PaceKey, retry_after: float, reporter: str | None) -> float:
        """Leave the lane's place alone, as `reporter` says, or an operator (None): for how many seconds."""
        ...

    async def ping(self, shard: int) -> None:
        """Whether that part of the store can be used."""
        ...


class Grant(NamedTuple):
    """What came of a wish; `degraded`: the store could not be asked. `shared` is the slot at the address, if any."""

    reply: Reply
    degraded: bool
    shared: Slot | None = None


class OutcomeResult(NamedTuple):
    """What came of an outcome; `degraded`: the store could not be told."""

    value: float
    degraded: bool


class Pacer:
    """Gives slots. Their instants are by the store's clock; `clock` and `monotonic` are this process's.

    Every call is bounded by the store's circuit breaker. A shard that fails once may have been slow for a moment. If
    processes paced alone after each such moment, the fleet would stand still after it (RECOVERY_PERIOD). So callers
    are told to come back after PATIENCE, and this process paces alone only once the shard has failed again by then.

    The last slot is respected both ways. A process alone starts behind the queue as it last saw it, and behind what
    others are likely to have added. When the store is back, it tells the store of the slots that it gave.
    """

    def __init__(
        self,
        store: PaceStore,
        alone: LocalPacer,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock_stepped: Callable[[], None] = lambda: None,
    ) -> None:
        """`clock_stepped` is called for every queue that was moved because the store's clock had been set back."""
        self._store = store
        self._alone = alone
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._clock_stepped = clock_stepped
        self._tails: Recent[PaceKey, QueueState] = Recent()
        self._shards: defaultdict[int, ShardState] = defaultdict(ShardState)
        self._trials: SingleFlight[int, None] = SingleFlight()
        self._reports: SingleFlight[int, None] = SingleFlight()

    async def aclose(self) -> None:
        """Cancel what runs in the background."""
        await self._trials.aclose()
        await self._reports.aclose()

    async def turn(self, wish: SlotRequest, shared: SlotRequest | None = None) -> Grant:
        """The next turn in the lane; with `shared`, one that is also free in that other lane, an address's."""
        turn = await self._reserve(wish)
        if shared is None or turn.degraded or isinstance(turn.reply, WaitTooLong):
            return turn
        # Two lanes, in two places of a cluster, so no script can take both at once. Whoever is later leads, and the
        # other follows, until both are free at one instant; what was taken too early is given back.
        own = turn.reply
        for _ in range(ATTEMPTS):
            theirs = await self._reserve(replace(shared, not_before=own.go_at))
            if theirs.degraded or isinstance(theirs.reply, WaitTooLong):
                await self.release(own.lane, own.name)
                return Grant(_slower(wish, theirs.reply), theirs.degraded)
            if _meet(own, theirs.reply):
                return Grant(_later(own, theirs.reply), False, theirs.reply)
            await self.release(own.lane, own.name)
            again = await self._reserve(replace(wish, not_before=theirs.reply.go_at))
            if again.degraded or isinstance(again.reply, WaitTooLong):
                await self.release(theirs.reply.lane, theirs.reply.name)
                return Grant(_slower(wish, again.reply), again.degraded)
            if _meet(theirs.reply, again.reply):
                return Grant(again.reply, False, theirs.reply)
            await self.release(theirs.reply.lane, theirs.reply.name)
            own = again.reply
        await self.release(own.lane, own.name)
        return Grant(_slower(wish, own), False)

    async def release(self, lane: PaceKey, name: str) -> OutcomeResult:
        """Give back a slot that was not used: 1 where it is free again. What a process took alone just ends."""
        if name == ALONE:
            return OutcomeResult(0, self._state(lane).alone)
        try:
            return OutcomeResult(await self._store.release(lane, name), False)
        except StoreDown:
            return OutcomeResult(0, True)

    async def hold_back(self, lane: PaceKey, retry_after: float, reporter: str | None = None) -> OutcomeResult:
        """Back off from the lane's origin, which answered 429 or 503: for how many seconds it is left alone now.

        What one `reporter` alone says is believed for some minutes (`BackOff.unconfirmed`); None is an operator.
        """
        try:
            seconds = await self._store.hold_back(lane, retry_after, reporter)
        except StoreDown:
            # Without the store, no process knows what others report.
            state = self._state(lane)
            now = self._now(state)
            seconds = self._alone.hold_back(lane, now, retry_after, confirmed=reporter is None)
            state.owe_back_off(lane, now + seconds, reporter)
            return OutcomeResult(seconds, True)
        self._alone.hold_back(lane, self._now(self._state(lane)), seconds)
        return OutcomeResult(seconds, False)

    async def _reserve(self, wish: SlotRequest) -> Grant:
        try:
            return await self._ask(wish)
        except StoreDown:
            return Grant(self._reserve_alone(wish), True)

    async def _ask(self, wish: SlotRequest) -> Grant:
        state = self._state(wish.lane)
        now = self._monotonic()
        # A cluster that had not been reached yet was in trouble as a whole.
        hold = max(state.hold(now), self._shards[ANY].hold(now))
        reply, seen = await self._store.reserve(wish, self._known(wish.lane, state), hold=hold, lost=RECOVERY_PERIOD)
        state.ahead = seen.tail.at - self._monotonic()
        self._tails[wish.lane] = seen.tail
        if seen.step > STEP:
            self._clock_stepped()
        if seen.backs_off_until > seen.tail.at:
            self._alone.back_off(wish.lane, seen.backs_off_until)
        self._recover(self._store.shard_of(wish.lane), state)
        return Grant(reply, degraded=False)

    def _recover(self, shard: int, state: ShardState) -> None:
        if state.recover(self._monotonic()):
            self._reports.start(shard, partial(self._report, state))

    def _reserve_alone(self, wish: SlotRequest) -> Reply:
        shard = self._store.shard_of(wish.lane)
        state, now = self._state(wish.lane), self._monotonic()
        if state.failing_since is None:
            state.failing_since = now
            self._trials.start(shard, partial(self._try_again, shard, state))
        if not state.alone:
            left = max(state.failing_since + PATIENCE - now, SLACK)
            return WaitTooLong(left, left, interval_at(wish.spans, self._now(state)))
        reply = self._alone.reserve(wish, self._now(state), self._free_from(wish, state))
        if isinstance(reply, Slot):
            state.owe(Owed(wish, advance(wish.spans, reply.go_at, wish.cost)))
        return reply

    def _free_from(self, wish: SlotRequest, state: ShardState) -> float:
        """The instant from which no slot of the store is in the way, by the shard's clock and as far as can be told."""
        failed_at = self._now(state, state.failing_since)
        seen = self._tails.get(wish.lane, _NOTHING)
        # Until the shard failed, others may have kept the queue as deep as it was when it was seen, and one slot more.
        depth = max(0.0, seen.ends - seen.at)
        return max(seen.ends, failed_at + depth) + max(SLACK, interval_at(wish.spans, failed_at))

    def _known(self, lane: PaceKey, state: ShardState) -> QueueState:
        """The queue as this process remembers it, with what it gave alone."""
        seen, own = self._tails.get(lane, _NOTHING), state.owed.get(lane)
        ends = max(seen.ends, 0.0 if own is None else own.ends)
        slack = SLACK if state.alone else 0.0
        return QueueState(ends + slack, seen.count, self._now(state))

    async def _try_again(self, shard: int, state: ShardState) -> None:
        # Until it is back, whether or not anyone asks: others may wait for what this process has to report.
        while state.failing_since is not None:
            await self._sleep(PATIENCE)
            try:
                await self._store.ping(shard)
            except StoreDown:
                state.alone = state.failing_since is not None  # else a call has succeeded meanwhile
            else:
                self._recover(shard, state)

    async def _report(self, state: ShardState) -> None:
        """Tell the store of the slots and back-offs that this process gave alone, while its queues are closed."""
        for lane, (until, reporter) in list(state.owed_back_offs.items()):
            if not await self._told(partial(self._store.hold_back, lane, until - self._now(state), reporter)):
                return
            state.owed_back_offs.pop(lane, None)
        for owed in state.take_owed():
            if owed.ends <= self._now(state):
                continue
            lane = owed.wish.lane
            known = QueueState(owed.ends, self._tails.get(lane, _NOTHING).count, self._now(state))
            nothing = replace(owed.wish, max_wait=-1.0, fetched_at=0.0, not_before=0.0)
            hold = state.hold(self._monotonic())
            if not await self._told(partial(self._store.reserve, nothing, known, hold=max(hold, SLACK), lost=hold)):
                state.owe(owed)
                return

    async def _told(self, call: Callable[[], Awaitable[object]]) -> bool:
        for _ in range(ATTEMPTS):
            try:
                await call()
            except StoreDown:
                await self._sleep(PATIENCE)
            else:
                return True
        return False

    def _state(self, lane: PaceKey) -> ShardState:
        return self._shards[self._store.shard_of(lane)]

    def _now(self, state: ShardState, at: float | None = None) -> float:
        """The shard's time, as far as this process knows it: now, or at that instant of the monotonic clock."""
        now = self._monotonic()
        ahead = self._clock() - now if state.ahead is None else state.ahead
        return (now if at is None else at) + ahead


def _meet(first: Slot, later: Slot) -> bool:
    return later.go_at - first.go_at <= MEETING * first.interval


def _later(own: Slot, other: Slot) -> Slot:
    return replace(own, go_at=other.go_at, wait=other.wait)


def _slower(wish: SlotRequest, reply: Reply) -> Reply:
    """A wish that failed at the address, or could not follow it: it was too long, or the instants would not meet."""
    return wait_too_long(reply.wait, reply.interval, wish.max_wait)
