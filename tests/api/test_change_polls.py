"""Requests that wait for changes share one look at the store, are bounded, and pay for their time."""

import asyncio
from collections.abc import Callable

import httpx
import pytest
from redis.asyncio import Redis

from app.api import change_polls
from app.api.caller import Caller
from app.api.change_polls import POLLS_AT_ONCE, POLLS_PER_CALLER, ChangePolls, Found
from app.auth.keys import Limit
from app.auth.quotas import Quotas
from app.history.redis_changes import OLDEST, ChangeId, Page, Position, RedisChanges
from app.loop.admission import Overloaded
from app.store.guarded_client import GuardedClient
from tests.api.service import running, slug
from tests.faults.until import until_so
from tests.history.feed import add_changes

WAIT = 60.0


class CountedFeed(RedisChanges):
    """The feed; `on_look` is called before each look for the newest change."""

    def __init__(self, client: Redis) -> None:
        super().__init__(GuardedClient(client, monotonic=lambda: 0.0, timeout=20.0))
        self.looks = self.reads = self.at_once = self.most_at_once = 0
        self.on_look: Callable[[], object] = lambda: None

    async def read(self, after: Position, count: int) -> Page:
        self.reads += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await super().read(after, count)
        finally:
            self.at_once -= 1

    async def newest(self) -> ChangeId | None:
        self.looks += 1
        self.on_look()
        return await super().newest()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_polls, "POLL_PAUSE", 0.01)


@pytest.fixture
def feed(store_client: Redis) -> CountedFeed:
    return CountedFeed(store_client)


async def poll_all(polls: ChangePolls, count: int, after: Position = OLDEST) -> list[Found]:
    return await asyncio.gather(
        *(polls.read(Caller(f"10.0.{n // 50}.1"), after, limit=10, wait=WAIT) for n in range(count))
    )


async def test_all_requests_share_one_look(feed: CountedFeed, store_client: Redis) -> None:
    count, looks = 200, 5
    polls = ChangePolls(feed, asyncio.Event())
    waiting = asyncio.create_task(poll_all(polls, count))
    await until_so(lambda: feed.reads == count)
    begun = feed.looks
    await until_so(lambda: feed.looks >= begun + looks)
    assert feed.reads == count
    feed.most_at_once = 0
    [id_] = await add_changes(store_client, 1)
    for found in await waiting:
        assert [str(each) for each, _ in found] == [id_]
    assert feed.reads == 2 * count
    assert feed.most_at_once <= change_polls.READS_AT_ONCE
    await polls.aclose()


async def test_a_change_between_the_first_read_and_the_look_is_found(feed: CountedFeed, store_client: Redis) -> None:
    [first] = await add_changes(store_client, 1)
    polls = ChangePolls(feed, asyncio.Event())
    position = ChangeId(*map(int, first.split("-")))
    waiting = asyncio.create_task(poll_all(polls, 1, position))
    await until_so(lambda: feed.reads == 1)
    [second] = await add_changes(store_client, 1)
    [[(id_, _)]] = await waiting
    assert str(id_) == second
    await polls.aclose()


async def test_entries_that_cannot_be_read_end_no_wait(feed: CountedFeed, store_client: Redis) -> None:
    polls = ChangePolls(feed, asyncio.Event())
    waiting = asyncio.create_task(poll_all(polls, 1))
    for _ in range(3):
        reads = feed.reads
        await store_client.xadd("robots:{changes}", {"change": "{}"})
        await until_so(lambda reads=reads: feed.reads > reads and feed.at_once == 0)  # type: ignore[misc]
    [id_] = await add_changes(store_client, 1)
    [[(found, _)]] = await waiting
    assert str(found) == id_
    await polls.aclose()


async def test_requests_that_wait_are_bounded(feed: CountedFeed) -> None:
    stopping = asyncio.Event()
    polls = ChangePolls(feed, stopping)

    async def poll(caller: str) -> Found:
        return await polls.read(Caller(caller), OLDEST, limit=10, wait=WAIT)

    callers = [f"10.0.0.{n // POLLS_PER_CALLER}" for n in range(POLLS_AT_ONCE)]
    waiting = [asyncio.create_task(poll(caller)) for caller in callers[:POLLS_PER_CALLER]]
    await until_so(lambda: feed.reads == POLLS_PER_CALLER and feed.at_once == 0)  # so all of them wait
    with pytest.raises(Overloaded) as of_one:
        await poll(callers[0])
    waiting += [asyncio.create_task(poll(caller)) for caller in callers[POLLS_PER_CALLER:]]
    await until_so(lambda: feed.reads > POLLS_AT_ONCE and feed.at_once == 0)
    with pytest.raises(Overloaded) as of_all:
        await poll("10.1.1.1")
    for refused in (of_one, of_all):
        assert str(refused.value) == "Too many requests wait for changes; retry in 10 s."
        assert refused.value.retry_after == 10
    assert list(await polls.read(Caller("10.1.1.1"), OLDEST, limit=10, wait=0)) == []
    stopping.set()
    assert [list(found) for found in await asyncio.gather(*waiting)] == [[]] * POLLS_AT_ONCE
    assert list(await poll(callers[0])) == []  # nothing waits any more, so nothing is refused
    await polls.aclose()


async def test_a_wait_is_charged_by_its_time(feed: CountedFeed) -> None:
    clock = Clock()
    quotas = Quotas(None, clock, lambda _key: None)  # type: ignore[arg-type]
    account = quotas.account("crawler-7", Limit(600, 600, 600))
    polls = ChangePolls(feed, asyncio.Event(), clock)

    def pass_time() -> None:
        clock.now += 15.0

    feed.on_look = pass_time
    assert list(await polls.read(Caller("crawler-7", account=account), OLDEST, limit=10, wait=WAIT)) == []
    assert clock.now == 1000.0 + WAIT
    assert account.debt == 6.0  # beside the request itself: one for each 10 of 60 seconds
    await polls.aclose()


@pytest.mark.usefixtures("store_client")
async def test_a_refused_request_says_when_to_come_back(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_polls, "POLLS_PER_CALLER", 1)
    async with running(store_url) as service:

        async def poll() -> httpx.Response:
            return await service.client.get("/v1/changes", params={"wait": 1})

        responses = await asyncio.gather(*(poll() for _ in range(3)))
        waited, *refused = sorted(responses, key=lambda response: response.status_code)
        assert (waited.status_code, waited.text) == (200, "")
        for response in refused:
            assert (slug(response), response.headers["retry-after"]) == ("overloaded", "10")
