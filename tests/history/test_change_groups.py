"""A change is leased to one caller of a group at a time, until it is acknowledged; nothing is lost silently."""

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
from redis.asyncio import Redis

from app.history import change_groups
from app.history.change import Change
from app.history.change_groups import (
    GROUPS,
    OLDEST,
    ChangesMissed,
    GroupState,
    RedisChangeGroups,
    TooManyGroups,
    UnknownGroup,
)
from app.history.redis_changes import ID_LIMIT, STREAM, ChangeId, read_id
from app.redis.guarded_client import GuardedClient
from tests.history.feed import add_changes, change_text, end_leases

GROUP = "index"
LEASE = 3600.0
"""Seconds: no lease ends by itself during a test."""


@pytest.fixture
def redis(store_client: Redis) -> GuardedClient:
    return GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0)


@pytest.fixture
def groups(redis: GuardedClient) -> RedisChangeGroups:
    return RedisChangeGroups(redis, lease=LEASE)


def ids(changes: Sequence[tuple[ChangeId, Change]]) -> list[str]:
    return [str(id_) for id_, _ in changes]


def read_ids(texts: Sequence[str]) -> list[ChangeId]:
    found = [read_id(text) for text in texts]
    return [id_ for id_ in found if id_ is not None]


async def lease(groups: RedisChangeGroups, count: int = 100, group: str = GROUP) -> list[str]:
    return ids(await groups.lease(group, count, OLDEST))


async def trimmed(client: Redis, length: int) -> str:
    """The oldest id of the stream, once it is that short."""
    await client.xtrim(STREAM, maxlen=length, approximate=False)
    [(oldest, _)] = await client.xrange(STREAM, count=1) or []
    assert isinstance(oldest, bytes)
    return oldest.decode()


async def test_callers_of_a_group_share_its_changes(redis: GuardedClient, store_client: Redis) -> None:
    added = await add_changes(store_client, 300)
    processes = RedisChangeGroups(redis, lease=LEASE), RedisChangeGroups(redis, lease=LEASE)
    found = await asyncio.gather(*(lease(processes[call % 2], 7) for call in range(50)))
    assert sorted(chain.from_iterable(found), key=added.index) == added
    assert await lease(processes[0]) == []


async def test_every_group_gets_all_changes(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 3)
    for group in ("index", "archive"):
        assert await lease(groups, group=group) == added
        assert await groups.acknowledge(group, read_ids(added)) == 3


async def test_a_change_comes_again_after_its_lease(groups: RedisChangeGroups, store_client: Redis) -> None:
    first, second, third = added = await add_changes(store_client, 3)
    assert await lease(groups, 2) == [first, second]
    await end_leases(store_client, GROUP, [second])
    assert await lease(groups) == [second, third]
    await end_leases(store_client, GROUP)
    assert await lease(groups) == added
    assert await lease(groups) == []


async def test_an_acknowledged_change_never_comes_again(groups: RedisChangeGroups, store_client: Redis) -> None:
    first, second, third = await add_changes(store_client, 3)
    await lease(groups)
    assert await groups.acknowledge(GROUP, read_ids([first, third, first])) == 2
    assert await groups.acknowledge(GROUP, read_ids([first, third])) == 0
    await end_leases(store_client, GROUP)
    assert await lease(groups) == [second]


async def test_a_change_is_acknowledged_after_its_lease_too(groups: RedisChangeGroups, store_client: Redis) -> None:
    [only] = await add_changes(store_client, 1)
    await lease(groups)
    await end_leases(store_client, GROUP)
    assert await groups.acknowledge(GROUP, read_ids([only])) == 1
    assert await lease(groups) == []


async def test_a_long_lease_does_not_hide_one_that_has_ended(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 200)
    await lease(groups, 200)
    await end_leases(store_client, GROUP, added[-1:])
    assert await lease(groups, 1) == added[-1:]


async def test_leased_changes_of_a_group_are_bounded(
    groups: RedisChangeGroups, store_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_groups, "LEASED", 5)
    added = await add_changes(store_client, 8)
    assert await lease(groups) == added[:5]
    assert await lease(groups) == []
    await groups.acknowledge(GROUP, read_ids(added[:2]))
    assert await lease(groups) == added[5:7]
    await end_leases(store_client, GROUP)
    assert await lease(groups) == added[2:7]


async def test_a_group_begins_where_it_is_told(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 4)
    middle, future = read_ids([added[1], "9" * 18])
    assert await lease(groups, group="oldest") == added
    assert ids(await groups.lease("middle", 10, middle)) == added[2:]
    assert await groups.lease("end", 10, at_end=True) == []
    assert await groups.lease("future", 10, future) == []
    later = await add_changes(store_client, 1)
    for group in ("oldest", "middle", "end", "future"):
        assert ids(await groups.lease(group, 10)) == later


