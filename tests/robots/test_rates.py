"""The rate in force at an instant, and until when (spec F5-F9, F14, G2-G5, L3)."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.robots.rates import (
    DAY_MINUTES,
    NO_RATES,
    PLAIN_RATES,
    SEZNAM_RATES,
    CrawlDelay,
    InForce,
    Rate,
    RatePolicy,
    RateSource,
    RateWarningCode,
    RequestRate,
    Span,
    Visit,
    VisitTime,
    Window,
    clamp_warnings,
    largest_delay,
    rate_timetable,
    read_crawl_delay,
    read_request_rate,
    read_visit_time,
    schedule,
    visit_at,
    visit_timetable,
)

MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)


def at(clock: str) -> datetime:
    return MIDNIGHT.replace(hour=int(clock[:2]), minute=int(clock[3:]))


def rates(*values: str) -> list[RequestRate]:
    read = [read_request_rate(value, line).value for line, value in enumerate(values, 1)]
    return [rate for rate in read if rate is not None]


def delay(value: str, line: int = 9) -> CrawlDelay:
    read = read_crawl_delay(value, line).value
    assert read is not None
    return read


def in_force(
    lines: Sequence[RequestRate], pause: CrawlDelay | None, policy: RatePolicy, instant: datetime
) -> InForce[Rate | None]:
    return rate_timetable(lines, pause, policy).at(instant)


def visit(values: Sequence[str], instant: datetime) -> Visit:
    table = visit_timetable(visits(values))
    assert table is not None
    return visit_at(table, instant)


def visits(values: Sequence[str]) -> list[VisitTime]:
    read = [read_visit_time(value, line).value for line, value in enumerate(values, 1)]
    return [visit for visit in read if visit is not None]


def contains(window: Window, minute: int) -> bool:
    if window.start < window.end:
        return window.start <= minute < window.end
    return minute >= window.start or minute < window.end


def rate_at(clock: str, *values: str, policy: RatePolicy = PLAIN_RATES) -> Rate | None:
    return in_force(rates(*values), None, policy, at(clock)).value


def window(text: str) -> Window | None:
    read = read_request_rate(f"1/10s {text}", 1)
    assert read.value is not None
    assert (read.warning is None) is (read.value.window is not None)
    return read.value.window


CONNER = ("1/10m 1300-1659", "1/20m 1700-0459", "5/1m 0500-1259")


@pytest.mark.parametrize(
    ("values", "policy", "intervals"),
    [
        (("1/10s 1800-1900",), SEZNAM_RATES, (None, None, None, 10, None)),
        (("1/8s 2200-0600",), SEZNAM_RATES, (8, None, None, None, 8)),
        (("1/2s", "1/8s 0800-1800"), SEZNAM_RATES, (2, 8, 8, 2, 2)),
        (("1/8s", "1/2s 0000-0600"), SEZNAM_RATES, (2, 8, 8, 8, 8)),
        (CONNER, PLAIN_RATES, (1200, 12, 12, 1200, 1200)),
        (CONNER, SEZNAM_RATES, (10, 10, 10, 10, 10)),
        (("1/60s",), SEZNAM_RATES, (10, 10, 10, 10, 10)),
    ],
)
def test_l3_worked_table(values: Sequence[str], policy: RatePolicy, intervals: Sequence[float | None]) -> None:
    found = [rate_at(clock, *values, policy=policy) for clock in ("03:00", "08:30", "12:00", "18:30", "23:30")]
    assert [rate and rate.interval for rate in found] == list(intervals)


@pytest.mark.parametrize(
    ("value", "documents", "seconds"),
    [
        ("1/10s", 1, 10),
        ("100/15M", 100, 900),
        ("400 / 1h", 400, 3600),
        ("9000/\t1D", 9000, 86400),
        ("10/60", 10, 60),
        ("1/10 m", 1, 600),
        ("007/010", 7, 10),
        ("1/" + "9" * 18 + "d", 1, (10**18 - 1) * 86400),
    ],
)
def test_f5_documents_per_time(value: str, documents: int, seconds: int) -> None:
    read = read_request_rate(value, 3)
    assert (read.value, read.warning) == (RequestRate(documents, seconds, None, 3), None)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "junk",
        "5",
        "0/10s",
        "1/0",
        "-1/10s",
        "1/-10",
        "1.5/10s",
        "1/1.5s",
        "1/1w",
        "1/10sec",
        "1//10s",
        "/10s",
        "1/",
        "١/٢",
        "1/10s,0800-0900",
        "1/10s0800-0900",
        "1/" + "9" * 19,
        "1" * 5000 + "/1",
        "1/1\ns",
        "٥/10s",
        "1/10ſ",
    ],
)
def test_f9_a_malformed_rate_is_ignored_and_reported(value: str) -> None:
    read = read_request_rate(value, 7)
    assert read.value is None
    assert read.warning is not None
    assert (read.warning.code, read.warning.line) == (RateWarningCode.MALFORMED, 7)
    assert len(read.warning.message) < 300


@pytest.mark.parametrize(
    "text", ["2500-2600", "0860-0900", "0800-0960", "2400-0600", "0800-2401", "0800", "8-9", "junk"]
)
def test_f9_a_rate_with_a_bad_window_applies_all_day(text: str) -> None:
    read = read_request_rate(f"1/10s {text}", 7)
    assert read.value == RequestRate(1, 10, None, 7)
    assert read.warning is not None
    assert read.warning.code is RateWarningCode.WINDOW


@pytest.mark.parametrize(
    "text",
    [
        "0700-2100",
        "700-2100",
        "07:00-21:00",
        "07.00-21.00",
        "7:00 - 21:00",
        "0700\t-\t2100",
        "0700–2100",
        "0700 – 2100",
        "0700-2100 UTC",
        "0700-2100 gmt",
        "0700-2100Z",
        "0700-2100UTC",
    ],
)
def test_f8d_spellings_of_a_window(text: str) -> None:
    assert window(text) == Window(7 * 60, 21 * 60)


@pytest.mark.parametrize(
    ("text", "minutes", "shown"),
    [
        ("1800-1900", 60, ("18:00", "19:00")),
        ("1300-1659", 240, ("13:00", "17:00")),
        ("2200-0600", 480, ("22:00", "06:00")),
        ("1700-0459", 720, ("17:00", "05:00")),
        ("2200-0000", 120, ("22:00", "24:00")),
        ("2200-2359", 120, ("22:00", "24:00")),
        ("0000-2400", DAY_MINUTES, ("00:00", "24:00")),
        ("0000-2359", DAY_MINUTES, ("00:00", "24:00")),
        ("0800-0800", DAY_MINUTES, ("08:00", "08:00")),
        ("0859-0859", DAY_MINUTES, ("08:59", "08:59")),
        ("0800-0759", DAY_MINUTES, ("08:00", "08:00")),
    ],
)
def test_f8bc_minutes_of_a_window(text: str, minutes: int, shown: tuple[str, str]) -> None:
    read = window(text)
    assert read is not None
    assert sum(contains(read, minute) for minute in range(DAY_MINUTES)) == minutes
    assert (read.start_text, read.end_text) == shown


@pytest.mark.parametrize(("value", "seconds"), [("10", 10), ("0", 0), ("2.5", 2.5), (" 007 ", 7), ("0.1", 0.1)])
def test_g2_crawl_delay_is_a_decimal_number(value: str, seconds: float) -> None:
    read = read_crawl_delay(value, 4)
    assert (read.value, read.warning) == (CrawlDelay(seconds, 4), None)


@pytest.mark.parametrize(
    "value", ["", "1,5", "10s", "-1", "+1", ".5", "1.", "1e3", "inf", "nan", "٣", "9" * 19, "9" * 5000, "1_0", "1 0"]
)
def test_g2_an_invalid_crawl_delay_is_ignored_and_reported(value: str) -> None:
    read = read_crawl_delay(value, 4)
    assert read.value is None
    assert read.warning is not None
    assert (read.warning.code, read.warning.line) == (RateWarningCode.MALFORMED, 4)


def test_g2_the_largest_of_several_delays_counts() -> None:
    stated = [delay("1", 1), delay("20", 2), delay("20.0", 3), delay("19.9", 4)]
    assert largest_delay(stated) == delay("20", 2)
    assert largest_delay(stated[2:]) == delay("20", 3)
    assert largest_delay([]) is None


def test_g2_a_delay_above_an_hour_is_marked() -> None:
    assert [delay(text).capped for text in ("3600", "3600.1")] == [False, True]


def test_g4_the_slower_of_delay_and_active_rate_is_in_force() -> None:
    lines, pause = rates("1/2s 0000-0600", "1/60s 2200-0000"), delay("10")
    found = {clock: in_force(lines, pause, PLAIN_RATES, at(clock)).value for clock in ("03:00", "12:00", "23:00")}
    ten_seconds = Rate(10.0, 1, 10, 10.0, RateSource.CRAWL_DELAY, 9, None)
    a_minute = Rate(60.0, 1, 60, 60.0, RateSource.REQUEST_RATE, 2, Window(22 * 60, DAY_MINUTES))
    assert found == {"03:00": ten_seconds, "12:00": ten_seconds, "23:00": a_minute}


def test_g4_on_a_tie_the_request_rate_is_named() -> None:
    rate = in_force(rates("6/1m"), delay("10"), PLAIN_RATES, MIDNIGHT).value
    assert rate == Rate(10.0, 6, 60, 10.0, RateSource.REQUEST_RATE, 1, None)


def test_g4_a_decimal_delay_is_one_document_in_that_time() -> None:
    assert in_force([], delay("2.5"), PLAIN_RATES, MIDNIGHT).value == Rate(
        2.5, 1, 2.5, 2.5, RateSource.CRAWL_DELAY, 9, None
    )


def test_g4_a_delay_of_zero_is_a_rate() -> None:
    assert in_force([], delay("0"), PLAIN_RATES, MIDNIGHT).value == Rate(0, 1, 0, 0, RateSource.CRAWL_DELAY, 9, None)


def test_google_obeys_no_rate_line() -> None:
    assert in_force(rates("1/60s"), delay("10"), NO_RATES, MIDNIGHT) == InForce(None, None)


def test_f14_seznam_does_not_use_crawl_delay() -> None:
    assert in_force([], delay("10"), SEZNAM_RATES, MIDNIGHT) == InForce(None, None)
    rate = in_force(rates("1/2s"), delay("10"), SEZNAM_RATES, MIDNIGHT).value
    assert rate is not None
    assert rate.source is RateSource.REQUEST_RATE


def test_q4_a_clamped_rate_has_the_declared_interval() -> None:
    rate = rate_at("18:30", "10/10m 1800-1900", policy=SEZNAM_RATES)
    assert rate == Rate(10.0, 10, 600, 60.0, RateSource.REQUEST_RATE, 1, Window(18 * 60, 19 * 60))


def test_f7_lines_above_ten_seconds_are_reported_as_clamped() -> None:
    lines = rates("1/1m", "8640/1d", "9000/1d", "1/1h 1800-1900")
    warnings = clamp_warnings(lines, delay("99"), SEZNAM_RATES)
    assert [(warning.code, warning.line) for warning in warnings] == [
        (RateWarningCode.CLAMPED, line) for line in (1, 4)
    ]
    assert clamp_warnings(lines, delay("99"), PLAIN_RATES) == []
    both = RatePolicy(clamp_seconds=50.0)
    assert [warning.line for warning in clamp_warnings(lines, delay("99"), both)] == [1, 4, 9]


def test_f8a_the_first_of_equally_slow_lines_is_named() -> None:
    rate = rate_at("12:00", "1/5s 0000-1300", "1/5s", "2/10s 0000-1300")
    assert rate is not None
    assert rate.line == 1


def test_q5_valid_until_is_the_next_change() -> None:
    lines = rates("1/10s 1800-1900")
    found = {clock: in_force(lines, None, PLAIN_RATES, at(clock)) for clock in ("17:59", "18:00", "18:59", "19:00")}
    assert {clock: now.valid_until for clock, now in found.items()} == {
        "17:59": at("18:00"),
        "18:00": at("19:00"),
        "18:59": at("19:00"),
        "19:00": at("18:00") + timedelta(days=1),
    }
    assert [now.value is None for now in found.values()] == [True, False, False, True]


def test_f8b_valid_until_looks_across_midnight() -> None:
    lines = rates("1/8s 2200-0600")
    assert in_force(lines, None, PLAIN_RATES, at("23:30")).valid_until == at("06:00") + timedelta(days=1)
    assert in_force(lines, None, PLAIN_RATES, at("00:30")).valid_until == at("06:00")


def test_windows_are_utc_in_any_zone_of_the_instant() -> None:
    found = in_force(rates("1/8s 2200-2300"), None, PLAIN_RATES, at("22:30").astimezone(timezone(timedelta(hours=9))))
    assert found.value is not None
    assert found.valid_until == at("23:00")


@pytest.mark.parametrize("offset", [-14, 0, 14])
def test_the_first_and_last_years_have_a_rate(offset: int) -> None:
    zone = timezone(timedelta(hours=offset))
    for instant in (datetime.min.replace(tzinfo=zone), datetime.max.replace(tzinfo=zone)):
        found = in_force(rates("1/8s 1000-1001"), None, PLAIN_RATES, instant)
        assert found.valid_until is None or found.valid_until > instant


def test_schedule_of_conners_day_has_no_gap() -> None:
    evening = Rate(1200.0, 1, 1200, 1200.0, RateSource.REQUEST_RATE, 2, Window(17 * 60, 5 * 60))
    assert schedule(rate_timetable(rates(*CONNER), None, PLAIN_RATES)) == [
        Span("00:00", "05:00", evening),
        Span("05:00", "13:00", Rate(12.0, 5, 60, 12.0, RateSource.REQUEST_RATE, 3, Window(5 * 60, 13 * 60))),
        Span("13:00", "17:00", Rate(600.0, 1, 600, 600.0, RateSource.REQUEST_RATE, 1, Window(13 * 60, 17 * 60))),
        Span("17:00", "24:00", evening),
    ]


def test_schedule_of_a_rate_without_windows_is_one_span() -> None:
    assert schedule(rate_timetable([], None, PLAIN_RATES)) == [Span("00:00", "24:00", None)]
    assert [
        (span.start, span.end) for span in schedule(rate_timetable(rates("1/5s 0800-0800"), None, PLAIN_RATES))
    ] == [("00:00", "24:00")]


def test_g5_visit_time_is_a_union_of_windows() -> None:
    times = ("0600-0800", "07:30 – 0900 UTC", "2200 0100")
    found = {clock: visit(times, at(clock)) for clock in ("05:59", "06:00", "08:59", "09:00", "23:00")}
    assert {clock: (now.visit_now, now.next_open, now.valid_until) for clock, now in found.items()} == {
        "05:59": (False, at("06:00"), at("06:00")),
        "06:00": (True, None, at("09:00")),
        "08:59": (True, None, at("09:00")),
        "09:00": (False, at("22:00"), at("22:00")),
        "23:00": (True, None, at("01:00") + timedelta(days=1)),
    }


def test_g5_windows_that_fill_the_day_never_close() -> None:
    found = visit(("0600-1759", "1800-0600"), at("12:00"))
    assert (found.visit_now, found.next_open, found.valid_until) == (True, None, None)


def test_g5_an_invalid_visit_time_is_ignored() -> None:
    assert visits(["always", "2500-2600"]) == []
    assert visit_timetable([]) is None
    warning = read_visit_time("always", 3).warning
    assert warning is not None
    assert (warning.code, warning.line) == (RateWarningCode.WINDOW, 3)


RATE = re.compile(
    r"([0-9]{1,18})[ \t]*/[ \t]*([0-9]{1,18})(?:[ \t]*([A-Za-z]+))?(?:[ \t]+(\S.*))?", re.ASCII | re.DOTALL
)
DELAY = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?", re.ASCII)
CLOCK = r"([0-9]{1,2})[:.]?([0-9]{2})"
DASHED = re.compile(rf"{CLOCK}[ \t]*[-–][ \t]*{CLOCK}[ \t]*(?:UTC|GMT|Z)?", re.ASCII | re.IGNORECASE)
BLANK = re.compile(rf"{CLOCK}[ \t]+{CLOCK}[ \t]*(?:UTC|GMT|Z)?", re.ASCII | re.IGNORECASE)
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY_MINUTES * 60}


def written_window(spellings: Sequence[re.Pattern[str]], text: str) -> Window | None:
    written = next((found for it in spellings if (found := it.fullmatch(text.strip(" \t")))), None)
    if written is None:
        return None
    start_hour, start_minute, end_hour, end_minute = map(int, written.groups())
    start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
    if max(start_minute, end_minute) > 59 or start >= DAY_MINUTES or end > DAY_MINUTES:
        return None
    return Window(start, (end + (end_minute == 59 and end != start)) or DAY_MINUTES)


def written_rate(text: str, line: int) -> tuple[RequestRate | None, bool]:
    """The rate, and whether its window is bad."""
    written = RATE.fullmatch(text.strip(" \t"))
    unit = UNITS.get((written[3] or "").lower()) if written else None
    if written is None or unit is None or not int(written[1]) or not int(written[2]):
        return None, False
    found = written_window([DASHED], written[4]) if written[4] else None
    return RequestRate(int(written[1]), int(written[2]) * unit, found, line), bool(written[4]) and found is None


PIECES = st.sampled_from(
    [*"0123456789/ -–:.smhdxZ\t\v", "08", "0800", "1/5", "1/10s ", "0800-1759", "UTC", "gmt", "9" * 17, "٣"]
)


@given(st.lists(PIECES, max_size=9).map("".join))
def test_values_are_read_as_they_are_spelled(text: str) -> None:
    rate, bad = written_rate(text, 3)
    read = read_request_rate(text, 3)
    assert (read.value, read.warning is not None) == (rate, bad or rate is None)
    seconds = float(text) if DELAY.fullmatch(text.strip(" \t")) else None
    delayed = read_crawl_delay(text, 3).value
    assert (delayed and delayed.seconds) == seconds
    visited = read_visit_time(text, 3).value
    assert (visited and visited.window) == written_window([DASHED, BLANK], text)


CLOCKS = st.integers(0, 23).map("{:02}".format)
WINDOWS = st.builds(
    "{}{}-{}{}".format, CLOCKS, st.sampled_from(["00", "01", "59"]), CLOCKS, st.sampled_from(["00", "01", "59"])
)


@given(st.lists(WINDOWS, min_size=1, max_size=8), st.integers(0, DAY_MINUTES - 1))
def test_g5_a_minute_is_open_in_any_window(values: list[str], minute: int) -> None:
    table = visit_timetable(visits(values))
    assert table is not None
    windows = [read.window for value in values if (read := read_visit_time(value, 1).value)]
    instant = MIDNIGHT + timedelta(minutes=minute)
    assert table.at(instant).value is any(contains(window, minute) for window in windows)


TEXT = st.text() | st.text(alphabet="0123456789/ -–:.smhdUTCZ\t") | st.text("0123456789", min_size=5000, max_size=5000)
LINES = st.lists(
    st.builds("{}/{}s {}".format, st.integers(1, 3), st.integers(1, 30), WINDOWS | st.just("")), max_size=6
).map(lambda values: rates(*values))
DELAYS = st.none() | st.integers(0, 20).map(lambda seconds: delay(str(seconds)))
PICKS = st.sampled_from([PLAIN_RATES, SEZNAM_RATES, NO_RATES])
INSTANTS = st.integers(0, DAY_MINUTES * 60 - 1).map(lambda second: MIDNIGHT + timedelta(seconds=second))


def by_the_letter(lines: Sequence[RequestRate], pause: CrawlDelay | None, policy: RatePolicy, minute: int) -> Any:
    """Reference for spec F8a, G4 and F7, line by line: (interval, line) or None."""
    active = [rate for rate in lines if rate.window is not None and contains(rate.window, minute)]
    active = active or [rate for rate in lines if rate.window is None]
    limits = [(rate.interval, -rate.line) for rate in active] if policy.uses_request_rate else []
    stated = [max(limits)] if limits else []
    if pause is not None and policy.uses_crawl_delay:
        stated.append((pause.seconds, -pause.line))
    if not stated:
        return None
    interval, line = max(stated)
    return min(interval, policy.clamp_seconds or interval), -line


@given(TEXT, st.integers())
def test_any_text_is_read_or_reported(text: str, line: int) -> None:
    for read in (read_request_rate(text, line), read_crawl_delay(text, line), read_visit_time(text, line)):
        assert read.value is not None or read.warning is not None


@given(LINES, DELAYS, PICKS)
def test_every_minute_has_the_rate_of_the_reference(
    lines: list[RequestRate], pause: CrawlDelay | None, policy: RatePolicy
) -> None:
    table = rate_timetable(lines, pause, policy)
    spans = schedule(table)
    assert (spans[0].start, spans[-1].end) == ("00:00", "24:00")
    assert all(one.end == two.start and one.rate != two.rate for one, two in pairwise(spans))
    for minute in range(DAY_MINUTES):
        clock = f"{minute // 60:02}:{minute % 60:02}"
        rate = table.at(MIDNIGHT + timedelta(minutes=minute)).value
        assert [span.rate for span in spans if span.start <= clock < span.end] == [rate]
        assert (rate and (rate.interval, rate.line)) == by_the_letter(lines, pause, policy, minute)


@given(LINES, DELAYS, PICKS, INSTANTS)
def test_a_rate_is_in_force_exactly_until_valid_until(
    lines: list[RequestRate], pause: CrawlDelay | None, policy: RatePolicy, instant: datetime
) -> None:
    table = rate_timetable(lines, pause, policy)
    now = table.at(instant)
    end = now.valid_until or instant + timedelta(days=1)
    assert instant < end <= instant + timedelta(days=1)
    minute = instant
    while minute < end:
        assert table.at(minute) == now
        minute += timedelta(minutes=1)
    assert (table.at(end).value == now.value) is (now.valid_until is None)


def test_many_windows_make_a_timetable_of_one_day() -> None:
    minutes = [f"{minute // 60:02}{minute % 60:02}" for minute in range(DAY_MINUTES)]
    values = (
        f"1/{1 + at * 7919 % 5000} {minutes[at % DAY_MINUTES]}-{minutes[at * 31 % DAY_MINUTES]}" for at in range(20_000)
    )
    starts = rate_timetable(rates(*values), None, PLAIN_RATES).starts
    assert starts == tuple(sorted(set(starts)))
    assert starts[-1] < DAY_MINUTES
