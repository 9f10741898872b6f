"""Quotas: charged in each process at once, and settled with the fleet through the store."""

from collections.abc import Callable

import pytest
from redis.asyncio import Redis

from app.auth.keys import Limit
from app.auth.quotas import MAX_DEBT, QuotaAccount, QuotaExceeded, Quotas
from app.store.guarded_client import GuardedClient, StoreDown
from tests.doubles import Clock

TEN_A_MINUTE = Limit(10, 60, 10)
KEY = "robots:{quotas}:crawler-7"


class Process:
    """A process of the fleet, with a clock of its own."""

    def __init__(self, client: Redis, limit: Limit) -> None:
        self.clock = Clock(1000.0)
        self.refused = 0
        store = GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0)
        self.quotas = Quotas(store, self.clock, self._refuse)
        self.account: QuotaAccount = self.quotas.account("crawler-7", limit)

    def _refuse(self, _key: str) -> None:
        self.refused += 1

    def sends(self, times: int, cost: int = 1) -> int:
        """How many of `times` requests are admitted."""
        admitted = 0
        for _ in range(times):
            try:
                self.account.charge(cost)
            except QuotaExceeded:
                continue
            admitted += 1
        return admitted


NewProcess = Callable[..., Process]


@pytest.fixture
def new_process(store_client: Redis) -> NewProcess:
    return lambda limit=TEN_A_MINUTE: Process(store_client, limit)


async def test_a_used_up_quota_refills_at_its_rate(new_process: NewProcess) -> None:
    one = new_process()
    assert (one.sends(12), one.refused) == (10, 2)
    one.clock.now += 5.9
    assert one.sends(1) == 0
    one.clock.now += 0.1
    assert one.sends(2) == 1
    one.clock.now += 3600
    assert one.sends(12) == 10


async def test_a_burst_caps_what_is_admitted_at_once(new_process: NewProcess) -> None:
    one = new_process(Limit(600, 60, 5))
    assert one.sends(10) == 5
    one.clock.now += 0.5
    assert one.sends(10) == 5


async def test_a_refused_request_is_admitted_after_its_retry_after(new_process: NewProcess) -> None:
    one = new_process()
    one.sends(10)
    one.clock.now += 2.5
    with pytest.raises(QuotaExceeded, match="'crawler-7' has used up its quota of 10 requests in 60 s") as caught:
        one.account.charge(1)
    assert caught.value.retry_after == pytest.approx(3.5)
    one.clock.now += 3.5
    assert one.sends(1) == 1


async def test_a_cost_above_the_quota_needs_a_full_one_and_leaves_a_debt(new_process: NewProcess) -> None:
    one = new_process()
    assert one.sends(1, cost=25) == 1
    assert one.account.debt == pytest.approx(150)
    one.clock.now += 95
    assert one.sends(1) == 0
    one.clock.now += 1
    assert one.sends(2) == 1
    assert one.sends(1, cost=25) == 0


@pytest.mark.parametrize("burst", [1, 3, 10])
async def test_prepaid_work_of_many_requests_counts_a_quota_as_full(new_process: NewProcess, burst: int) -> None:
    one = new_process(Limit(10, 60, burst))
    one.account.charge(1)
    one.account.charge(99, prepaid=1)
    assert one.quotas.debt("crawler-7") == pytest.approx(600)
    with pytest.raises(QuotaExceeded):
        one.account.charge(1, prepaid=1)


async def test_processes_share_a_quota_when_they_settle(new_process: NewProcess) -> None:
    one, other = new_process(), new_process()
    other.clock.now = 5.0  # clocks need not agree
    assert (one.sends(6), other.sends(1)) == (6, 1)
    await one.quotas.settle()
    await other.quotas.settle()
    assert other.sends(10) == 3
    await other.quotas.settle()
    assert one.sends(1) == 1  # not settled since: a fleet may exceed its quota by this
    await one.quotas.settle()
    await other.quotas.settle()
    assert other.quotas.debt("crawler-7") == pytest.approx(66, abs=3)
    assert one.sends(1) == 0
    assert one.quotas.debt("crawler-7") == pytest.approx(66, abs=3)


async def test_a_key_without_requests_settles_nothing(new_process: NewProcess, store_client: Redis) -> None:
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


async def test_without_the_store_each_process_counts_and_settles_later(store_client: Redis, tmp_path: object) -> None:
    one = Process(Redis(unix_socket_path=f"{tmp_path}/none"), TEN_A_MINUTE)
    assert one.sends(8) == 8
    with pytest.raises(StoreDown):
        await one.quotas.settle()
    assert one.sends(8) == 2
    await one.quotas._store.client.aclose()
    one.quotas._store = GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)
    await one.quotas.settle()
    other = Process(store_client, TEN_A_MINUTE)
    assert other.sends(1) == 1
    await other.quotas.settle()
    assert other.sends(1) == 0


@pytest.mark.parametrize(
    "value",
    ["", "x", "nan", "-1", "0x10", "1" * 40, "inf", "1e300", "99999999999", "0x7fffffffffff", "-5.0", " 2e9", "1.0.0"],
)
async def test_an_invalid_stored_debt_is_ignored(new_process: NewProcess, store_client: Redis, value: str) -> None:
    await store_client.set(KEY, value)
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert one.quotas.debt("crawler-7") == pytest.approx(6, abs=1)


async def test_a_stored_value_blocks_a_key_for_max_debt(new_process: NewProcess, store_client: Redis) -> None:
    seconds, microseconds = await store_client.time()
    await store_client.set(KEY, f"{seconds + MAX_DEBT:.0f}.{microseconds:06}")
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert one.quotas.debt("crawler-7") == pytest.approx(MAX_DEBT, abs=1)


async def test_a_stored_value_of_another_type_is_replaced(new_process: NewProcess, store_client: Redis) -> None:
    await store_client.sadd(KEY, "foreign")
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert await store_client.type(KEY) == b"string"


async def test_full_buckets_are_dropped(new_process: NewProcess) -> None:
    one = new_process()
    one.sends(1)
    await one.quotas.settle()
    assert len(one.quotas._buckets) == 1
    one.clock.now += 60
    await one.quotas.settle()
    assert one.quotas._buckets == {}
