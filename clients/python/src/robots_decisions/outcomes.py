"""What a crawler reports about a page that it was permitted to fetch, without I/O."""

from collections.abc import Callable

from robots_decisions.permits import Granted


class Permit:
    """A slot that has begun. `granted` is false if the service was unavailable and the page is fetched without one.

    `backoff` is, after a reported 429 or 503, the seconds that the service keeps the fleet off the origin.
    """

    def __init__(self, grant: Granted | None, monotonic: Callable[[], float]) -> None:
        self.grant = grant
        self.granted = grant is not None
        self.interval = 0.0 if grant is None else grant.interval
        self.status = 0
        self.retry_after: str | None = None
        self.elapsed = 0.0
        self.released = False
        self.backoff: float | None = None
        self._monotonic = monotonic
        self._begun = monotonic()

    def report(self, status: int, retry_after: str | None = None) -> None:
        """Note the status of the page, and its Retry-After header. A 429 or 503 makes the whole fleet back off;
        a refusal is kept as a fact about the origin."""
        self.status, self.retry_after = status, retry_after
        self.elapsed = self._monotonic() - self._begun

    def release(self) -> None:
        """Note that the page is not fetched, so that the slot is free for the next."""
        self.released = True
