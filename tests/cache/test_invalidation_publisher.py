"""Rare changes are published at once, and many in few messages."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.cache.invalidation import MESSAGE_ORIGINS, Event, InvalidationPublisher, decode
from app.store.guarded_client import StoreDown
from robots_core.origin import Origin

SITES = [Origin("https", f"{number}.example", 443) for number in range(3 * MESSAGE_ORIGINS)]


class Channel:
    """The messages that were published, as another process reads them; it can be down."""

    def __init__(self) -> None:
        self.messages: list[tuple[Event, list[Origin]]] = []
        self.down = False
        self.published = asyncio.Event()

    async def send(self, message: bytes) -> None:
        if self.down:
            raise StoreDown("down")
        decoded = decode(message, "listener")
        assert decoded is not None
        self.messages.append((decoded[0], list(decoded[1])))
        self.published.set()

    async def next(self) -> None:
        self.published.clear()
        async with asyncio.timeout(60):
            await self.published.wait()


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
async def slow(channel: Channel) -> AsyncIterator[InvalidationPublisher]:
    """A publisher whose window does not end within a test."""
    publisher = InvalidationPublisher(channel.send, "sender", window=1000)
    yield publisher
    await publisher.aclose()


async def test_the_first_change_and_every_purge_are_published_at_once(
    slow: InvalidationPublisher, channel: Channel
) -> None:
    await slow.publish(Event.CHANGED, SITES[0])
    await slow.publish(Event.CHANGED, SITES[1])
    await slow.publish(Event.PURGED, SITES[2])
    assert channel.messages == [(Event.CHANGED, SITES[:1]), (Event.PURGED, SITES[2:3])]
    await slow.aclose()
    assert channel.messages[2:] == [(Event.CHANGED, SITES[1:2])]


async def test_changes_within_a_window_share_a_message(channel: Channel) -> None:
    publisher = InvalidationPublisher(channel.send, "sender", window=0.01)
    for site in (*SITES[:9], *SITES[:9]):
        await publisher.publish(Event.CHANGED, site)
    await channel.next()
    assert channel.messages[0] == (Event.CHANGED, SITES[:1])
    assert sorted(channel.messages[1][1], key=SITES.index) == SITES[:9]
    await publisher.aclose()


async def test_after_a_quiet_window_the_next_change_is_published_at_once(channel: Channel) -> None:
    publisher = InvalidationPublisher(channel.send, "sender", window=0.001)
    await publisher.publish(Event.CHANGED, SITES[0])
    assert publisher._task is not None
    await publisher._task
    await publisher.publish(Event.CHANGED, SITES[1])
    assert channel.messages == [(Event.CHANGED, SITES[:1]), (Event.CHANGED, SITES[1:2])]
    await publisher.aclose()


async def test_a_full_message_does_not_wait_for_the_window(slow: InvalidationPublisher, channel: Channel) -> None:
    for site in SITES:
        await slow.publish(Event.CHANGED, site)
    assert [len(origins) for _, origins in channel.messages] == [1, MESSAGE_ORIGINS, MESSAGE_ORIGINS]
    await slow.aclose()
    assert [site for _, origins in channel.messages for site in origins] == SITES


async def test_a_store_that_is_down_is_reported_or_skipped(channel: Channel) -> None:
    publisher = InvalidationPublisher(channel.send, "sender", window=0.001)
    channel.down = True
    with pytest.raises(StoreDown):
        await publisher.publish(Event.CHANGED, SITES[0])
    await publisher.publish(Event.CHANGED, SITES[1])
    assert publisher._task is not None
    await publisher._task
    await publisher.aclose()
    assert channel.messages == []
