"""What is known of an origin: from memory, from a real Valkey, or fetched once for all who ask."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from app.cache.codec import encode
from app.cache.content import digest
from app.cache.freshness import DAY, KEEP, Recheck, Snapshot, State
from app.cache.invalidation import Event
from app.cache.ordering import Purged
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.robots_cache import RobotsCache, Source
from app.cache.tiered_snapshots import Put
from app.history.versions import History, add, version_of
from app.origin import Origin
from app.redis.connect import connect
from app.redis.guarded_client import COOLDOWN, GuardedClient, StoreDown
from app.robots.access import (
    Access,
    Busy,
    Cause,
    Fetched,
    Lifetime,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)

SITE = Origin("https", "www.example.com", 443)
KEY = "robots:{https://www.example.com:443}"
FILE = Successful(200, b"User-agent: *\nDisallow: /a\n")
NEWER = Successful(200, b"User-agent: *\nDisallow: /b\n")
DOWN = Unreachable(Cause.SERVER_ERROR, 503)
TAGGED = Validators('"1"')
HOURLY = Lifetime(cache_control="max-age=3600")
DEFAULT = Recheck()


class Clock:
    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Origins:
    """The web, as far as a cache sees it: what each fetch finds, once it is let go, and what was asked for."""

    answer: Fetched | Exception = field(default_factory=lambda: Fetched(FILE, None, TAGGED, HOURLY))
    calls: list[tuple[Origin, Validators]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.let_go.set()

    def finds(self, access: Access | NotModified) -> None:
        self.answer = Fetched(access, None, TAGGED, HOURLY)

    async def fetch(self, origin: Origin, validators: Validators) -> Fetched:
        self.calls.append((origin, validators))
        self.asked.set()
        await self.let_go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Switchable:
    """A store that can be switched off, and on again."""

    def __init__(self, store: RedisSnapshots) -> None:
        self._store = store
        self.on = True
        self.gets = 0

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        self.gets += 1
        self._check()
        return await self._store.get(origin)

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> Put:
        self._check()
        return await self._store.put(origin, snapshot, keep_seconds)

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        self._check()
        await self._store.purge(origin, keep_seconds, at)

    async def now(self, origin: Origin) -> float:
        self._check()
        return await self._store.now(origin)

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        self._check()
        return await self._store.suspect(origin, seconds)

    async def tell(self, word: Event, origin: Origin) -> None:
        self._check()
        await self._store.tell(word, origin)

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> float | None:
        self._check()
        return await self._store.take(origin, token, seconds, by_force=by_force)

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        self._check()
        await self._store.renew(origin, token, seconds)

    async def release(self, origin: Origin, token: str) -> None:
        self._check()
        await self._store.release(origin, token)

    def _check(self) -> None:
        if not self.on:
            raise StoreDown("it is switched off")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def web() -> Origins:
    return Origins()


@pytest.fixture
def store(store_client: Redis, clock: Clock) -> Switchable:
    return Switchable(RedisSnapshots(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0), clock=clock))


class Past:
    """Histories that are shared like the store, and written at once."""

    def __init__(self) -> None:
        self.noted: list[Snapshot] = []

    async def read(self, origin: Origin) -> History:
        return add((), map(version_of, self.noted), 2e9)

    def note(self, origin: Origin, ended: Snapshot) -> None:
        self.noted.append(ended)


@pytest.fixture
def past() -> Past:
    return Past()


NewCache = Callable[[], RobotsCache]


@pytest.fixture
async def new_cache(store: Switchable, web: Origins, clock: Clock, past: Past) -> AsyncIterator[NewCache]:
    """Another process's cache: memory of its own, the store and the histories shared."""
    caches: list[RobotsCache] = []

    def new() -> RobotsCache:
        caches.append(RobotsCache(store, web.fetch, clock, 1_000_000, history=past))
        return caches[-1]

    yield new
    for cache in caches:
        await cache.aclose()


@pytest.fixture
def cache(new_cache: NewCache) -> RobotsCache:
    return new_cache()


# Where an answer comes from.


