"""Slots from one process that cannot reach the store: its share of the fleet's pace."""

import math
import random
from collections.abc import Callable, Sequence

from app.cache.byte_lru import BoundedDict
from app.pacing import law
from app.pacing.membership import Rank
from app.pacing.schedule import at_least, interval_at, window_at
from app.pacing.slots import PaceKey, Slot, SlotRequest, SlotResult, WaitTooLong

HORIZON = 2.0
"""Seconds: no slot is given farther ahead, so that the fleet keeps one pace again soon after the store is back."""

UNKNOWN_FLEET_RETRY = 5.0
"""Seconds after which callers should ask again if the process does not know the size of its fleet."""

SLOWEST_FOR = 600.0
"""Seconds for which a host's pace holds for its pool."""

MOST_TRIED = 100
"""Slots of one rank that are tried for one that is of all ranks."""

LOCAL_SLOT = "alone"
"""The name of every slot that was given without the store."""

_EMPTY = law.Queue()


class LocalPacer:
    """Without Redis, each of N processes uses every Nth slot, chosen by its rank.

    Slots are counted from 1970 by the store's clock, so those of different ranks never overlap. N is the size of the
    fleet as last agreed on in the store, or `fleet` (from the settings) if that is larger. While the fleet changes, a
    process has several ranks and uses only slots that are its own by all of them; one that has just joined has none
    yet (an empty tuple) and gives no slots. A process that has not reached the store since it started (None) relies on
    `fleet` and chooses at random, so N such processes may briefly exceed the pace by up to N - 1 documents. Without
    `fleet`, it gives no slots.

    Slots of one length never overlap. So all hosts of a pool are paced as the slowest one that was asked for within
    SLOWEST_FOR, of the store, too (`note`).

    Who gets such a slot, and when the turns of the others are, is by `law.py`, as in the store.

    `now` is Unix seconds of the store's clock, as far as known.
    """

    def __init__(self, fleet: int | None, ranks: Callable[[], tuple[Rank, ...] | None] = lambda: None) -> None:
        self._fleet = fleet
        self._ranks = ranks
        self._ends: BoundedDict[PaceKey, float] = BoundedDict()
        self._lines: BoundedDict[PaceKey, law.Queue] = BoundedDict()
        self._slowest_seen: BoundedDict[PaceKey, tuple[float, float]] = BoundedDict()

    def note(self, key: PaceKey, interval: float, now: float) -> None:
        """Note the interval of a request that the store answered."""
        self._slowest(key, interval, now)

    def reserve(self, request: SlotRequest, now: float, not_before: float) -> SlotResult:
        """Reserve this process's next free slot from `not_before` (Unix seconds) on."""
        ranks, least_size = self._ranks(), self._fleet or 0
        if ranks is not None:
            ranks = tuple(Rank(rank.number, max(rank.of, least_size)) for rank in ranks)
        fleet = max((rank.of for rank in ranks), default=0) if ranks is not None else least_size
        unknown = WaitTooLong(UNKNOWN_FLEET_RETRY, UNKNOWN_FLEET_RETRY, interval_at(request.windows, now))
        if not fleet:
            return unknown
        least = self._slowest(request.key, interval_at(request.windows, now), now)
        own = at_least(request.windows, least, window_at(request.windows, now).bound)
        windows = tuple(window._replace(interval=window.interval * fleet) for window in own)
        after_fetch = law.advance(own, min(request.fetched_at, now), 1) if request.fetched_at else 0.0
        start = max(now, not_before, after_fetch)
        end = self._ends.get(request.key, 0.0)
        if end >= now - interval_at(windows, now):
            start = max(start, end)
        elif ranks is None:
            # A random start spreads processes without a rank over the interval; a single process needs none.
            start += random.random() * interval_at(windows, start) * (fleet > 1)  # noqa: S311 - no secret
            # Remembered even if it is refused below: a caller who comes back must find it nearer, not drawn again.
            self._ends[request.key] = start
        if ranks is not None and fleet > 1:
            found = _next_own_slot(start, interval_at(own, start), ranks)
            if found is None:
                return unknown
            start = found
        interval, bound = interval_at(windows, start), window_at(own, start).bound
        turn = self._turn(request, interval, start, now)
        if turn is not None:
            return WaitTooLong(start - now, turn, interval, bound)
        self._ends[request.key] = law.advance(windows, start, request.cost)
        return Slot(request.key, LOCAL_SLOT, start, start - now, interval, bound)

    def _turn(self, request: SlotRequest, interval: float, start: float, now: float) -> float | None:
        """None if the request gets the slot that begins at `start`, by the law of a queue; else when its turn is."""
        at, max_wait = round(now * law.SECOND), round(min(request.max_wait, HORIZON) * law.SECOND)
        windows = (law.RateWindow(math.inf, round(interval * law.SECOND)),)
        asked = law.Request(request.caller, "", windows, max_wait, request.cost, learned=True)
        result, queue = law.reserve(self._lines.get(request.key, _EMPTY), asked, at, math.ceil(start * law.SECOND))
        # Its slots are known by their end alone.
        self._lines[request.key] = queue._replace(slots=(), tail=0)
        return result.retry_after / law.SECOND if isinstance(result, law.Turn) else None

    def _slowest(self, key: PaceKey, interval: float, now: float) -> float:
        """The longest interval that the queue was asked for recently, this one included."""
        slowest, until = self._slowest_seen.get(key, (0.0, 0.0))
        if interval >= slowest or until < now:
            slowest = interval
            self._slowest_seen[key] = (interval, now + SLOWEST_FOR)
        return slowest


def _next_own_slot(at: float, interval: float, ranks: Sequence[Rank]) -> float | None:
    """The first slot of all these ranks that begins at `at` or later, except for rounding; None if it is far away."""
    number, of = ranks[0]
    first = number + math.ceil((at / interval - number) / of - 1e-3) * of
    for slot in range(first, first + MOST_TRIED * of, of):
        if all(slot % rank.of == rank.number for rank in ranks):
            return slot * interval
    return None
