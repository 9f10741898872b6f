"""What a crawler reports about the pages that it was permitted to fetch, without I/O."""

from collections.abc import Callable, Mapping
from threading import Lock

from robots_decisions.permits import Granted, Slot

OUTCOMES = 1000
"""Outcomes that one request has at most."""

DELAY, PAUSE = 1.0, 60.0
"""Seconds that an outcome waits for others; and that all wait after a failure."""


class Permit:
    """A slot that has begun. `granted` is false if the service is silent and the page is fetched at the client's own
    pace.

    `version` is the id of the robots.txt that decided. `signed` are the header fields of a signed GET of the page,
    which replace those of the request (`signatures.sign_request`), or None. `backoff` is, after a reported 429 or
    503, the seconds that the service keeps the fleet off the origin.
    """

    def __init__(self, slot: Slot, monotonic: Callable[[], float]) -> None:
        self.slot = slot
        self.granted = isinstance(slot, Granted)
        self.interval = slot.interval
        self.version = slot.version
        self.signed: Mapping[str, str] | None = slot.signed
        self.status = 0
        self.retry_after: str | None = None
        self.elapsed = 0.0
        self.price: str | None = None
        self.released = False
        self.backoff: float | None = None
        self._monotonic = monotonic
        self._begun = monotonic()

    def report(self, status: int, retry_after: str | None = None, price: str | None = None) -> None:
        """Note the status of the page, its Retry-After header, and the `crawler-price` of a 402. A 429 or 503 makes the
        whole fleet back off; a refusal is kept as a fact about the origin; the time that others took is known to the
        pace."""
        self.status, self.retry_after, self.price = status, retry_after, price
        self.elapsed = self._monotonic() - self._begun

    def release(self) -> None:
        """Note that the page is not fetched, so that the slot is free for the next."""
        self.released = True


class Collected:
    """Outcomes that need not be known at once. Beyond OUTCOMES they are dropped. Any number of threads may use it."""

    def __init__(self) -> None:
        self._items: list[Mapping[str, object]] = []
        self._lock = Lock()
        self.delay = DELAY

    def add(self, item: Mapping[str, object]) -> bool:
        """Add one; return whether it is the first, so that all have to be sent in `delay` seconds."""
        with self._lock:
            if len(self._items) < OUTCOMES:
                self._items.append(item)
            return len(self._items) == 1

    def taken(self) -> list[Mapping[str, object]]:
        """All of them, which are no longer kept."""
        with self._lock:
            items, self._items = self._items, []
        return items

    def sent(self, *, arrived: bool) -> None:
        """Note whether they arrived."""
        self.delay = DELAY if arrived else PAUSE