async def test_what_nobody_knows_is_fetched_and_then_in_memory(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    first = await cache.held(SITE, DEFAULT)
    assert first.snapshot == Snapshot(FILE, clock.now, None, TAGGED, 3600.0)
    assert first.freshness is not None
    assert (first.source, first.freshness.state, first.freshness.age) == (Source.FETCHED, State.FRESH, 0)
    clock.now += 14
    second = await cache.held(SITE, DEFAULT)
    assert second.source is Source.MEMORY
    assert second.snapshot is first.snapshot
    assert web.calls == [(SITE, Validators())]


async def test_what_another_process_fetched_is_in_the_store(new_cache: NewCache, web: Origins) -> None:
    fetched = await new_cache().held(SITE, DEFAULT)
    found = await new_cache().held(SITE, DEFAULT)
    assert found.source is Source.STORE
    assert found.snapshot == fetched.snapshot
    assert len(web.calls) == 1


async def test_memory_is_trusted_for_a_while_and_stays_the_same_object(
    cache: RobotsCache, store: Switchable, clock: Clock
) -> None:
    first = await cache.held(SITE, DEFAULT)
    gets = store.gets
    clock.now += 31
    again = await cache.held(SITE, DEFAULT)
    assert (again.source, store.gets) == (Source.STORE, gets + 1)
    assert again.snapshot is first.snapshot
    clock.now += 14
    assert (await cache.held(SITE, DEFAULT)).source is Source.MEMORY
    assert store.gets == gets + 1


async def test_what_another_process_learnt_is_taken_over(new_cache: NewCache, web: Origins, clock: Clock) -> None:
    one, other = new_cache(), new_cache()
    await one.held(SITE, DEFAULT)
    web.finds(NEWER)
    clock.now += 10
    await other.held(SITE, DEFAULT, max_age=5)
    clock.now += 25
    held = await one.held(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == NEWER


@pytest.mark.parametrize("value", [None, b"garbage", encode(Snapshot(FILE, 1.0)).replace(b"R\x01", b"R\x00")])
async def test_what_the_store_has_lost_is_given_to_it_again(
    new_cache: NewCache, store_client: Redis, web: Origins, clock: Clock, value: bytes | None
) -> None:
    cache = new_cache()
    await cache.held(SITE, DEFAULT)
    await store_client.flushall()
    if value is not None:
        await store_client.set(KEY, value)
    clock.now += 31
    assert (await cache.held(SITE, DEFAULT)).source is Source.MEMORY
    assert (await new_cache().held(SITE, DEFAULT)).source is Source.STORE
    assert len(web.calls) == 1


@pytest.mark.parametrize("value", [b"garbage", b"R\x01garbage", encode(Snapshot(FILE, 1.0))[:-1]])
async def test_garbage_in_the_store_is_a_miss_and_is_overwritten(
    new_cache: NewCache, store_client: Redis, web: Origins, value: bytes
) -> None:
    await store_client.set(KEY, value)
    assert (await new_cache().held(SITE, DEFAULT)).source is Source.FETCHED
    assert (await new_cache().held(SITE, DEFAULT)).source is Source.STORE
    assert len(web.calls) == 1


async def test_a_clock_that_is_set_back_asks_the_store_again(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    await cache.held(SITE, DEFAULT)
    clock.now -= 5000
    held = await cache.held(SITE, DEFAULT)
    assert held.freshness is not None
    assert (held.source, held.freshness.age) == (Source.STORE, 0)
    assert len(web.calls) == 1


# One fetch for all.


async def test_two_hundred_callers_of_a_cold_origin_make_one_fetch(
    cache: RobotsCache, store: Switchable, web: Origins
) -> None:
    web.let_go.clear()
    callers = [asyncio.create_task(cache.held(SITE, DEFAULT)) for _ in range(200)]
    await web.asked.wait()
    web.let_go.set()
    held = await asyncio.gather(*callers)
    assert len(web.calls) == 1
    assert store.gets == 2  # all look once, and the flight looks again when it holds the lease
    assert {id(one.snapshot) for one in held} == {id(held[0].snapshot)}


async def test_a_caller_who_hangs_up_does_not_end_the_fetch(cache: RobotsCache, web: Origins) -> None:
    web.let_go.clear()
    first, second = (asyncio.create_task(cache.held(SITE, DEFAULT)) for _ in range(2))
    await web.asked.wait()
    first.cancel()
    await asyncio.wait([first])
    web.let_go.set()
    assert (await second).source is Source.FETCHED
    assert len(web.calls) == 1


class Slow:
    """A store that says what it has, or that it is down, when it is told to."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.down = False
        self.has: Snapshot | None = None
        self.asked = asyncio.Event()
        self.says_so = asyncio.Event()
        self.says_so.set()
        self.written = asyncio.Event()
        self.writes = asyncio.Event()
        self.writes.set()

    async def get(self, origin: Origin) -> Snapshot | None:
        found = self.has
        self.asked.set()
        await self.says_so.wait()
        self._check()
        return found

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> Put:
        self._check()
        self.written.set()
        await self.writes.wait()
        self.has, before = snapshot, self.has
        return Put(snapshot, before)

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        self._check()
        self.has = None

    async def now(self, origin: Origin) -> float:
        self._check()
        return self._clock()

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        self._check()
        return False

    async def tell(self, word: Event, origin: Origin) -> None:
        self._check()

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> float | None:
        self._check()
        return self._clock()

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        self._check()

    async def release(self, origin: Origin, token: str) -> None:
        self._check()

    def _check(self) -> None:
        if self.down:
            raise StoreDown("it is down")


@pytest.fixture
async def slow(web: Origins, clock: Clock) -> AsyncIterator[tuple[Slow, RobotsCache]]:
    store = Slow(clock)
    cache = RobotsCache(store, web.fetch, clock, 1_000_000)
    yield store, cache
    await cache.aclose()


async def test_who_hears_from_the_store_just_before_a_fetch_ends_does_not_fetch_again(
    slow: tuple[Slow, RobotsCache], web: Origins
) -> None:
    store, cache = slow
    store.down = True
    web.let_go.clear()
    first = asyncio.create_task(cache.held(SITE, DEFAULT))
    await web.asked.wait()
    store.says_so.clear()
    store.asked.clear()
    second = asyncio.create_task(cache.held(SITE, DEFAULT))
    await store.asked.wait()
    # The second hears that nothing is known while that is so still, and comes to run when the fetch is over.
    store.says_so.set()
    web.let_go.set()
    held = await asyncio.gather(first, second)
    assert {one.source for one in held} <= {Source.FETCHED, Source.MEMORY}
    assert len(web.calls) == 1


async def test_what_the_store_said_before_a_fetch_ended_does_not_undo_it(
    slow: tuple[Slow, RobotsCache], web: Origins
) -> None:
    store, cache = slow
    web.let_go.clear()
    first = asyncio.create_task(cache.held(SITE, DEFAULT))
    await web.asked.wait()
    store.says_so.clear()
    store.asked.clear()
    second = asyncio.create_task(cache.held(SITE, DEFAULT))
    await store.asked.wait()
    web.let_go.set()
    fetched = await first
    store.says_so.set()
    assert (await second).snapshot is fetched.snapshot
    assert len(web.calls) == 1


async def test_what_is_written_late_does_not_undo_what_was_learnt_meanwhile(
    slow: tuple[Slow, RobotsCache], web: Origins, clock: Clock
) -> None:
    store, cache = slow
    store.down = True
    await cache.held(SITE, DEFAULT)
    store.down = False
    store.writes.clear()
    web.finds(NEWER)
    clock.now += 10
    # The first refreshes what the store has not got yet, while the second, later, gives the store the old one. The
    # process trusts its memory for 15 to 30 s: still at the first question, and no longer at the second.
    web.let_go.clear()
    web.asked.clear()
    first = asyncio.create_task(cache.held(SITE, DEFAULT, max_age=5))
    await web.asked.wait()
    clock.now += 20
    second = asyncio.create_task(cache.held(SITE, DEFAULT))
    await store.written.wait()
    store.down = True
    web.let_go.set()
    newer = await first
    store.writes.set()
    await second
    assert (await cache.held(SITE, DEFAULT)).snapshot is newer.snapshot


# One fetch for the fleet.


async def test_of_two_processes_one_fetches_and_the_other_takes_what_is_stored(
    new_cache: NewCache, web: Origins
) -> None:
    web.let_go.clear()
    fetching = asyncio.create_task(new_cache().held(SITE, DEFAULT))
    await web.asked.wait()
    waiting = [asyncio.create_task(cache.held(SITE, DEFAULT)) for cache in (new_cache(), new_cache())]
    web.let_go.set()
    assert (await fetching).source is Source.FETCHED
    assert [one.source for one in await asyncio.gather(*waiting)] == [Source.STORE] * 2
    assert len(web.calls) == 1


async def test_what_is_due_is_refreshed_by_one_process(new_cache: NewCache, web: Origins, clock: Clock) -> None:
    caches = [new_cache() for _ in range(3)]
    for cache in caches:
        await cache.held(SITE, DEFAULT)
    clock.now += 2 * DAY
    web.finds(NEWER)
    held = await asyncio.gather(*(cache.held(SITE, DEFAULT, max_age=0) for cache in caches))
    assert [one.snapshot.access for one in held if one.snapshot] == [NEWER] * 3
    assert len(web.calls) == 2


async def test_what_was_fetched_while_one_waited_is_new_enough_however_new_he_wants_it(
    new_cache: NewCache, web: Origins, clock: Clock
) -> None:
    web.let_go.clear()
    fetching = asyncio.create_task(new_cache().held(SITE, DEFAULT, max_age=0))
    await web.asked.wait()
    cache = new_cache()
    await cache.held(SITE, DEFAULT, wait=0, max_age=0)
    waiting = asyncio.create_task(cache.held(SITE, DEFAULT, max_age=0))
    clock.now += 3
    web.let_go.set()
    await fetching
    clock.now += 2
    assert (await waiting).snapshot is not None
    assert len(web.calls) == 1


async def test_a_process_that_ends_leaves_the_fetch_to_another(new_cache: NewCache, web: Origins) -> None:
    ending, other = new_cache(), new_cache()
    web.let_go.clear()
    await ending.held(SITE, DEFAULT, wait=0)
    await web.asked.wait()
    waiting = asyncio.create_task(other.held(SITE, DEFAULT))
    await ending.aclose()
    web.let_go.set()
    assert (await waiting).source is Source.FETCHED
    assert len(web.calls) == 2


async def test_no_wait_is_no_wait_while_another_process_fetches(new_cache: NewCache, web: Origins) -> None:
    web.let_go.clear()
    fetching = asyncio.create_task(new_cache().held(SITE, DEFAULT))
    await web.asked.wait()
    other = new_cache()
    for wait in (0, 0.01):
        assert (await other.held(SITE, DEFAULT, wait=wait)).snapshot is None
    web.let_go.set()
    assert (await fetching).source is Source.FETCHED
    # The other process is still waiting for the result, or has just taken it from the store.
    assert (await other.held(SITE, DEFAULT)).source in {Source.STORE, Source.MEMORY}
    assert len(web.calls) == 1


async def test_a_redirected_file_is_kept_for_the_origin_that_was_asked_and_for_no_other(
    cache: RobotsCache, store_client: Redis, web: Origins
) -> None:
    target = Origin("https", "target.example", 443)
    web.answer = Fetched(FILE, target.robots_url, TAGGED, HOURLY)
    redirected = await cache.held(SITE, DEFAULT)
    assert redirected.snapshot is not None
    assert redirected.snapshot.final_url == target.robots_url
    assert await store_client.keys() == [KEY.encode()]
    web.finds(NEWER)
    held = await cache.held(target, DEFAULT)
    assert held.snapshot is not None
    assert (held.snapshot.access, held.source) == (NEWER, Source.FETCHED)
    assert [origin for origin, _ in web.calls] == [SITE, target]


# News of other processes.


async def test_news_of_a_change_ends_the_trust_in_memory(new_cache: NewCache, web: Origins, clock: Clock) -> None:
    one, other = new_cache(), new_cache()
    await one.held(SITE, DEFAULT)
    web.finds(NEWER)
    clock.now += 10
    newer = await other.held(SITE, DEFAULT, max_age=5)
    assert (await one.held(SITE, DEFAULT)).source is Source.MEMORY
    one.hear(Event.CHANGED, SITE)
    held = await one.held(SITE, DEFAULT)
    assert (held.snapshot, held.source) == (newer.snapshot, Source.STORE)
    assert (await one.held(SITE, DEFAULT)).source is Source.MEMORY
    assert len(web.calls) == 2


async def test_news_of_what_memory_has_already_leaves_the_object_that_is_known(
    new_cache: NewCache, web: Origins, clock: Clock
) -> None:
    one, other = new_cache(), new_cache()
    first = await one.held(SITE, DEFAULT)
    web.finds(NotModified())
    clock.now += 10
    await other.held(SITE, DEFAULT, max_age=5)
    one.hear(Event.CHANGED, SITE)
    held = await one.held(SITE, DEFAULT)
    assert first.snapshot is not None
    assert held.snapshot is not None
    assert held.snapshot.fetched_at == first.snapshot.fetched_at + 10
    assert held.snapshot.access is first.snapshot.access


async def test_news_that_may_have_been_missed_ends_all_trust(
    cache: RobotsCache, store: Switchable, web: Origins
) -> None:
    other = Origin("https", "other.example", 443)
    for origin in (SITE, other):
        await cache.held(origin, DEFAULT)
    cache.missed()
    gets = store.gets
    for origin in (SITE, other):
        assert (await cache.held(origin, DEFAULT)).source is Source.STORE
        assert (await cache.held(origin, DEFAULT)).source is Source.MEMORY
    assert store.gets == gets + 2
    assert len(web.calls) == 2


@pytest.mark.parametrize("tell", [lambda cache: cache.hear(Event.CHANGED, SITE), lambda cache: cache.missed()])
async def test_what_the_store_was_saying_when_news_came_is_not_trusted(
    slow: tuple[Slow, RobotsCache], web: Origins, clock: Clock, tell: Callable[[RobotsCache], None]
) -> None:
    store, cache = slow
    older = Snapshot(FILE, clock.now, None, TAGGED, 3600.0)
    store.has = older
    store.says_so.clear()
    asking = asyncio.create_task(cache.held(SITE, DEFAULT))
    await store.asked.wait()
    clock.now += 1
    store.has = newer = Snapshot(NEWER, clock.now, None, TAGGED, 3600.0)
    tell(cache)
    store.says_so.set()
    assert (await asking).snapshot == older
    assert (await cache.held(SITE, DEFAULT)).snapshot == newer
    assert web.calls == []


async def test_news_of_what_is_not_known_here_is_nothing(cache: RobotsCache, store: Switchable) -> None:
    for word in Event:
        cache.hear(word, SITE)
    assert store.gets == 0


async def test_news_while_the_store_is_down_leaves_what_is_in_memory(
    cache: RobotsCache, store: Switchable, web: Origins
) -> None:
    known = await cache.held(SITE, DEFAULT)
    store.on = False
    cache.hear(Event.CHANGED, SITE)
    cache.missed()
    held = await cache.held(SITE, DEFAULT)
    assert held.source is Source.MEMORY
    assert held.snapshot is known.snapshot
    assert len(web.calls) == 1


# Purged, and refreshed to order.


async def test_what_is_purged_is_fetched_again_everywhere(new_cache: NewCache, web: Origins, clock: Clock) -> None:
    one, told, untold = new_cache(), new_cache(), new_cache()
    for cache in (one, told, untold):
        await cache.held(SITE, DEFAULT)
    web.finds(NEWER)
    await one.purge(SITE)
    clock.now += 1
    told.hear(Event.PURGED, SITE)
    assert (await told.held(SITE, DEFAULT)).source is Source.FETCHED
    assert (await one.held(SITE, DEFAULT)).source is Source.STORE
    assert (await untold.held(SITE, DEFAULT)).source is Source.MEMORY  # for as long as it trusts its memory
    clock.now += 31
    assert (await untold.held(SITE, DEFAULT)).source is Source.STORE
    assert len(web.calls) == 2


async def test_who_was_not_told_of_a_purge_finds_it_in_the_store(
    new_cache: NewCache, web: Origins, clock: Clock
) -> None:
    one, untold = new_cache(), new_cache()
    await untold.held(SITE, DEFAULT)
    clock.now += 10
    await one.purge(SITE)
    clock.now += 29 * DAY
    untold.missed()
    assert (await untold.held(SITE, DEFAULT)).source is Source.FETCHED
    assert len(web.calls) == 2


async def test_a_purge_that_the_fleet_cannot_be_told_of_is_an_error(cache: RobotsCache, store: Switchable) -> None:
    await cache.held(SITE, DEFAULT)
    store.on = False
    with pytest.raises(StoreDown):
        await cache.purge(SITE)


@pytest.mark.parametrize(("learnt_after", "source"), [(5, Source.MEMORY), (-5, Source.FETCHED)])
async def test_a_purge_forgets_what_was_learnt_before_it_and_not_what_was_after(
    new_cache: NewCache, store: Switchable, web: Origins, clock: Clock, learnt_after: float, source: Source
) -> None:
    cut_off, other = new_cache(), new_cache()
    purged_at = clock.now + 100
    store.on = False
    clock.now = purged_at + learnt_after
    await cut_off.held(SITE, DEFAULT)
    store.on = True
    clock.now = purged_at
    await other.purge(SITE)
    clock.now += 50
    assert (await cut_off.held(SITE, DEFAULT)).source is source


async def test_an_order_fetches_whole_what_is_fresh(new_cache: NewCache, web: Origins) -> None:
    cache, other = new_cache(), new_cache()
    await cache.held(SITE, DEFAULT)
    web.finds(NEWER)
    held = await cache.refresh(SITE, DEFAULT)
    assert held.snapshot is not None
    assert (held.snapshot.access, held.source) == (NEWER, Source.FETCHED)
    assert web.calls == [(SITE, Validators())] * 2
    assert (await other.held(SITE, DEFAULT)).snapshot == held.snapshot


async def test_an_order_does_not_mind_the_back_off_and_keeps_the_copy(
    cache: RobotsCache, web: Origins, clock: Clock
) -> None:
    await cache.held(SITE, DEFAULT)
    web.finds(DOWN)
    for attempts in (1, 2):
        clock.now += 1
        held = await cache.refresh(SITE, DEFAULT)
        assert held.snapshot is not None
        assert held.snapshot.failing is not None
        assert (held.snapshot.access, held.snapshot.failing.attempts) == (FILE, attempts)


async def test_an_order_is_not_served_by_a_fetch_that_began_before_it(
    cache: RobotsCache, web: Origins, clock: Clock
) -> None:
    web.let_go.clear()
    before = asyncio.create_task(cache.refresh(SITE, DEFAULT))
    await web.asked.wait()
    web.asked.clear()
    after = [asyncio.create_task(cache.refresh(SITE, DEFAULT)) for _ in range(20)]
    clock.now += 1
    web.let_go.set()
    await before
    await asyncio.gather(*after)
    assert len(web.calls) == 2


async def test_an_order_without_room_or_without_the_store(cache: RobotsCache, store: Switchable, web: Origins) -> None:
    web.answer = Busy(5)
    with pytest.raises(Busy):
        await cache.refresh(SITE, DEFAULT)
    web.finds(FILE)
    store.on = False
    assert (await cache.refresh(SITE, DEFAULT)).source is Source.FETCHED


async def test_an_older_copy_that_the_store_was_given_again_does_not_replace_a_later_one(
    new_cache: NewCache, store_client: Redis, web: Origins, clock: Clock
) -> None:
    behind, ahead = new_cache(), new_cache()
    await behind.held(SITE, DEFAULT)
    clock.now += 50
    web.finds(NEWER)
    later = await ahead.held(SITE, DEFAULT, max_age=10)
    await store_client.flushall()
    assert (await behind.held(SITE, DEFAULT)).source is Source.MEMORY
    clock.now += 31
    assert (await ahead.held(SITE, DEFAULT)).snapshot is later.snapshot
    behind.missed()
    assert (await behind.held(SITE, DEFAULT)).snapshot == later.snapshot
    assert len(web.calls) == 2


async def test_what_was_learnt_by_a_clock_that_was_ahead_wins_over_nothing(
    new_cache: NewCache, web: Origins, clock: Clock
) -> None:
    wrong, right = new_cache(), new_cache()
    clock.now += 5000
    await wrong.held(SITE, DEFAULT)
    clock.now -= 5000
    web.finds(NEWER)
    await right.refresh(SITE, DEFAULT)
    wrong.missed()
    held = await wrong.held(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == NEWER


# When it refreshes.


async def test_past_its_recheck_it_is_served_and_refreshed_behind(
    cache: RobotsCache, web: Origins, clock: Clock
) -> None:
    first = await cache.held(SITE, DEFAULT)
    assert first.freshness is not None
    web.let_go.clear()
    web.asked.clear()
    web.finds(NEWER)
    clock.now = first.freshness.recheck_at + 1
    graced = await cache.held(SITE, DEFAULT)
    assert graced.freshness is not None
    assert graced.freshness.state is State.GRACE
    assert graced.snapshot is first.snapshot
    await web.asked.wait()
    due = asyncio.create_task(cache.held(SITE, DEFAULT, max_age=0))
    web.let_go.set()
    held = await due
    assert held.snapshot is not None
    assert held.snapshot.access == NEWER
    assert len(web.calls) == 2


async def test_what_is_due_is_refreshed_first_and_conditionally(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    await cache.held(SITE, DEFAULT)
    web.finds(NotModified())
    clock.now += 2 * DAY
    held = await cache.held(SITE, DEFAULT)
    assert held.source is Source.REVALIDATED
    assert held.snapshot == Snapshot(FILE, clock.now, None, TAGGED, 3600.0, since=int(clock.now - 2 * DAY))
    assert web.calls[1:] == [(SITE, TAGGED)]


async def test_only_a_copy_makes_a_fetch_conditional(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    web.finds(Unavailable(404))
    await cache.held(SITE, DEFAULT)
    clock.now += 2 * DAY
    await cache.held(SITE, DEFAULT)
    assert web.calls == [(SITE, Validators())] * 2


async def test_an_older_copy_than_wanted_is_refreshed(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    await cache.held(SITE, DEFAULT)
    clock.now += 10
    assert (await cache.held(SITE, DEFAULT, max_age=10)).source is Source.MEMORY
    assert (await cache.held(SITE, DEFAULT, max_age=9)).source is Source.FETCHED
    assert len(web.calls) == 2


async def test_a_failing_origin_is_not_hammered_for_a_newer_copy(
    cache: RobotsCache, web: Origins, clock: Clock
) -> None:
    await cache.held(SITE, DEFAULT)
    web.finds(DOWN)
    clock.now += 2 * DAY
    recheck_at = 0.0
    for _ in range(5):
        held = await cache.held(SITE, DEFAULT, max_age=0)
        assert held.snapshot is not None
        assert held.freshness is not None
        assert held.snapshot.access == FILE
        assert held.freshness.stale
        assert held.source is Source.MEMORY
        recheck_at = held.freshness.recheck_at
    assert len(web.calls) == 2
    clock.now = recheck_at
    web.finds(NEWER)
    assert (await cache.held(SITE, DEFAULT)).source is Source.FETCHED


async def test_without_a_copy_a_failure_is_what_is_known(cache: RobotsCache, web: Origins) -> None:
    web.finds(DOWN)
    for source in (Source.FETCHED, Source.MEMORY):
        held = await cache.held(SITE, DEFAULT)
        assert held.snapshot is not None
        assert held.snapshot.access == DOWN
        assert held.source is source
    assert len(web.calls) == 1


async def test_rfc9309_a_missing_file_does_not_answer_for_an_unreachable_origin(
    cache: RobotsCache, web: Origins, clock: Clock
) -> None:
    web.finds(Unavailable(404))
    await cache.held(SITE, DEFAULT)
    web.finds(DOWN)
    clock.now += 2 * DAY
    held = await cache.held(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == DOWN


async def test_a_copy_past_thirty_days_is_not_served_for_a_fetch_that_is_late(
    cache: RobotsCache, store: Switchable, web: Origins, clock: Clock
) -> None:
    await cache.held(SITE, DEFAULT)
    store.on = False
    clock.now += KEEP + 1
    assert (await cache.held(SITE, DEFAULT, wait=0)).snapshot is None


# How long a caller waits.


async def test_no_wait_answers_now_and_fetches_behind(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    web.let_go.clear()
    held = await cache.held(SITE, DEFAULT, wait=0)
    assert (held.snapshot, held.freshness, held.source) == (None, None, Source.NONE)
    await web.asked.wait()
    waiting = asyncio.create_task(cache.held(SITE, DEFAULT))
    web.let_go.set()
    assert (await waiting).snapshot == Snapshot(FILE, clock.now, None, TAGGED, 3600.0)
    assert len(web.calls) == 1


async def test_a_fetch_that_is_late_leaves_what_is_known(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    first = await cache.held(SITE, DEFAULT)
    web.let_go.clear()
    clock.now += 2 * DAY
    late = await cache.held(SITE, DEFAULT, wait=0.001)
    assert late.snapshot is first.snapshot
    assert late.freshness is not None
    assert (late.source, late.freshness.state) == (Source.STORE, State.DUE)
    other = Origin("https", "other.example", 443)
    assert (await cache.held(other, DEFAULT, wait=0.001)).snapshot is None


async def test_a_fetch_that_is_not_made_is_raised_where_there_is_no_copy(
    cache: RobotsCache, web: Origins, clock: Clock
) -> None:
    web.answer = Busy(5)
    with pytest.raises(Busy):
        await cache.held(SITE, DEFAULT)
    web.finds(Unavailable(404))
    await cache.held(SITE, DEFAULT)
    web.answer = Busy(5)
    clock.now += 2 * DAY
    with pytest.raises(Busy):
        await cache.held(SITE, DEFAULT)


async def test_a_fetch_that_is_not_made_leaves_the_copy(cache: RobotsCache, web: Origins, clock: Clock) -> None:
    first = await cache.held(SITE, DEFAULT)
    web.answer = Busy(5)
    clock.now += 2 * DAY
    held = await cache.held(SITE, DEFAULT)
    assert held.snapshot is first.snapshot
    assert len(web.calls) == 2


async def test_closing_ends_a_fetch_behind(cache: RobotsCache, web: Origins) -> None:
    web.let_go.clear()
    before = asyncio.all_tasks()
    await cache.held(SITE, DEFAULT, wait=0)
    await web.asked.wait()
    assert asyncio.all_tasks() > before
    await cache.aclose()
    assert asyncio.all_tasks() == before


# What it was before.


def stretches(history: History, clock: Clock) -> list[tuple[bytes, int, int]]:
    """Contents, and the seconds ago at which they were seen first and last."""
    return [(it.digest, it.first_seen - int(clock.now), it.last_seen - int(clock.now)) for it in history]


async def test_while_a_file_stays_what_it_is_nothing_is_written_down(
    cache: RobotsCache, web: Origins, clock: Clock, past: Past
) -> None:
    for found in (FILE, NotModified(), DOWN, DOWN, FILE, NotModified()):
        web.finds(found)
        await cache.refresh(SITE, DEFAULT)
        clock.now += 40 * DAY / 5
    assert past.noted == []
    assert stretches(await cache.history(SITE), clock) == [(digest(FILE), -48 * int(DAY), -8 * int(DAY))]


async def test_a_change_writes_down_what_has_ended_and_nothing_else(
    new_cache: NewCache, web: Origins, clock: Clock, past: Past
) -> None:
    one, other = new_cache(), new_cache()
    await one.held(SITE, DEFAULT)
    clock.now += 100
    await one.refresh(SITE, DEFAULT)
    clock.now += 100
    web.finds(NEWER)
    await other.refresh(SITE, DEFAULT)
    assert [it.access for it in past.noted] == [FILE]
    clock.now += 100
    one.missed()
    for cache in (one, other):
        assert stretches(await cache.history(SITE), clock) == [
            (digest(FILE), -300, -200),
            (digest(NEWER), -100, -100),
        ]


async def test_a_copy_that_lapses_is_history(cache: RobotsCache, web: Origins, clock: Clock, past: Past) -> None:
    await cache.held(SITE, DEFAULT)
    web.finds(DOWN)
    clock.now += 20 * DAY
    await cache.held(SITE, DEFAULT)
    clock.now += 11 * DAY
    assert stretches(await cache.history(SITE), clock) == [(digest(FILE), -31 * int(DAY), -31 * int(DAY))]
    held = await cache.held(SITE, DEFAULT)
    assert held.snapshot is not None
    assert held.snapshot.access == DOWN
    assert [it.access for it in past.noted] == [FILE]


async def test_what_is_purged_is_history(
    new_cache: NewCache, store: Switchable, web: Origins, clock: Clock, past: Past
) -> None:
    one, other = new_cache(), new_cache()
    await one.held(SITE, DEFAULT)
    clock.now += 100
    store.on = False
    with pytest.raises(StoreDown):
        await other.purge(SITE)
    assert past.noted == []
    store.on = True
    await other.purge(SITE)
    assert stretches(await other.history(SITE), clock) == [(digest(FILE), -100, -100)]
    web.finds(NEWER)
    clock.now += 1
    await other.held(SITE, DEFAULT)
    assert stretches(await other.history(SITE), clock) == [(digest(FILE), -101, -101), (digest(NEWER), 0, 0)]


async def test_what_two_fetches_of_a_process_find_at_once_is_all_known(
    cache: RobotsCache, web: Origins, clock: Clock
) -> None:
    await cache.held(SITE, DEFAULT)
    clock.now += 100
    web.let_go.clear()
    web.asked.clear()
    web.finds(NotModified())
    slow = asyncio.create_task(cache.held(SITE, DEFAULT, max_age=10))
    await web.asked.wait()
    late = web.let_go
    web.let_go = asyncio.Event()
    web.let_go.set()
    web.finds(NEWER)
    clock.now += 1
    await cache.refresh(SITE, DEFAULT)
    clock.now += 1
    web.finds(NotModified())
    late.set()
    await slow
    assert stretches(await cache.history(SITE), clock) == [(digest(FILE), -102, -2), (digest(NEWER), -1, -1)]


@pytest.mark.parametrize("learnt_later", [False, True])
async def test_what_was_learnt_by_processes_that_did_not_know_of_each_other_is_all_known(
    new_cache: NewCache, store: Switchable, web: Origins, clock: Clock, learnt_later: bool
) -> None:
    cut_off, other = new_cache(), new_cache()
    await cut_off.held(SITE, DEFAULT)
    clock.now += 100

    async def apart() -> None:
        store.on = False
        web.finds(NEWER)
        await cut_off.refresh(SITE, DEFAULT)
        store.on = True
        clock.now += 100

    async def together() -> None:
        web.finds(Unavailable(404))
        await other.refresh(SITE, DEFAULT)
        clock.now += 100

    for step in (together, apart) if learnt_later else (apart, together):
        await step()
    for cache in (cut_off, other):
        cache.missed()
        await cache.held(SITE, DEFAULT)
    expected = [digest(FILE), digest(NEWER), digest(Unavailable(404))]
    for cache in (cut_off, other):
        found = [it.digest for it in await cache.history(SITE)]
        assert found == ([expected[0], expected[2], expected[1]] if learnt_later else expected)


# While the store is down.


async def test_without_the_store_it_goes_on_from_memory_and_by_fetching(
    cache: RobotsCache, store: Switchable, web: Origins, clock: Clock
) -> None:
    known = await cache.held(SITE, DEFAULT)
    store.on = False
    clock.now += 100
    held = await cache.held(SITE, DEFAULT)
    assert held.source is Source.MEMORY
    assert held.snapshot is known.snapshot
    other = Origin("https", "other.example", 443)
    assert (await cache.held(other, DEFAULT)).source is Source.FETCHED
    clock.now += 100
    assert (await cache.held(other, DEFAULT)).source is Source.MEMORY
    assert len(web.calls) == 2


async def test_without_the_store_a_failure_is_remembered(
    cache: RobotsCache, store: Switchable, web: Origins, clock: Clock
) -> None:
    store.on = False
    web.finds(DOWN)
    for _ in range(5):
        held = await cache.held(SITE, DEFAULT, max_age=0)
        assert held.snapshot is not None
        assert held.snapshot.access == DOWN
        clock.now += 40
    assert len(web.calls) == 1


async def test_what_was_learnt_without_the_store_is_given_to_it_later(
    new_cache: NewCache, store: Switchable, web: Origins, clock: Clock
) -> None:
    one, other = new_cache(), new_cache()
    await one.held(SITE, DEFAULT)
    store.on = False
    web.finds(NEWER)
    clock.now += 50
    learnt = await one.held(SITE, DEFAULT, max_age=10)
    store.on = True
    clock.now += 50
    held = await one.held(SITE, DEFAULT)
    assert held.snapshot is learnt.snapshot
    found = await other.held(SITE, DEFAULT)
    assert (found.snapshot, found.source) == (learnt.snapshot, Source.STORE)
    assert len(web.calls) == 2


async def test_a_stopped_valkey_delays_an_answer_and_does_not_change_it(
    store_client: Redis, store_url: str, web: Origins, clock: Clock
) -> None:
    client = connect(store_url)
    monotonic = Clock()
    stopped = RedisSnapshots(GuardedClient(client, monotonic=monotonic, timeout=0.3), clock=clock)
    cache = RobotsCache(stopped, web.fetch, clock, 1_000_000)
    pid = int((await store_client.info("server"))["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        assert (await cache.held(SITE, DEFAULT)).source is Source.FETCHED
        assert stopped.calls.degraded
        clock.now += 40
        assert (await cache.held(SITE, DEFAULT)).source is Source.MEMORY
    finally:
        os.kill(pid, signal.SIGCONT)
    monotonic.now += COOLDOWN
    clock.now += 40
    await cache.held(SITE, DEFAULT)
    assert not stopped.calls.degraded
    assert await stopped.get(SITE) is not None
    assert len(web.calls) == 1
    await cache.aclose()
    await client.aclose()
