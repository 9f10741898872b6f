"""Each change is in the feed once, whichever processes find it, and readers continue where they were."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from redis.asyncio import Redis

from app.cache.freshness import Snapshot
from app.history.redis_changes import OLDEST, ChangeId, ChangesMissed, Position, RedisChanges, Since, read_id
from app.history.redis_history import RedisHistory, history_key
from app.store.guarded_client import GuardedClient, Send, StoreDown
from robots_core.content import digest, id_of
from robots_core.origin import Origin
from robots_core.robots.access import Successful

SITE = Origin("https", "www.example.com", 443)
NOW = 1_790_000_000.0
A, B = (Successful(200, f"User-agent: *\nDisallow: /{name}\n".encode()) for name in "ab")
STREAM = "robots:{changes}"


def snapshot(access: Successful, at: float) -> Snapshot:
    return Snapshot(access, NOW + at)


@pytest.fixture
def redis(store_client: Redis) -> GuardedClient:
    return GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)


@pytest.fixture
def changes(redis: GuardedClient) -> RedisChanges:
    return RedisChanges(redis)


async def ids(changes: RedisChanges, after: Position = OLDEST, count: int = 100) -> list[tuple[str, str | None]]:
    page = await changes.read(after, count)
    return [(change.from_, change.to) for _, change in page.changes]


def change(before: Successful, after: Successful) -> tuple[str, str]:
    return id_of(digest(before)), id_of(digest(after))


async def test_changes_are_read_in_order_and_in_pages(changes: RedisChanges) -> None:
    assert await changes.read(OLDEST, 10) == ([], OLDEST, None)
    for at in range(5):
        await changes.add(SITE, snapshot(A, at), snapshot(B, at + 0.5))
        await changes.add(SITE, snapshot(B, at + 0.5), snapshot(A, at + 1))
    expected = [change(A, B), change(B, A)] * 5
    page = await changes.read(OLDEST, 4)
    assert [(it.from_, it.to) for _, it in page.changes] == expected[:4]
    assert page.last == page.changes[-1][0]
    assert page.newest == await changes.newest() == (await changes.read(OLDEST, 100)).last
    assert await ids(changes, page.last) == expected[4:]


async def test_a_change_that_several_processes_report_is_added_once(redis: GuardedClient) -> None:
    for process in (RedisChanges(redis), RedisChanges(redis)):
        await process.add(SITE, snapshot(A, 0), snapshot(B, 100))
        await process.add(SITE, snapshot(A, 50), replace(snapshot(B, 200), since=int(NOW + 100)))
    assert await ids(RedisChanges(redis)) == [change(A, B)]


async def test_the_same_contents_can_follow_each_other_again(changes: RedisChanges) -> None:
    await changes.add(SITE, snapshot(A, 0), snapshot(B, 100))
    await changes.add(SITE, snapshot(A, 200), snapshot(B, 300))
    assert await ids(changes) == [change(A, B), change(A, B)]


async def test_a_file_can_be_purged_again(changes: RedisChanges) -> None:
    for at in (0, 0, 100):
        await changes.add(SITE, snapshot(A, at), None)
    assert await ids(changes) == [(id_of(digest(A)), None)] * 2


async def position_of(changes: RedisChanges, after: Position) -> ChangeId | str | None:
    """The oldest change of the feed if the reader has missed some, else "found"."""
    try:
        await changes.read(after, 10)
    except ChangesMissed as error:
        return error.oldest
    return "found"


async def three_changes(changes: RedisChanges) -> list[ChangeId]:
    for at in range(3):
        await changes.add(SITE, snapshot(A, at), snapshot(B, at))
    return [id_ for id_, _ in (await changes.read(OLDEST, 10)).changes]


async def test_a_reader_that_missed_changes_learns_it(changes: RedisChanges, store_client: Redis) -> None:
    first, second, third = await three_changes(changes)
    assert await position_of(changes, first) == "found"
    await store_client.xtrim(STREAM, maxlen=1, approximate=False)
    assert await position_of(changes, first) == third
    assert await position_of(changes, second) == third  # whether it missed any cannot be known
    assert await position_of(changes, Since(first.milliseconds - 1)) == third
    assert await position_of(changes, third) == "found"
    assert await position_of(changes, Since(third.milliseconds + 1)) == "found"
    assert await position_of(changes, OLDEST) == "found"


async def test_a_reader_of_a_store_that_was_emptied_learns_it(changes: RedisChanges, store_client: Redis) -> None:
    before = await three_changes(changes)
    await store_client.flushall()
    assert [await position_of(changes, id_) for id_ in before] == [None] * 3
    assert await position_of(changes, OLDEST) == "found"
    oldest, *_ = after = await three_changes(changes)
    assert [await position_of(changes, id_) for id_ in before] == [oldest] * 3
    assert [await position_of(changes, id_) for id_ in after] == ["found"] * 3
    assert await position_of(changes, OLDEST) == "found"


async def test_a_reader_ahead_of_a_restored_store_learns_it(changes: RedisChanges, store_client: Redis) -> None:
    oldest, *_ = known = await three_changes(changes)
    copy = await store_client.dump(STREAM)
    assert isinstance(copy, bytes)
    await changes.add(SITE, snapshot(A, 10), snapshot(B, 10))
    [(lost, _)] = (await changes.read(known[-1], 10)).changes
    await store_client.restore(STREAM, 0, copy, replace=True)
    assert await position_of(changes, lost) == oldest
    await asyncio.sleep(0.002)  # or a change of the same millisecond would have the id that was lost
    await changes.add(SITE, snapshot(A, 20), snapshot(B, 20))  # its id is greater than the lost one's
    assert await position_of(changes, lost) == oldest
    assert [await position_of(changes, id_) for id_ in known] == ["found"] * 3
    assert await position_of(changes, OLDEST) == "found"


async def test_the_stream_is_bounded(redis: GuardedClient, store_client: Redis) -> None:
    changes = RedisChanges(redis, length=10)
    for at in range(300):
        await changes.add(SITE, snapshot(A, at), snapshot(B, at))
    assert await store_client.xlen(STREAM) < 150  # Redis removes whole nodes of 100


async def test_without_a_length_nothing_is_added(redis: GuardedClient, store_client: Redis) -> None:
    await RedisChanges(redis, length=0).add(SITE, snapshot(A, 0), snapshot(B, 1))
    assert await store_client.keys("*") == []


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff", b"[1]", b"x" * 100_000, b'{"url": 1}'])
async def test_foreign_entries_are_skipped(changes: RedisChanges, store_client: Redis, text: bytes) -> None:
    await store_client.xadd(STREAM, {"change": text})
    await store_client.xadd(STREAM, {"other": "1", "fields": "2"})
    await changes.add(SITE, snapshot(A, 0), snapshot(B, 1))
    page = await changes.read(OLDEST, 2)
    assert page.changes == []
    assert await ids(changes, page.last) == [change(A, B)]


async def test_a_value_of_another_type_is_replaced(changes: RedisChanges, store_client: Redis) -> None:
    await store_client.set(STREAM, b"foreign")
    assert await ids(changes) == []
    await changes.add(SITE, snapshot(A, 0), snapshot(B, 1))
    assert await ids(changes) == [change(A, B)]


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("0", ChangeId(0)),
        ("1790000000000-3", ChangeId(1_790_000_000_000, 3)),
        ("18446744073709551615-18446744073709551615", ChangeId(2**64 - 1, 2**64 - 1)),
        ("18446744073709551616", None),
        ("", None),
        ("-", None),
        ("1-", None),
        ("1-2-3", None),
        ("+", None),
        ("٣", None),
    ],
)
def test_ids_are_those_of_redis(text: str, id_: ChangeId | None) -> None:
    assert read_id(text) == id_


T = TypeVar("T")


class Failing(GuardedClient):
    """A store whose `fails` next writes of a history fail after they were sent nowhere."""

    fails = 0

    async def with_calls(self, key: str | None, work: Callable[[Send], Awaitable[T]]) -> T | None:
        if key is not None and key.endswith(":history") and "Script.run" in repr(work) and self.fails:
            self.fails -= 1
            raise StoreDown("as after kill -9")
        return await super().with_calls(key, work)


@pytest.fixture
def failing(store_client: Redis) -> Failing:
    return Failing(store_client, monotonic=lambda: 0.0, timeout=20.0)


async def test_a_history_that_was_not_written_is_no_second_change(failing: Failing, store_client: Redis) -> None:
    changes = RedisChanges(failing)
    killed, other = (RedisHistory(failing, lambda: NOW, lost=lambda: None, changes=changes) for _ in "12")
    failing.fails = 1
    killed.note(SITE, snapshot(A, -100), snapshot(B, 0))
    await killed.aclose()
    assert failing.fails == 0
    assert await store_client.exists(history_key(SITE)) == 0
    other.note(SITE, snapshot(A, -50), replace(snapshot(B, 5), since=int(NOW)))
    await killed.aclose()
    await other.aclose()
    assert await ids(changes) == [change(A, B)]


async def test_a_process_that_learns_of_a_change_late_adds_none(redis: GuardedClient, store_client: Redis) -> None:
    changes = RedisChanges(redis)
    first, late = (RedisHistory(redis, lambda: NOW, lost=lambda: None, changes=changes) for _ in "12")
    first.note(SITE, replace(snapshot(A, -10), since=int(NOW) - 100), snapshot(B, 0))
    await first.aclose()
    for key in await store_client.keys(f"{STREAM}:*"):  # an hour later
        await store_client.delete(key)
    late.note(SITE, replace(snapshot(A, -60), since=int(NOW) - 100), snapshot(B, 700))
    await late.aclose()
    assert await ids(changes) == [change(A, B)]
