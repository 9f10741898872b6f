"""Slots of one process that cannot ask the store: the pace divided by the size of the fleet."""

import math
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Generic, TypeVar

from app.pacing.membership import Rank
from app.pacing.schedule import advance, interval_at
from app.pacing.slots import BackOff, PaceKey, Reply, Slot, SlotRequest, WaitTooLong, wait_too_long

HORIZON = 2.0
"""Seconds: no slot is given away farther ahead, so that soon after the store is back the fleet keeps one pace again."""

LANES = 100_000
"""So many are remembered; beyond, the one that was asked for the longest ago is forgotten."""

LATER = 5.0
"""Seconds after which callers are told to come back to a process that does not know how large its fleet is."""

ALONE = "alone"
"""What the names of slots begin with that no store knows of."""

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """What was set last, of at most LANES keys."""

    def __init__(self) -> None:
        self._held: Final[OrderedDict[K, V]] = OrderedDict()

    def __setitem__(self, key: K, value: V) -> None:
        self._held[key] = value
        self._held.move_to_end(key)
        if len(self._held) > LANES:
            self._held.popitem(last=False)

    def get(self, key: K, otherwise: V) -> V:
        """What was set, unless it is forgotten."""
        return self._held.get(key, otherwise)


def _nobody_knows() -> Rank | None:
    return None


class LocalPacer:
    """Without the store, each of N processes uses every Nth slot, chosen by the `place` that they agreed on before.

    Slots are counted from 1970 by the store's clock, so that those of different places never meet. N is the number of
    places, or `fleet`, what the operator says, where that is larger. A process without a place, because it has not
    reached the store since it started, goes by `fleet` and by chance: in a short window such processes may exceed the
    pace by up to one document less than there are of them. With neither, it gives no slots.

    `now` is Unix seconds of the store's clock, as far as known.
    """

    def __init__(self, fleet: int | None, place: Callable[[], Rank | None] = _nobody_knows) -> None:
        self._fleet = fleet
        self._place = place
        self._back_off = BackOff()
        self._ends: Recent[PaceKey, float] = Recent()
        self._backoff: Recent[str, float] = Recent()

    def reserve(self, wish: SlotRequest, now: float, after: float) -> Reply:
        """The next free slot of this process from `after` (Unix seconds) on: before that, others may have theirs."""
        place = self._place()
        fleet = max(self._fleet or 0, 0 if place is None else place.of)
        if not fleet:
            return WaitTooLong(LATER, LATER, interval_at(wish.spans, now))
        spans = tuple(replace(span, interval=span.interval * fleet) for span in wish.spans)
        visited = advance(wish.spans, min(wish.fetched_at, now), 1) if wish.fetched_at else 0.0
        start = max(now, after, visited, wish.not_before, self._backoff.get(wish.lane.place, 0.0))
        end = self._ends.get(wish.lane, 0.0)
        if end >= now - interval_at(spans, now):
            start = max(start, end)
        elif place is None:
            # One process has nobody to share the interval with.
            start += random.random() * interval_at(spans, start) * (fleet > 1)  # noqa: S311 - no secret
            # Kept before it is given: a caller who finds it too far away is to find it nearer when he comes again.
            self._ends[wish.lane] = start
        if place is not None and fleet > 1:
            start = _turn(start, interval_at(wish.spans, start), place.number, fleet)
        wait, interval = start - now, interval_at(spans, start)
        longest = min(wish.max_wait, HORIZON)
        if wait > longest:
            return wait_too_long(wait, interval, longest)
        self._ends[wish.lane] = advance(spans, start, wish.cost)
        return Slot(wish.lane, ALONE, start, wait, interval)

    def back_off(self, lane: PaceKey, until: float) -> None:
        """Note that the fleet backs off from the lane's place until then, by the store's clock."""
        self._backoff[lane.place] = until

    def hold_back(self, lane: PaceKey, now: float, retry_after: float, *, confirmed: bool = True) -> float:
        """Leave the place alone as for a first trouble, or longer if asked for: for how many seconds it now is."""
        longest = self._back_off.retry_after if confirmed else self._back_off.unconfirmed
        seconds = min(max(retry_after, self._back_off.first), longest)
        until = max(self._backoff.get(lane.place, 0.0), now + seconds)
        self._backoff[lane.place] = until
        return until - now


def _turn(at: float, interval: float, number: int, fleet: int) -> float:
    """The first turn of the process with this number that does not begin before `at`, but for what rounding does."""
    first, period = number * interval, interval * fleet
    return first + math.ceil((at - first) / period - 1e-3) * period
