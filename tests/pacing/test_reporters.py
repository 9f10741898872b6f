"""The length of a backoff: minutes for one reporter, longer for two, or for an operator."""

import time

import pytest
from redis.asyncio import Redis

from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.slots import MAX_UNCONFIRMED, PaceKey
from app.store.guarded_client import GuardedClient

KEY = PaceKey.of("www.example.com", "ExampleBot")
KEPT, _, PLACE = keys_of(KEY)[:3]
DAY = 86_400.0


@pytest.fixture
def pace(store_client: Redis) -> RedisPacer:
    return RedisPacer(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0))


async def ended(store_client: Redis, seconds: float = 1.0) -> None:
    """The backoff as it is `seconds` after its end."""
    await store_client.hset(PLACE, "ends", f"{(time.time() - seconds) * 1e6:.0f}")
    await store_client.delete(KEPT)


async def test_one_reporter_gets_the_unconfirmed_maximum(pace: RedisPacer) -> None:
    for _ in range(5):
        assert MAX_UNCONFIRMED - 5 < await pace.back_off(KEY, DAY, "a") <= MAX_UNCONFIRMED


async def test_a_short_backoff_needs_one_reporter(pace: RedisPacer) -> None:
    assert 119 < await pace.back_off(KEY, 120, "a") <= 120


async def test_a_second_reporter_confirms_a_long_backoff(pace: RedisPacer) -> None:
    await pace.back_off(KEY, DAY, "a")
    assert 7199 < await pace.back_off(KEY, 7200, "b") <= 7200
    assert 7199 < await pace.back_off(KEY, 3600, "c") <= 7200
    assert DAY - 5 < await pace.back_off(KEY, DAY, "b") <= DAY


async def test_the_order_of_two_reports_does_not_matter(pace: RedisPacer) -> None:
    await pace.back_off(KEY, 7200, "b")
    assert 7195 < await pace.back_off(KEY, DAY, "a") <= 7200


async def test_an_operator_needs_no_second_reporter(pace: RedisPacer) -> None:
    assert DAY - 1 < await pace.back_off(KEY, DAY) <= DAY


async def test_a_reporter_does_not_shorten_an_operators_backoff(pace: RedisPacer) -> None:
    await pace.back_off(KEY, DAY)
    assert DAY - 5 < await pace.back_off(KEY, 5, "a") <= DAY


async def test_doubling_ends_at_the_unconfirmed_maximum(pace: RedisPacer, store_client: Redis) -> None:
    seconds = []
    for _ in range(11):
        seconds.append(round(await pace.back_off(KEY, 0, "a")))
        await ended(store_client)
    assert seconds == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600]
    assert round(await pace.back_off(KEY, 0, "b")) == 3600


@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "1e300", ""])
async def test_foreign_stored_reports_are_ignored(pace: RedisPacer, store_client: Redis, value: str) -> None:
    await store_client.hset(PLACE, mapping=dict.fromkeys(("ends", "step", "began", "by", "claim", "agreed"), value))
    assert 0 < await pace.back_off(KEY, DAY, "a") <= MAX_UNCONFIRMED
