"""Quotas in HTTP: the RateLimit fields and 429."""

import pytest

from app.api.middleware.auth import rate_limit_fields
from app.api.problems import problem_of
from app.auth.keys import Limit
from app.auth.quotas import QuotaAccount, QuotaExceeded, Quotas


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def account(clock: Clock, limit: Limit = Limit(10, 60, 10)) -> QuotaAccount:  # noqa: B008 - frozen
    # Never settled, so it needs no store.
    return Quotas(None, clock, lambda _key: None).account("crawler-7", limit)  # type: ignore[arg-type]


def test_rate_limit_fields_give_quota_rest_and_reset() -> None:
    clock = Clock()
    one = account(clock)
    assert rate_limit_fields(one) == {"RateLimit-Policy": '"default";q=10;w=60', "RateLimit": '"default";r=10;t=0'}
    one.charge(4)
    assert rate_limit_fields(one)["RateLimit"] == '"default";r=6;t=24'
    clock.now += 3
    assert rate_limit_fields(one)["RateLimit"] == '"default";r=6;t=21'
    one.charge(6)
    assert rate_limit_fields(one)["RateLimit"] == '"default";r=0;t=57'
    assert rate_limit_fields(account(clock, Limit(600, 60, 5)))["RateLimit-Policy"] == '"default";q=5;w=1'


def test_a_debt_beyond_the_quota_leaves_nothing() -> None:
    one = account(Clock())
    one.charge(25)
    assert rate_limit_fields(one)["RateLimit"] == '"default";r=0;t=150'


def test_retry_after_is_rounded_up_to_whole_seconds() -> None:
    clock = Clock()
    one = account(clock)
    one.charge(10)
    clock.now += 2.5
    with pytest.raises(QuotaExceeded) as caught:
        one.charge(1)
    problem = problem_of(caught.value)
    assert (problem.status_code, problem.headers) == (429, {"Retry-After": "4"})
    assert str(problem.detail).endswith("with at most 10 at once. Try again in 4 s.")
