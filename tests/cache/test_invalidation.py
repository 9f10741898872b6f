"""What processes tell each other, on a real Valkey: heard by all others, and harmful to none."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from app.cache.invalidation import CHANNEL, LONGEST_MESSAGE, Event, InvalidationListener, decode, encode
from app.cache.redis_snapshots import RedisSnapshots
from app.origin import Origin
from app.redis.connect import connect, subscriber
from app.redis.guarded_client import GuardedClient
from tests.faults.proxy import Proxy
from tests.faults.until import until, until_so

SITE = Origin("https", "www.example.com", 443)
ODD = Origin("http", "2001:db8::1", 8080)


class Listener:
    """What one process has heard, and how often it may have missed something."""

    def __init__(self) -> None:
        self.heard: list[tuple[Event, Origin]] = []
        self.gaps = 0
        self._changed = asyncio.Condition()
        self._notes: set[asyncio.Task[None]] = set()

    def on_event(self, event: Event, origin: Origin) -> None:
        self.heard.append((event, origin))
        self._note()

    def on_gap(self) -> None:
        self.gaps += 1
        self._note()

    def _note(self) -> None:
        note = asyncio.create_task(self._notify())
        self._notes.add(note)
        note.add_done_callback(self._notes.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[["Listener"], bool]) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: condition(self))


@asynccontextmanager
async def listening(
    url: str, name: str = "listener", quiet: float = 20.0
) -> AsyncIterator[tuple[Listener, InvalidationListener]]:
    client = connect(url)
    listener = Listener()
    async with InvalidationListener(
        lambda: subscriber(client), name, listener.on_event, listener.on_gap, quiet=quiet
    ) as subscription:
        yield listener, subscription
    await client.aclose()


@pytest.fixture
def store(store_client: Redis) -> RedisSnapshots:
    return RedisSnapshots(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), name="teller")


@pytest.mark.parametrize("origin", [SITE, ODD, Origin("http", "xn--bcher-kva.example", 80)])
@pytest.mark.parametrize("word", Event)
def test_what_is_written_is_read_by_others_only(word: Event, origin: Origin) -> None:
    message = encode("teller", word, origin)
    assert decode(message, "listener") == (word, origin)
    assert decode(message, "teller") is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b" ",
        b"  ",
        b"\x00\xff\xfe",
        b"teller changed",
        b"teller changed https://a.example more",
        b"teller changed https://a.example/path",
        b"teller changed https://a.example:443",
        b"teller changed HTTPS://A.EXAMPLE",
        b"teller changed ftp://a.example",
        b"teller changed https://",
        b"teller shouted https://a.example",
        b"teller CHANGED https://a.example",
        "teller changed https://b\u00fccher.example".encode(),
        b"teller changed https://" + b"a" * LONGEST_MESSAGE,
        b"x" * 10_000_000,
        "teller changed https://a.example",
        1,
        None,
        [b"teller changed https://a.example"],
    ],
)
def test_what_is_no_message_of_ours_says_nothing(message: object) -> None:
    assert decode(message, "listener") is None


async def test_what_one_tells_all_others_hear(store_url: str, store: RedisSnapshots) -> None:
    async with (
        listening(store_url, "one") as (one, _),
        listening(store_url, "two") as (two, _),
        listening(store_url, "teller") as (teller, _),
    ):
        for listener in (one, two, teller):
            await listener.until(lambda self: self.gaps == 1)
        await store.publish(Event.CHANGED, SITE)
        await store.publish(Event.PURGED, ODD)
        for listener in (one, two):
            await listener.until(lambda self: len(self.heard) == 2)
            assert listener.heard == [(Event.CHANGED, SITE), (Event.PURGED, ODD)]
        assert teller.heard == []


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"x" * 1_000_000, b"teller changed ftp://x"])
async def test_garbage_is_passed_over(
    store_url: str, store_client: Redis, store: RedisSnapshots, garbage: bytes
) -> None:
    async with listening(store_url) as (listener, _):
        await listener.until(lambda self: self.gaps == 1)
        for _ in range(20):
            await store_client.publish(CHANNEL, garbage)
        await store.publish(Event.CHANGED, SITE)
        await listener.until(lambda self: len(self.heard) == 1)
        assert listener.gaps == 1


async def test_after_a_huge_message_news_is_heard_again(
    store_url: str, store_client: Redis, store: RedisSnapshots
) -> None:
    async with listening(store_url) as (listener, _):
        await listener.until(lambda self: self.gaps == 1)
        # A server may deliver it, or cut off who is not quick enough in taking it.
        await store_client.publish(CHANNEL, bytes(40_000_000))

        async def heard() -> int:
            await store.publish(Event.CHANGED, SITE)
            return len(listener.heard)

        await until(heard, bool)


async def test_a_flood_lets_others_run(store_url: str, store_client: Redis) -> None:
    async with listening(store_url) as (listener, _):
        await listener.until(lambda self: self.gaps == 1)
        flood = store_client.pipeline(transaction=False)
        for _ in range(5000):
            flood.publish(CHANNEL, encode("teller", Event.CHANGED, SITE))
        await flood.execute()
        turns = 0
        async with asyncio.timeout(60):
            while len(listener.heard) < 5000:
                await asyncio.sleep(0)
                turns += 1
        # Everybody else had a turn between any two messages that were still to come.
        assert turns > 1000


async def test_a_cut_subscription_resumes_and_reports_a_gap(between: Proxy, store: RedisSnapshots) -> None:
    async with listening(between.url) as (listener, subscription):
        await listener.until(lambda self: self.gaps == 1)
        assert subscription.connected
        for gaps in (2, 3):
            between.cut()
            await listener.until(lambda self, gaps=gaps: self.gaps == gaps)  # type: ignore[misc]
        assert subscription.connected
        await store.publish(Event.CHANGED, SITE)
        await listener.until(lambda self: len(self.heard) == 1)


async def test_without_a_server_it_is_tried_again_until_there_is_one(between: Proxy, store: RedisSnapshots) -> None:
    between.refusing = True
    async with listening(between.url) as (listener, subscription):
        await until_so(lambda: between.connections >= 3)
        assert not subscription.connected
        between.refusing = False
        await listener.until(lambda self: self.gaps == 1)
        assert subscription.connected


@pytest.mark.parametrize("nonsense", [b"-ERR no\r\n", b"+OK\r\n", b"*3\r\n:x\r\n", b">1\r\n+message\r\n", b"\x00" * 9])
async def test_a_server_that_talks_nonsense_is_left_for_one_that_does_not(between: Proxy, nonsense: bytes) -> None:
    between.nonsense = nonsense
    async with listening(between.url, quiet=0.2) as (listener, _):
        await until_so(lambda: between.connections >= 2)
        between.nonsense = None
        between.cut()
        await listener.until(lambda self: self.gaps == 1)
        assert listener.heard == []


async def test_a_silent_server_is_asked_for_a_sign_of_life_and_then_left(between: Proxy) -> None:
    async with listening(between.url, quiet=0.2) as (listener, subscription):
        await listener.until(lambda self: self.gaps == 1)
        between.held.clear()
        await until_so(lambda: not subscription.connected)
        between.held.set()
        await listener.until(lambda self: self.gaps == 2)


async def test_a_server_that_is_there_and_has_nothing_to_say_is_kept(between: Proxy) -> None:
    async with listening(between.url, quiet=0.05) as (listener, subscription):
        await listener.until(lambda self: self.gaps == 1)
        heard = between.answers
        await until_so(lambda: between.answers > heard + 5)
        assert (listener.gaps, subscription.connected) == (1, True)


async def test_its_end_leaves_no_task_and_no_connection(store_url: str, store_client: Redis) -> None:
    before = asyncio.all_tasks()
    async with listening(store_url) as (listener, subscription):
        await listener.until(lambda self: self.gaps == 1)
    assert not subscription.connected
    assert asyncio.all_tasks() == before
    assert await store_client.pubsub_numsub(CHANNEL) == [(CHANNEL.encode(), 0)]
