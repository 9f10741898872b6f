"""Versions of a file by content: periods are added in any order, and kept in order, within bounds."""

import hashlib
import os
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.cache.codec import encode
from app.cache.freshness import KEEP, Failing, Snapshot, known_at, next_snapshot
from app.history.versions import (
    HISTORY_BYTES,
    VERSIONS,
    History,
    Version,
    add,
    is_new,
    read,
    version_at,
    version_of,
    with_current,
    write,
)
from robots_core.content import digest, same
from robots_core.robots.access import BODY_LIMIT, Access, Blocked, Cause, Fetched, Successful, Unavailable, Unreachable

NOW = 1_790_000_000.0
TAG = b"12345678"
A, B, C = (Successful(200, f"User-agent: *\nDisallow: /{name}\n".encode()) for name in "abc")
DOWN = Unreachable(Cause.TIMEOUT)


def snapshot(access: Access, at: float = NOW) -> Snapshot:
    failing = Failing(at, at, 1, access) if isinstance(access, Unreachable) else None
    return Snapshot(access, at, failing=failing)


def seen(access: Access, at: float) -> Version:
    return version_of(snapshot(access, at))


def held(access: Access, since: int, until: int) -> Version:
    return version_of(replace(snapshot(access, until), since=since))


def stretches(history: History) -> list[tuple[bytes, int, int]]:
    return [(version.digest, version.first_seen, version.last_seen) for version in history]


ACCESSES: st.SearchStrategy[Access] = st.sampled_from([A, B, C, Unavailable(404), DOWN])
Stretch = tuple[Access, int, int]
# Each adds at most two versions, if it divides another one; two such lists make VERSIONS.
STRETCHES: st.SearchStrategy[list[Stretch]] = st.lists(
    st.tuples(ACCESSES, st.integers(0, 50), st.integers(0, 50)).map(lambda it: (it[0], min(it[1:]), max(it[1:]))),
    max_size=VERSIONS // 4,
    unique_by=lambda it: it[1],
)


def test_a_files_id_is_the_beginning_of_its_sha256() -> None:
    assert seen(A, NOW).id == hashlib.sha256(A.body).hexdigest()[:16]


def test_the_same_content_found_repeatedly_is_one_version() -> None:
    history = add((), [seen(A, 10), seen(A, 20), seen(A, 30.9)], NOW)
    assert stretches(history) == [(digest(A), 10, 30)]


def test_content_that_returns_is_a_new_version() -> None:
    history = add((), [seen(A, 10), seen(B, 20), seen(A, 30)], NOW)
    assert stretches(history) == [(digest(A), 10, 10), (digest(B), 20, 20), (digest(A), 30, 30)]


def test_a_snapshot_is_a_version_from_its_beginning_to_its_fetch() -> None:
    version = version_of(replace(snapshot(A, 50.9), since=10))
    assert stretches((version,)) == [(digest(A), 10, 50)]


def test_a_version_is_read_as_of_its_first_fetch() -> None:
    found = version_of(replace(snapshot(A, 50.9), final_url="https://h/moved", since=10)).read()
    assert found == Snapshot(A, 10.0, "https://h/moved")


def test_a_late_period_divides_the_one_around_it() -> None:
    history = add((), [held(A, 10, 50)], NOW)
    assert stretches(add(history, [held(B, 20, 30)], NOW)) == [
        (digest(A), 10, 19),
        (digest(B), 20, 30),
        (digest(A), 31, 50),
    ]


def test_of_overlapping_periods_the_last_begun_counts() -> None:
    history = add((), [held(B, 40, 60), held(A, 10, 50)], NOW)
    assert stretches(history) == [(digest(A), 10, 39), (digest(B), 40, 60)]


def test_periods_that_begin_together_are_both_kept() -> None:
    history = add((), [held(A, 10, 50), held(B, 10, 20)], NOW)
    assert {version.digest for version in history if version.first_seen == 10} == {digest(A), digest(B)}
    assert (history[-1].digest, history[-1].last_seen) == (digest(A), 50)


@given(STRETCHES)
def test_periods_may_be_added_in_any_order(versions: list[Stretch]) -> None:
    together = add((), [held(*it) for it in versions], NOW)
    assert add((), [held(*it) for it in reversed(versions)], NOW) == together


@given(STRETCHES)
def test_a_version_added_twice_is_kept_once(versions: list[Stretch]) -> None:
    added = [held(*it) for it in versions]
    history = add((), added, NOW)
    for version in added:
        assert stretches(add(history, [version], NOW)) == stretches(history)
    assert stretches(add(history, added, NOW)) == stretches(history)


