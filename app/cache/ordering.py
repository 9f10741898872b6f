"""Merge what two processes learned into one snapshot, in the order in which their fetches began.

Processes fetch concurrently, are late, are stopped and resumed. The result must not depend on when a fetch ended, but
on when it *began* by the store's clock, which all processes share; `Snapshot.fetched_at` and `Failing.last_at` are
those instants. The result is as if the fetches had ended in the order in which they began: the older answer loses, and
a failure never replaces an answer that is newer than its beginning.

Every instant is Unix seconds. No I/O and no clock.
"""

import math
from dataclasses import dataclass, replace

from app.cache.freshness import KEEP, Failing, First, Snapshot
from robots_core.content import same
from robots_core.robots.access import Cause, Successful, Unreachable

ESTIMATE_LAG = 1.0
"""Seconds by which an instant may be ahead of a process's estimate of the store's clock, which lags."""

_LOCAL = frozenset({Cause.DNS, Cause.CONNECTION, Cause.TIMEOUT, Cause.TLS, Cause.PROXY})


@dataclass(frozen=True, slots=True)
class Purged:
    """The mark of a purge in the store: fetches that began up to the instant `at` do not count."""

    at: float


def merge(one: Snapshot, other: Snapshot, now: float) -> Snapshot:
    """Merge two snapshots; of fetches that began at the same instant, that of `other` counts as the later one.

    An instant after `now` comes from a wrong clock, and counts as older than any other. An answer without a file is
    dropped if a failure follows it, so that an earlier file, which arrived late, may be used instead.
    """
    if one == other:
        return other
    answer, older = _answers(one, other, now)
    failing = _merge_failing(one.failing, other.failing, answer, now)
    if answer is not None:
        answer = replace(answer, failing=None, since=_since(answer, older), own_until=_own_until(answer, older))
    if failing is None:
        assert answer is not None  # noqa: S101 - a snapshot has an answer, or fails
        return answer
    if answer is not None and isinstance(answer.access, Successful) and now - answer.fetched_at <= KEEP:
        return replace(answer, failing=failing)
    for snapshot in (other, one):
        if snapshot.failing == failing and snapshot.access == failing.failure:
            return snapshot
    return _only(failing)


def after_purge(snapshot: Snapshot, purged: Purged, now: float) -> Snapshot | None:
    """The part of the snapshot that began after a purge. A purge after `now` is from a wrong clock, and ignored."""
    if purged.at > now + ESTIMATE_LAG or snapshot.fetched_at > purged.at:
        return snapshot
    failing = snapshot.failing
    return None if failing is None or failing.last_at <= purged.at else _only(failing)


def is_local(failure: Unreachable) -> bool:
    """Whether the failure may be this process's own: nothing was received from the origin."""
    return failure.status is None and failure.cause in _LOCAL


def _answers(one: Snapshot, other: Snapshot, now: float) -> tuple[Snapshot | None, Snapshot | None]:
    """The later and the earlier answer of the two, each None if there is none."""
    found = [snapshot for snapshot in (other, one) if not isinstance(snapshot.access, Unreachable)]
    found.sort(key=lambda snapshot: _order(snapshot.fetched_at, now), reverse=True)
    return found[0] if found else None, found[1] if len(found) > 1 else None


def _since(answer: Snapshot, older: Snapshot | None) -> int | None:
    """When the answer's content was found first, given an older answer."""
    if older is None:
        return answer.since
    if not same(answer.access, older.access):
        # If the other content was found after this beginning, it was in use in between.
        return answer.since if older.fetched_at <= answer.held_since else None
    if older.held_since >= answer.held_since:
        return answer.since
    return math.floor(older.held_since)


def _own_until(answer: Snapshot, older: Snapshot | None) -> int | None:
    """When this service last found what a caller sent later, given an older answer."""
    if answer.ingested is None or older is None or not same(answer.access, older.access):
        return answer.own_until
    return max((it for it in (answer.own_until, older.own_seen) if it is not None), default=None)


def _merge_failing(one: Failing | None, other: Failing | None, answer: Snapshot | None, now: float) -> Failing | None:
    """The run of failures since the answer."""
    runs = [
        run
        for run in (other, one)
        if run is not None and (answer is None or _order(run.last_at, now) > _order(answer.fetched_at, now))
    ]
    if not runs:
        return None
    last = max(runs, key=lambda run: _order(run.last_at, now))
    began_before = -math.inf if answer is None else answer.fetched_at
    if last.since <= began_before < last.last_at:
        # The answer came in the middle of the run and ended it, so only the last attempt remains.
        last = Failing(last.last_at, last.last_at, 1, last.failure, First(last.last_at, last.failure))
    unbroken = [run for run in runs if run.since > began_before]
    firsts = [run.first for run in (last, *unbroken) if run.first is not None and same(run.failure, last.failure)]
    return replace(
        last,
        since=min([last.since, *(run.since for run in unbroken)]),
        attempts=max([last.attempts, *(run.attempts for run in unbroken)]),
        first=min(firsts, key=lambda first: first.at, default=None),
    )


def _only(failing: Failing) -> Snapshot:
    return Snapshot(failing.failure, failing.last_at, failing=failing)


def _order(at: float, now: float) -> tuple[bool, float]:
    return at <= now + ESTIMATE_LAG, at
