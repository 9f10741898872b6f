"""Invalidations over a real Valkey reach all other processes, and foreign messages do no harm."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from app.cache.invalidation import (
    CHANNEL,
    LONGEST_MESSAGE,
    MESSAGE_ORIGINS,
    Event,
    InvalidationListener,
    decode,
    encode,
)
from app.cache.redis_snapshots import RedisSnapshots
from app.store.connect import connect, subscriber
from app.store.guarded_client import GuardedClient
from robots_core.origin import Origin
from tests.faults.proxy import Proxy
from tests.faults.until import until, until_so

SITE = Origin("https", "www.example.com", 443)
ODD = Origin("http", "2001:db8::1", 8080)


class Listener:
    """A listener that records its events and counts its gaps."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, Origin]] = []
        self.gaps = 0
        self._changed = asyncio.Condition()
        self._notes: set[asyncio.Task[None]] = set()

    def on_event(self, event: Event, origin: Origin) -> None:
        self.events.append((event, origin))
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
    subscription = InvalidationListener(
        lambda: subscriber(client), name, listener.on_event, listener.on_gap, quiet=quiet
    )
    async with subscription.listening():
        yield listener, subscription
    await client.aclose()


@pytest.fixture
def store(store_client: Redis) -> RedisSnapshots:
    return RedisSnapshots(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), name="sender")


@pytest.mark.parametrize("origin", [SITE, ODD, Origin("http", "xn--bcher-kva.example", 80)])
@pytest.mark.parametrize("word", Event)
def test_a_message_is_read_by_other_processes_only(word: Event, origin: Origin) -> None:
    message = encode("sender", word, origin.key)
    assert decode(message, "listener") == (word, [origin])
    assert decode(message, "sender") is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b" ",
        b"  ",
        b"\x00\xff\xfe",
        b"sender changed",
        b"sender changed https://a.example more",
        b"sender changed " + b" ".join([b"https://a.example"] * (MESSAGE_ORIGINS + 1)),
        b"sender changed https://a.example/path",
        b"sender changed https://a.example:443",
        b"sender changed HTTPS://A.EXAMPLE",
        b"sender changed ftp://a.example",
        b"sender changed https://",
        b"sender shouted https://a.example",
        b"sender CHANGED https://a.example",
        "sender changed https://b\u00fccher.example".encode(),
        b"sender changed https://" + b"a" * LONGEST_MESSAGE,
        b"x" * 10_000_000,
        "sender changed https://a.example",
        1,
        None,
        [b"sender changed https://a.example"],
    ],
)
def test_foreign_messages_are_ignored(message: object) -> None:
    assert decode(message, "listener") is None


def test_one_message_can_name_many_origins() -> None:
    longest = [
        Origin("https", f"{n:063}.{'a' * 63}.{'b' * 63}.{'c' * 61}", 65535, "p" * 32) for n in range(MESSAGE_ORIGINS)
    ]
    message = encode("sender", Event.CHANGED, *(origin.key for origin in longest))
    assert len(message) <= LONGEST_MESSAGE
    assert decode(message, "listener") == (Event.CHANGED, longest)


async def test_an_invalidation_reaches_all_others(store_url: str, store: RedisSnapshots) -> None:
    async with (
        listening(store_url, "one") as (one, _),
        listening(store_url, "two") as (two, _),
        listening(store_url, "sender") as (sender, _),
    ):
        for listener in (one, two, sender):
            await listener.until(lambda self: self.gaps == 1)
        await store.publish(Event.CHANGED, SITE)
        await store.publish(Event.PURGED, ODD)
        for listener in (one, two):
            await listener.until(lambda self: len(self.events) == 2)
            assert listener.events == [(Event.CHANGED, SITE), (Event.PURGED, ODD)]
        assert sender.events == []


@pytest.mark.parametrize("garbage", [b"\xff" * 100, b"x" * 1_000_000, b"sender changed ftp://x"])
async def test_garbage_in_the_channel_is_skipped(
    store_url: str, store_client: Redis, store: RedisSnapshots, garbage: bytes
) -> None:
    async with listening(store_url) as (listener, _):
        await listener.until(lambda self: self.gaps == 1)
        for _ in range(20):
            await store_client.publish(CHANNEL, garbage)
        await store.publish(Event.CHANGED, SITE)
        await listener.until(lambda self: len(self.events) == 1)
        assert listener.gaps == 1


async def test_messages_are_received_after_a_huge_one(
    store_url: str, store_client: Redis, store: RedisSnapshots
) -> None:
    async with listening(store_url) as (listener, _):
        await listener.until(lambda self: self.gaps == 1)
        # A server may deliver it, or disconnect a subscriber that lags.
        await store_client.publish(CHANNEL, bytes(40_000_000))

        async def received() -> int:
            await store.publish(Event.CHANGED, SITE)
            return len(listener.events)

        await until(received, bool)


async def test_a_flood_of_messages_lets_other_tasks_run(store_url: str, store_client: Redis) -> None:
    async with listening(store_url) as (listener, _):
        await listener.until(lambda self: self.gaps == 1)
        flood = store_client.pipeline(transaction=False)
        for _ in range(5000):
            flood.publish(CHANNEL, encode("sender", Event.CHANGED, SITE.key))
        await flood.execute()
        turns = 0
        async with asyncio.timeout(60):
            while len(listener.events) < 5000:
                await asyncio.sleep(0)
                turns += 1
        # Other tasks ran between any two of the remaining messages.
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
        await listener.until(lambda self: len(self.events) == 1)


async def test_without_a_server_it_is_tried_again_until_there_is_one(between: Proxy, store: RedisSnapshots) -> None:
    between.refusing = True
    async with listening(between.url) as (listener, subscription):
        await until_so(lambda: between.connections >= 3)
        assert not subscription.connected
        between.refusing = False
        await listener.until(lambda self: self.gaps == 1)
        assert subscription.connected


@pytest.mark.parametrize("nonsense", [b"-ERR no\r\n", b"+OK\r\n", b"*3\r\n:x\r\n", b">1\r\n+message\r\n", b"\x00" * 9])
async def test_a_server_that_sends_garbage_is_left_for_another(between: Proxy, nonsense: bytes) -> None:
    between.nonsense = nonsense
    async with listening(between.url, quiet=0.2) as (listener, _):
        await until_so(lambda: between.connections >= 2)
        between.nonsense = None
        between.cut()
        await listener.until(lambda self: self.gaps == 1)
        assert listener.events == []


async def test_a_silent_server_is_pinged_then_left(between: Proxy) -> None:
    async with listening(between.url, quiet=0.2) as (listener, subscription):
        await listener.until(lambda self: self.gaps == 1)
        between.held.clear()
        await until_so(lambda: not subscription.connected)
        between.held.set()
        await listener.until(lambda self: self.gaps == 2)


async def test_a_silent_server_that_answers_pings_is_kept(between: Proxy) -> None:
    async with listening(between.url, quiet=0.05) as (listener, subscription):
        await listener.until(lambda self: self.gaps == 1)
        answers = between.answers
        await until_so(lambda: between.answers > answers + 5)
        assert (listener.gaps, subscription.connected) == (1, True)


async def test_the_end_of_a_listener_leaves_no_task_or_connection(store_url: str, store_client: Redis) -> None:
    before = asyncio.all_tasks()
    async with listening(store_url) as (listener, subscription):
        await listener.until(lambda self: self.gaps == 1)
    assert not subscription.connected
    assert asyncio.all_tasks() == before
    assert await store_client.pubsub_numsub(CHANNEL) == [(CHANNEL.encode(), 0)]
