"""Lists of origins: notes, their bounds in the store, and foreign values."""

import pytest
from redis.asyncio import Redis

from app.cache.freshness import Failing, Snapshot
from app.cache.origin_lists import FLUSH_EVERY, LISTED, MOST_ASKED, NOTED, Order, OriginLists, RedisOriginLists
from app.store.guarded_client import GuardedClient, StoreDown
from robots_core.origin import Origin, read_target
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable

NOW = 1_800_000_000.0
FILE = Successful(200, b"User-agent: *\nDisallow:\n")
DOWN = Unreachable(Cause.DNS)


def origin(number: int = 0) -> Origin:
    return read_target(f"https://host-{number}.example/").origin


def failed(access: Access = DOWN, *, at: float = NOW, fetched_at: float = NOW) -> Snapshot:
    return Snapshot(access, fetched_at, failing=Failing(at, at, 1, DOWN))


class Process:
    """A process of the fleet, whose clock the test sets."""

    def __init__(self, client: Redis) -> None:
        self.now = NOW
        self.redis = GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0)
        self.lists = OriginLists(RedisOriginLists(self.redis), lambda: self.now)

    async def read(self, order: Order) -> list[tuple[str, float]]:
        return [(it.key, score) for it, score in await self.lists.read(order)]


@pytest.fixture
def one(store_client: Redis) -> Process:
    return Process(store_client)


@pytest.fixture
def other(store_client: Redis) -> Process:
    return Process(store_client)


async def test_a_failing_origin_is_listed_by_all_until_a_fetch_succeeds(one: Process, other: Process) -> None:
    one.lists.note_fetch(origin(1), failed(at=NOW), 0.1)
    one.lists.note_fetch(origin(2), failed(at=NOW + 5), 0.1)
    one.lists.note_fetch(origin(3), Snapshot(Blocked("10.0.0.1"), NOW + 1), 0.1)
    one.lists.note_fetch(origin(4), Snapshot(Unavailable(404), NOW), 0.1)
    await one.lists.flush()
    keys = [origin(number).key for number in (2, 3, 1)]
    assert [key for key, _ in await other.read(Order.FAILING)] == keys
    other.lists.note_fetch(origin(2), Snapshot(FILE, NOW + 9), 0.1)
    assert [key for key, _ in await other.read(Order.FAILING)] == keys[1:]


async def test_stale_copies_are_listed_the_oldest_first(one: Process) -> None:
    one.lists.note_fetch(origin(1), failed(FILE, fetched_at=NOW - 10), 0.1)
    one.lists.note_fetch(origin(2), failed(FILE, fetched_at=NOW - 90), 0.1)
    one.lists.note_fetch(origin(3), failed(), 0.1)
    assert [key for key, _ in await one.read(Order.STALE)] == [origin(2).key, origin(1).key]


async def test_slow_origins_are_listed_until_a_quick_fetch(one: Process) -> None:
    for number, seconds in enumerate([0.9, 3.0, 7.5]):
        one.lists.note_fetch(origin(number), Snapshot(FILE, NOW), seconds)
    assert await one.read(Order.SLOW) == [(origin(2).key, 7.5), (origin(1).key, 3.0)]
    one.lists.note_fetch(origin(2), Snapshot(FILE, NOW), 0.2)
    assert await one.read(Order.SLOW) == [(origin(1).key, 3.0)]


async def test_questions_are_counted_for_the_fleet_and_expire(one: Process, other: Process) -> None:
    for process, times in ((one, 3), (other, 4)):
        for _ in range(times):
            process.lists.note_asked(origin(1).key, 1)
        process.lists.note_asked(origin(2).key, 1)
        await process.lists.flush()
    assert await one.read(Order.ASKED) == [(origin(1).key, 7.0), (origin(2).key, 2.0)]
    one.now += 3600
    one.lists.note_asked(origin(1).key, 1)
    assert await one.read(Order.ASKED) == [(origin(1).key, 8.0), (origin(2).key, 2.0)]
    one.now += 3600
    assert await one.read(Order.ASKED) == [(origin(1).key, 1.0)]


async def test_origins_in_backoff_are_listed_until_it_ends(one: Process, store_client: Redis) -> None:
    one.lists.note_backoff(origin(1).key, NOW + 60)
    one.lists.note_backoff(origin(2).key, NOW + 600)
    assert [key for key, _ in await one.read(Order.BACKOFF)] == [origin(2).key, origin(1).key]
    one.now += 61
    one.lists.note_backoff(origin(3).key, NOW + 90)
    assert [key for key, _ in await one.read(Order.BACKOFF)] == [origin(2).key, origin(3).key]


