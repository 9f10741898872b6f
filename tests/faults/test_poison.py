"""Redis is not trusted: a poisoned value counts as absent, and cannot execute, crash, hang or mislead.

A writer who knows the formats, and may write to the same Redis, is trusted: see SECURITY.md.
"""

import ast
import asyncio
import json
import pickle
import zlib
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from app.auth.quotas import Quotas
from app.cache.codec import decode, encode
from app.cache.compression import compress
from app.cache.freshness import Snapshot
from app.cache.invalidation import CHANNEL
from app.history import versions as history
from app.pacing.redis_pacer import keys_of
from app.pacing.slots import PaceKey
from app.store.connect import connect
from app.store.guarded_client import GuardedClient
from robots_core.origin import read_target
from robots_core.robots.access import Successful
from tests.api.service import START, Service, running
from tests.faults.loopback import Web, web
from tests.faults.until import until
from tests.origins import text

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("app", "core") for path in (ROOT / folder).rglob("*.py"))
CLOSED = text(200, "User-agent: *\nDisallow: /private/\n")
OPEN = Snapshot(Successful(200, b"User-agent: *\nAllow: /\n"), START)
PROBE_INTERVAL = 30.0
"""Seconds after which a step fails, even on a busy machine."""

Poison = str | tuple[str, Any]

KINDS: dict[str, Callable[[Redis, str], Any]] = {
    "list": lambda client, key: client.rpush(key, "a", "b"),
    "hash": lambda client, key: client.hset(key, "a", "b"),
    "set": lambda client, key: client.sadd(key, "a"),
    "sorted set": lambda client, key: client.zadd(key, {"a": 1}),
    "stream": lambda client, key: client.xadd(key, {"a": "b"}),
}


class Bomb:
    """Called if anything unpickles the value."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('it was executed')",)


ACCESS: list[Any] = ["successful", 200, False, None]
FACTS: dict[str, Any] = {
    "access": ACCESS,
    "fetched_at": START,
    "final_url": None,
    "etag": None,
    "last_modified": None,
    "lifetime": None,
    "failing": None,
    "since": None,
}


def packed(facts: object, body: bytes = b"User-agent: *\nAllow: /\n", mark: bytes = b"R\x02") -> bytes:
    return mark + compress(json.dumps(facts).encode() + b"\n" + body)


nonsense: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers() | st.text(max_size=3), max_size=7),
    st.just({"a": [[[[]]]]}),
    st.just("\ud800"),
    st.just("x" * 100_000),
)
nearly: st.SearchStrategy[bytes] = st.one_of(
    st.tuples(st.sampled_from(sorted(FACTS)), nonsense).map(lambda one: packed({**FACTS, one[0]: one[1]})),
    st.tuples(st.integers(0, 3), nonsense).map(
        lambda one: packed({**FACTS, "access": [*ACCESS[: one[0]], one[1], *ACCESS[one[0] + 1 :]]})
    ),
    st.sampled_from(sorted(FACTS)).map(lambda name: packed({key: it for key, it in FACTS.items() if key != name})),
    st.tuples(st.integers(0, 60), st.integers(1, 255)).map(lambda one: _flipped(encode(OPEN), *one)),
    st.binary(min_size=2, max_size=2).map(lambda mark: packed(FACTS, mark=mark)),
)


def _flipped(data: bytes, at: int, by: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([data[at] ^ by]) + data[at + 1 :]


bombs = st.sampled_from(
    [
        b"R\x01" + zlib.compress(b"\0" * 20_000_000),
        b"R\x02" + compress(b"\0" * 20_000_000),
        packed(FACTS, b"\n" * 20_000_000),
        packed("[" * 100_000),
        b"R\x01" + zlib.compress(b"[" * 1_000_000 + b"\n"),
        b"R\x02" + compress(b"[" * 1_000_000 + b"\n"),
        b"P\x01" + b"9" * 1_000_000,
        b"P\x01nan",
        b"P\x01inf",
        b"H\x01" + b"\xff" * 700_000,
        b"H\x01" + b"\0" * 600_000,
        b"x" * 8_000_000,
        pickle.dumps(Bomb()),
        b"R\x02" + pickle.dumps(Bomb()),
        b"V1 1e308 99999999999 0",
        b"V1 nan 1 1",
        b"V1 1 1 1 1",
        b"",
    ]
)
values = st.binary(max_size=100) | nearly | bombs
poisons: st.SearchStrategy[Poison | bytes] = st.sampled_from(sorted(KINDS)) | values.filter(
    lambda value: decode(value) is None and not _is_mark(value)
)


def _is_mark(value: bytes) -> bool:
    """Whether it is the mark of a purge, which is valid."""
    return value.startswith(b"P\x01")


async def put(client: Redis, key: str, poison: object) -> None:
    await client.delete(key)
    if isinstance(poison, bytes):
        await client.set(key, poison)
    else:
        await KINDS[str(poison)](client, key)


class Room:
    """A service on a Valkey, a proxy, and origins that disallow everything, for many examples."""

    def __init__(self, service: Service, client: Redis, origins: Web) -> None:
        self.service = service
        self.client = client
        self.origins = origins

    async def get(self, path: str, **query: str) -> Any:
        async with asyncio.timeout(PROBE_INTERVAL):
            response = await self.service.client.get(path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    async def refuses(self, origin: str) -> None:
        """Check that the answer is that of the origin's file."""
        answer = await self.get("/v1/allowed", url=f"{origin}/private/page", agent="SeznamBot")
        assert (answer["verdict"], answer["reason"]) == ("disallow", "rule")


