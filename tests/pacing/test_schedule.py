"""The pace over time: windows of the file, the operators' delay, floor and cap."""

import math
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.recheck import Pace
from app.overrides.table import Override
from app.pacing.law import advance
from app.pacing.schedule import (
    MAX_WINDOWS,
    MIN_INTERVAL,
    Bounds,
    PaceWindow,
    host_bounds,
    interval_at,
    pace_windows,
)
from robots_core.robots.rates import PLAIN_RATES, Rate, RequestRate, Timetable, Window, rate_timetable

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86_400.0
BOUNDS = Bounds(1.0, DAY)


def rates(*rows: tuple[int, int, int | None, int | None]) -> Timetable[Rate | None]:
    """Request-rates with windows from one hour of the day to another."""
    declared = [
        RequestRate(documents, seconds, None if start is None or end is None else Window(start * 60, end * 60), line)
        for line, (documents, seconds, start, end) in enumerate(rows, 1)
    ]
    return rate_timetable(declared, None, PLAIN_RATES)


def delay(seconds: float, expires_at: float | None = None) -> Override:
    return Override("slow", "example.com", (), "delay", "because", expires_at, shadow=False, delay=seconds)


def test_without_a_rate_the_floor_is_the_interval() -> None:
    assert pace_windows(None, NOON, BOUNDS) == pace_windows(rates(), NOON, BOUNDS) == (PaceWindow(math.inf, 1.0),)


def test_a_rate_without_a_window_never_ends() -> None:
    assert pace_windows(rates((1, 5, None, None)), NOON, BOUNDS) == (PaceWindow(math.inf, 5.0, "file"),)


def test_windows_follow_each_other_from_now() -> None:
    found = pace_windows(rates((1, 10, 14, 18), (1, 2, None, None)), NOON, BOUNDS)
    assert found[:3] == (
        PaceWindow(NOON + 2 * HOUR, 2.0, "file"),
        PaceWindow(NOON + 6 * HOUR, 10.0, "file"),
        PaceWindow(NOON + 26 * HOUR, 2.0, "file"),
    )
    assert len(found) == MAX_WINDOWS
    assert found[-1] == PaceWindow(math.inf, 10.0, "file")


def test_beyond_max_windows_the_slowest_interval_holds() -> None:
    every_hour = rates(*((1, 2 + hour, hour, hour + 1) for hour in range(24)))
    found = pace_windows(every_hour, NOON, BOUNDS)
    assert [window.interval for window in found[:-1]] == [
        14.0 + hour if hour < 12 else hour - 10.0 for hour in range(15)
    ]
    assert found[-1].interval == 25.0


def test_windows_of_equal_interval_are_merged() -> None:
    # Below the floor, all are equal.
    fast = rates((10, 1, 14, 18), (5, 1, None, None))
    assert {window.interval for window in pace_windows(fast, NOON, BOUNDS)} == {1.0}
    assert len(pace_windows(fast, NOON, BOUNDS)) == 1


@pytest.mark.parametrize(
    ("declared", "expected"), [(None, 2.0), (0.0, 2.0), (1.0, 2.0), (30.0, 30.0), (1e18, 60.0), (60.0, 60.0)]
)
def test_an_interval_is_clamped_to_floor_and_cap(declared: float | None, expected: float) -> None:
    assert Bounds(2.0, 60.0).clamp(declared) == expected


def test_no_interval_is_zero() -> None:
    assert Bounds(0.0, 0.0).clamp(None) == MIN_INTERVAL


def test_a_floor_above_its_cap_is_refused() -> None:
    with pytest.raises(ValueError, match=r"floor of the pace \(5 s\)"):
        Bounds(5, 2)


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        (None, Bounds(1, 60)),
        (Pace(5, None), Bounds(5, 60)),
        (Pace(90, None), Bounds(90, 90)),
        (Pace(None, 30), Bounds(1, 30)),
        (Pace(None, 0.5), Bounds(0.5, 0.5)),
        (Pace(0.1, 0.2), Bounds(0.1, 0.2)),
    ],
)
def test_host_bounds_override_the_settings(pace: Pace | None, expected: Bounds) -> None:
    assert host_bounds(Bounds(1, 60), pace) == expected


def test_a_delay_override_slows_down_until_it_expires() -> None:
    file = rates((1, 10, 14, 18), (1, 2, None, None))
    found = pace_windows(file, NOON, BOUNDS, delay(5, NOON + HOUR))
    assert found[:3] == (
        PaceWindow(NOON + HOUR, 5.0, "override"),
        PaceWindow(NOON + 2 * HOUR, 2.0, "file"),
        PaceWindow(NOON + 6 * HOUR, 10.0, "file"),
    )
    assert pace_windows(file, NOON, BOUNDS, delay(30)) == (PaceWindow(math.inf, 30.0, "override"),)
    assert pace_windows(None, NOON, BOUNDS, delay(30, NOON + HOUR)) == (
        PaceWindow(NOON + HOUR, 30.0, "override"),
        PaceWindow(math.inf, 1.0),
    )
    assert pace_windows(None, NOON, BOUNDS, delay(30, NOON - HOUR)) == (PaceWindow(math.inf, 1.0),)


def test_a_delay_override_is_capped() -> None:
    assert pace_windows(None, NOON, Bounds(1, 10), delay(30)) == (PaceWindow(math.inf, 10.0, "override"),)


STEPS = (PaceWindow(100.0, 10.0), PaceWindow(200.0, 2.0), PaceWindow(math.inf, 50.0))


@pytest.mark.parametrize(
    ("at", "documents", "expected"),
    [(0, 1, 10), (0, 10, 100), (0, 11, 102), (95, 1, 101), (150, 25, 200), (150, 26, 250), (300, 2, 400)],
)
def test_advance_counts_each_window_at_its_interval(at: float, documents: float, expected: float) -> None:
    assert advance(STEPS, at, documents) == pytest.approx(expected)


def test_a_boundary_belongs_to_the_window_after_it() -> None:
    assert [interval_at(STEPS, at) for at in (0, 99.9, 100, 199.9, 200, 1e9)] == [10, 10, 2, 2, 50, 50]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 999), st.integers(0, 23), st.integers(1, 24)), max_size=12),
    st.floats(0, 4e9),
    st.floats(0, 100),
)
def test_windows_are_ordered_and_never_faster_than_the_file(
    rows: list[tuple[int, int, int, int]], now: float, documents: float
) -> None:
    table = rates(*rows)
    found = pace_windows(table, now, BOUNDS)
    assert 1 <= len(found) <= MAX_WINDOWS
    assert all(first.until < later.until for first, later in pairwise(found))
    assert found[0].until > now
    assert found[-1].until == math.inf
    begins = now
    for span in found:
        rate = table.at(datetime.fromtimestamp(begins, UTC)).value
        assert span.interval >= BOUNDS.clamp(None if rate is None else rate.interval)
        begins = span.until if math.isfinite(span.until) else begins
    assert advance(found, now, documents) >= now
