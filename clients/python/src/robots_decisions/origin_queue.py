"""The queue of one agent's requests to one origin: which request a permit now, and which wait. No I/O."""

from collections import deque
from itertools import count
from secrets import randbits
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet

from robots_decisions.permits import FIRST_RETRY_DELAY, LAST_RETRY_DELAY

LOOKAHEAD = 1.0
"""Seconds: as many requests ask for permits as have a slot within these, and at least one."""

CALL_TIMEOUT = 60.0
"""Seconds after which a called request that has not arrived is written off, whatever the crawler's queue says."""

ARRIVAL = 1.0
"""Seconds in which a called request arrives once the crawler's queue has handed it out."""

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_calls = count(randbits(60))  # a number of an earlier run of the job, or of another process, does not come again


class Waiting(Protocol[R_co]):
    """Requests that wait elsewhere than in memory."""

    def __len__(self) -> int: ...

    def popleft(self) -> R_co:
        """Remove and return the next request."""
        ...


class OriginQueue(Generic[R]):
    """Requests R, at most `concurrency` of them in flight. Instants are seconds of a monotonic clock."""

    def __init__(self, concurrency: int, waiting: Waiting[R] | None = None) -> None:
        self._concurrency = concurrency
        self.interval = 0.0
        self.opens_at = 0.0  # no request asks before
        self._turn = 0.0  # for which it was set
        self.requesting = 0  # or waiting for a slot they were granted
        # Weak, since others may drop a request without telling this queue.
        self.in_flight: WeakSet[R] = WeakSet()
        self.waiting: deque[R] | Waiting[R] = deque() if waiting is None else waiting
        self._called: dict[int, float] = {}
        self.given_up_until = 0.0
        self._troubled_since: float | None = None
        self._retry_delay = FIRST_RETRY_DELAY

    def free_slots(self, now: float) -> int:
        """How many more requests may ask for a permit now.

        Never more ask or are in flight than are sent at once: a request that has a slot but waits in the crawler's own
        queue is sent late, and after a slow response many would be sent together.
        """
        if now < self.opens_at:
            return 0
        places = self._concurrency
        if self.interval * places > LOOKAHEAD:
            places = max(1, int(LOOKAHEAD / self.interval))
        return max(0, min(places, self._concurrency - len(self.in_flight)) - self.requesting)

    def unclaimed_slots(self, now: float, handed_out: float = 0.0) -> int:
        """How many more requests may be called: the free slots that called requests will not take.

        All calls until `handed_out` have left the crawler's queue. Those that do not arrive shortly after were dropped
        by another component, or handed to another process that shares the queue.
        """
        written_off = max(now - CALL_TIMEOUT, handed_out - ARRIVAL)
        for number in [number for number, called in self._called.items() if called <= written_off]:
            del self._called[number]
        return max(0, self.free_slots(now) - len(self._called))

    def call(self, now: float) -> tuple[R, int]:
        """Call the next waiting request; the number of the call tells it when it arrives, perhaps as another object."""
        number = next(_calls)
        self._called[number] = now
        return self.waiting.popleft(), number

    def arrived(self, number: int | None) -> None:
        """Note that the request of a call has arrived."""
        self._called.pop(number or 0, None)

    def granted(self, now: float, interval: float, max_wait: float) -> None:
        """Note a granted slot. No request asks until the next slot, `interval` later, is within `max_wait`."""
        self.interval = interval
        self.opens_at = max(self.opens_at, now + interval - max_wait)
        self.verdict_known()

    def wait_for_slot(self, now: float, seconds: float, interval: float) -> None:
        """Note that a request has no slot, but a turn in `seconds`.

        Of several that asked together, each has a turn of its own. The first of them counts.
        """
        self.interval = interval
        turn = now + seconds
        if not now < self._turn == self.opens_at < turn:
            self.opens_at = self._turn = turn
        self.verdict_known()

    def verdict_known(self) -> None:
        """Note that the service gave a verdict."""
        self._retry_delay = FIRST_RETRY_DELAY
        self.forget_trouble()

    def forget_trouble(self) -> None:
        """Count the time without a verdict from the next `verdict_unknown`."""
        self._troubled_since = None

    def verdict_unknown(self, now: float, seconds: float | None, give_up_after: float) -> bool:
        """Note that there is no verdict for `seconds` (None: until the service responds); return whether to give up."""
        if seconds is None:
            seconds, self._retry_delay = self._retry_delay, min(self._retry_delay * 2, LAST_RETRY_DELAY)
        since = self._troubled_since = now if self._troubled_since is None else self._troubled_since
        self.opens_at = now + seconds
        if self.opens_at - since <= give_up_after:
            return False
        self.given_up_until, self._troubled_since = self.opens_at, None
        return True

    def is_idle(self) -> bool:
        """Whether the queue has no requests."""
        return not (self.requesting or self.waiting or len(self.in_flight) or len(self._called))
