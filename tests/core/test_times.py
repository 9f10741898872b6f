"""Durations of people and of HTTP."""

import math
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.times import LONGEST_DELTA, read_delta_seconds, read_instant, read_retry_after, rfc3339

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("60", 60),
        ("2147483648", LONGEST_DELTA),
        ("2147483649", LONGEST_DELTA),
        ("9" * 5000, LONGEST_DELTA),
        ("0" * 5000 + "60", 60),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1.5", None),
        ("1e3", None),
        (" 1", None),
        ("²", None),
        ("٣", None),
    ],
)
def test_rfc9111_delta_seconds(text: str, seconds: float | None) -> None:
    assert read_delta_seconds(text) == seconds
    assert read_retry_after(text, NOW) == seconds


@given(st.integers(0, 4_000_000_000))
def test_rfc9110_a_date_is_seconds_from_now(at: int) -> None:
    assert read_retry_after(formatdate(at, usegmt=True), NOW) == at - NOW


@given(st.text(max_size=70))
def test_retry_after_is_never_an_error(text: str) -> None:
    seconds = read_retry_after(text, NOW)
    assert seconds is None or math.isfinite(seconds)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-12-31T23:59:60Z", "2026-12-31T23:59:59Z"),
        ("2026-12-31T15:59:60.5-08:00", "2026-12-31T23:59:59Z"),
        ("2026-12-31T23:59:60+01:00", None),
        ("2026-12-31T12:00:60Z", None),
        ("2026-12-31T23:59:61Z", None),
    ],
)
def test_rfc3339_a_leap_second_is_the_one_before(text: str, read: str | None) -> None:
    at = read_instant(text)
    assert (None if at is None else rfc3339(at)) == read


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("10:00:00Z", 0), ("10:00:00.9Z", 900_000), ("10:00:00.999999999Z", 999_999), ("10:00:00.000001+02:00", 1)],
)
def test_rfc3339_a_fraction_counts(text: str, fraction: int) -> None:
    at = read_instant(f"2026-11-27T{text}")
    assert at is not None
    assert at.microsecond == fraction
