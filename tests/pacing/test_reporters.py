"""How long an origin is left alone: minutes on one reporter's word, longer on that of two, or of an operator."""

import time

import pytest
from redis.asyncio import Redis

from app.origin import Origin
from app.pacing.redis_pacer import RedisPacer, keys_of
from app.pacing.slots import BackOff, PaceKey
from app.redis.guarded_client import GuardedClient

LANE = PaceKey.of(Origin("https", "www.example.com", 443), "ExampleBot")
KEPT, _, PLACE = keys_of(LANE)[:3]
ALONE = BackOff().unconfirmed
DAY = 86_400.0


@pytest.fixture
def pace(store_client: Redis) -> RedisPacer:
    return RedisPacer(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0))


async def ended(store_client: Redis, seconds: float = 1.0) -> None:
    """The back-off as it will be so many seconds after its end."""
    await store_client.hset(PLACE, "until", f"{(time.time() - seconds) * 1e6:.0f}")
    await store_client.delete(KEPT)


async def test_one_reporter_holds_back_for_minutes_at_most(pace: RedisPacer) -> None:
    for _ in range(5):
        assert ALONE - 5 < await pace.hold_back(LANE, DAY, "a") <= ALONE


async def test_a_short_back_off_needs_one_reporter(pace: RedisPacer) -> None:
    assert 119 < await pace.hold_back(LANE, 120, "a") <= 120


async def test_a_second_reporter_confirms_what_both_say(pace: RedisPacer) -> None:
    await pace.hold_back(LANE, DAY, "a")
    assert 7199 < await pace.hold_back(LANE, 7200, "b") <= 7200
    assert 7199 < await pace.hold_back(LANE, 3600, "c") <= 7200
    assert DAY - 5 < await pace.hold_back(LANE, DAY, "b") <= DAY


async def test_the_order_of_two_reports_does_not_matter(pace: RedisPacer) -> None:
    await pace.hold_back(LANE, 7200, "b")
    assert 7195 < await pace.hold_back(LANE, DAY, "a") <= 7200


async def test_an_operator_needs_nobody(pace: RedisPacer) -> None:
    assert DAY - 1 < await pace.hold_back(LANE, DAY) <= DAY


async def test_an_operator_is_not_cut_short_by_a_reporter(pace: RedisPacer) -> None:
    await pace.hold_back(LANE, DAY)
    assert DAY - 5 < await pace.hold_back(LANE, 5, "a") <= DAY


async def test_one_reporter_s_doubling_ends_with_minutes_too(pace: RedisPacer, store_client: Redis) -> None:
    seconds = []
    for _ in range(11):
        seconds.append(round(await pace.hold_back(LANE, 0, "a")))
        await ended(store_client)
    assert seconds == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600]
    assert round(await pace.hold_back(LANE, 0, "b")) == 3600


@pytest.mark.parametrize("value", ["x", "-1", "nan", "inf", "1e300", ""])
async def test_what_the_store_holds_of_reports_may_be_anything(
    pace: RedisPacer, store_client: Redis, value: str
) -> None:
    await store_client.hset(PLACE, mapping=dict.fromkeys(("until", "step", "began", "by", "claim", "agreed"), value))
    assert 0 < await pace.hold_back(LANE, DAY, "a") <= ALONE
