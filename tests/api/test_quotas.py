"""What a key may send: counted here at once, settled with all processes, and told in header fields."""

from collections.abc import Callable

import pytest
from redis.asyncio import Redis

from app.api.problems import Problem
from app.api.quotas import LONGEST_DEBT, Quotas, Spending
from app.auth.keys import Limit
from app.redis.guarded_client import GuardedClient, StoreDown
from tests.doubles import Clock

TEN_A_MINUTE = Limit(10, 60, 10)
KEY = "robots:{quotas}:crawler-7"


class Process:
    """A process of the fleet, whose clock is its own."""

    def __init__(self, client: Redis, limit: Limit) -> None:
        self.clock = Clock(1000.0)
        self.refused = 0
        calls = GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0)
        self.quotas = Quotas(calls, self.clock, self._refuse)
        self.spending: Spending = self.quotas.spending("crawler-7", limit)

    def _refuse(self, _key: str) -> None:
        self.refused += 1

    def sends(self, times: int, cost: int = 1) -> int:
        """How many of so many requests are let through."""
        through = 0
        for _ in range(times):
            try:
                self.spending.charge(cost)
            except Problem:
                continue
            through += 1
        return through


NewProcess = Callable[..., Process]


@pytest.fixture
def new_process(store_client: Redis) -> NewProcess:
    return lambda limit=TEN_A_MINUTE: Process(store_client, limit)


async def test_a_quota_is_spent_and_fills_up_at_its_pace(new_process: NewProcess) -> None:
    one = new_process()
    assert (one.sends(12), one.refused) == (10, 2)
    one.clock.now += 5.9
    assert one.sends(1) == 0
    one.clock.now += 0.1
    assert one.sends(2) == 1
    one.clock.now += 3600
    assert one.sends(12) == 10


async def test_a_burst_is_what_may_come_at_once(new_process: NewProcess) -> None:
    one = new_process(Limit(600, 60, 5))
    assert one.sends(10) == 5
    one.clock.now += 0.5
    assert one.sends(10) == 5


async def test_who_is_refused_is_told_when_to_come_back(new_process: NewProcess) -> None:
    one = new_process()
    one.sends(10)
    one.clock.now += 2.5
    with pytest.raises(Problem) as caught:
        one.spending.charge(1)
    assert (caught.value.status_code, caught.value.headers) == (429, {"Retry-After": "4"})
    assert "'crawler-7' may send 10 requests in 60 s" in str(caught.value.detail)
    one.clock.now += 4
    assert one.sends(1) == 1


async def test_the_fields_show_the_quota_the_rest_and_the_time_to_reset(new_process: NewProcess) -> None:
    one = new_process()
    assert one.spending.fields() == {"RateLimit-Policy": '"default";q=10;w=60', "RateLimit": '"default";r=10;t=0'}
    one.sends(4)
    assert one.spending.fields()["RateLimit"] == '"default";r=6;t=24'
    one.clock.now += 3
    assert one.spending.fields()["RateLimit"] == '"default";r=6;t=21'
    one.sends(6)
    assert one.spending.fields()["RateLimit"] == '"default";r=0;t=57'
    assert new_process(Limit(600, 60, 5)).spending.fields()["RateLimit-Policy"] == '"default";q=5;w=1'


async def test_a_cost_above_the_quota_needs_a_full_one_and_is_repaid_later(new_process: NewProcess) -> None:
    one = new_process()
    assert one.sends(1, cost=25) == 1
    assert one.spending.fields()["RateLimit"] == '"default";r=0;t=150'
    one.clock.now += 95
    assert one.sends(1) == 0
    one.clock.now += 1
    assert one.sends(2) == 1
    assert one.sends(1, cost=25) == 0


@pytest.mark.parametrize("burst", [1, 3, 10])
async def test_a_full_quota_admits_one_request_that_costs_more_than_it(new_process: NewProcess, burst: int) -> None:
    one = new_process(Limit(10, 60, burst))
    one.spending.charge(1)
    one.spending.charge(99, begun=1)
    assert one.quotas.debt("crawler-7") == pytest.approx(600)
    with pytest.raises(Problem):
        one.spending.charge(1, begun=1)


async def test_processes_learn_of_each_other_when_they_settle(new_process: NewProcess) -> None:
    one, other = new_process(), new_process()
    other.clock.now = 5.0  # clocks need not agree
    assert (one.sends(6), other.sends(1)) == (6, 1)
    await one.quotas.settle()
    await other.quotas.settle()
    assert other.sends(10) == 3
    await other.quotas.settle()
    assert one.sends(1) == 1  # it has not settled since: by so much a fleet may be beyond
    await one.quotas.settle()
    await other.quotas.settle()
    assert other.quotas.debt("crawler-7") == pytest.approx(66, abs=3)
    assert one.sends(1) == 0
    assert one.quotas.debt("crawler-7") == pytest.approx(66, abs=3)


async def test_who_has_sent_nothing_settles_nothing(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    await one.quotas.settle()
    assert await store_client.keys("*") == []
    one.sends(1)
    await one.quotas.settle()
    assert 0 < await store_client.pttl(KEY) <= 7000
    await store_client.delete(KEY)
    one.clock.now += 60
    await one.quotas.settle()
    assert await store_client.keys("*") == []


async def test_while_the_store_is_down_each_counts_alone_and_settles_later(
    store_client: Redis, tmp_path: object
) -> None:
    one = Process(Redis(unix_socket_path=f"{tmp_path}/none"), TEN_A_MINUTE)
    assert one.sends(8) == 8
    with pytest.raises(StoreDown):
        await one.quotas.settle()
    assert one.sends(8) == 2
    await one.quotas._calls.client.aclose()
    one.quotas._calls = GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)
    await one.quotas.settle()
    other = Process(store_client, TEN_A_MINUTE)
    assert other.sends(1) == 1
    await other.quotas.settle()
    assert other.sends(1) == 0


@pytest.mark.parametrize("value", ["", "x", "nan", "-1", "0x10", "1" * 40])
async def test_what_is_no_debt_is_none(new_process: NewProcess, store_client: Redis, value: str) -> None:
    await store_client.set(KEY, value)
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert one.quotas.debt("crawler-7") == pytest.approx(6, abs=1)


@pytest.mark.parametrize(
    "value", ["inf", "nan", "1e300", "99999999999", "99999999999.0", "0x7fffffffffff", "-5.0", " 2e9", "1.0.0"]
)
async def test_a_value_that_no_process_writes_is_none(new_process: NewProcess, store_client: Redis, value: str) -> None:
    await store_client.set(KEY, value)
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert one.quotas.debt("crawler-7") == pytest.approx(6, abs=1)


async def test_no_value_shuts_a_key_out_for_ever(new_process: NewProcess, store_client: Redis) -> None:
    seconds, microseconds = await store_client.time()
    await store_client.set(KEY, f"{seconds + LONGEST_DEBT:.0f}.{microseconds:06}")
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert one.quotas.debt("crawler-7") == pytest.approx(LONGEST_DEBT, abs=1)


async def test_a_key_of_another_type_is_taken_over(new_process: NewProcess, store_client: Redis) -> None:
    await store_client.sadd(KEY, "foreign")
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert await store_client.type(KEY) == b"string"


async def test_full_buckets_are_forgotten(new_process: NewProcess) -> None:
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert len(one.quotas._buckets) == 1
    one.clock.now += 60
    await one.quotas.settle()
    assert one.quotas._buckets == {}
