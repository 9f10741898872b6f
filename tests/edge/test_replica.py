"""The edge facts of two processes on one Valkey."""

import json
from collections.abc import Sequence
from time import monotonic

import pytest
from redis.asyncio import Redis

from app.edge.facts import FACT_KEPT, MAX_AGENTS, EdgeFact, EdgeState
from app.edge.redis_edge import ORIGINS_PER_CALL, RedisEdge
from app.edge.replica import EdgeFacts
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.shared_connection import SharedConnection
from tests.patient_service import STORE_TIMEOUT

ORIGIN, START = "https://example.com", 1_800_000_000
FACTS, CHANGES = "robots:{edge}:facts", "robots:{edge}:changes"


class Clock:
    """A clock, in Unix seconds, that all replicas of a test share."""

    def __init__(self) -> None:
        self.now = float(START)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def replicas(client: Redis, clock: Clock, count: int = 2) -> Sequence[EdgeFacts]:
    guarded = [GuardedClient(client, monotonic=monotonic, timeout=STORE_TIMEOUT) for _ in range(count)]
    return [EdgeFacts(RedisEdge(it, clock), clock) for it in guarded]


def found(replica: EdgeFacts, clock: Clock, agent: str = "examplebot", origin: str = ORIGIN) -> EdgeFact | None:
    return replica.table.find(origin, agent, clock())


