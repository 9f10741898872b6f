"""The overrides in a real Valkey, and the copy that each process has of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest
from redis.asyncio import Redis

from app.overrides.following import KEPT, Overrides
from app.overrides.store import ChangedMeanwhile, RedisOverrides
from app.overrides.table import Override, read_override
from app.store.calls import Calls, StoreDown
from app.store.engines import connect
from tests.engines import QUOTED, clustered
from tests.faults.until import until_so

NOW = 1_790_000_000.0
PREFIX = "robots:{overrides}:"


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class Switchable(RedisOverrides):
    """A store that can be switched off after so many more changes."""

    left = 1000

    async def put(self, override: Override, by: str, at: float) -> bool:
        self.left -= 1
        if self.left < 0:
            raise StoreDown("it is switched off")
        return await super().put(override, by, at)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(store_client: Redis) -> Switchable:
    # The deadline is wide here, so that a busy machine fails no test that is not about it.
    return Switchable(Calls(store_client, monotonic=lambda: 0.0, timeout=20.0))


NewProcess = Callable[[], Overrides]


@pytest.fixture
def new_process(store: Switchable, clock: Clock) -> NewProcess:
    return lambda: Overrides(store, clock)


def override(id_: str, **members: object) -> Override:
    return read_override(id_, {"scope": "example.com", "action": "deny", "reason": "because", **members})


async def ids(process: Overrides) -> list[str]:
    await process.sync()
    return [one.id for one in process.table.ordered]


async def test_what_one_process_sets_another_learns(new_process: NewProcess) -> None:
    one, other = new_process(), new_process()
    assert await one.put(override("a"), "me") is True
    assert await one.put(override("a", action="allow"), "me") is False
    assert await one.put(override("b"), "you") is True
    assert await ids(other) == ["a", "b"]
    assert other.rows["b"].updated_by == "you"
    assert other.rows["a"].override.action_name == "allow"
    assert await other.remove("a", "me") is True
    assert await other.remove("a", "me") is False
    assert await ids(one) == ["b"]


async def test_only_what_changed_is_read_again(new_process: NewProcess) -> None:
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


async def test_a_thousand_are_followed(new_process: NewProcess) -> None:
    one = new_process()
    for number in range(1000):
        await one._store.put(override(f"o-{number:04}"), "me", NOW)
    assert len(await ids(new_process())) == 1000


async def test_texts_that_are_long_together_are_read_in_portions(new_process: NewProcess) -> None:
    one = new_process()
    for number in range(5):
        await one.put(override(f"o-{number}", action="robots", robots="ü" * 250_000), "me")
    assert len(await ids(new_process())) == 5


async def test_what_was_changed_meanwhile_is_not_written_over(new_process: NewProcess, store: Switchable) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    held, row = await store._held("a")
    await one.put(override("a", action="allow"), "you")
    with pytest.raises(ChangedMeanwhile):
        await store._change("a", held, row, None, "me", NOW)
    assert await ids(one) == ["a"]


async def change(client: Redis) -> None:
    """Count the version up, as whoever changes something does."""
    version = await client.get(f"{PREFIX}version")
    assert isinstance(version, bytes)
    born, number, at = map(int, version.split())
    await client.set(f"{PREFIX}version", f"{born} {number + 1} {at}")


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
async def test_what_is_no_override_is_ignored(new_process: NewProcess, store_client: Redis, value: bytes) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    await store_client.hset(f"{PREFIX}rows", "b", value)
    await store_client.hset(f"{PREFIX}index", "b", f"7 {len(value)}")
    await change(store_client)
    assert await ids(one) == ["a"]
    assert await ids(new_process()) == ["a"]
    assert await one.put(override("b"), "me") is True
    assert await ids(one) == ["a", "b"]


@pytest.mark.parametrize(
    "place", [b"", b"7", b"7 x", b"-7 1", b"7 99999999999", b"7 1 1", b"7 " + b"1" * 50, "7 ٣".encode()]
)
async def test_what_is_no_place_in_the_index_is_ignored(
    new_process: NewProcess, store_client: Redis, place: bytes
) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    await store_client.hset(f"{PREFIX}index", "b", place)
    await store_client.hset(f"{PREFIX}index", b"\xff", b"1 1")
    await change(store_client)
    assert await ids(one) == ["a"]


@pytest.mark.parametrize("name", ["version", "index", "rows", "octets", "audit"])
async def test_a_key_of_another_type_is_trouble_and_no_crash(
    new_process: NewProcess, store_client: Redis, name: str
) -> None:
    await store_client.sadd(f"{PREFIX}{name}", "foreign")
    one = new_process()
    with pytest.raises(StoreDown):
        await one.put(override("a"), "me")
    assert await ids(one) == []
    assert await one.audit(0, 10) == []


async def test_audit_entries_that_are_not_ours_are_left_out(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    await one.put(override("a"), "me")
    for value in (b"x", b'{"at": 1, "by": "me"}', b'{"at": 1, "by": "me", "id": "a", "before": [], "after": null}'):
        await store_client.lpush(f"{PREFIX}audit", value)
    await store_client.lpush(
        f"{PREFIX}audit", b'{"at": 1, "by": "me", "id": "a", "before": {"reason": "\\ud800"}, "after": null}'
    )
    assert [entry.by for entry in await one.audit(0, 10)] == ["me"]


async def test_a_store_that_lost_everything_is_given_back_what_is_known(
    new_process: NewProcess, store_client: Redis
) -> None:
    one, other = new_process(), new_process()
    for id_ in ("a", "b"):
        await one.put(override(id_), "me")
    await other.sync()
    await store_client.flushall()
    assert await ids(one) == ["a", "b"]
    assert await ids(other) == ["a", "b"]
    assert await ids(new_process()) == ["a", "b"]


async def test_what_was_set_after_the_loss_stays(new_process: NewProcess, store_client: Redis) -> None:
    one = new_process()
    for id_ in ("a", "b"):
        await one.put(override(id_), "me")
    await store_client.flushall()
    await new_process().put(override("b", action="allow"), "you")
    assert await ids(one) == ["a", "b"]
    assert one.rows["b"].override.action_name == "allow"


async def test_giving_back_goes_on_where_it_was_interrupted(
    new_process: NewProcess, store: Switchable, store_client: Redis
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


async def test_what_expired_a_day_ago_is_removed_and_the_audit_says_so(new_process: NewProcess, clock: Clock) -> None:
    one = new_process()
    await one.put(override("a", expires_at=NOW + 10), "me")
    await one.put(override("b"), "me")
    async with one.followed(every=0.0):
        clock.now = NOW + 10 + KEPT - 1
        await one.put(override("c"), "me")
        assert "a" in one.rows
        clock.now += 1
        await until_so(lambda: "a" not in one.rows)
    newest = (await one.audit(0, 1))[0]
    assert (newest.by, newest.id, newest.after) == ("expiry", "a", None)


@pytest.fixture
async def unreachable(tmp_path: object) -> AsyncIterator[Overrides]:
    client = Redis(unix_socket_path=f"{tmp_path}/none")
    yield Overrides(RedisOverrides(Calls(client, monotonic=asyncio.get_running_loop().time)), Clock())
    await client.aclose()


async def test_what_no_store_told_is_not_known(unreachable: Overrides) -> None:
    with pytest.raises(StoreDown):
        await unreachable.sync()
    assert (unreachable.known, bool(unreachable.table)) == (False, False)


async def test_a_cluster_keeps_them_in_one_slot() -> None:
    with clustered(replicas=0) as fleet:
        client = connect(f"redis+cluster://:{QUOTED}@{fleet.hosts}")
        store = RedisOverrides(Calls(client, monotonic=lambda: 0.0, timeout=20.0))
        one, other = Overrides(store, Clock()), Overrides(store, Clock())
        await one.put(override("a", action="robots", robots="#"), "me")
        await one.put(override("b"), "me")
        await one.remove("b", "me")
        assert await ids(other) == ["a"]
        assert [entry.id for entry in await other.audit(0, 10)] == ["b", "b", "a"]
        await client.aclose()


async def test_a_store_that_lost_everything_and_was_written_again_is_noticed(
    new_process: NewProcess, store_client: Redis
) -> None:
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
async def test_a_version_that_no_process_writes_is_none(
    new_process: NewProcess, store_client: Redis, version: str
) -> None:
    one, other = new_process(), new_process()
    await one.put(override("a"), "me")
    await other.sync()
    await store_client.set(f"{PREFIX}version", version)
    assert await ids(new_process()) == ["a"]
    await one.put(override("b"), "me")
    assert await ids(other) == ["a", "b"]
    await one.put(override("c"), "me")
    assert await ids(other) == ["a", "b", "c"]