async def test_only_lists_that_there_are_lose_what_was_fetched(one: Process, store_client: Redis) -> None:
    async def removals() -> int:
        stats = await store_client.info("commandstats")
        return int(stats.get("cmdstat_zrem", {"calls": 0})["calls"])

    async def fetched(count: int) -> None:
        for number in range(count):
            one.lists.note_fetch(origin(number), Snapshot(FILE, NOW), 0.1)
        await one.lists.flush()

    await store_client.config_resetstat()
    await fetched(10_000)
    assert await removals() == 0
    one.lists.note_fetch(origin(7), failed(), 0.1)
    one.lists.note_fetch(origin(9), failed(), 0.1)
    await one.lists.flush()
    await store_client.set("robots:{origins}:slow", "not a list")
    await store_client.config_resetstat()
    await fetched(8)
    assert await one.read(Order.FAILING) == [(origin(9).key, NOW)]
    assert await removals() == 1
    assert await store_client.exists("robots:{origins}:slow") == 0


async def test_lists_are_bounded(one: Process, store_client: Redis) -> None:
    for number in range(LISTED + 700):
        one.lists.note_fetch(origin(number), failed(FILE, at=NOW + number), 2.0 + number)
        one.lists.note_backoff(origin(number).key, NOW + 60 + number)
        one.lists.note_asked(origin(number).key, 1)
    await one.lists.flush()
    sizes = {key: await store_client.zcard(key) async for key in store_client.scan_iter("robots:{origins}:*")}
    assert len(sizes) == len(Order) - 1  # app.edge writes REFUSED
    assert set(sizes.values()) == {LISTED, MOST_ASKED}
    assert all([await store_client.ttl(key) > 0 for key in sizes])
    assert (await one.read(Order.SLOW))[0] == (origin(LISTED + 699).key, LISTED + 701.0)


async def test_notes_without_the_store_are_bounded_and_kept(store_client: Redis) -> None:
    class Down:
        async def write(self, notes: object, now: float) -> None:
            raise StoreDown

        read = write

    process = Process(store_client)
    kept = process.lists._store
    process.lists._store = Down()  # type: ignore[assignment]
    process.lists.note_fetch(origin(1), failed(), 0.1)
    with pytest.raises(StoreDown):
        await process.lists.flush()
    process.lists.note_fetch(origin(2), failed(at=NOW + 1), 0.1)
    for number in range(10, NOTED + 100):
        process.lists.note_fetch(origin(number), Snapshot(FILE, NOW), 0.1)
        process.lists.note_asked(origin(number).key, 1)
        process.lists.note_backoff(origin(number).key, NOW + 60)
    assert len(process.lists._notes.fetched) <= NOTED
    assert len(process.lists._notes.asked) == NOTED
    assert len(process.lists._notes.backoffs) == NOTED
    process.lists._store = kept
    assert [key for key, _ in await process.read(Order.FAILING)] == [origin(2).key, origin(1).key]


async def test_an_origin_that_recovers_before_it_could_be_written_is_not_listed(one: Process) -> None:
    one.lists.note_fetch(origin(1), failed(FILE), 5.0)
    one.lists.note_fetch(origin(1), Snapshot(FILE, NOW), 0.1)
    for order in (Order.FAILING, Order.SLOW, Order.STALE):
        assert await one.read(order) == []


async def test_foreign_values_and_members_are_skipped(one: Process, store_client: Redis) -> None:
    key = "robots:{origins}:failing"
    await store_client.zadd(key, {b"x" * 500: 9, b"\xff": 8, b"not an origin": 7, b"https://a.example:443": 6})
    await store_client.zadd(key, {b"https://b.example": "inf"})
    assert await one.read(Order.FAILING) == []
    await store_client.set(key, b"a string")
    assert await one.read(Order.FAILING) == []
    one.lists.note_fetch(origin(1), failed(), 0.1)
    await one.lists.flush()
    one.lists.note_fetch(origin(1), failed(), 0.1)
    assert [found for found, _ in await one.read(Order.FAILING)] == [origin(1).key]


async def test_nothing_is_written_without_notes(one: Process, store_client: Redis) -> None:
    await one.lists.flush()
    assert await store_client.dbsize() == 0


async def test_notes_are_written_at_the_end(one: Process, other: Process) -> None:
    async with one.lists.flushing(every=FLUSH_EVERY):
        one.lists.note_fetch(origin(1), failed(), 0.1)
    assert [key for key, _ in await other.read(Order.FAILING)] == [origin(1).key]