async def test_an_unknown_group_is_not_made_by_accident(groups: RedisChangeGroups, store_client: Redis) -> None:
    for length in (0, 2):
        await add_changes(store_client, length)
        with pytest.raises(UnknownGroup):
            await groups.lease(GROUP, 10)
        with pytest.raises(UnknownGroup):
            await groups.acknowledge(GROUP, [ChangeId(1)])
        assert await groups.list() == []


async def test_groups_are_bounded(groups: RedisChangeGroups) -> None:
    for number in range(GROUPS):
        await lease(groups, group=f"group-{number}")
    with pytest.raises(TooManyGroups):
        await lease(groups)
    assert await lease(groups, group="group-7") == []
    assert await groups.delete("group-7")
    assert await lease(groups) == []
    assert len(await groups.list()) == GROUPS


async def test_deleting_a_group_forgets_its_leases(groups: RedisChangeGroups, store_client: Redis) -> None:
    assert not await groups.delete(GROUP)
    added = await add_changes(store_client, 2)
    assert not await groups.delete(GROUP)
    await lease(groups)
    assert await groups.delete(GROUP)
    assert not await groups.delete(GROUP)
    assert await lease(groups) == added


async def test_the_state_of_groups_is_listed(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 5)
    await lease(groups, 3)
    await groups.acknowledge(GROUP, read_ids(added[:1]))
    await groups.lease("end", 1, at_end=True)
    end, index = await groups.list()
    assert index.idle is not None
    assert index == GroupState(GROUP, 2, 2, index.idle)
    assert (end.name, end.pending) == ("end", 0)


async def test_callers_leave_one_consumer_in_the_store(redis: GuardedClient, store_client: Redis) -> None:
    await add_changes(store_client, 4)
    for _ in range(4):
        await lease(RedisChangeGroups(redis), 1)
    assert len(await store_client.xinfo_consumers(STREAM, GROUP)) == 1


async def test_a_group_that_missed_changes_gets_an_error(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 10)
    leased = await lease(groups, 2)
    await groups.acknowledge(GROUP, read_ids(leased))
    oldest = await trimmed(store_client, 3)
    for _ in range(2):  # the first answer may be lost, so it is repeated
        with pytest.raises(ChangesMissed) as missed:
            await lease(groups)
        assert (str(missed.value.oldest), missed.value.exists) == (oldest, True)
    [missed_before] = read_ids([oldest])
    assert await groups.acknowledge(GROUP, [], missed_before) == 0
    assert await lease(groups) == added[-3:]
    await groups.acknowledge(GROUP, read_ids(added), missed_before)
    assert await lease(groups) == []


async def test_a_group_can_miss_the_first_change(groups: RedisChangeGroups, store_client: Redis) -> None:
    assert await lease(groups) == []
    await add_changes(store_client, 3)
    oldest = await trimmed(store_client, 1)
    with pytest.raises(ChangesMissed):
        await lease(groups)
    await groups.acknowledge(GROUP, [], read_id(oldest))
    assert await lease(groups) == [oldest]


async def test_a_leased_change_that_was_removed_is_missed(redis: GuardedClient, store_client: Redis) -> None:
    groups, later = (
        RedisChangeGroups(redis, lease=LEASE),
        RedisChangeGroups(redis, lease=0),
    )  # for the second, all leases have ended
    added = await add_changes(store_client, 6)
    await lease(groups, 4)
    oldest = await trimmed(store_client, 3)
    assert await lease(groups, 1) == added[4:5]
    with pytest.raises(ChangesMissed) as missed:
        await lease(later)
    assert str(missed.value.oldest) == oldest
    await groups.acknowledge(GROUP, read_ids(added[:2]), read_id(oldest))
    with pytest.raises(ChangesMissed):  # a caller may still process the third
        await lease(later)
    await later.acknowledge(GROUP, [], read_id(oldest))
    assert await lease(later) == added[3:]


async def test_a_removed_change_that_was_processed_is_not_missed(redis: GuardedClient, store_client: Redis) -> None:
    groups = RedisChangeGroups(redis, lease=0)
    added = await add_changes(store_client, 3)
    await lease(groups, 3)
    await trimmed(store_client, 1)
    assert await groups.acknowledge(GROUP, read_ids(added[:2])) == 2
    assert await lease(groups) == added[2:]


async def test_more_changes_that_are_removed_are_another_gap(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 10)
    await lease(groups, 1)
    first = await trimmed(store_client, 5)
    second = await trimmed(store_client, 3)
    await groups.acknowledge(GROUP, [], read_id(first))
    with pytest.raises(ChangesMissed) as missed:
        await lease(groups)
    assert str(missed.value.oldest) == second
    for not_missed in (added[-1], f"{ID_LIMIT - 1}-{ID_LIMIT - 1}"):
        await groups.acknowledge(GROUP, [], read_id(not_missed))
        with pytest.raises(ChangesMissed):
            await lease(groups)


