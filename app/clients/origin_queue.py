"""One agent's requests to one origin, in a crawler that has many: who asks now, who goes, and who waits; pure."""

from collections import deque
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from app.clients.permits import FIRST_PAUSE, LAST_PAUSE

AHEAD = 1.0
"""Seconds: so many requests wait for their turn at the same time as have it within these, and one in any case."""

COMES_WITHIN = 60.0
"""Seconds after which a request that was called and has not come is not counted on: others may have dropped it."""

R = TypeVar("R")


class PaceKey(Generic[R]):
    """Requests R of which `at_once` are sent at the same time at most. Instants are in seconds of a monotonic clock."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self.interval = 0.0
        self.opens = 0.0  # nobody has to ask before
        self.asking = 0  # or waiting for their turn, which they have
        # Requests may be dropped by others without a word; then they are no longer here, either.
        self.going: WeakSet[R] = WeakSet()
        self.waiting: deque[R] = deque()
        self._called: WeakKeyDictionary[R, float] = WeakKeyDictionary()
        self.given_up_until = 0.0
        self._troubled_since: float | None = None
        self._pause = FIRST_PAUSE

    def places(self, now: float) -> int:
        """How many more may ask now.

        Never more are asking or going than are sent at once: who has a turn and then waits in the crawler's own queue
        goes late, and when a slow answer makes room at last, many of them go together.
        """
        if now < self.opens:
            return 0
        places = self._at_once
        if self.interval * places > AHEAD:
            places = max(1, int(AHEAD / self.interval))
        return max(0, min(places, self._at_once - len(self.going)) - self.asking)

    def room(self, now: float) -> int:
        """How many more may be called: those that are on their way here find their place."""
        coming = sum(now - called < COMES_WITHIN for called in self._called.values())
        return max(0, self.places(now) - coming)

    def call(self, now: float) -> R:
        """The next of those that wait, who is now on his way here."""
        request = self.waiting.popleft()
        self._called[request] = now
        return request

    def came(self, request: R) -> None:
        """A request is here, called or not."""
        self._called.pop(request, None)

    def turn_has_come(self, now: float, interval: float, max_wait: float) -> None:
        """One goes: the next turn is `interval` seconds away, so nobody asks before it is within `max_wait`."""
        self.interval = interval
        self.opens = max(self.opens, now + interval - max_wait)
        self.known()

    def others_turn(self, now: float, seconds: float, interval: float) -> None:
        """No turn is to be had for so many seconds."""
        self.interval = interval
        self.opens = now + seconds
        self.known()

    def known(self) -> None:
        """The service has given a verdict."""
        self._troubled_since, self._pause = None, FIRST_PAUSE

    def not_known(self, now: float, seconds: float | None, give_up_after: float) -> bool:
        """No verdict for so many seconds, or, with None, until the service answers: whether to give up until then."""
        if seconds is None:
            seconds, self._pause = self._pause, min(self._pause * 2, LAST_PAUSE)
        since = self._troubled_since = now if self._troubled_since is None else self._troubled_since
        self.opens = now + seconds
        if self.opens - since <= give_up_after:
            return False
        self.given_up_until, self._troubled_since = self.opens, None
        return True

    def is_idle(self) -> bool:
        """Whether nobody is in it."""
        return not (self.asking or self.waiting or len(self.going) or len(self._called))
