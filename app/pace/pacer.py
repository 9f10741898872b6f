"""One pace for the fleet: turns from the store, and while that is in trouble, a careful share of them from here."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

from app.pace.alone import ALONE, HORIZON, Alone, Recent
from app.pace.slots import Lane, Reply, Slot, Tail, TooLong, Wish, too_long
from app.store.calls import REST, StoreDown
from app.store.flight import SingleFlight

SLACK = 0.5
"""Seconds by which a lane may have grown, by the hand of others, since this process last looked at it."""

PATIENCE = REST + 0.1
"""Seconds after which a store that failed is tried once more, before this process goes on alone."""

HOLD = HORIZON + PATIENCE + SLACK
"""Seconds after the end of a trouble before slots are given away again: until then, others may go by their own."""

MEETING = 0.1
"""The share of an interval by which a slot may be used late, so that two of them meet: a slot that begins now has begun
when the other one is asked for."""

ATTEMPTS = 4
"""So often an origin and its address are asked for a slot at the same instant."""

_NOTHING = Tail()


class PaceStore(Protocol):
    """The fleet's turns. Every method is bounded in time, and raises nothing but StoreDown."""

    async def reserve(self, wish: Wish, known: Tail, *, hold: float, lost: float) -> tuple[Reply, Tail]:
        """The next free slot, and the lane as it is with it; see `RedisPace`."""
        ...

    async def release(self, lane: Lane, name: str) -> bool:
        """Give a slot back; False where it is none."""
        ...

    async def hold_back(self, lane: Lane, retry_after: float, reporter: str | None) -> float:
        """Leave the lane's place alone, as `reporter` says, or an operator (None): for how many seconds."""
        ...

    async def ping(self) -> None:
        """Whether it can be used."""
        ...


class Turn(NamedTuple):
    """What came of a wish; `degraded`: the store could not be asked. `shared` is the slot at the address, if any."""

    reply: Reply
    degraded: bool
    shared: Slot | None = None


class Back(NamedTuple):
    """What came of an outcome; `degraded`: the store could not be told."""

    value: float
    degraded: bool


class Pacer:
    """Gives turns. The instants of slots are the store's clock; `clock` and `monotonic` are this process's.

    A store that fails once may have been slow for a moment, and who went on alone after each such moment would have
    the fleet stand still after it (HOLD). So the wish waits until the store may be tried again, and only a store that
    fails then is done without.
    """

    def __init__(
        self,
        store: PaceStore,
        alone: Alone,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._alone = alone
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._tails: Recent[Lane, Tail] = Recent()
        self._ahead = 0.0  # by how much the store's clock is ahead of ours
        self._in_trouble = False
        self._recovered_at = float("-inf")
        self._retrials: SingleFlight[None, bool] = SingleFlight()

    async def aclose(self) -> None:
        """End the trial of the store that may be under way."""
        await self._retrials.aclose()

    async def turn(self, wish: Wish, shared: Wish | None = None) -> Turn:
        """The next turn in the lane; with `shared`, one that is also free in that other lane, an address's."""
        turn = await self._reserve(wish)
        if shared is None or turn.degraded or isinstance(turn.reply, TooLong):
            return turn
        # Two lanes, in two places of a cluster, so no script can take both at once. Whoever is later leads, and the
        # other follows, until both are free at one instant; what was taken too early is given back.
        own = turn.reply
        for _ in range(ATTEMPTS):
            theirs = await self._reserve(replace(shared, not_before=own.go_at))
            if theirs.degraded or isinstance(theirs.reply, TooLong):
                await self.release(own.lane, own.name)
                return Turn(_slower(wish, theirs.reply), theirs.degraded)
            if _meet(own, theirs.reply):
                return Turn(_later(own, theirs.reply), False, theirs.reply)
            await self.release(own.lane, own.name)
            again = await self._reserve(replace(wish, not_before=theirs.reply.go_at))
            if again.degraded or isinstance(again.reply, TooLong):
                await self.release(theirs.reply.lane, theirs.reply.name)
                return Turn(_slower(wish, again.reply), again.degraded)
            if _meet(theirs.reply, again.reply):
                return Turn(again.reply, False, theirs.reply)
            await self.release(theirs.reply.lane, theirs.reply.name)
            own = again.reply
        await self.release(own.lane, own.name)
        return Turn(_slower(wish, own), False)

    async def release(self, lane: Lane, name: str) -> Back:
        """Give back a slot that was not used: 1 where it is free again. What a process took alone just ends."""
        if name == ALONE:
            return Back(0, self._in_trouble)
        try:
            return Back(await self._store.release(lane, name), False)
        except StoreDown:
            return Back(0, True)

    async def hold_back(self, lane: Lane, retry_after: float, reporter: str | None = None) -> Back:
        """Back off from the lane's origin, which answered 429 or 503: for how many seconds it is left alone now.

        What one `reporter` alone says is believed for some minutes (`BackOff.unconfirmed`); None is an operator.
        """
        try:
            seconds = await self._store.hold_back(lane, retry_after, reporter)
        except StoreDown:
            # Without the store, nobody knows what others report.
            confirmed = reporter is None
            return Back(self._alone.hold_back(lane, self._now(), retry_after, confirmed=confirmed), True)
        self._alone.hold_back(lane, self._now(), seconds)
        return Back(seconds, False)

    async def _reserve(self, wish: Wish) -> Turn:
        try:
            return await self._ask(wish)
        except StoreDown:
            if not self._in_trouble and await self._is_back():
                try:
                    return await self._ask(wish)
                except StoreDown:
                    pass
        self._in_trouble = True
        return Turn(self._alone.reserve(wish, self._now(), self._tails.get(wish.lane, _NOTHING).ends + SLACK), True)

    async def _ask(self, wish: Wish) -> Turn:
        known = self._tails.get(wish.lane, _NOTHING)
        hold = HOLD if self._in_trouble else max(0.0, self._recovered_at + HOLD - self._monotonic())
        if hold:
            known = replace(known, ends=known.ends + SLACK)
        reply, tail = await self._store.reserve(wish, known, hold=hold, lost=HOLD)
        if self._in_trouble:
            self._in_trouble, self._recovered_at = False, self._monotonic()
        self._tails[wish.lane] = tail
        if isinstance(reply, Slot):
            self._ahead = reply.go_at - reply.wait - self._clock()
        return Turn(reply, degraded=False)

    async def _is_back(self) -> bool:
        # All who meet with the same trouble wait for the same trial: the store lets one ahead after its rest.
        trial = self._retrials.start(None, self._try_again)
        await asyncio.wait([trial])
        return not trial.cancelled() and trial.result()

    async def _try_again(self) -> bool:
        await self._sleep(PATIENCE)
        try:
            await self._store.ping()
        except StoreDown:
            return False
        return True

    def _now(self) -> float:
        """The store's time, as far as this process knows it."""
        return self._clock() + self._ahead


def _meet(first: Slot, later: Slot) -> bool:
    return later.go_at - first.go_at <= MEETING * first.interval


def _later(own: Slot, other: Slot) -> Slot:
    return replace(own, go_at=other.go_at, wait=other.wait)


def _slower(wish: Wish, reply: Reply) -> Reply:
    """A wish that failed at the address, or could not follow it: it was too long, or the instants would not meet."""
    return too_long(reply.wait, reply.interval, wish.max_wait)
