"""The overrides in a real Valkey, and the replica of each process."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
from redis.asyncio import Redis

from app.overrides.override_json import read_override
from app.overrides.redis_overrides import BYTES_LIMIT, OVERRIDES_LIMIT, ChangedMeanwhile, RedisOverrides
from app.overrides.replica import EXPIRED_KEPT, Overrides
from app.overrides.table import Override
from app.store.connect import connect
from app.store.guarded_client import GuardedClient, StoreDown
from tests.doubles import Clock, SwitchableOverrides
from tests.engines import QUOTED, clustered
from tests.faults.until import until_so

NOW = 1_790_000_000.0
ROWS, AUDIT = "robots:{overrides}:rows", "robots:{overrides}:audit"


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def store(store_client: Redis) -> SwitchableOverrides:
    # The deadline is wide here, so that a busy machine fails no test that is not about it.
    return SwitchableOverrides(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0))


NewProcess = Callable[[], Overrides]


@pytest.fixture
def new_process(store: SwitchableOverrides, clock: Clock) -> NewProcess:
    return lambda: Overrides(store, clock)


def override(id_: str, **members: object) -> Override:
    return read_override(id_, {"scope": "example.com", "action": "deny", "reason": "because", **members})


async def ids(process: Overrides) -> list[str]:
    await process.sync()
    return [one.id for one in process.table.ordered]


async def test_an_override_reaches_other_processes(new_process: NewProcess) -> None:
    one, other = new_process(), new_process()
    assert await one.put(override("a"), "me") is True
    assert await one.put(override("a", action="allow"), "me") is False
    assert await one.put(override("b"), "you") is True
    assert await ids(other) == ["a", "b"]
    assert other.rows["b"].updated_by == "you"
    assert other.rows["a"].override.action == "allow"
    assert await other.remove("a", "me") is True
    assert await other.remove("a", "me") is False
    assert await ids(one) == ["b"]


async def test_an_unchanged_row_stays_the_same_object(new_process: NewProcess) -> None:
    one, other = new_process(), new_process()
    await one.put(override("a"), "me")
    await other.sync()
    kept = other.rows["a"]
    await one.put(override("b"), "me")
    await other.sync()
    assert other.rows["a"] is kept
    table = other.table
    await other.sync()
    assert other.table is table


async def test_a_thousand_overrides_are_replicated(new_process: NewProcess) -> None:
    one = new_process()
    for number in range(1000):
        await one._store.put(override(f"o-{number:04}"), "me", NOW)
    assert len(await ids(new_process())) == 1000


async def test_long_texts_are_read_in_several_calls(new_process: NewProcess) -> None:
    one = new_process()
    for number in range(5):
        await one.put(override(f"o-{number}", action="robots", robots="ü" * 250_000), "me")
    assert len(await ids(new_process())) == 5


async def test_a_concurrent_change_is_not_overwritten(new_process: NewProcess, store: SwitchableOverrides) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    held, row = await store._stored("a")
    await one.put(override("a", action="allow"), "you")
    with pytest.raises(ChangedMeanwhile):
        await store._change("a", held, row, None, "me", NOW)
    assert await ids(one) == ["a"]


async def change(client: Redis) -> None:
    """Record that a row was changed, as a writer does."""
    version = await client.hget(ROWS, ":version")
    assert isinstance(version, bytes)
    born, number, at = map(int, version.split())
    await client.hset(ROWS, ":version", f"{born} {number + 1} {at}")


FOREIGN = [
    b"",
    b"x",
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 5000,
    json.dumps({"scope": "example.com", "action": "deny", "reason": "because"}).encode(),
    json.dumps(
        {"scope": "example.com", "action": "open", "reason": "r", "updated_at": NOW, "updated_by": "me"}
    ).encode(),
    json.dumps(
        {"scope": "example.com", "action": "deny", "reason": "r", "updated_at": 1e300, "updated_by": "me"}
    ).encode(),
    json.dumps(
        {"scope": "example.com", "action": "deny", "reason": "r", "updated_at": NOW, "updated_by": "a\nb"}
    ).encode(),
]


@pytest.mark.parametrize("value", FOREIGN)
async def test_an_invalid_row_is_ignored(new_process: NewProcess, store_client: Redis, value: bytes) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    await store_client.hset(ROWS, "b", value)
    await change(store_client)
    assert await ids(one) == ["a"]
    assert await ids(new_process()) == ["a"]
    assert await one.put(override("b"), "me") is True
    assert await ids(one) == ["a", "b"]


@pytest.mark.parametrize("value", FOREIGN)
async def test_an_overwritten_row_keeps_its_override_in_force(
    new_process: NewProcess, store_client: Redis, value: bytes
) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    await store_client.hset(ROWS, "a", value)
    await change(store_client)
    assert await ids(one) == ["a"]


async def test_too_many_fields_leave_the_known_overrides(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    await store_client.hset(ROWS, mapping={f"x{number}": "" for number in range(2 * OVERRIDES_LIMIT)})
    await store_client.hdel(ROWS, ":version")
    with pytest.raises(StoreDown):
        await one.sync()
    assert list(one.table.by_id) == ["a"]


async def test_too_many_bytes_leave_the_known_overrides(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    await store_client.hset(ROWS, mapping={f"x{number}": "#" * (BYTES_LIMIT // 4) for number in range(5)})
    await change(store_client)
    with pytest.raises(StoreDown):
        await one.sync()
    assert list(one.table.by_id) == ["a"]


@pytest.mark.parametrize("key", [ROWS, AUDIT])
async def test_a_key_of_another_type_is_store_down(new_process: NewProcess, store_client: Redis, key: str) -> None:
    await store_client.sadd(key, "foreign")
    one = new_process()
    with pytest.raises(StoreDown):
        await one.put(override("a"), "me")
    assert await ids(one) == []
    assert await one.audit(0, 10) == []


async def test_foreign_audit_entries_are_left_out(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    for value in (b"x", b'{"at": 1, "by": "me"}', b'{"at": 1, "by": "me", "id": "a", "before": [], "after": null}'):
        await store_client.lpush(AUDIT, value)
    await store_client.lpush(AUDIT, b'{"at": 1, "by": "me", "id": "a", "before": {"reason": "\\ud800"}, "after": null}')
    assert [entry.by for entry in await one.audit(0, 10)] == ["me"]


async def test_an_emptied_store_gets_its_overrides_back(new_process: NewProcess, store_client: Redis) -> None:
    one, other = new_process(), new_process()
    for id_ in ("a", "b"):
        await one.put(override(id_), "me")
    await other.sync()
    await store_client.flushall()
    assert await ids(one) == ["a", "b"]
    assert await ids(other) == ["a", "b"]
    assert await ids(new_process()) == ["a", "b"]


@pytest.mark.parametrize("lost", [[ROWS], [AUDIT], [ROWS, AUDIT]])
async def test_a_lost_key_does_not_open_what_was_closed(
    new_process: NewProcess, store_client: Redis, lost: list[str]
) -> None:
    one, other = new_process(), new_process()
    for id_ in ("a", "b"):
        await one.put(override(id_), "me")
    await other.sync()
    await store_client.delete(*lost)
    assert await one.put(override("c"), "me") is True
    assert await ids(one) == await ids(other) == await ids(new_process()) == ["a", "b", "c"]
    assert await one.put(override("a"), "me") is False
    assert not one.lost


async def test_a_process_that_never_read_lost_overrides_reports_it(
    new_process: NewProcess, store_client: Redis
) -> None:
    knowing, new = new_process(), new_process()
    await new.sync()
    assert not new.lost
    await knowing.put(override("a"), "me")
    await store_client.delete(ROWS)
    await new.sync()
    assert (new.loaded, new.lost) == (True, True)
    await knowing.sync()
    await new.sync()
    assert (await ids(new), new.lost) == (["a"], False)
    await knowing.remove("a", "me")
    await new.sync()
    assert (await ids(new), new.lost) == ([], False)


async def test_a_start_with_an_empty_store_is_logged(
    new_process: NewProcess, store_client: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    knowing = new_process()
    await knowing.sync()
    await knowing.sync()
    said = "The store has no overrides and no audit of any: it is new, or all that it had is lost."
    assert caplog.messages == [said]
    await knowing.put(override("a"), "me")
    caplog.clear()
    await new_process().sync()
    assert caplog.messages == []


async def test_an_override_changed_in_the_lost_time_is_restored(
    new_process: NewProcess, store_client: Redis, clock: Clock
) -> None:
    """Restore an older state, as if a replica without the last changes had taken over."""
    one = new_process()
    await one.put(override("a", action="allow"), "me")
    dumped = await store_client.dump(ROWS)
    assert isinstance(dumped, bytes)
    clock.now += 1
    await one.put(override("a"), "me")
    await store_client.restore(ROWS, 0, dumped, replace=True)
    await one.sync()
    assert one.rows["a"].override.action == "deny"
    other = new_process()
    await other.sync()
    assert other.rows["a"].override.action == "deny"


async def test_rows_without_a_version_are_in_force(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    await store_client.hdel(ROWS, ":version", ":bytes")
    other = new_process()
    assert await ids(other) == ["a"]
    await other.put(override("b"), "me")
    assert await ids(one) == await ids(other) == ["a", "b"]
    assert int(await store_client.hget(ROWS, ":bytes") or 0) > 100


async def test_an_override_set_after_the_loss_stays(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    for id_ in ("a", "b"):
        await one.put(override(id_), "me")
    await store_client.flushall()
    await new_process().put(override("b", action="allow"), "you")
    assert await ids(one) == ["a", "b"]
    assert one.rows["b"].override.action == "allow"


async def test_an_interrupted_restore_continues(
    new_process: NewProcess, store: SwitchableOverrides, store_client: Redis
) -> None:
    one = new_process()
    for id_ in ("a", "b", "c"):
        await one.put(override(id_), "me")
    await store_client.flushall()
    store.left = 1
    with pytest.raises(StoreDown):
        await one.sync()
    assert len(one.table.by_id) == 3
    store.left = 1000
    assert await ids(one) == ["a", "b", "c"]


async def test_an_override_that_expired_a_day_ago_is_removed(new_process: NewProcess, clock: Clock) -> None:
    one = new_process()
    await one.put(override("a", expires_at=NOW + 10), "me")
    await one.put(override("b"), "me")
    async with one.syncing(every=0.0):
        clock.now = NOW + 10 + EXPIRED_KEPT - 1
        await one.put(override("c"), "me")
        assert "a" in one.rows
        clock.now += 1
        await until_so(lambda: "a" not in one.rows)
    newest = (await one.audit(0, 1))[0]
    assert (newest.by, newest.id, newest.after) == ("expiry", "a", None)


@pytest.fixture
async def unreachable(tmp_path: object) -> AsyncIterator[Overrides]:
    client = Redis(unix_socket_path=f"{tmp_path}/none")
    yield Overrides(RedisOverrides(GuardedClient(client, monotonic=asyncio.get_running_loop().time)), Clock(NOW))
    await client.aclose()


async def test_overrides_are_unknown_until_they_are_read(unreachable: Overrides) -> None:
    with pytest.raises(StoreDown):
        await unreachable.sync()
    assert (unreachable.loaded, bool(unreachable.table)) == (False, False)


async def test_overrides_are_in_one_slot_of_a_cluster() -> None:
    with clustered(replicas=0) as fleet:
        client = connect(f"redis+cluster://:{QUOTED}@{fleet.hosts}")
        store = RedisOverrides(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
        one, other = Overrides(store, Clock(NOW)), Overrides(store, Clock(NOW))
        await one.put(override("a", action="robots", robots="#"), "me")
        await one.put(override("b"), "me")
        await one.remove("b", "me")
        assert await ids(other) == ["a"]
        assert [entry.id for entry in await other.audit(0, 10)] == ["b", "b", "a"]
        await client.aclose()


async def test_a_store_emptied_and_rewritten_is_noticed(new_process: NewProcess, store_client: Redis) -> None:
    one, other = new_process(), new_process()
    await one.put(override("a"), "me")
    await other.sync()
    await store_client.flushall()
    await new_process().put(override("b"), "me")
    assert await ids(other) == ["a", "b"]
    assert await ids(one) == ["a", "b"]


@pytest.mark.parametrize(
    "version", ["9" * 19, "1 999999999999 1", "1 9999999999999 1", "1 1", "inf", "9 9 9 9", "-1 -1 -1", " 1 1 1"]
)
async def test_an_invalid_version_is_unknown(new_process: NewProcess, store_client: Redis, version: str) -> None:
    one, other = new_process(), new_process()
    await one.put(override("a"), "me")
    await other.sync()
    await store_client.hset(ROWS, ":version", version)
    assert await ids(new_process()) == ["a"]
    await one.put(override("b"), "me")
    assert await ids(other) == ["a", "b"]
    await one.put(override("c"), "me")
    assert await ids(other) == ["a", "b", "c"]
