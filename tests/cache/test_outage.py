"""A simulated outage has the same snapshots as the cache would have at every instant."""

import pytest

from app.cache.freshness import DAY, HOUR, KEEP, MINUTE, Recheck, freshness, next_snapshot, usable
from app.cache.outage import simulate_outage
from robots_core.robots.access import Blocked, Cause, Fetched, Successful, Unavailable, Unreachable

COPY = Successful(200, b"User-agent: *\nDisallow: /")
DOWN = Unreachable(Cause.SERVER_ERROR, 503)
KEY = "https://www.example.com"
BEGAN = 1_000_000_000.0


def test_a_copy_is_used_in_an_outage_for_30_days_after_its_fetch() -> None:
    outage = simulate_outage(COPY, Fetched(DOWN), Recheck(), KEY, BEGAN, BEGAN)
    first, second = outage.timeline
    assert (first.at, first.kind) == (BEGAN, (Successful, True))
    assert second.kind == (Unreachable, False)
    fetched_at = first.snapshot.fetched_at
    assert BEGAN - DAY * 1.1 < fetched_at < BEGAN
    assert 0 < second.at - (fetched_at + KEEP) <= HOUR


def test_a_simulation_ends_as_the_same_fetches_would() -> None:
    held = next_snapshot(None, Fetched(COPY), 0.0)
    at = freshness(held, Recheck(), KEY, 0.0).recheck_at
    shift = BEGAN - at
    now = BEGAN + 3 * DAY
    held = next_snapshot(None, Fetched(COPY), shift)
    at = BEGAN
    while at <= now:
        held = next_snapshot(held, Fetched(DOWN), at)
        at = freshness(held, Recheck(), KEY, at).recheck_at
    outage = simulate_outage(COPY, Fetched(DOWN), Recheck(), KEY, BEGAN, now)
    assert outage.now.snapshot.failing is not None
    assert held.failing is not None
    assert outage.now.snapshot.failing.attempts == held.failing.attempts
    assert outage.now.snapshot.access == held.access
    assert outage.now.freshness.recheck_at == pytest.approx(at)
    assert usable(outage.now.snapshot, now) is outage.now.snapshot


def test_an_outage_obeys_backoff_and_retry_after() -> None:
    def next_try(after: float, access: Unreachable = DOWN) -> float:
        now = BEGAN + after
        return simulate_outage(None, Fetched(access), Recheck(), KEY, BEGAN, now).now.freshness.recheck_at - now

    assert next_try(0) <= 1.1 * 5 * MINUTE
    assert (
        simulate_outage(None, Fetched(DOWN), Recheck(), KEY, BEGAN, BEGAN + DAY).now.freshness.recheck_at > BEGAN + DAY
    )
    slow = Unreachable(Cause.TOO_MANY_REQUESTS, 429, retry_after=12 * 3600)
    assert next_try(0, slow) >= 12 * HOUR


@pytest.mark.parametrize("access", [Unavailable(404), Unavailable(403), Blocked("10.0.0.1")])
def test_an_answer_replaces_the_copy_at_once(access: Unavailable | Blocked) -> None:
    outage = simulate_outage(COPY, Fetched(access), Recheck(), KEY, BEGAN, BEGAN + 2 * DAY)
    assert [entry.kind for entry in outage.timeline] == [(type(access), False)]
    assert outage.now.snapshot.access == access