@given(STRETCHES, STRETCHES)
def test_a_late_version_counts_from_its_beginning(one: list[Stretch], other: list[Stretch]) -> None:
    history = add(add((), [held(*it) for it in one], NOW), [held(*it) for it in other], NOW)
    for access, since, _ in other:
        assert digest(access) in {it.digest for it in history if it.first_seen <= since <= it.last_seen}


@given(STRETCHES)
def test_periods_ascend_and_neighbours_differ(versions: list[Stretch]) -> None:
    history = add((), [held(*it) for it in versions], NOW)
    times = [at for version in history for at in (version.first_seen, version.last_seen)]
    assert times == sorted(times)
    assert all(one.digest != other.digest for one, other in pairwise(history))


@given(STRETCHES)
def test_at_any_instant_the_last_begun_period_counts(versions: list[Stretch]) -> None:
    history = add((), [held(*it) for it in versions], NOW)
    for at in range(51):
        covering = [(since, until, digest(access)) for access, since, until in versions if since <= at <= until]
        if covering:
            version = version_at(history, at)
            assert version is not None
            assert version.digest == max(covering)[2]


@given(STRETCHES, ACCESSES, st.integers(0, 50), st.integers(0, 50))
@example([(A, 0, 1)], B, 0, 1)
@example([(B, 0, 1)], A, 0, 1)
def test_the_current_snapshot_is_the_last_version(
    versions: list[Stretch], access: Access, since: int, lasted: int
) -> None:
    now = replace(snapshot(access, since + lasted), since=since)
    history = with_current(add((), [held(*it) for it in versions], NOW), now, NOW)
    assert history[-1].digest == digest(access)
    assert history[-1].last_seen >= since + lasted
    assert all(one.digest != other.digest for one, other in pairwise(history))
    assert all(one.last_seen <= other.first_seen for one, other in pairwise(history))


def test_the_current_copy_is_the_last_version_despite_a_fast_clock() -> None:
    history = add((), [seen(A, NOW + 1e6)], NOW + 2e6)
    present = replace(snapshot(B, NOW + 50), since=int(NOW))
    assert with_current(history, present, NOW + 60)[-1].digest == digest(B)


def test_a_future_instant_counts_as_now() -> None:
    history = add((), [seen(A, NOW + 1e6)], NOW + 2e6)
    assert stretches(add(history, [seen(B, NOW - 5)], NOW)) == [
        (digest(B), int(NOW) - 5, int(NOW) - 5),
        (digest(A), int(NOW), int(NOW)),
    ]


def test_the_oldest_of_too_many_versions_are_dropped() -> None:
    history = add((), [seen(Unavailable(400 + number), number) for number in range(VERSIONS + 5)], NOW)
    assert [version.first_seen for version in history] == list(range(5, VERSIONS + 5))


def test_a_version_before_those_that_are_kept_is_not_new() -> None:
    history = add((), [seen((A, B)[at % 2], at) for at in range(100, 100 + VERSIONS)], NOW)
    assert not is_new(history, snapshot(C, 99))
    assert is_new(history[1:], snapshot(C, 99))
    assert is_new(history, snapshot(C, 100 + VERSIONS))


def test_the_oldest_versions_are_dropped_beyond_the_byte_limit() -> None:
    bodies = [b"Disallow: /%d\n" % at + os.urandom(200_000) for at in range(5)]
    history = add((), [seen(Successful(200, body), at) for at, body in enumerate(bodies)], NOW)
    assert [version.digest for version in history] == [digest(Successful(200, body)) for body in bodies[-3:]]
    assert len(write(history, TAG)) <= HISTORY_BYTES


def test_one_incompressible_file_of_the_limit_is_kept() -> None:
    largest = Snapshot(Successful(200, os.urandom(BODY_LIMIT), content_type="x" * 60_000), NOW)
    history = add((), [seen(A, NOW - 1), version_of(largest)], NOW)
    assert [version.digest for version in history] == [digest(A), digest(largest.access)]
    assert read(write(history, TAG)) == history


@pytest.mark.parametrize("access", [A, Unavailable(404), Unavailable(301, Cause.REDIRECT_LOOP), DOWN, Blocked("::1")])
def test_a_version_reads_back_as_its_snapshot(access: Access) -> None:
    [version] = read(write(add((), [seen(access, NOW)], NOW), TAG))
    found = version.read()
    assert found is not None
    assert found.access == access


def test_a_copy_in_use_during_failures_is_the_same_version() -> None:
    stands_in = replace(snapshot(A), failing=Failing(NOW, NOW, 1, DOWN))
    assert version_of(stands_in) == seen(A, NOW)


