"""What callers sent, beside what the service fetched: it divides no fetches that agree, and leaves them their share."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.freshness import Failing, Snapshot, next_snapshot
from app.history.versions import HISTORY_BYTES, VERSIONS, History, Version, add, read, version_at, version_of, write
from robots_core.content import digest
from robots_core.robots.access import Access, Cause, Fetched, Successful, Unreachable

NOW = 1_790_000_000.0
A, B, C = (Successful(200, f"User-agent: *\nDisallow: /{name}\n".encode()) for name in "abc")
DOWN = Unreachable(Cause.TIMEOUT)


def fetched(access: Access, since: int, until: int) -> Version:
    failing = Failing(until, until, 1, access) if isinstance(access, Unreachable) else None
    return version_of(Snapshot(access, until, since=since, failing=failing))


def sent(access: Access, since: int, until: int, own_until: int | None = None) -> Version:
    return version_of(Snapshot(access, until, since=since, ingested="key", own_until=own_until))


def ids(history: History, *instants: int) -> list[bytes | None]:
    found = [version_at(history, at) for at in instants]
    return [None if version is None else version.digest for version in found]


def test_a_copy_divides_nothing_between_two_fetches_that_agree() -> None:
    history = add((), [fetched(A, 10, 50), sent(B, 20, 20)], NOW)
    assert ids(history, 19, 20, 21, 60) == [digest(A)] * 4
    assert len(history) == 1


def test_a_copy_that_lasts_begins_with_the_later_fetch() -> None:
    history = add((), [fetched(A, 10, 50), sent(B, 20, 70)], NOW)
    assert ids(history, 20, 49, 50, 70) == [digest(A), digest(A), digest(B), digest(B)]


def test_a_copy_of_the_second_of_the_last_fetch_counts() -> None:
    history = add((), [fetched(A, 10, 50), sent(B, 50, 50), fetched(C, 90, 90)], NOW)
    assert ids(history, 49, 50, 89, 90) == [digest(A), digest(B), digest(B), digest(C)]


def test_fetches_that_failed_confirm_nothing() -> None:
    history = add((), [fetched(DOWN, 10, 50), sent(B, 20, 20)], NOW)
    assert ids(history, 20, 21) == [digest(B), digest(DOWN)]


def test_a_fetch_divides_copies_and_other_fetches() -> None:
    history = add((), [sent(A, 10, 90), fetched(C, 30, 60), fetched(B, 40, 40)], NOW)
    assert ids(history, 10, 30, 40, 41, 61) == [digest(it) for it in (A, C, B, C, A)]


def test_a_copy_that_agrees_takes_nothing_from_the_fetches_before_it() -> None:
    """Or one that is sent first would make room for those that rewrite the past."""
    own = next_snapshot(next_snapshot(None, Fetched(A), 10.0), Fetched(A), 50.0)
    latest = next_snapshot(own, Fetched(A), 60.0, ingested="key")
    latest = next_snapshot(latest, Fetched(A), 80.0, ingested="key")
    assert (latest.held_since, latest.own_seen) == (10, 50)
    history = add((), [version_of(latest), sent(B, 20, 20), sent(C, 70, 70)], NOW)
    assert ids(history, 20, 30, 70, 75) == [digest(A), digest(A), digest(C), digest(A)]
    assert next_snapshot(latest, Fetched(A), 90.0).own_seen == 90


def test_periods_that_join_keep_the_last_fetch() -> None:
    history = add((), [fetched(A, 10, 50)], NOW)
    history = add(history, [sent(A, 80, 80)], NOW)
    assert [(it.first_seen, it.last_seen, it.own_until) for it in history] == [(10, 80, 50)]
    assert ids(add(history, [sent(B, 20, 20), sent(C, 60, 60)], NOW), 20, 60) == [digest(A), digest(C)]


Stretch = tuple[Access, int, int, bool]
ACCESSES: st.SearchStrategy[Access] = st.sampled_from([A, B, C, DOWN])
STRETCHES: st.SearchStrategy[list[Stretch]] = st.lists(
    st.tuples(ACCESSES, st.integers(0, 50), st.integers(0, 50), st.booleans()).map(
        lambda it: (it[0], min(it[1], it[2]), max(it[1], it[2]), it[3] and it[0] is not DOWN)
    ),
    max_size=VERSIONS // 4,
    unique_by=lambda it: it[1],
)


@given(STRETCHES)
def test_no_copies_change_what_is_between_fetches_that_agree(stretches: list[Stretch]) -> None:
    own: list[Stretch] = []
    for it in sorted(stretches, key=lambda it: it[1]):
        if not it[3] and (not own or own[-1][2] < it[1]):  # fetches of processes that knew of each other
            own.append(it)
    history: History = ()
    for it in (*own, *(it for it in stretches if it[3])):
        history = add(history, [(sent if it[3] else fetched)(*it[:3])], NOW)
    for access, since, until, _ in own:
        for at in range(since, until if access is not DOWN else since):
            assert ids(history, at) == [digest(access)]


def test_copies_leave_fetches_their_share() -> None:
    history = add((), [fetched(A, 1, 1), fetched(B, 2, 2)], NOW)
    copies = [Successful(200, b"Disallow: /copy-%d\n" % number) for number in range(100)]
    for number, access in enumerate(copies):
        history = add(history, [sent(access, 10 + number, 10 + number)], NOW)
    assert len(history) <= VERSIONS
    assert ids(history, 1, 2) == [digest(A), digest(B)]
    assert ids(history, 10 + 99, 10 + 90) == [digest(copies[99]), digest(copies[90])]
    # Of the copies that were dropped, nothing is said: not that the file before them was still in use.
    assert ids(history, 10, 50) == [None, None]
    assert read(write(history, b"12345678")) == history


def test_fetches_beyond_their_share_are_dropped_first() -> None:
    versions = [
        (fetched if number % 2 else sent)(Successful(200, b"Disallow: /%d\n" % number), number, number)
        for number in range(1, 101)
    ]
    history = add((), versions, NOW)
    assert [it.first_seen for it in history] == list(range(81, 101))


@pytest.mark.parametrize("size", [30_000, 300_000, 500_000])
def test_long_copies_do_not_push_out_what_the_service_fetched(size: int) -> None:
    def file(number: int) -> Successful:
        return Successful(200, b"Disallow: /%d #%b" % (number, os.urandom(size)))  # each has an effect of its own

    own = [fetched(file(at), at, at) for at in (1, 2)]
    history = add((), own, NOW)
    for number in range(10, 40):
        history = add(history, [sent(file(number), number, number)], NOW)
    assert own[1].digest in [it.digest for it in history]
    assert len(write(history, b"12345678")) <= HISTORY_BYTES
    assert read(write(history, b"12345678")) == history


def test_a_gap_grows_and_is_not_read() -> None:
    history = add((), [fetched(A, 1, 1)], NOW)
    for number in range(VERSIONS + 5):
        history = add(history, [sent(Successful(200, b"Disallow: /%d\n" % number), 10 + number, 10 + number)], NOW)
    [gap] = [it for it in history if not it.packed]
    assert gap.read() is None
    assert (gap.first_seen, gap.last_seen) == (10, history[2].first_seen - 1)
    late = add(history, [fetched(B, 12, 12)], NOW)
    assert ids(late, 11, 12, 13) == [None, digest(B), None]
