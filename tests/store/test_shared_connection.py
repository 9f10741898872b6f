"""All single commands to a server share a connection: each reply reaches its caller, and a failure no other."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.crc import key_slot
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import InvalidResponse, ResponseError

from app.loop.background import BackgroundTask
from app.store.connect import Borrowed, borrow, connect, server_of
from app.store.failures import ConnectionEnded
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script
from app.store.shared_connection import SharedConnection
from app.store.url import Address
from tests.api.service import Service, running
from tests.engines import MASTER, QUOTED, Fleet, cluster_url, clustered, eventually, node, sentinel_url, watched
from tests.faults.proxy import Proxy, proxy
from tests.faults.until import until, until_so

PATIENT = 20.0
ECHO = Script("return {KEYS[1], ARGV[1]}")


@pytest.fixture
async def between(store_url: str, store_client: Redis, tmp_path: Path) -> AsyncIterator[Proxy]:
    async with proxy(store_url, tmp_path) as one:
        yield one


def shared_by(client: Redis, timeout: float) -> SharedConnection:
    return SharedConnection(partial(borrow, client, None), timeout)


@pytest.fixture
async def far(between: Proxy) -> AsyncIterator[SharedConnection]:
    """A shared connection through the proxy."""
    client = connect(between.url)
    assert isinstance(client, Redis)
    shared = shared_by(client, PATIENT)
    yield shared
    await shared.aclose()
    await client.aclose()


async def test_all_calls_share_a_connection_and_each_gets_its_reply(far: SharedConnection, between: Proxy) -> None:
    texts = [b"%d" % number * (number % 50 * 1000) for number in range(200)]
    assert await asyncio.gather(*(far.call("ECHO", text) for text in texts)) == texts
    assert await far.call("EVAL", "return {1, {false, 'a'}}", 0) == [1, [None, b"a"]]
    assert between.connections == 1


async def test_an_error_fails_one_call(far: SharedConnection, between: Proxy) -> None:
    calls = [asyncio.ensure_future(far.call(*command)) for command in (("ECHO", "a"), ("NONE",), ("ECHO", "b"))]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert (results[0], results[2], between.connections) == (b"a", b"b", 1)
    assert isinstance(results[1], ResponseError)


async def test_it_ends_even_if_opening_a_connection_drops_the_cancellation(between: Proxy) -> None:
    client, opened = connect(between.url), asyncio.Event()

    async def borrow_late() -> Borrowed:
        borrowed = await borrow(client, None)
        opened.set()
        with suppress(asyncio.CancelledError):  # as asyncio.wait_for may do before Python 3.12
            await asyncio.sleep(PATIENT)
        return borrowed

    shared = SharedConnection(borrow_late, PATIENT)
    call = asyncio.ensure_future(shared.call("PING"))
    await opened.wait()
    [task] = [each for each in asyncio.all_tasks() if each.get_name() == BackgroundTask.STORE_CONNECTIONS]
    task.cancel()
    await asyncio.wait([task], timeout=PATIENT)
    assert task.cancelled()
    await shared.aclose()
    assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], NoConnection)
    await client.aclose()


async def test_callers_that_are_cancelled_at_any_moment_cost_no_other(far: SharedConnection, between: Proxy) -> None:
    chance = random.Random(7)

    async def cut_short(number: int) -> None:
        call = asyncio.ensure_future(far.call("ECHO", number))
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        call.cancel()
        with suppress(asyncio.CancelledError):
            assert await call == b"%d" % number

    async def ask(number: int) -> None:
        assert await far.call("ECHO", number) == b"%d" % number

    for turn in range(20):
        await asyncio.gather(*((cut_short, ask)[number % 2](turn * 100 + number) for number in range(100)))
        if turn % 5 == 0:
            between.cut()
            with suppress(NoConnection):
                await far.call("PING")
    assert await far.call("ECHO", "last") == b"last"


async def test_a_command_that_was_given_up_is_not_sent_later(between: Proxy, store_client: Redis) -> None:
    client = connect(between.url)
    assert isinstance(client, Redis)
    shared = shared_by(client, 0.05)
    between.held.clear()  # no connection succeeds
    late = asyncio.ensure_future(shared.call("RPUSH", "sent", "late"))
    cancelled = asyncio.ensure_future(shared.call("RPUSH", "sent", "cancelled"))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(TimeoutError):
        await late
    between.held.set()
    await until_so(lambda: shared._connection is not None)  # opening went on
    assert await shared.call("RPUSH", "sent", "now") == 1
    assert between.connections == 1
    await shared.aclose()
    await client.aclose()


async def test_a_connection_that_ends_while_it_is_handed_over_is_released(
    store_client: Redis, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(store_url)
    assert isinstance(client, Redis)
    pool, shared = client.connection_pool, shared_by(client, PATIENT)
    get_connection = pool.get_connection

    async def closed() -> AbstractConnection:
        connection: AbstractConnection = await get_connection()  # type: ignore[no-untyped-call]
        assert connection._writer is not None
        connection._writer.transport.abort()
        await asyncio.sleep(0.01)  # its end was noted before the other side could
        return connection

    monkeypatch.setattr(pool, "get_connection", closed)
    with pytest.raises(NoConnection, match="closed"):
        await asyncio.wait_for(shared.call("PING"), 5.0)
    assert not pool._in_use_connections
    # Its caller may have given up meanwhile.
    gone = asyncio.ensure_future(shared.call("PING"))
    await asyncio.sleep(0)
    gone.cancel()
    await until_so(lambda: not shared.is_connected)
    monkeypatch.undo()
    assert await asyncio.wait_for(shared.call("ECHO", "again"), 5.0) == b"again"
    await shared.aclose()
    await client.aclose()


async def test_a_late_reply_fails_all_that_wait_and_the_next_connects_anew(between: Proxy) -> None:
    client = connect(between.url)
    assert isinstance(client, Redis)
    shared = shared_by(client, 0.1)
    while between.connections == 0:
        with suppress(TimeoutError):
            await shared.call("PING")
    between.held.clear()
    calls = [asyncio.ensure_future(shared.call("ECHO", number)) for number in range(5)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(result) for result in results} == {TimeoutError}
    between.held.set()
    await until_so(lambda: between.connections == 2)  # without a call
    await until_so(lambda: shared._connection is not None)
    assert await shared.call("ECHO", "new") == b"new"
    await shared.aclose()
    await client.aclose()


async def test_a_cut_connection_fails_what_waits_and_is_opened_again(far: SharedConnection, between: Proxy) -> None:
    assert await far.call("PING") == b"PONG"
    between.held.clear()
    calls = [asyncio.ensure_future(far.call("ECHO", number)) for number in range(3)]
    await asyncio.sleep(0)
    between.cut()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(result) for result in results} == {ConnectionEnded}
    assert len({id(result) for result in results}) == 3  # none collects the frames of another's caller
    between.held.set()
    assert await far.call("ECHO", "new") == b"new"


@pytest.mark.parametrize("extra", [b"+OK\r\n", b"?\r\n"])
async def test_a_reply_to_no_command_closes_the_connection(far: SharedConnection, extra: bytes) -> None:
    assert await far.call("PING") == b"PONG"
    assert far._connection is not None
    waiting = asyncio.ensure_future(far.call("BLPOP", "none", 0))
    await asyncio.sleep(0)
    far._connection.data_received(extra * 2)
    with suppress(InvalidResponse):
        assert await waiting == b"OK"
    assert await far.call("ECHO", "new") == b"new"


async def test_what_a_server_sends_unasked_is_not_collected(far: SharedConnection) -> None:
    assert await far.call("PING") == b"PONG"
    connection = far._connection
    assert connection is not None
    connection.data_received(b"$1000000000\r\n")  # a reply that never ends
    assert connection.closed.is_set()
    assert await far.call("ECHO", "new") == b"new"


@pytest.mark.parametrize("drop", [b"", b"x"], ids=["silent", "dripping"])
async def test_a_reply_that_does_not_end_is_late(tmp_path: Path, drop: bytes) -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"$1000\r\nx")
        while not reader.at_eof():
            writer.write(drop)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await reader.read()
        writer.close()

    path, connections = tmp_path / "server.sock", 0

    async def bare() -> Borrowed:
        nonlocal connections
        transport, _ = await asyncio.get_running_loop().create_unix_connection(asyncio.Protocol, str(path))
        connections += 1

        async def closed() -> None:
            transport.close()

        return Borrowed(transport, closed)

    async with await asyncio.start_unix_server(begin, path):
        shared = SharedConnection(bare, 0.1)
        with pytest.raises(TimeoutError):
            await shared.call("PING")
        await until_so(lambda: connections == 2)  # without a call
        await shared.aclose()


async def test_calls_of_one_turn_fail_together_if_the_connection_ends_in_it(
    far: SharedConnection, store_client: Redis
) -> None:
    assert await far.call("PING") == b"PONG"
    assert far._connection is not None
    calls = [asyncio.ensure_future(far.call("RPUSH", "turn", number)) for number in range(3)]
    await asyncio.sleep(0)
    far._connection.connection_lost(None)
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(result) for result in results} == {ConnectionEnded}
    assert await far.call("RPUSH", "turn", "new") == 1
    assert await store_client.lrange("turn", 0, -1) == [b"new"]


async def test_no_connection_fails_every_call_with_an_error_of_its_own() -> None:
    client = connect("redis://127.0.0.1:1")
    assert isinstance(client, Redis)
    shared = shared_by(client, PATIENT)
    results = await asyncio.gather(*(shared.call("PING") for _ in range(3)), return_exceptions=True)
    assert {type(result) for result in results} == {NoConnection}
    assert len({id(result) for result in results}) == 3
    await shared.aclose()
    await client.aclose()


async def test_closing_fails_what_waits_and_leaves_nothing(between: Proxy) -> None:
    before = asyncio.all_tasks()
    client = connect(between.url)
    assert isinstance(client, Redis)
    shared = shared_by(client, PATIENT)
    assert await shared.call("PING") == b"PONG"
    waiting = asyncio.ensure_future(shared.call("BLPOP", "none", 0))
    await asyncio.sleep(0)
    await shared.aclose()
    with pytest.raises(NoConnection):
        await waiting
    assert not client.connection_pool._in_use_connections
    await client.aclose()
    between.cut()
    await until_so(lambda: asyncio.all_tasks() <= before)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with clustered(0) as three:
        yield three


async def test_redirections_of_a_cluster_are_followed(fleet: Fleet) -> None:
    client = connect(cluster_url(fleet))
    redis = GuardedClient(client, monotonic=time.monotonic, timeout=PATIENT)
    await redis.ping()
    key = "{a}moved"
    slot = key_slot(key.encode())
    await redis.command(key, "SET", key, "1")
    source = next(one for one in fleet.masters if one.ask("CLUSTER", "COUNTKEYSINSLOT", slot))
    target = next(one for one in fleet.masters if one is not source)
    names = [str(one.ask("CLUSTER", "MYID"), "ascii") for one in (source, target)]
    before = server_of(client, key)
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[0])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[1])
    assert await redis.command("{a}new", "SET", "{a}new", "2") is not None  # ASK
    assert target.ask("CLUSTER", "COUNTKEYSINSLOT", slot) == 1
    assert await redis.command(key, "GET", key) == b"1"
    source.ask("DEL", key)
    for one in fleet.masters:
        one.ask("CLUSTER", "SETSLOT", slot, "NODE", names[1])
    assert await ECHO.run(redis, ["{a}new"], "said") == [b"{a}new", b"said"]  # MOVED
    assert server_of(client, key) != before
    assert await redis.command("{a}new", "GET", "{a}new") == b"2"
    assert not redis.degraded
    await redis.aclose()
    await client.aclose()


async def test_a_master_that_became_a_replica_is_left() -> None:
    with watched(1, 1) as fleet:
        client = connect(sentinel_url(fleet))
        redis = GuardedClient(client, monotonic=time.monotonic, timeout=PATIENT)
        await redis.command("a", "SET", "a", "1")
        fleet.copied()
        [replica] = fleet.replicas
        eventually("it fails over", lambda: bool(fleet.sentinels[0].ask("SENTINEL", "FAILOVER", MASTER)))
        eventually("the replica is the master", lambda: replica.ask("ROLE")[0] == b"master")

        async def written() -> bool:
            with suppress(StoreDown):
                await redis.command("a", "SET", "a", "2")
            return bool(replica.ask("GET", "a") == b"2")

        await until(written, bool)
        await redis.aclose()
        await client.aclose()


async def test_a_primary_behind_a_name_that_moves_is_left(tmp_path: Path) -> None:
    sockets = [str(tmp_path / name) for name in ("one", "two")]
    with node(unixsocket=sockets[0]) as one, node(unixsocket=sockets[1]) as two:
        moving = Proxy("", sockets[0])  # new connections go where the name leads, and open ones stay, as with DNS
        async with await asyncio.start_server(moving.serve, "127.0.0.1", 0) as front:
            port = front.sockets[0].getsockname()[1]
            async with running(f"redis://:{QUOTED}@localhost:{port}") as service:
                assert await _permit(service) == (False, "ok")
                one.ask("REPLICAOF", "127.0.0.1", two.port)
                moving.target = sockets[1]
                await until(partial(_permit, service), lambda seen: seen == (False, "ok"))
                assert two.ask("EXISTS", "robots:probe")
            await moving.end()


async def _permit(service: Service) -> tuple[bool, str]:
    """Whether a permit was given without the store, and the state of the store."""
    asked = {"agent": "ExampleBot", "url": "https://www.example.com/"}
    permit = (await service.client.post("/v1/permits", json=asked)).json()
    readiness = (await service.client.get("/readyz")).json()
    return permit["degraded"], readiness["store"]


async def test_a_server_that_is_always_a_replica_is_named(tmp_path: Path) -> None:
    with node() as one:
        one.ask("REPLICAOF", "127.0.0.1", 1)
        async with running(f"redis://:{QUOTED}@127.0.0.1:{one.port}") as service:
            readiness = (await service.client.get("/readyz")).json()
    assert readiness["store"] == "degraded"
    assert "READONLY" in readiness["detail"]


async def test_a_node_of_a_cluster_is_no_server_by_itself(fleet: Fleet) -> None:
    client = connect(f"redis://:{QUOTED}@127.0.0.1:{fleet.masters[0].port}")
    redis = GuardedClient(client, monotonic=map(float, count()).__next__, timeout=PATIENT)
    with pytest.raises(
        StoreDown, match=r"redirected a command 5 times; if it is a cluster, set REDIS_URL to redis\+cluster://"
    ):
        await asyncio.gather(*(redis.command(key, "GET", key) for key in "abcdef"))
    await redis.aclose()
    await client.aclose()


async def test_keys_that_stay_apart_while_they_move_fail_the_command(fleet: Fleet) -> None:
    client = connect(cluster_url(fleet))
    redis = GuardedClient(client, monotonic=map(float, count()).__next__, timeout=PATIENT)
    await redis.ping()
    one, other = "{apart}one", "{apart}other"
    slot = key_slot(one.encode())
    await redis.command(one, "SET", one, "1")
    source = next(it for it in fleet.masters if it.ask("CLUSTER", "COUNTKEYSINSLOT", slot))
    target = next(it for it in fleet.masters if it is not source)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", str(target.ask("CLUSTER", "MYID"), "ascii"))
    with pytest.raises(StoreDown):
        await ECHO.run(redis, [one, other], "said")  # TRYAGAIN
    source.ask("CLUSTER", "SETSLOT", slot, "STABLE")
    assert await ECHO.run(redis, [one, other], "said") == [one.encode(), b"said"]
    await redis.aclose()
    await client.aclose()


async def test_a_node_that_does_not_know_all_slots_is_not_believed(fleet: Fleet) -> None:
    with node(cluster_enabled="yes") as lone:
        client = connect(f"redis+cluster://:{QUOTED}@127.0.0.1:{lone.port},{fleet.hosts}")
        redis = GuardedClient(client, monotonic=time.monotonic, timeout=PATIENT)
        await redis.ping()
        known = {server_of(client, str(number)) for number in range(100)}
        assert known == {Address("127.0.0.1", one.port) for one in fleet.masters}
        await redis.aclose()
        await client.aclose()
