"""What callers report of pages, as it waits for the store."""

import pytest

from app.pacing.page_times import NO_PAGES, PageReports, PageTimes
from app.pacing.permit import SlotRef
from app.pacing.slots import PaceKey

KEY = PaceKey.of("www.example.com", "ExampleBot")
NOW = 1_000_000.0


def slot(number: int = 0, go_at: float = NOW) -> SlotRef:
    return SlotRef("https://www.example.com", KEY, f"{number}:ab:w", go_at)


def noted(times: PageTimes, *pages: tuple[int | None, float | None]) -> PageReports:
    """What is handed over after these pages, by their status and seconds."""
    for number, (status, elapsed) in enumerate(pages):
        times.note(KEY, slot(number), status, elapsed, NOW + 100)
    return times.take(KEY)


def test_pages_are_handed_over_once_as_a_count_and_a_mean() -> None:
    times = PageTimes()
    found = noted(times, (200, 1.0), (206, 2.0), (200, 6.0))
    assert (found.pages, found.timed_out) == (3, False)
    assert found.mean == pytest.approx(3.0)
    assert times.take(KEY) == NO_PAGES


def test_a_page_counts_for_a_minute_at_most() -> None:
    assert noted(PageTimes(), (200, 99.0)) == (1, 60.0, False, True)


def test_a_slot_is_reported_once() -> None:
    times = PageTimes()
    for _ in range(3):
        times.note(KEY, slot(), 200, 1.0, NOW + 1)
    times.note(KEY, slot(1), 200, 1.0, NOW + 1)
    assert times.take(KEY).pages == 2


@pytest.mark.parametrize(("elapsed", "counts"), [(5.0, True), (5.09, True), (5.2, False), (60.0, False)])
def test_a_page_cannot_have_begun_before_its_slot(elapsed: float, counts: bool) -> None:
    times = PageTimes()
    times.note(KEY, slot(), 200, elapsed, NOW + 5)
    assert times.take(KEY).pages == counts


@pytest.mark.parametrize("status", [None, 301, 304, 404, 410, 429, 500, 503])
def test_an_error_never_makes_the_pace_faster(status: int | None) -> None:
    times = PageTimes()
    assert noted(times, (status, 0.01)) == NO_PAGES
    times.learned(KEY, 2.0)
    assert noted(times, (None, 0.01), (404, 1.9)) == NO_PAGES
    times = PageTimes()
    times.learned(KEY, 0.0)  # the store knows of no page yet
    assert noted(times, (status, 0.01)) == NO_PAGES
    times = PageTimes()
    times.note_fetch(KEY.pool, 2.0)
    assert noted(times, (status, 1.9)) == NO_PAGES
    times = PageTimes()
    times.note_fetch(KEY.pool, 2.0)
    found = noted(times, (status, 2.2))
    assert found == (2, found.mean, status is None, False)
    assert found.mean == pytest.approx(2.1)
    times = PageTimes()
    times.learned(KEY, 2.0)
    assert noted(times, (status, 2.1)) == (1, 2.1, status is None, False)


def test_a_page_without_a_time_only_says_that_pages_come() -> None:
    times = PageTimes()
    assert noted(times, (429, None), (503, None), (404, None)) == NO_PAGES
    times = PageTimes()
    assert noted(times, (200, None), (429, None)) == (0, 0.0, False, True)
    assert times.take(KEY) == NO_PAGES
    times = PageTimes()
    assert noted(times, (200, None), (200, 1.0), (206, None), (200, 3.0)) == (2, 2.0, False, True)


def test_the_services_own_fetch_is_the_first_report() -> None:
    times = PageTimes()
    times.note_fetch(KEY.pool, 3.0)
    assert times.take(KEY) == NO_PAGES
    found = noted(times, (200, 1.0))
    assert found.pages == 2
    assert found.mean == pytest.approx(2.0)
    times = PageTimes()
    times.note_fetch(KEY.pool, 3.0)
    times.learned(KEY, 1.0)
    assert noted(times, (200, 1.0)) == (1, 1.0, False, True)


def test_what_is_put_back_counts_with_what_was_noted_meanwhile() -> None:
    times = PageTimes()
    times.learned(KEY, 1.0)
    taken = noted(times, (200, 1.0), (200, 2.0))
    times.note(KEY, slot(7), None, 6.0, NOW + 100)
    times.put_back(KEY, taken)
    again = times.take(KEY)
    assert again == (3, again.mean, True, True)
    assert again.mean == pytest.approx(3.0)
    times.put_back(KEY, NO_PAGES)
    assert times.take(KEY) == NO_PAGES
