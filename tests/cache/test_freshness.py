"""How long a snapshot is fresh and usable (RFC 9309 2.3.1.4 and 2.4, RFC 9111 4.2, spec A21 to A29)."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.freshness import (
    DAY,
    HOUR,
    KEEP,
    Failing,
    Recheck,
    Snapshot,
    State,
    delay,
    doubted,
    freshness,
    lifetime,
    next_snapshot,
    usable,
)
from robots_core.robots.access import (
    Access,
    Blocked,
    Cause,
    Fetched,
    Lifetime,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)
from robots_core.robots.judge import hides_rules
from robots_core.times import LONGEST_DELTA

NOW = 1_790_000_000.0
KEY = "https://www.example.com"
KEYS = [f"https://host{number}.example" for number in range(300)]
FILE = Successful(200, b"User-agent: *\nDisallow: /a\n")
DOWN = Unreachable(Cause.SERVER_ERROR, 503)
COPY = Snapshot(FILE, NOW, "https://example.com/r", Validators('"1"', "Mon"), 600.0)
DEFAULT = Recheck()


def failed(
    times: int, first_at: float = NOW, failure: Unreachable = DOWN, previous: Snapshot | None = None
) -> Snapshot:
    for attempt in range(times):
        previous = next_snapshot(previous, Fetched(failure), first_at + attempt)
    assert previous is not None
    return previous


PAGE = Successful(200, b"<!DOCTYPE html><title>Are you a person?</title>", content_type="text/html")


def after(previous: Snapshot | None, found: Access, now: float) -> Snapshot:
    """The snapshot after a fetch that may have found a web page."""
    return next_snapshot(previous, doubted(previous, Fetched(found), now, hides_rules), now)


# A web page in place of a file (spec Q9).


def test_a_page_replaces_rules_after_a_day_and_two_fetches() -> None:
    first = after(COPY, PAGE, NOW + 60)
    assert (first.access, first.failing) == (FILE, Failing(NOW + 60, NOW + 60, 1, Unreachable(Cause.HTML_PAGE, 200)))
    second = after(first, PAGE, NOW + 59 + DAY)
    assert (second.access, second.failing and second.failing.attempts) == (FILE, 2)
    assert after(second, PAGE, NOW + 60 + DAY) == Snapshot(PAGE, NOW + 60 + DAY)
    assert after(first, PAGE, NOW + 60 + DAY) == Snapshot(PAGE, NOW + 60 + DAY)
    assert after(second, FILE, NOW + 60 + DAY) == Snapshot(FILE, NOW + 60 + DAY, since=int(NOW))


def test_a_page_has_to_stay_for_a_day_without_other_failures() -> None:
    down = failed(3, NOW + 60, previous=COPY)
    page = after(down, PAGE, NOW + 2 * DAY)
    assert page.failing == Failing(NOW + 2 * DAY, NOW + 2 * DAY, 1, Unreachable(Cause.HTML_PAGE, 200))
    assert after(page, PAGE, NOW + 3 * DAY).access is PAGE
    again = after(after(page, DOWN, NOW + 2 * DAY + 1), PAGE, NOW + 3 * DAY)
    assert again.failing is not None
    assert (again.access, again.failing.since) == (FILE, NOW + 3 * DAY)


@pytest.mark.parametrize(
    ("previous", "found"),
    [
        (None, PAGE),
        (Snapshot(Unavailable(404), NOW), PAGE),
        (failed(2), PAGE),
        (Snapshot(Successful(200, b"Sitemap: https://h.example/s\n"), NOW), PAGE),
        (Snapshot(PAGE, NOW), Successful(200, b"<html>")),
        (replace(COPY, fetched_at=NOW - KEEP), PAGE),
        (COPY, replace(PAGE, content_type="text/plain")),
        (COPY, Successful(200, b"<html>\nUser-agent: *\nDisallow: /b\n")),
        (COPY, Successful(200, b"")),
    ],
)
def test_a_page_counts_at_once_where_it_hides_no_rules(previous: Snapshot | None, found: Access) -> None:
    assert after(previous, found, NOW + 60).access is found


# The snapshot after a fetch.


@pytest.mark.parametrize("access", [FILE, Unavailable(404), Blocked("10.0.0.1")])
@pytest.mark.parametrize("previous", [None, COPY, failed(3), failed(3, previous=COPY), Snapshot(Unavailable(403), 1.0)])
def test_an_answer_replaces_the_previous_one(
    access: Successful | Unavailable | Blocked, previous: Snapshot | None
) -> None:
    fetched = Fetched(access, "https://b.example/r", Validators('"2"'), Lifetime(cache_control="max-age=60"))
    after = next_snapshot(previous, fetched, NOW + 9)
    assert replace(after, since=None) == Snapshot(access, NOW + 9, "https://b.example/r", Validators('"2"'), 60.0)


def test_rfc9309_a_failure_keeps_the_last_good_copy() -> None:
    after = next_snapshot(COPY, Fetched(DOWN), NOW + 50)
    assert after == replace(COPY, failing=Failing(NOW + 50, NOW + 50, 1, DOWN))


def test_a_run_of_failures_keeps_its_beginning_and_its_last() -> None:
    timeout = Unreachable(Cause.TIMEOUT)
    after = next_snapshot(failed(2, NOW + 50, previous=COPY), Fetched(timeout), NOW + 900)
    assert after.failing == Failing(NOW + 50, NOW + 900, 3, timeout)
    assert after.access is FILE


def test_a_run_of_failures_does_not_begin_in_the_future() -> None:
    after = next_snapshot(failed(1), Fetched(DOWN), NOW - 100)
    assert after.failing == Failing(NOW - 100, NOW - 100, 2, DOWN)


def test_rfc9309_without_a_copy_a_failure_is_unreachable() -> None:
    assert next_snapshot(None, Fetched(DOWN, "https://b.example/r"), NOW) == Snapshot(
        DOWN, NOW, "https://b.example/r", failing=Failing(NOW, NOW, 1, DOWN)
    )


@pytest.mark.parametrize("held", [Unavailable(404), Blocked("10.0.0.1")])
def test_rfc9309_only_a_file_is_used_for_an_unreachable_origin(held: Unavailable | Blocked) -> None:
    assert next_snapshot(Snapshot(held, NOW), Fetched(DOWN), NOW + 1).access is DOWN


def test_spec_a29_a_copy_is_used_for_thirty_days_and_no_longer() -> None:
    failing = next_snapshot(COPY, Fetched(DOWN), NOW + DAY)
    assert next_snapshot(failing, Fetched(DOWN), NOW + KEEP).access is FILE
    late = next_snapshot(failing, Fetched(DOWN), NOW + KEEP + 1)
    assert late.access is DOWN
    assert late.failing == Failing(NOW + DAY, NOW + KEEP + 1, 2, DOWN)


def test_rfc9110_not_modified_renews_the_copy() -> None:
    after = next_snapshot(failed(2, previous=COPY), Fetched(NotModified(), "https://example.com/r"), NOW + 700)
    assert after == replace(COPY, fetched_at=NOW + 700, since=int(NOW))
    assert after.access is FILE


def test_rfc9111_not_modified_updates_the_fields_it_carries() -> None:
    fetched = Fetched(NotModified(), None, Validators(etag='"2"'), Lifetime(cache_control="max-age=30"))
    after = next_snapshot(COPY, fetched, NOW)
    assert (after.validators, after.lifetime) == (Validators('"2"', "Mon"), 30.0)
    silent = next_snapshot(COPY, Fetched(NotModified(), lifetime=Lifetime(cache_control="public")), NOW)
    assert silent.lifetime is None


@pytest.mark.parametrize("previous", [None, Snapshot(Unavailable(404), NOW), failed(1)])
def test_not_modified_without_a_copy_is_a_bad_response(previous: Snapshot | None) -> None:
    assert next_snapshot(previous, Fetched(NotModified()), NOW).access == Unreachable(Cause.BAD_RESPONSE, 304)


# The beginning of a content.


def course(*found: Access | NotModified, every: float = 100.0) -> list[float]:
    """`held_since` after each of these fetches, in seconds from the first one."""
    known: Snapshot | None = None
    since = []
    for number, access in enumerate(found):
        known = next_snapshot(known, Fetched(access), NOW + number * every)
        since.append(known.held_since - NOW)
    return since


OTHER = Successful(200, b"User-agent: *\n")
BUSY = Unreachable(Cause.TOO_MANY_REQUESTS, 429)


@pytest.mark.parametrize(
    ("found", "since"),
    [
        ([FILE, NotModified(), Successful(206, FILE.body), NotModified()], [0, 0, 0, 0]),
        ([FILE, DOWN, DOWN, NotModified(), DOWN, FILE], [0, 0, 0, 0, 0, 0]),
        ([FILE, OTHER, OTHER, FILE], [0, 100, 100, 300]),
        ([FILE, Unavailable(404), Unavailable(404), Unavailable(403)], [0, 100, 100, 300]),
        ([Unavailable(404), DOWN, BUSY, Unavailable(404)], [0, 100, 100, 300]),
        ([Blocked("10.0.0.1"), Blocked("10.0.0.2"), FILE], [0, 0, 200]),
        ([FILE, DOWN, OTHER], [0, 0, 200]),
    ],
)
def test_content_is_dated_to_the_first_fetch_that_found_it(
    found: list[Access | NotModified], since: list[float]
) -> None:
    assert course(*found) == since


def test_a_copy_past_thirty_days_gives_way_to_the_failures() -> None:
    assert course(FILE, DOWN, DOWN, every=KEEP / 2 + 1) == [0, 0, KEEP + 2]


@given(st.lists(st.tuples(st.sampled_from([FILE, OTHER, NotModified(), DOWN]), st.floats(-1e11, 1e11)), min_size=1))
def test_a_version_never_begins_after_its_own_fetch(
    fetches: list[tuple[Access | NotModified, float]],
) -> None:
    known: Snapshot | None = None
    for access, now in fetches:
        known = next_snapshot(known, Fetched(access), now)
        assert known.held_since <= known.fetched_at


# Whether a snapshot is usable.


def test_a_snapshot_checked_within_thirty_days_is_usable() -> None:
    for snapshot in (COPY, failed(1), failed(1, previous=COPY), Snapshot(Unavailable(404), NOW)):
        assert usable(snapshot, NOW + KEEP) is snapshot
        assert usable(snapshot, NOW + KEEP + 1) is None


def test_a_copy_past_its_time_leaves_the_failures() -> None:
    failing = next_snapshot(COPY, Fetched(DOWN), NOW + KEEP)
    assert usable(failing, NOW + KEEP) is failing
    left = usable(failing, NOW + KEEP + 1)
    assert left == Snapshot(DOWN, NOW + KEEP, failing=failing.failing)


# Delays.


def test_spec_a23_a_response_without_lifetime_is_fresh_for_a_day() -> None:
    assert 0.9 * DAY <= delay(replace(COPY, lifetime=None), DEFAULT, KEY) <= DAY


@pytest.mark.parametrize(
    ("requested", "low", "high"),
    [
        (0.0, 300, 330),
        (60.0, 300, 330),
        (3600.0, 3240, 3960),
        (DAY, 0.9 * DAY, DAY),
        (9 * DAY, 0.9 * DAY, DAY),
    ],
)
def test_spec_a23_a_lifetime_counts_within_the_bounds(requested: float, low: float, high: float) -> None:
    for key in KEYS:
        assert low <= delay(replace(COPY, lifetime=requested), DEFAULT, key) <= high


def test_delays_are_spread_evenly_and_the_same_everywhere() -> None:
    delays = [delay(replace(COPY, lifetime=3600.0), DEFAULT, key) for key in KEYS]
    thirds = [sum(3240 + third * 240 <= one < 3480 + third * 240 for one in delays) for third in range(3)]
    assert min(thirds) > len(KEYS) / 5
    assert delay(replace(COPY, lifetime=3600.0), DEFAULT, KEY) == pytest.approx(3254.92, abs=0.01)


def test_bounds_of_a_recheck_model_hold() -> None:
    assert delay(COPY, Recheck(minimum=50, maximum=50), KEY) == 50


def test_spec_a23_failures_are_retried_after_5_to_60_doubling_minutes() -> None:
    for times, wanted in enumerate([300, 600, 1200, 2400, 3600, 3600, 3600], start=1):
        for key in KEYS[:50]:
            low, high = max(300, 0.9 * wanted), min(3600, 1.1 * wanted)
            assert low <= delay(failed(times), DEFAULT, key) <= high
            assert low <= delay(failed(times, previous=COPY), DEFAULT, key) <= high


@pytest.mark.parametrize("requested", [400, 3000, 3600, 7200, 86400])
def test_spec_a23_retry_after_is_never_undercut(requested: int) -> None:
    for key in KEYS[:50]:
        waited = delay(failed(1, failure=replace(DOWN, retry_after=requested)), DEFAULT, key)
        assert requested <= waited <= min(1.1 * requested, DAY)


@pytest.mark.parametrize(("requested", "waited"), [(0, 300), (1, 300), (10**30, DAY)])
def test_retry_after_is_obeyed_up_to_a_day_and_shortens_nothing(requested: int, waited: float) -> None:
    assert waited <= delay(failed(1, failure=replace(DOWN, retry_after=requested)), DEFAULT, KEY) <= max(330, waited)
    assert delay(failed(9, failure=replace(DOWN, retry_after=60)), DEFAULT, KEY) >= 3240


def test_a_blocked_address_is_retried_like_a_first_failure() -> None:
    blocked = Snapshot(Blocked("10.0.0.1"), NOW, failing=None)
    assert delay(blocked, DEFAULT, KEY) == delay(failed(1), DEFAULT, KEY)


# States.


def test_a_snapshot_is_fresh_then_in_grace_then_due() -> None:
    wait = delay(COPY, DEFAULT, KEY)
    states = [
        freshness(COPY, DEFAULT, KEY, NOW + after).state
        for after in (0, wait - 1, wait, wait * 1.1 - 1, wait * 1.1 + 1, KEEP)
    ]
    assert states == [State.FRESH, State.FRESH, State.GRACE, State.GRACE, State.DUE, State.DUE]


def test_the_grace_period_is_at_most_an_hour() -> None:
    daily = replace(COPY, lifetime=None)
    wait = delay(daily, DEFAULT, KEY)
    assert freshness(daily, DEFAULT, KEY, NOW + wait + HOUR - 1).state is State.GRACE
    assert freshness(daily, DEFAULT, KEY, NOW + wait + HOUR + 1).state is State.DUE


def test_a_failing_origin_has_a_backoff_and_no_grace_period() -> None:
    for failing in (failed(1), failed(1, previous=COPY)):
        wait = delay(failing, DEFAULT, KEY)
        assert freshness(failing, DEFAULT, KEY, NOW + wait - 1).state is State.FRESH
        assert freshness(failing, DEFAULT, KEY, NOW + wait + 1).state is State.DUE


def test_stale_is_a_copy_past_its_own_recheck_while_refreshing_fails() -> None:
    late = NOW + delay(COPY, DEFAULT, KEY) + 1
    failing = next_snapshot(COPY, Fetched(DOWN), late)
    assert freshness(failing, DEFAULT, KEY, late).stale
    assert not freshness(COPY, DEFAULT, KEY, late).stale
    assert not freshness(failed(1), DEFAULT, KEY, late).stale
    early = next_snapshot(COPY, Fetched(DOWN), NOW + 1)
    assert not freshness(early, DEFAULT, KEY, NOW + 1).stale


def test_the_age_is_that_of_the_copy_not_of_the_last_attempt() -> None:
    assert freshness(next_snapshot(COPY, Fetched(DOWN), NOW + 900), DEFAULT, KEY, NOW + 950).age == 950


@given(st.floats(-1e12, 1e12), st.floats(0, 1e11), st.floats(0, 1e11))
def test_a_clock_set_back_does_no_harm(now: float, fetched_at: float, failed_at: float) -> None:
    copy = Snapshot(FILE, fetched_at)
    for snapshot in (copy, next_snapshot(copy, Fetched(DOWN), failed_at)):
        stands = freshness(snapshot, DEFAULT, KEY, now)
        assert stands.age >= 0
        assert now - KEEP - 2 * DAY <= stands.recheck_at + max(0, now - snapshot.checked_at)
        assert stands.recheck_at <= now + DAY
        usable(snapshot, now)
        next_snapshot(snapshot, Fetched(DOWN), now)


def test_a_fetch_in_the_future_counts_as_now() -> None:
    stands = freshness(COPY, DEFAULT, KEY, NOW - 1000)
    assert (stands.state, stands.age, stands.recheck_at) == (State.FRESH, 0, NOW - 1000 + delay(COPY, DEFAULT, KEY))


# Lifetimes of responses.

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
LATER = "Sun, 06 Nov 1994 09:49:37 GMT"
THEN = 784111777.0


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        (Lifetime(), None),
        (Lifetime(age="5", date=DATE), None),
        (Lifetime(cache_control="public"), None),
        (Lifetime(cache_control=""), None),
        (Lifetime(cache_control="max-age=600"), 600),
        (Lifetime(cache_control="MAX-AGE=600"), 600),
        (Lifetime(cache_control='public,max-age="600", must-revalidate'), 600),
        (Lifetime(cache_control="max-age = 600"), 600),
        (Lifetime(cache_control="max-age=600, s-maxage=60"), 60),
        (Lifetime(cache_control="max-age=600", age="100"), 500),
        (Lifetime(cache_control="max-age=600", age="700"), 0),
        (Lifetime(cache_control="max-age=600", age="100, 200"), 500),
        (Lifetime(cache_control="max-age=600", age="-1"), 600),
        (Lifetime(cache_control="max-age=600", age="soon"), 600),
        (Lifetime(cache_control="max-age=600, max-age=60"), 600),
        (Lifetime(cache_control="max-age=600", expires=DATE, date=LATER), 600),
        (Lifetime(cache_control="x-max-age=600"), None),
        (Lifetime(cache_control='ext="max-age=5, no-store", max-age=600'), 600),
        (Lifetime(cache_control="max-age"), 0),
        (Lifetime(cache_control="max-age=-1"), 0),
        (Lifetime(cache_control="max-age=1.5"), 0),
        (Lifetime(cache_control="max-age=²"), 0),
        (Lifetime(cache_control="max-age=" + "9" * 5000), LONGEST_DELTA),
        (Lifetime(cache_control="max-age=" + "0" * 5000 + "60"), 60),
        (Lifetime(cache_control="max-age=600, no-store"), 0),
        (Lifetime(cache_control="No-Cache"), 0),
        (Lifetime(expires=LATER, date=DATE), 3600),
        (Lifetime(expires=LATER, date=DATE, age="600"), 3000),
        (Lifetime(expires=DATE, date=LATER), 0),
        (Lifetime(expires=LATER), 3600),
        (Lifetime(expires=LATER, date="yesterday"), 3600),
        (Lifetime(cache_control="public", expires=LATER, date=DATE), 3600),
        (Lifetime(expires="Sunday, 06-Nov-94 09:49:37 GMT", date="Sun Nov  6 08:49:37 1994"), 3600),
        (Lifetime(expires=f"{LATER}, {DATE}", date=DATE), 0),
        (Lifetime(expires=f"{LATER} {' (' * 9000}", date=DATE), 0),
        (Lifetime(expires="Fri, 31 Dec 9999 23:59:59 GMT", date=DATE), LONGEST_DELTA),
        (Lifetime(expires="0"), 0),
        (Lifetime(expires="-1"), 0),
        (Lifetime(expires=""), 0),
        (Lifetime(expires="Sun, 06 Nov 1994 08:49:37 +9999999999"), 0),
        (Lifetime(expires="Sun, 06 Nov 99999999999999999999 08:49:37 GMT"), 0),
    ],
)
def test_rfc9111_freshness_lifetime(fields: Lifetime, seconds: float | None) -> None:
    assert lifetime(fields, THEN) == seconds


fields = st.none() | st.text(max_size=80) | st.from_regex(r"(max-age|s-maxage)\s?=\s?\"?[0-9.]*\"?,?")
dates = st.none() | st.text(" ,:+-0123456789GMTSunNov\u0661", max_size=60)


@given(fields, dates, dates, fields, st.floats(0, 1e11))
def test_any_field_value_can_be_read(
    cache_control: str | None, expires: str | None, date: str | None, age: str | None, now: float
) -> None:
    seconds = lifetime(Lifetime(cache_control, expires, date, age), now)
    assert seconds is None or 0 <= seconds <= LONGEST_DELTA


def test_failures_are_retried_at_growing_intervals() -> None:
    waits = [delay(failed(times), DEFAULT, KEY) for times in range(1, 6)]
    assert all(one < other for one, other in pairwise(waits))