@contextmanager
def room(store_url: str) -> Iterator[tuple[asyncio.Runner, Room]]:
    with asyncio.Runner() as runner:

        async def keep(entered: asyncio.Queue[Room], leave: asyncio.Event) -> None:
            client = connect(store_url)
            assert isinstance(client, Redis)
            await client.flushall()
            async with web(CLOSED) as origins, running(store_url) as service:
                entered.put_nowait(Room(service, client, origins))
                await leave.wait()
            await client.aclose()

        async def enter() -> tuple[Room, asyncio.Event, asyncio.Task[None]]:
            entered: asyncio.Queue[Room] = asyncio.Queue()
            leave = asyncio.Event()
            task = asyncio.create_task(keep(entered, leave))
            async with asyncio.timeout(PROBE_INTERVAL):
                return await entered.get(), leave, task

        async def end(leave: asyncio.Event, task: asyncio.Task[None]) -> None:
            leave.set()
            await task

        found, leave, task = runner.run(enter())
        try:
            yield runner, found
        finally:
            runner.run(end(leave, task))


few = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def test_poisoned_value_of_an_origin_counts_as_absent(store_url: str) -> None:
    with room(store_url) as (runner, it):

        async def example(found: dict[str, Poison | bytes]) -> None:
            origin = it.origins.new()
            key = f"robots:{{{origin}}}"
            for suffix, poison in found.items():
                await put(it.client, key + suffix, poison)
            await it.refuses(origin)
            kept = await it.client.get(key)
            assert isinstance(kept, bytes)
            assert decode(kept) is not None
            versions = await it.get("/v1/robots/history", url=origin)
            assert [version["outcome"] for version in versions["versions"]] == ["successful"]

        @few
        @given(st.dictionaries(st.sampled_from(["", ":lease", ":visits", ":history"]), poisons, min_size=1))
        def check(found: dict[str, Poison | bytes]) -> None:
            runner.run(example(found))

        check()


def test_poisoned_history_counts_as_absent(store_url: str) -> None:
    """Rows with wrong digests, which are not used as versions."""
    real = history.write(history.add((), [history.version_of(OPEN)], START), b"12345678")
    with room(store_url) as (runner, it):

        async def example(value: bytes) -> None:
            origin = it.origins.new()
            await it.client.set(f"robots:{{{origin}}}:history", value)
            await it.refuses(origin)
            versions = (await it.get("/v1/robots/history", url=origin))["versions"]
            assert versions
            assert all(len(version["id"]) == 16 for version in versions)

        @few
        @given(st.integers(2, len(real) - 1), st.integers(1, 255), st.booleans())
        def check(at: int, by: int, cut: bool) -> None:
            runner.run(example(real[:at] if cut else _flipped(real, at, by)))

        check()


