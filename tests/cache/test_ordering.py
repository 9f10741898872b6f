"""Merging snapshots of several processes gives the same result in any order."""

from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.freshness import DAY, KEEP, Failing, Snapshot, next_snapshot
from app.cache.ordering import Purged, after_purge, is_local, merge
from robots_core.robots.access import Access, Blocked, Cause, Fetched, Successful, Unavailable, Unreachable

NOW = 1_790_000_000.0
OLD = Successful(200, b"User-agent: *\nDisallow: /old\n")
NEW = Successful(200, b"User-agent: *\nDisallow: /new\n")
MISSING = Unavailable(404)
LATE = Unreachable(Cause.TIMEOUT)
BUSY = Unreachable(Cause.SERVER_ERROR, 503)

accesses: st.SearchStrategy[Access] = st.sampled_from([OLD, NEW, MISSING, LATE, BUSY, Blocked("10.0.0.1")])


def found(access: Access, began: float) -> Snapshot:
    """The snapshot of a process whose cache was empty before this fetch."""
    return next_snapshot(None, Fetched(access), began)


def together(*snapshots: Snapshot) -> Snapshot:
    return reduce(lambda one, other: merge(one, other, NOW), snapshots)


def facts(snapshot: Snapshot) -> tuple[Access, float, float]:
    return snapshot.access, snapshot.fetched_at, snapshot.checked_at


@given(
    st.lists(st.sampled_from([OLD, NEW, LATE, BUSY]), min_size=1, max_size=4)
    | st.lists(accesses, min_size=2, max_size=2)
)
def test_merging_in_any_order_gives_the_order_of_the_beginnings(results: list[Access]) -> None:
    at = [NOW - 100 + 10 * number for number in range(len(results))]
    in_order: Snapshot | None = None
    for access, began in zip(results, at, strict=True):
        in_order = next_snapshot(in_order, Fetched(access), began)
    assert in_order is not None
    for order in permutations(map(found, results, at)):
        assert facts(together(*order)) == facts(in_order)


@given(accesses, accesses)
def test_merging_again_changes_nothing(one: Access, other: Access) -> None:
    merged = together(found(one, NOW - 20), found(other, NOW - 10))
    assert together(merged, found(one, NOW - 20)) == merged
    assert together(found(other, NOW - 10), merged) == merged


def test_an_older_answer_loses() -> None:
    old, new = found(OLD, NOW - 20), found(NEW, NOW - 10)
    assert together(old, new) == together(new, old) == new


def test_a_failure_that_began_before_an_answer_is_dropped() -> None:
    answer = found(NEW, NOW - 10)
    assert together(answer, found(LATE, NOW - 20)) == answer


def test_a_failure_that_began_after_an_answer_adds_to_it() -> None:
    failing = Failing(NOW - 10, NOW - 10, 1, LATE)
    assert together(found(NEW, NOW - 20), found(LATE, NOW - 10)) == Snapshot(NEW, NOW - 20, failing=failing)


def test_a_late_answer_ends_the_run_around_it() -> None:
    failing = next_snapshot(found(BUSY, NOW - 30), Fetched(BUSY), NOW - 10)
    merged = together(failing, found(NEW, NOW - 20))
    assert merged == Snapshot(NEW, NOW - 20, failing=Failing(NOW - 10, NOW - 10, 1, BUSY))


def test_of_two_runs_the_longer_counts() -> None:
    long = next_snapshot(found(BUSY, NOW - 30), Fetched(BUSY), NOW - 20)
    merged = together(long, found(LATE, NOW - 10))
    assert merged.failing == Failing(NOW - 30, NOW - 10, 2, LATE)


def test_merged_content_is_dated_to_the_first_fetch() -> None:
    first, last = found(NEW, NOW - 30), found(NEW, NOW - 10)
    assert together(last, first).since == int(NOW - 30)
    assert together(last, found(OLD, NOW - 20)).since is None
    known = next_snapshot(first, Fetched(NEW), NOW - 10)
    assert together(known, found(OLD, NOW - 20)).since is None
    assert together(known, found(OLD, NOW - 40)).since == int(NOW - 30)


def test_rfc9309_only_a_file_is_used_while_failing_for_thirty_days() -> None:
    assert together(found(MISSING, NOW - 20), found(BUSY, NOW - 10)) == found(BUSY, NOW - 10)
    lapsed = Snapshot(OLD, NOW - KEEP - DAY, failing=Failing(NOW - DAY, NOW - DAY, 1, BUSY))
    assert together(lapsed, found(LATE, NOW - 10)).access == LATE


def test_a_future_instant_counts_as_the_oldest() -> None:
    wrong, right = found(OLD, NOW + 3600), found(NEW, NOW - 10)
    assert together(wrong, right) == together(right, wrong) == right


@pytest.mark.parametrize(("at", "left"), [(NOW - 30, True), (NOW - 20, False), (NOW + 3600, True)])
def test_a_purge_removes_what_began_before_it(at: float, left: bool) -> None:
    snapshot = found(OLD, NOW - 20)
    assert after_purge(snapshot, Purged(at), NOW) == (snapshot if left else None)


def test_a_purge_leaves_the_failures_after_it() -> None:
    snapshot = together(found(OLD, NOW - 20), found(LATE, NOW - 10))
    assert after_purge(snapshot, Purged(NOW - 15), NOW) == found(LATE, NOW - 10)
    assert after_purge(snapshot, Purged(NOW - 5), NOW) is None


@pytest.mark.parametrize(
    ("failure", "local"),
    [
        (LATE, True),
        (Unreachable(Cause.DNS), True),
        (Unreachable(Cause.CONNECTION), True),
        (Unreachable(Cause.TLS), True),
        (BUSY, False),
        (Unreachable(Cause.BAD_RESPONSE), False),
        (Unreachable(Cause.CONNECTION, 301), False),
    ],
)
def test_a_failure_without_a_response_is_local(failure: Unreachable, local: bool) -> None:
    assert is_local(failure) is local
