"""Whether this process can still fetch: a pod without network egress must not make the web look down."""

from collections.abc import Callable
from dataclasses import dataclass

from app.cache.ordering import is_local
from robots_core.robots.access import Access, NotModified, Unreachable

FAILING_AFTER = 10
"""Fetches in a row that have to fail before this process suspects itself."""


@dataclass(slots=True)
class FetchHealth:
    """Counts fetches in a row that failed without an answer from the origin, and how many of them are contradicted.

    A failure is contradicted if another process has an answer of the same origin; `count` is called for each.
    """

    count: Callable[[], None] = lambda: None
    failed_in_a_row: int = 0
    contradicted_in_a_row: int = 0

    @property
    def failing(self) -> bool:
        """Whether this process is at fault: every fetch fails, and other processes reach the same origins."""
        return self.failed_in_a_row >= FAILING_AFTER and self.contradicted_in_a_row > 0

    def note_fetch(self, found: Access | NotModified) -> None:
        """Count a fetch of this process by what it found."""
        if isinstance(found, Unreachable) and is_local(found):
            self.failed_in_a_row += 1
        else:
            self.failed_in_a_row = self.contradicted_in_a_row = 0

    def note_contradiction(self) -> None:
        """Count an origin that this process could not reach and another process could."""
        self.contradicted_in_a_row += 1
        self.count()