def test_poisoned_overrides_crash_nothing(store_url: str) -> None:
    keys = [f"robots:{{overrides}}:{name}" for name in ("rows", "audit")]
    wrong = st.sampled_from([b"9", b"-1", b"nan", b"1e400", b"0x10", b"9" * 400, b"\xff\xfe", pickle.dumps(Bomb())])
    fields = st.dictionaries(st.sampled_from(["mine", "other", "\xff"]), st.binary(max_size=30) | bombs, min_size=1)
    with room(store_url) as (runner, it):

        async def example(key: str, poison: object) -> None:
            await it.client.delete(*keys)
            override = {"scope": "example.com", "action": "deny", "reason": "It is to be so."}

            async def put_again() -> int:
                return (await it.service.client.put("/v1/overrides/mine", json=override)).status_code

            # The service may write missing overrides back in between.
            await until(put_again, lambda status: status in {200, 201})
            if isinstance(poison, dict):
                await it.client.delete(key)
                await it.client.hset(key, mapping=poison)
            else:
                await put(it.client, key, poison)
            async with asyncio.timeout(PROBE_INTERVAL):
                for method, path in (("GET", ""), ("GET", "/audit"), ("PUT", "/mine"), ("DELETE", "/mine")):
                    body = {**override, "reason": "Or otherwise."} if method == "PUT" else None
                    response = await it.service.client.request(method, f"/v1/overrides{path}", json=body)
                    assert response.status_code in {200, 201, 204, 404, 409, 413, 503}, response.text
            await it.refuses(it.origins.new())

        @few
        @given(st.sampled_from(keys), st.sampled_from(sorted(KINDS)) | wrong | fields)
        def check(key: str, poison: object) -> None:
            runner.run(example(key, poison))

        check()


def test_poisoned_quota_counts_as_absent(store_url: str) -> None:
    with room(store_url) as (runner, it):

        async def example(poison: Poison | bytes) -> None:
            await put(it.client, "robots:{quotas}:crawler", poison)
            redis = GuardedClient(it.client, monotonic=lambda: 0.0, timeout=PROBE_INTERVAL)
            async with aclosing(redis):
                quotas = Quotas(redis, lambda: 0.0, lambda _key: None)
                quotas.add_debt("crawler", 5.0)
                await quotas.settle()
                assert quotas.debt("crawler") == 5.0

        @few
        @given(poisons | st.sampled_from([b"inf", b"-inf", b"nan", b"1e300", b"0x7fffffff", b"99999999999.9"]))
        def check(poison: Poison | bytes) -> None:
            runner.run(example(poison))

        check()


def test_poisoned_pace_still_gives_slots(store_url: str) -> None:
    """tests/pacing checks that the slots are right."""
    with room(store_url) as (runner, it):

        async def permit(origin: str) -> None:
            question = {"url": f"{origin}/open", "agent": "ExampleBot", "max_wait": 3600}
            async with asyncio.timeout(PROBE_INTERVAL):
                response = await it.service.client.post("/v1/permits", json=question)
            assert response.status_code == 200, response.text
            assert response.json()["verdict"] == "allow"
            assert response.json()["permit"] or response.json()["retry_after"]

        def queue(origin: str) -> PaceKey:
            return PaceKey(read_target(origin).origin.uri_host, "examplebot")

        async def known() -> int:
            origin = it.origins.new()
            await permit(origin)
            return int(await it.client.exists(*keys_of(queue(origin))))

        assert runner.run(known()) >= 5

        async def example(found: dict[int, Poison | bytes]) -> None:
            origin = it.origins.new()
            for which, poison in found.items():
                await put(it.client, keys_of(queue(origin))[which], poison)
            for _ in range(2):
                await permit(origin)

        @few
        @given(st.dictionaries(st.sampled_from(range(9)), poisons, min_size=1))
        def check(found: dict[int, Poison | bytes]) -> None:
            runner.run(example(found))

        check()