async def test_a_refusal_reaches_the_other_process(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    await one.report(ORIGIN, "examplebot", 403)
    clock.now += 60
    await one.report(ORIGIN, "examplebot", 402)
    assert found(other, clock) is None
    await other.sync()
    for replica in (one, other):
        fact = found(replica, clock)
        assert fact == EdgeFact(402, START, START + 60, 2)
        assert fact.state is EdgeState.PRICED
        assert found(replica, clock, "OtherBot") is None
        assert found(replica, clock, "ExampleBot") == fact
        assert found(replica, clock, origin="http://example.com") is None


@pytest.mark.parametrize("status", [401, 403, 451])
async def test_other_refusals_are_not_priced(store_client: Redis, clock: Clock, status: int) -> None:
    [replica] = replicas(store_client, clock, 1)
    await replica.report(ORIGIN, "examplebot", status)
    fact = found(replica, clock)
    assert fact is not None
    assert (fact.state, fact.status) == (EdgeState.REFUSED, status)


@pytest.mark.parametrize("status", [100, 301, 404, 407, 410, 429, 500, 503])
async def test_other_statuses_say_nothing(store_client: Redis, clock: Clock, status: int) -> None:
    [replica] = replicas(store_client, clock, 1)
    await replica.report(ORIGIN, "examplebot", status)
    assert found(replica, clock) is None
    assert not await store_client.keys()
    await replica.report(ORIGIN, "examplebot", 403)
    await replica.report(ORIGIN, "examplebot", status)
    assert found(replica, clock) == EdgeFact(403, START, START, 1)


async def test_a_success_in_any_process_ends_the_fact_of_that_agent(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    await one.report(ORIGIN, "examplebot", 403)
    await one.report(ORIGIN, "otherbot", 403)
    await other.sync()
    await other.report(ORIGIN, "examplebot", 206)
    await one.sync()
    for replica in (one, other):
        assert found(replica, clock) is None
        assert found(replica, clock, "otherbot") is not None
    await one.report(ORIGIN, "otherbot", 200)
    await other.sync()
    assert not one.table
    assert not other.table
    assert await store_client.hlen(FACTS) == 0
    clock.now += 5
    await one.report(ORIGIN, "examplebot", 401)
    assert found(one, clock) == EdgeFact(401, START + 5, START + 5, 1)


async def test_success_without_a_fact_is_not_sent_to_the_store(store_client: Redis, clock: Clock) -> None:
    [replica] = replicas(store_client, clock, 1)
    before = (await store_client.info("stats"))["total_commands_processed"]
    await replica.report(ORIGIN, "examplebot", 200)
    assert (await store_client.info("stats"))["total_commands_processed"] == before + 1  # this INFO


async def test_one_slot_counts_once(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    slots = [f"{number:016x}" for number in range(3)]
    for replica in (one, other, one):
        for slot in slots:
            await replica.report(ORIGIN, "examplebot", 403, slot)
    fact = found(one, clock)
    assert fact is not None
    assert fact.count == 3


async def test_the_agents_of_an_origin_are_bounded(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    for number in range(3 * MAX_AGENTS):
        clock.now += 1
        await one.report(ORIGIN, f"{number:064}", 403, f"{number:016x}")
    await other.sync()
    newest = {f"{number:064}" for number in range(2 * MAX_AGENTS, 3 * MAX_AGENTS)}
    [origin] = other.latest()
    assert set(other.agents(origin)) == set(one.agents(origin)) == newest


async def test_the_origins_are_bounded(store_client: Redis, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.edge.redis_edge.FACT_ORIGINS", 10)
    one, other = replicas(store_client, clock)
    for number in range(30):
        await one.report(f"https://{number}.example", "examplebot", 403)
        if number == 15:
            await other.sync()
    for replica in (one, other):
        await replica.sync()
        assert [it.key for it in replica.latest()] == [f"https://{number}.example" for number in range(29, 19, -1)]
    assert await store_client.hlen(FACTS) == await store_client.zcard(CHANGES) == 10


async def test_a_fact_is_forgotten_a_week_after_the_last_report(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    await one.report(ORIGIN, "examplebot", 403)
    clock.now += FACT_KEPT - 1
    assert found(one, clock) is not None
    clock.now += 1
    assert found(one, clock) is None
    assert one.latest() == []
    await one.report(ORIGIN, "otherbot", 403)
    assert list(json.loads(await store_client.hget(FACTS, ORIGIN) or b"")) == ["otherbot"]
    await one.report("https://other.example", "otherbot", 403)
    clock.now += FACT_KEPT + 1
    await one.report("https://third.example", "otherbot", 403)
    assert await store_client.zcard(CHANGES) == 1
    await other.sync()
    assert [it.key for it in other.latest()] == ["https://third.example"]
    assert FACT_KEPT < await store_client.ttl(FACTS) <= FACT_KEPT + 86_400


async def test_more_changes_than_one_call_reads_are_all_read(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    count = 2 * ORIGINS_PER_CALL + 1
    for number in range(count):
        await one.report(f"https://{number}.example", "examplebot", 403)
    await other.sync()
    assert len(other.latest()) == count


async def test_an_emptied_store_empties_the_replicas(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    await one.report(ORIGIN, "examplebot", 403)
    await other.sync()
    await store_client.flushall()
    for replica in (one, other):
        await replica.sync()
        assert not replica.table
    await other.report(ORIGIN, "examplebot", 403)
    await one.sync()
    assert found(one, clock) is not None
    await store_client.flushall()
    clock.now -= 2 * 3600  # the new server's clock
    await one.report("https://other.example", "examplebot", 403)
    await other.sync()
    assert [it.key for it in other.latest()] == ["https://other.example"]


async def test_a_clock_that_was_set_back_by_hours_loses_the_facts_only(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    await one.report(ORIGIN, "examplebot", 403)
    await other.sync()
    clock.now -= 86_400
    await one.report("https://other.example", "examplebot", 403)
    for replica in (one, other):
        await replica.sync()
        assert [it.key for it in replica.latest()] == ["https://other.example"]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[1]",
        b'"x"',
        b"\xff",
        b"[" * 4000,
        b'{"examplebot": 1}',
        b'{"examplebot": [403, 1, 2]}',
        b'{"examplebot": [200, 1, 2, 3, ""]}',
        b'{"examplebot": [403, 2, 1, 3, ""]}',
        b'{"examplebot": [403, 1e400, 2, 3, ""]}',
        b'{"examplebot": [403, -1, 2, 3, ""]}',
        b'{"examplebot": [403, 1, 2, "3", ""]}',
        b"x" * 100_000,
    ],
)
async def test_invalid_values_are_ignored_and_replaced(store_client: Redis, clock: Clock, value: bytes) -> None:
    one, other = replicas(store_client, clock)
    await store_client.hset(FACTS, ORIGIN, value)
    await store_client.zadd(CHANGES, {ORIGIN: START * 1000})
    await one.sync()
    assert not one.table
    await one.report(ORIGIN, "examplebot", 403)
    await other.sync()
    assert found(other, clock) == EdgeFact(403, START, START, 1)


async def test_foreign_keys_and_members_are_survived(store_client: Redis, clock: Clock) -> None:
    one, other = replicas(store_client, clock)
    members = [b"no origin", b"x" * 5000, b"", b"\xff", b"http://a.example/path"]
    await store_client.zadd(CHANGES, {member: 5 + 0.5 * at for at, member in enumerate(members)})
    await one.sync()
    assert not one.table
    for key in (FACTS, CHANGES):
        await store_client.set(key, "foreign")
        await one.sync()
        await one.report(ORIGIN, "examplebot", 403)
        await other.sync()
        assert found(other, clock) is not None
    await store_client.zadd(CHANGES, {f"https://{n}.example": float("inf") for n in range(2 * ORIGINS_PER_CALL)})
    await one.sync()
    await one.report(ORIGIN, "examplebot", 403)
    await other.sync()
    assert found(other, clock) is not None


async def test_the_last_facts_are_kept_while_the_store_is_down(
    store_client: Redis, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    [replica] = replicas(store_client, clock, 1)
    await replica.report(ORIGIN, "examplebot", 403)

    async def refuse(*_arguments: object) -> object:
        raise ConnectionError("refused")

    monkeypatch.setattr(SharedConnection, "call", refuse)
    with pytest.raises(StoreDown):
        await replica.sync()
    with pytest.raises(StoreDown):
        await replica.report(ORIGIN, "examplebot", 403)
    assert found(replica, clock) is not None
