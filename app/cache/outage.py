"""A simulated outage: how an origin's snapshot changes while every fetch of it fails alike, by the cache's own rules.

Every instant is Unix seconds. No I/O and no clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.cache.freshness import DAY, KEEP, Freshness, Recheck, Snapshot, delay, freshness, next_snapshot, usable
from robots_core.robots.access import Fetched, Successful

LONGEST_OUTAGE = 60 * DAY
"""Seconds of the longest simulated outage; the last change comes after less than half of them."""

_TICK = 1.0


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """The snapshot from `at` on, and its freshness."""

    at: float
    snapshot: Snapshot
    freshness: Freshness

    @property
    def kind(self) -> tuple[type, bool]:
        """What differs for callers: the outcome, and whether a stale copy answers."""
        return type(self.snapshot.access), self.freshness.stale


@dataclass(frozen=True, slots=True)
class Outage:
    """The entry at the requested instant, and the whole timeline, with an entry for each change."""

    now: TimelineEntry
    timeline: tuple[TimelineEntry, ...]


def simulate_outage(
    copy: Successful | None, fetched: Fetched, recheck: Recheck, key: str, began: float, now: float
) -> Outage:
    """Simulate an outage whose first fetch is at `began`, seen from `now`, at most LONGEST_OUTAGE later.

    `copy` is the copy from before the outage. Each fetch is made as soon as it is due, as for an origin that is
    visited all the time. `key` is the origin's, by which delays are spread.
    """
    last: TimelineEntry | None = None
    timeline: list[TimelineEntry] = []
    for entry in _entries(copy, fetched, recheck, key, began, max(now, began + KEEP + DAY)):
        if entry.at <= now or last is None:
            last = entry
        if not timeline or timeline[-1].kind != entry.kind:
            timeline.append(entry)
    assert last is not None  # noqa: S101 - the first entry is at `began`
    return Outage(TimelineEntry(now, last.snapshot, freshness(last.snapshot, recheck, key, now)), tuple(timeline))


def _entries(
    copy: Successful | None, fetched: Fetched, recheck: Recheck, key: str, began: float, until: float
) -> Iterator[TimelineEntry]:
    snapshot = None if copy is None else next_snapshot(None, Fetched(copy), began)
    if snapshot is not None and copy is not None:
        snapshot = next_snapshot(None, Fetched(copy), began - delay(snapshot, recheck, key))
    at = began
    while at <= until:
        snapshot = next_snapshot(snapshot, fetched, at)
        fresh = freshness(snapshot, recheck, key, at)
        yield TimelineEntry(at, snapshot, fresh)
        lapsed = snapshot.fetched_at + KEEP + _TICK
        if at < lapsed < fresh.recheck_at:
            left = usable(snapshot, lapsed)
            if left is not None and left is not snapshot:
                snapshot = left
                yield TimelineEntry(lapsed, snapshot, freshness(snapshot, recheck, key, lapsed))
        at = fresh.recheck_at