def test_poisoned_events_are_ignored(store_url: str) -> None:
    words = st.sampled_from([b"changed", b"purged", b"executed", b""])
    places = st.sampled_from([b"http://127.0.0.1", b"http://[::1", b"file:///etc/passwd", b"\xff", b"http://h\r\n"])
    messages = st.tuples(st.binary(max_size=5), words, places).map(b" ".join)
    with room(store_url) as (runner, it):

        async def connected() -> str:
            return next(
                line
                for line in (await it.service.client.get("/metrics")).text.splitlines()
                if line.startswith("robots_pubsub_connected ")
            )

        async def example(message: bytes) -> None:
            await until(connected, lambda line: line == "robots_pubsub_connected 1.0")
            assert await it.client.publish(CHANNEL, message) == 1
            await it.refuses(it.origins.new())
            assert await connected() == "robots_pubsub_connected 1.0"

        @few
        @given(messages | st.binary(max_size=200) | bombs)
        def check(message: bytes) -> None:
            runner.run(example(message))

        check()


async def test_only_keys_and_channels_with_our_prefix_are_used(store_url: str, store_client: Redis) -> None:
    theirs = {b"robot": b"1", b"{robots}": b"2", b"snapshot:http://h": b"3"}
    await store_client.mset(theirs)
    async with web(CLOSED) as origins, running(store_url) as service:
        origin = origins.new()
        await service.allowed(f"{origin}/private/page", "SeznamBot")
        for method, path, body in (
            ("PUT", "/v1/overrides/one", {"scope": "example.com", "action": "deny", "reason": "A reason."}),
            ("POST", f"/v1/robots/refresh?url={origin}", None),
            ("DELETE", "/v1/overrides/one", None),
            ("DELETE", f"/v1/robots?url={origin}", None),
            ("GET", "/readyz", None),
        ):
            assert (await service.client.request(method, path, json=body)).status_code < 300
        channels: list[Any] = await store_client.pubsub_channels()
    keys: set[Any] = set(await store_client.keys())
    assert {key for key in keys if not key.startswith(b"robots:")} == theirs.keys()
    assert {key: await store_client.get(key) for key in theirs} == theirs
    assert {key.partition(b"}")[2] for key in keys if b"127.1." in key} >= {b"", b":visits", b":history"}
    assert channels
    assert all(channel.startswith(b"robots:") for channel in channels)


EXECUTING = {"eval", "exec", "compile", "__import__"}
UNPACKING = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "jsonpickle", "yaml", "code", "runpy"}


# A helper process unpickles the calls that the service writes to its standard input, and the service nothing.
PICKLED = [("helper_process.py", "loads"), ("helpers.py", "dumps")]


def test_stored_values_are_never_executed_or_unpickled() -> None:
    found, pickled = [], []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import([ast.alias("pickle", None)]) if path.name in dict(PICKLED):
                    pass
                case ast.Attribute(ast.Name("pickle"), call) if call.islower():
                    pickled.append((path.name, call))
                case ast.Import(names):
                    found += [(path.name, name.name) for name in names if name.name.split(".")[0] in UNPACKING]
                case ast.ImportFrom(module=str(module)):
                    found += [(path.name, module)] if module.split(".")[0] in UNPACKING else []
                case ast.Call(func=ast.Name(id=name)) if name in EXECUTING:
                    found.append((path.name, name))
                case ast.keyword(arg="shell"):
                    found.append((path.name, "shell"))
                case _:
                    pass
    assert found == []
    assert pickled == PICKLED


def test_no_script_contains_stored_values() -> None:
    """Scripts are files and constants; stored values are passed only as keys and arguments."""
    parts: list[ast.expr] = []
    sent = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("Script"), args=[text]):
                    parts.append(text)
                case ast.Call(func=ast.Attribute(ast.Name("Script"), "load"), args=[_, *names], keywords=constants):
                    parts += [*names, *(constant.value for constant in constants)]
                case ast.Call(args=[ast.Constant("EVAL" | "EVALSHA"), script, *_]):
                    sent.add(ast.unparse(script))
                case _:
                    pass
    assert len(parts) > 30
    used = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    assert all(name.isupper() or name == "round" for name in used), used
    assert not [part for part in parts if any(isinstance(node, ast.Attribute) for node in ast.walk(part))]
    assert sent == {"self._text", "self._sha", "PROBE"}
