"""The instants of questions."""

from datetime import UTC, datetime, timedelta

import pytest

from app.decisions.question import BadQuestion, past_from


def test_an_instant_of_this_second_is_not_in_the_future() -> None:
    """The clock of a caller that asks about this moment is some milliseconds ahead of the service's."""
    now = datetime(2026, 11, 27, 12, 0, 5, 100_000, tzinfo=UTC)
    assert past_from("2026-11-27T12:00:05.09Z", now) == now - timedelta(seconds=0.01)
    assert past_from("2026-11-27T12:00:05.9Z", now) == now
    with pytest.raises(BadQuestion, match="is in the future"):
        past_from("2026-11-27T12:00:06Z", now)
