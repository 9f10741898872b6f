"""The simulation agrees with results that can be calculated by hand."""

from random import Random

import pytest

from app.cache.freshness import DAY, HOUR
from app.cache.recheck import MODELS, RFC9309_MODEL, SEZNAM_MODEL
from robots_core.robots.access import Lifetime
from tests.bench.simulation import AGES, Account, Course, play

SILENT, HOURLY = Lifetime(), Lifetime(cache_control="max-age=3600")


def watch(
    pace: float, model: str, caching: Lifetime = SILENT, *, origins: int = 3, watched: float = 30 * DAY
) -> Account:
    account = Account()
    for seed in range(origins):
        play(Course(pace, MODELS[model], caching, 7 * DAY, watched), account, Random(seed))
    return account


@pytest.mark.parametrize(
    ("model", "caching", "low", "high"),
    [
        # Outages of a hundredth of the time, in which an hour passes from one attempt to the next, add up to 0.3.
        (RFC9309_MODEL, SILENT, 1 / 1.0, 0.3 + 1 / 0.9),
        (RFC9309_MODEL, HOURLY, 24 / 1.1 - 1, 24 / 0.9),
        (SEZNAM_MODEL, SILENT, 1 / 3.3, 0.3 + 1 / 3),
        (SEZNAM_MODEL, HOURLY, 1 / 3.3, 0.3 + 1 / 3),
    ],
)
def test_constantly_visited_origin_is_fetched_once_a_delay(
    model: str, caching: Lifetime, low: float, high: float
) -> None:
    account = watch(400, model, caching)
    assert low <= account.fetches / account.days <= high
    assert account.decisions / account.days == pytest.approx(400, rel=0.05)
    assert account.kept_days == pytest.approx(account.days)


def test_rarely_visited_origin_is_fetched_at_every_visit() -> None:
    account = watch(0.02, RFC9309_MODEL, origins=200, watched=180 * DAY)
    assert account.fetches == pytest.approx(account.decisions, rel=0.05)
    assert account.age_sum / account.decisions < 6 * HOUR
    # An entry exists if there was a visit in the 30 days before: 1 - exp(-0.6).
    assert account.kept_days / account.days == pytest.approx(0.451, abs=0.05)


def test_ages_are_uniform_up_to_the_delay_with_many_visits() -> None:
    account = watch(150, SEZNAM_MODEL)
    assert account.age_sum / account.decisions == pytest.approx(1.55 * DAY, rel=0.1)
    assert sum(account.ages) == pytest.approx(account.decisions - account.deferred)
    oldest = max(at for at, number in enumerate(account.ages) if number)
    assert AGES[oldest] < 5 * DAY
