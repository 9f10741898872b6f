"""What becomes of what is held of an origin while every fetch of it ends alike: the cache's own rules, played through.

Every instant is Unix seconds. No I/O and no clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.cache.freshness import DAY, KEEP, Freshness, Recheck, Snapshot, delay, freshness, next_snapshot, usable
from app.robots.access import Fetched, Successful

LONGEST = 60 * DAY
"""Seconds of the longest outage that is played; nothing that happens in one happens later than after half of them."""

_TICK = 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    """From `at` on, this is what is held and how it stands."""

    at: float
    snapshot: Snapshot
    freshness: Freshness

    @property
    def kind(self) -> tuple[type, bool]:
        """What callers can tell it by: what is served, and whether it is a copy that stands in."""
        return type(self.snapshot.access), self.freshness.stale


@dataclass(frozen=True, slots=True)
class Outage:
    """How it stands at the instant that was asked for, and every change on the way, and past it to the last one."""

    now: Turn
    turns: tuple[Turn, ...]


def play(
    copy: Successful | None, fetched: Fetched, recheck: Recheck, key: str, began: float, now: float
) -> Iterator[Outage | None]:
    """Play an outage whose first fetch is at `began`, seen from `now`, LONGEST later at most; `copy` was held before.

    Yields None after each fetch, of which there may be a thousand, and the outage at the end.
    Somebody asks at every moment, so that each fetch is made when it is due, the first when the copy was. `key` is the
    origin's, by which delays are spread.
    """
    if not 0 <= now - began <= LONGEST:
        raise ValueError(f"an outage of {now - began:.0f} s cannot be played; it may last from 0 to {LONGEST:.0f} s")
    last: Turn | None = None
    turns: list[Turn] = []
    for turn in _turns(copy, fetched, recheck, key, began, max(now, began + KEEP + DAY)):
        if turn.at <= now or last is None:
            last = turn
        if not turns or turns[-1].kind != turn.kind:
            turns.append(turn)
        yield None
    assert last is not None  # noqa: S101 - the first turn is at `began`
    yield Outage(Turn(now, last.snapshot, freshness(last.snapshot, recheck, key, now)), tuple(turns))


def _turns(
    copy: Successful | None, fetched: Fetched, recheck: Recheck, key: str, began: float, until: float
) -> Iterator[Turn]:
    held = None if copy is None else next_snapshot(None, Fetched(copy), began)
    if held is not None and copy is not None:
        held = next_snapshot(None, Fetched(copy), began - delay(held, recheck, key))
    at = began
    while at <= until:
        held = next_snapshot(held, fetched, at)
        stands = freshness(held, recheck, key, at)
        yield Turn(at, held, stands)
        lapsed = held.fetched_at + KEEP + _TICK
        if at < lapsed < stands.recheck_at:
            left = usable(held, lapsed)
            if left is not None and left is not held:
                held = left
                yield Turn(lapsed, held, freshness(held, recheck, key, lapsed))
        at = stands.recheck_at
