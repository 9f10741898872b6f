"""Every engine supports all that the service needs, and keeps working when a master fails."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from functools import partial

import httpx
import pytest
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from app.cache.freshness import Recheck
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.robots_cache import RobotsCache
from app.store.connect import Client, connect, subscriber
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.script import Script
from app.store.store_clock import StoreClock
from robots_core.origin import Origin
from robots_core.robots.access import Fetched, Validators
from tests.engines import (
    QUOTED,
    Certificates,
    Fleet,
    Node,
    alone,
    behind_tls,
    cluster_url,
    clustered,
    free_port,
    sentinel_url,
    watched,
)
from tests.origins import serve, text
from tests.service_process import started
from tests.store.sites import NOW, copy, owner, store_key

FORGET_OWN = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
ADD = "return redis.call('incrby', KEYS[1], ARGV[1])"
CHANNEL = "test:news"
ENGINES = ["redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"]
SITES = [Origin("https", f"{i}.example.com", 443) for i in range(40)]
COLD = [Origin("https", f"cold-{i}.example.com", 443) for i in range(10)]


async def next_message(listener: PubSub) -> dict[str, object]:
    message: dict[str, object] | None = await listener.get_message(timeout=20.0)
    assert message is not None
    return message


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def urls(certificates: Certificates, store_url: str) -> Iterator[dict[str, str]]:
    """A URL per engine, for servers that no other test uses."""
    with ExitStack() as stack:

        def secured(port: int, target: Node) -> int:
            stack.enter_context(behind_tls(certificates, port, target.port))
            return port

        single = stack.enter_context(alone())
        tls_port = secured(free_port(), single.masters[0])
        watchers = stack.enter_context(watched(1, 0, front=lambda master: secured(free_port(), master)))
        sentinel_port = secured(free_port(), watchers.sentinels[0])
        ports = [free_port() for _ in range(3)]
        members = stack.enter_context(clustered(0, announced=ports))
        for port, member in zip(ports, members.masters, strict=True):
            secured(port, member)
        secure_watchers = Fleet(f"127.0.0.1:{sentinel_port}", watchers.masters)
        yield {
            "redis": f"redis://default:{QUOTED}@{single.hosts}/1",
            "rediss": f"rediss://:{QUOTED}@127.0.0.1:{tls_port}/2?{certificates.query}",
            "unix": f"{store_url}?db=3",
            "redis+sentinel": sentinel_url(watchers),
            "rediss+sentinel": sentinel_url(secure_watchers, "rediss+sentinel", certificates.query),
            "redis+cluster": cluster_url(members),
            "rediss+cluster": cluster_url(members, "rediss+cluster", certificates.query),
        }


@pytest.fixture(autouse=True)
async def all_closed() -> AsyncIterator[None]:
    """A test ends when its sockets are closed.

    redis-py closes the connection of a cancelled call without waiting for it, and TLS takes a round trip to close.
    """
    sockets = asyncio.get_running_loop()._selector.get_map()  # type: ignore[attr-defined]
    others = len(sockets)

    async def is_closed() -> bool:
        return len(sockets) <= others

    yield
    await until("all sockets are closed", is_closed)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    client = connect(url)
    try:
        yield client
    finally:
        await client.aclose()


@asynccontextmanager
async def guarded(url: str, seconds: float = 20.0) -> AsyncIterator[GuardedClient]:
    async with connected(url) as client:
        redis = GuardedClient(client, monotonic=time.monotonic, timeout=seconds)
        yield redis
        await redis.aclose()


@pytest.fixture(params=ENGINES)
async def redis(request: pytest.FixtureRequest, urls: dict[str, str]) -> AsyncIterator[GuardedClient]:
    async with guarded(urls[request.param]) as redis:
        await redis.ping()
        await everywhere(redis, "FLUSHALL")
        yield redis


async def everywhere(redis: GuardedClient, *command: str) -> None:
    """Run the command on every shard."""
    for shard in redis.shards:
        assert await redis.on_shard(shard, lambda send: send(*command)) == b"OK"


async def test_every_engine_keeps_snapshots(redis: GuardedClient) -> None:
    store = RedisSnapshots(redis)
    assert await store.get(SITES[0]) is None
    await asyncio.gather(*(store.put(site, copy(site), 60) for site in SITES))
    assert await asyncio.gather(*(store.get(site) for site in SITES)) == [copy(site) for site in SITES]
    assert 0 < await redis.command(store_key(SITES[0]), "TTL", store_key(SITES[0])) <= 60


async def test_every_engine_grants_one_lease_that_only_its_holder_releases(redis: GuardedClient) -> None:
    give_back = Script(FORGET_OWN)
    for key in ("lease:{a}", "lease:{b}", "lease:{c}"):
        take = partial(redis.command, key, "SET", key)
        assert await take(b"mine", "NX", "PX", 60_000) == b"OK"
        assert await take(b"yours", "NX", "PX", 60_000) is None
        assert await give_back.run(redis, [key], b"yours") == 0
        assert await give_back.run(redis, [key], b"mine") == 1
        assert await take(b"yours", "NX", "PX", 60_000) == b"OK"
        assert await redis.command(key, "EVAL", FORGET_OWN, 1, key, b"yours") == 1


async def test_every_engine_is_sent_the_scripts_that_it_lacks_for_many_keys(redis: GuardedClient) -> None:
    script = Script(ADD)
    keys = [f"visits:{{{site.key}}}" for site in SITES]
    for times in (1, 2):
        await everywhere(redis, "SCRIPT", "FLUSH")
        adding = (script.run(redis, [key], str(i)) for i, key in enumerate(keys))
        assert await asyncio.gather(*adding) == [i * times for i in range(len(keys))]


async def test_every_engine_delivers_messages_to_all_subscribers(redis: GuardedClient) -> None:
    async with aclosing(await subscriber(redis.client)) as one, aclosing(await subscriber(redis.client)) as other:
        for listener in (one, other):
            await listener.subscribe(CHANNEL)
            assert (await next_message(listener))["type"] == "subscribe"
        sent = [f"https://{i}.example.com:443".encode() for i in range(8)]
        for message in sent:
            await redis.command(None, "PUBLISH", CHANNEL, message)
        for listener in (one, other):
            # In a cluster, messages may arrive in any order.
            assert {(await next_message(listener))["data"] for _ in sent} == set(sent)
            await listener.ping()
            assert (await next_message(listener))["type"] == "pong"


async def test_a_cancelled_call_leaves_no_answer_for_the_next(redis: GuardedClient) -> None:
    keys = [f"{{{i}}}" for i in range(15)]
    for key in keys:
        await redis.command(key, "SET", key, key)
    chance = random.Random(4)

    def read(key: str) -> Awaitable[object]:
        return redis.command(key, "GETRANGE", key, 0, 100)

    async def cut_short(key: str) -> None:
        call = asyncio.ensure_future(read(key))
        for _ in range(chance.randrange(40)):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])

    for _ in range(4):
        await asyncio.gather(*map(cut_short, keys))
        assert await asyncio.gather(*map(read, keys)) == [key.encode() for key in keys]


async def test_a_client_connects_when_used_and_can_close_unused() -> None:
    for url in (
        "redis://none.invalid",
        "unix:///none",
        "redis+sentinel://none.invalid/m",
        "redis+cluster://none.invalid",
    ):
        await connect(url).aclose()


@pytest.mark.parametrize(
    "form", ["redis://{}", "rediss://{}", "redis+sentinel://{},{}/main", "redis+cluster://{},{}", "unix:///{}"]
)
async def test_calls_to_a_closed_port_raise_store_down(form: str) -> None:
    async with connected(form.format(*(f"127.0.0.1:{free_port()}" for _ in range(form.count("{"))))) as client:
        for _ in range(2):
            store = RedisSnapshots(GuardedClient(client, monotonic=time.monotonic, timeout=20.0))
            for call in (store.get(SITES[0]), store.redis.ping()):
                with pytest.raises(StoreDown):
                    await call
        with pytest.raises((RedisError, OSError)):
            await subscribed(client)


async def subscribed(client: Client) -> None:
    async with aclosing(await subscriber(client)) as listener:
        await listener.subscribe(CHANNEL)


@pytest.mark.parametrize("url", ["redis+cluster://:{0}@{1}", "redis+sentinel://:{0}@{1}/main"])
async def test_a_server_of_another_kind_counts_as_down(url: str) -> None:
    with alone() as fleet:
        async with connected(url.format(QUOTED, fleet.hosts)) as client:
            with pytest.raises(StoreDown):
                await RedisSnapshots(GuardedClient(client, monotonic=time.monotonic, timeout=20.0)).get(SITES[0])


@pytest.mark.parametrize("query", ["", "ssl_ca_certs={0.authority}", "ssl_certfile={0.client}"])
async def test_tls_verifies_both_client_and_server(certificates: Certificates, query: str) -> None:
    port = free_port()
    with alone() as fleet, behind_tls(certificates, port, fleet.masters[0].port):
        async with connected(f"rediss://:{QUOTED}@127.0.0.1:{port}?{query.format(certificates)}".rstrip("?")) as client:
            with pytest.raises(StoreDown):
                await RedisSnapshots(GuardedClient(client, monotonic=time.monotonic, timeout=20.0)).get(SITES[0])


class Web:
    """A web in which every site has its own file; `fetched` has the sites that were fetched."""

    def __init__(self) -> None:
        self.fetched: list[Origin] = []

    async def fetch(self, site: Origin, validators: Validators, caller: str) -> Fetched:
        self.fetched.append(site)
        return Fetched(copy(site).access)


class Load:
    """Callers that write and read the snapshots of all sites continuously, with the service's timeout."""

    def __init__(self, store: RedisSnapshots) -> None:
        self._store = store
        self.refused = 0
        self.wrong: list[object] = []

    async def __aenter__(self) -> "Load":
        self._callers = [asyncio.create_task(self._call(SITES[i::4])) for i in range(4)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for caller in self._callers:
            assert not caller.done() or caller.result()
            caller.cancel()
        await asyncio.gather(*self._callers, return_exceptions=True)

    async def _call(self, sites: list[Origin]) -> None:
        while True:
            for site in sites:
                try:
                    await self._store.put(site, copy(site), 600)
                    found = await self._store.get(site)
                except StoreDown:
                    self.refused += 1
                else:
                    if found != copy(site):
                        self.wrong.append(found)
                await asyncio.sleep(0.01)  # the pace of the load


async def until(what: str, attempt: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + 60
    while True:
        with suppress(StoreDown, RedisError, OSError):
            if await attempt():
                return
        assert time.monotonic() < deadline, f"not within a minute: {what}"
        await asyncio.sleep(0.05)


async def survives(client: Client, fleet: Fleet, lose: Callable[[], None]) -> None:
    """Check the store and the answers before, during and after the loss of a master."""
    web = Web()
    store = RedisSnapshots(GuardedClient(client, monotonic=time.monotonic))
    lasting = [Origin("http", site.host, 80) for site in SITES]

    async def all_written() -> bool:
        for site in SITES:
            await store.put(site, copy(site), 600)
        return True

    async def all_kept() -> bool:
        return [await store.get(site) for site in lasting] == [copy(site) for site in lasting]

    async def all_counted() -> bool:
        for site in SITES:
            await Script(ADD).run(store.redis, [f"visits:{{{site.key}}}"], "1")
        return True

    async def is_refused() -> bool:
        try:
            for site in SITES:
                await store.get(site)
        except StoreDown:
            return True
        return False

    async def has_news() -> bool:
        async with aclosing(await subscriber(client)) as listener:
            await listener.subscribe(CHANNEL)
            assert (await next_message(listener))["type"] == "subscribe"
            await store.redis.command(None, "PUBLISH", CHANNEL, b"new")
            return (await next_message(listener))["data"] == b"new"

    for site in lasting:
        await until("the store is used", partial(written, store, site))
    fleet.copied()
    async with Load(store) as load:
        lose()
        await until("the loss is felt", is_refused)
        cache = RobotsCache(store, web.fetch, StoreClock(lambda: NOW, lambda: NOW), 1_000_000)
        async with asyncio.timeout(60):
            answers = await asyncio.gather(*(cache.get(site, Recheck(), wait=60.0) for site in COLD))
        assert [answer.snapshot and answer.snapshot.access for answer in answers] == [copy(s).access for s in COLD]
        assert sorted(site.key for site in web.fetched) == sorted(site.key for site in COLD)
        await cache.aclose()
        await until("all is kept and found again", all_kept)
        await until("all is written again", all_written)
        await until("all is counted again", all_counted)
        await until("there is news again", has_news)
        assert load.refused > 0
    assert load.wrong == []


async def written(store: RedisSnapshots, site: Origin) -> bool:
    await store.put(site, copy(site), 600)
    return True


async def answers_in_time(hasty: GuardedClient) -> bool:
    """Whether a call that may take a tenth of a second succeeds."""
    await hasty.command(store_key(SITES[0]), "GETRANGE", store_key(SITES[0]), 0, 1)
    return True


async def test_a_killed_master_is_replaced_by_the_sentinels_choice() -> None:
    with watched(3, 2) as fleet:
        async with connected(sentinel_url(fleet)) as client:
            await survives(client, fleet, fleet.masters[0].kill)


async def test_a_hanging_master_and_sentinel_are_skipped() -> None:
    with watched(3, 1) as fleet:

        def hang() -> None:
            fleet.sentinels[0].stop()
            fleet.masters[0].stop()

        async with connected(sentinel_url(fleet)) as client, guarded(sentinel_url(fleet), 0.1) as hasty:
            await until("it answers in time", partial(answers_in_time, hasty))
            await survives(client, fleet, hang)
            await until("it answers in time again", partial(answers_in_time, hasty))


async def test_a_killed_cluster_master_is_replaced_by_its_replica() -> None:
    with clustered(1) as fleet:
        async with connected(cluster_url(fleet)) as client:
            await survives(client, fleet, owner(fleet, SITES[0]).kill)


async def test_a_hanging_cluster_master_is_replaced_by_its_replica() -> None:
    with clustered(1) as fleet:
        async with connected(cluster_url(fleet)) as client, guarded(cluster_url(fleet), 0.1) as hasty:
            await until("it answers in time", partial(answers_in_time, hasty))
            await survives(client, fleet, owner(fleet, SITES[0]).stop)
            await until("it answers in time again", partial(answers_in_time, hasty))


@pytest.mark.parametrize("engine", ["redis+sentinel", "redis+cluster"])
async def test_the_service_decides_with_any_engine(urls: dict[str, str], engine: str) -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin:
        with started(REDIS_URL=urls[engine]) as service:
            async with httpx.AsyncClient(base_url=service.url) as caller:
                query = {"url": f"{origin.url}/private/page", "agent": "ExampleBot"}
                answer = (await caller.get("/v1/allowed", params=query)).json()
                assert (answer["verdict"], answer["rule"]["line"]) == ("disallow", 2)
                assert (await caller.get("/readyz")).json()["store"] == "ok"
                assert service.servers == []
        site = Origin("http", "127.0.0.1", int(origin.url.rpartition(":")[2]))
        async with guarded(urls[engine]) as redis:
            assert await redis.command(store_key(site), "EXISTS", store_key(site)) == 1
