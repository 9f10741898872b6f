"""How long pages took, as callers reported it to this process: added up until the store is told with the next slot."""

from typing import NamedTuple

from app.cache.byte_lru import BoundedDict
from app.pacing.permit import SlotRef
from app.pacing.slots import PaceKey

LONGEST = 60.0
"""Seconds that one page counts for at most."""

TOLERANCE = 0.1
"""Seconds by which a page may seem to have been asked for before its slot: clocks and timers are not exact."""


class PageReports(NamedTuple):
    """So many `pages` took `mean` seconds each; `timed_out`: at least one was not answered.

    `succeeded`: at least one was a 2xx, whether its time was reported or not.
    """

    pages: int = 0
    mean: float = 0.0
    timed_out: bool = False
    succeeded: bool = False


NO_PAGES = PageReports()


class PageTimes:
    """The reports that wait, by queue. A report counts once for each slot.

    An error may be quick, so it counts only if it took longer than the pages before, or than the service's own fetch if
    there were none: it never makes the pace faster.
    """

    def __init__(self) -> None:
        self._waiting: BoundedDict[PaceKey, PageReports] = BoundedDict()
        self._latencies: BoundedDict[PaceKey, float] = BoundedDict()
        self._first: BoundedDict[str, float] = BoundedDict()
        # By the hash of the slot: as many slots would take 57 MB, and not 14.
        self._reported: BoundedDict[int, bool] = BoundedDict()

    def note_fetch(self, pool: str, seconds: float) -> None:
        """Note how long the service's own fetch of a robots.txt took: the first report, once there is another."""
        self._first[pool] = seconds

    def note(self, key: PaceKey, slot: SlotRef, status: int | None, elapsed: float | None, now: float) -> None:
        """Note the page of a slot, of the queue `key`: its status (None: no answer), and the seconds that it took.

        It is ignored if the slot was reported before, or began after the page was asked for.
        """
        if (elapsed or 0.0) > now - slot.go_at + TOLERANCE or self._reported.get(hash(slot), False):
            return
        self._reported[hash(slot)] = True
        succeeded = status is not None and 200 <= status < 300
        waiting = self._waiting.get(key, NO_PAGES)
        if elapsed is None:
            if succeeded:
                self._waiting[key] = waiting._replace(succeeded=True)
            return
        if not succeeded:
            latency = self._latencies.get(key, 0.0) or self._first.get(key.pool, 0.0)
            if not latency or elapsed <= latency:
                return
        mean = waiting.mean + (min(elapsed, LONGEST) - waiting.mean) / (waiting.pages + 1)
        timed_out = waiting.timed_out or status is None
        self._waiting[key] = PageReports(waiting.pages + 1, mean, timed_out, waiting.succeeded or succeeded)

    def take(self, key: PaceKey) -> PageReports:
        """What waits for the store, which is removed."""
        found = self._waiting.pop(key, NO_PAGES)
        if found.pages and not self._latencies.get(key, 0.0):
            first = self._first.pop(key.pool, None)
            if first is not None:
                mean = found.mean + (min(first, LONGEST) - found.mean) / (found.pages + 1)
                return found._replace(pages=found.pages + 1, mean=mean)
        return found

    def put_back(self, key: PaceKey, taken: PageReports) -> None:
        """Let what was taken wait again, with what was noted meanwhile: the store may not have them."""
        waiting = self._waiting.get(key, NO_PAGES)
        pages = waiting.pages + taken.pages
        mean = (waiting.pages * waiting.mean + taken.pages * taken.mean) / max(1, pages)
        timed_out, succeeded = waiting.timed_out or taken.timed_out, waiting.succeeded or taken.succeeded
        if taken != NO_PAGES:
            self._waiting[key] = PageReports(pages, mean, timed_out, succeeded)

    def learned(self, key: PaceKey, latency: float) -> None:
        """Note the queue's latency, as the store has it."""
        self._latencies[key] = latency