async def test_a_group_cannot_begin_with_removed_changes(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 5)
    oldest = await trimmed(store_client, 2)
    with pytest.raises(ChangesMissed) as missed:
        await groups.lease(GROUP, 10, read_id(added[0]))
    assert (str(missed.value.oldest), missed.value.exists) == (oldest, False)
    assert await groups.list() == []
    assert await lease(groups) == added[-2:]


@pytest.mark.parametrize("number", [0, 3])
async def test_a_gap_ends_just_before_the_oldest_change(
    groups: RedisChangeGroups, store_client: Redis, number: int
) -> None:
    for at in ("5-1", "6-2", f"7-{number}"):
        await store_client.xadd(STREAM, {"change": change_text(1)}, id=at)
        await lease(groups, 1) if at == "5-1" else None
    oldest = await trimmed(store_client, 1)
    with pytest.raises(ChangesMissed):
        await lease(groups)
    await groups.acknowledge(GROUP, [], read_id(oldest))
    assert await lease(groups) == [f"7-{number}"]


async def test_ids_beyond_53_bits_are_compared_exactly(groups: RedisChangeGroups, store_client: Redis) -> None:
    first = 1_790_000_000_000_000_001  # nanoseconds, as another program may have chosen
    for number in range(3):
        await store_client.xadd(STREAM, {"change": change_text(number)}, id=f"{first + number}-0")
    assert await lease(groups, 1) == [f"{first}-0"]
    oldest = await trimmed(store_client, 1)
    with pytest.raises(ChangesMissed):
        await lease(groups)
    await groups.acknowledge(GROUP, [], read_id(oldest))
    assert await lease(groups) == [f"{first + 2}-0"]


async def test_a_group_that_the_store_lost_is_unknown(groups: RedisChangeGroups, store_client: Redis) -> None:
    await add_changes(store_client, 2)
    await lease(groups)
    await store_client.delete(STREAM)
    added = await add_changes(store_client, 2)
    with pytest.raises(UnknownGroup):
        await groups.lease(GROUP, 10)
    assert await lease(groups) == added


@pytest.mark.parametrize("fields", [{"change": b"{}"}, {"change": b"\xff"}, {"change": b"x" * 100_000}, {"a": "b"}])
async def test_unreadable_entries_are_acknowledged(
    groups: RedisChangeGroups, store_client: Redis, fields: dict[Any, Any]
) -> None:
    await store_client.xadd(STREAM, fields)
    await store_client.xadd(STREAM, {"other": "1", "fields": "2"})
    added = await add_changes(store_client, 1)
    assert await lease(groups) == added
    assert (await groups.list())[0].pending == 1


async def test_an_emptied_stream_drops_no_lease(groups: RedisChangeGroups, store_client: Redis) -> None:
    await add_changes(store_client, 2)
    await lease(groups)
    await end_leases(store_client, GROUP)
    await store_client.xtrim(STREAM, maxlen=0, approximate=False)
    assert await lease(groups) == []
    [added] = await add_changes(store_client, 1)
    with pytest.raises(ChangesMissed):
        await lease(groups)
    await groups.acknowledge(GROUP, [], read_id(added))
    assert await lease(groups) == [added]


async def test_a_value_of_another_type_is_replaced_by_a_new_group(
    groups: RedisChangeGroups, store_client: Redis
) -> None:
    await store_client.set(STREAM, b"foreign")
    assert await groups.list() == []
    assert not await groups.delete(GROUP)
    for use in (groups.lease(GROUP, 1), groups.acknowledge(GROUP, [])):
        with pytest.raises(UnknownGroup):
            await use
    assert await lease(groups) == []
    added = await add_changes(store_client, 1)
    assert await lease(groups) == added


async def test_foreign_groups_and_consumers_do_no_harm(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 3)
    for name in ("Not ours", "\u00e9", "x" * 100_000, "-"):
        await store_client.xgroup_create(STREAM, name, "0")
    await lease(groups, 1)
    await store_client.xreadgroup(GROUP, "foreign", {STREAM: ">"}, count=1)
    await end_leases(store_client, GROUP)
    assert await lease(groups) == added
    assert [state.name for state in await groups.list()] == [GROUP]


async def test_a_group_beyond_the_end_is_made_anew(groups: RedisChangeGroups, store_client: Redis) -> None:
    added = await add_changes(store_client, 2)
    await lease(groups)
    await store_client.xgroup_setid(STREAM, GROUP, "99999999999999-0")
    with pytest.raises(UnknownGroup):
        await groups.lease(GROUP, 10)
    assert await lease(groups) == added


async def test_extreme_ids_are_answered(groups: RedisChangeGroups, store_client: Redis) -> None:
    await add_changes(store_client, 1)
    await lease(groups)
    extremes = [ChangeId(0), ChangeId(ID_LIMIT - 1, ID_LIMIT - 1), *(ChangeId(n, n) for n in range(998))]
    for missed_before in (None, *extremes[:2]):
        assert await groups.acknowledge(GROUP, extremes, missed_before) == 0