@given(STRETCHES)
def test_a_written_history_is_read_back(versions: list[Stretch]) -> None:
    history = add((), [held(*it) for it in versions], NOW)
    assert read(write(history, TAG)) == history


WRITTEN = write(add((), [seen(A, 10), seen(B, 20)], NOW), TAG)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda data: WRITTEN[:10] + data))
def test_any_bytes_can_be_read(data: bytes) -> None:
    for version in read(data):
        version.read()


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_a_damaged_version_is_dropped_or_equal(place: int, change: int) -> None:
    damaged = bytearray(WRITTEN)
    damaged[place] ^= change
    for version in read(bytes(damaged)):
        found = version.read()
        assert found is None or found.access in (A, B)


@pytest.mark.parametrize(
    "data", [b"", WRITTEN[:-1], WRITTEN + b"x", b"H\x01" + WRITTEN[2:], WRITTEN + bytes(HISTORY_BYTES)]
)
def test_a_malformed_history_is_empty(data: bytes) -> None:
    assert read(data) == ()


def test_a_history_out_of_order_is_empty() -> None:
    one, other = seen(A, 10), seen(B, 20)
    assert read(write((other, one), TAG)) == ()
    assert read(write((one, one), TAG)) == ()
    assert read(write((one._replace(last_seen=2**60),), TAG)) == ()


def test_content_that_does_not_match_its_digest_is_dropped() -> None:
    assert seen(A, 10)._replace(packed=encode(snapshot(B, 10))).read() is None


def test_a_version_lasts_until_the_next_or_while_a_copy_may_be_used() -> None:
    history = add((), [seen(A, 1000), seen(B, 2000), seen(B, 3000)], NOW)
    assert version_at(history, 999) is None
    assert version_at(history, 1000) == history[0]
    assert version_at(history, 1999) == history[0]
    assert version_at(history, 2000) == history[1]
    assert version_at(history, 3000 + KEEP) == history[1]
    assert version_at(history, 3001 + KEEP) is None


FINDINGS: st.SearchStrategy[list[tuple[int, Access]]] = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.sampled_from(
            [A, Unavailable(404), DOWN, Unreachable(Cause.SERVER_ERROR, 503), Unreachable(Cause.CHALLENGE, 202)]
        ),
    ),
    min_size=1,
    max_size=8,
)


@given(FINDINGS, st.data())
def test_a_past_instant_knows_no_failure_of_later(found: list[tuple[int, Access]], data: st.DataObject) -> None:
    """Versions of fetches one after another, some of them sent by callers, and added to the history in any order."""
    at, latest = int(NOW), None
    ended: list[Snapshot] = []
    failures: list[tuple[int, Unreachable, str | None]] = []
    for seconds, access in found:
        at += seconds
        sender = data.draw(st.sampled_from([None, "key"]))
        following = next_snapshot(latest, Fetched(access), float(at), ingested=sender)
        if latest is not None and not same(latest.access, following.access):
            ended.append(latest)
        if isinstance(access, Unreachable):
            failures.append((at, access, sender))
        latest = following
    assert latest is not None
    history: History = ()
    for last in data.draw(st.permutations(ended)):
        history = add(history, [version_of(last)], at)
    history = with_current(history, latest, at)
    for instant in range(int(NOW), at + 50):
        version = version_at(history, instant)
        packed = None if version is None else version.read()
        if packed is None:
            continue
        known = known_at(packed, instant)
        assert digest(known.access) == digest(packed.access)
        assert known.checked_at <= instant or known.failing is None
        if known.failing is not None:
            assert (known.failing.last_at, known.failing.failure) in [(it[0], it[1]) for it in failures]
            assert known.failing.last_at <= instant
            if known.failing.attempts == 1:
                assert (known.failing.last_at, known.failing.failure, known.ingested) in failures


def test_failures_that_join_keep_the_first_one() -> None:
    """An earlier one that a caller sent is of the past alone, so it has a version of its own."""
    sent = next_snapshot(None, Fetched(Unreachable(Cause.SERVER_ERROR, 503)), NOW - 100, ingested="key")
    own = next_snapshot(next_snapshot(None, Fetched(DOWN), NOW), Fetched(DOWN), NOW + 50)
    for order in ([sent, own], [own, sent], [own, sent, own, sent]):
        history: History = ()
        for snapshot in order:
            history = add(history, [version_of(snapshot)], NOW + 60)
        [version] = history
        read = version.read()
        assert read is not None
        then = known_at(read, NOW - 50)
        assert (then.access, then.ingested, then.checked_at) == (sent.access, "key", NOW - 100)
        assert known_at(read, NOW + 60).access == DOWN
