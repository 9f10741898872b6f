"""One process of the fleet works on an origin while the others wait for the result; a lease is not a lock."""

import asyncio
from collections.abc import Callable

import pytest
from redis.asyncio import Redis

from app.cache.lease import LEASE_SECONDS, RENEWALS, Held, Lease, Read
from app.cache.redis_snapshots import RedisSnapshots
from app.store.guarded_client import GuardedClient, StoreDown
from robots_core.origin import Origin
from tests.doubles import Clock, SwitchableSnapshots
from tests.faults.until import until

SITE = Origin("https", "www.example.com", 443)
OTHER = Origin("https", "other.example", 443)
KEY = "robots:{https://www.example.com:443}:lease"
LONG, SHORT = 600.0, 0.2
NEVER = (3600.0,)


class Fleet:
    """State that all processes share: the result, the number of runs, and an event that ends the work."""

    def __init__(self) -> None:
        self.left: str | None = None
        self.works = 0
        self.looks = 0
        self.looked = asyncio.Event()
        self.working = asyncio.Event()
        self.done = asyncio.Event()
        self.news = [asyncio.Event() for _ in range(4)]

    async def lookup(self, read: Read) -> str | None:
        await read(SITE)
        self.looks += 1
        self.looked.set()
        return self.left

    async def work(self, _held: Held) -> str:
        self.works += 1
        self.working.set()
        await self.done.wait()
        self.left = "done"
        for event in self.news:
            event.set()
        return f"worked {self.works}"


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.fixture
def store(store_client: Redis) -> RedisSnapshots:
    return RedisSnapshots(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0))


@pytest.fixture
def once(store: RedisSnapshots, fleet: Fleet) -> Callable[..., asyncio.Task[str]]:
    def begin(process: int, seconds: float = LONG, pauses: tuple[float, ...] = NEVER) -> asyncio.Task[str]:
        lease = Lease(store, seconds, pauses=pauses)
        return asyncio.create_task(lease.run_once(SITE, fleet.lookup, fleet.work, fleet.news[process]))

    return begin


Once = Callable[..., asyncio.Task[str]]


async def test_one_process_works_and_wakes_the_others(once: Once, fleet: Fleet) -> None:
    first = once(0)
    await fleet.working.wait()
    others = [once(process) for process in (1, 2, 3)]
    fleet.done.set()
    assert await first == "worked 1"
    assert await asyncio.gather(*others) == ["done"] * 3
    assert fleet.works == 1


async def test_without_invalidations_the_others_poll(once: Once, fleet: Fleet) -> None:
    first = once(0)
    await fleet.working.wait()
    fleet.looked.clear()
    other = once(1, pauses=(0.01,))
    await fleet.looked.wait()
    fleet.news[1] = asyncio.Event()
    fleet.done.set()
    assert await first == "worked 1"
    assert await other == "done"


async def test_a_lease_is_released_and_expires(once: Once, fleet: Fleet, store_client: Redis) -> None:
    first = once(0)
    await fleet.working.wait()
    assert 0 < await store_client.pttl(KEY) <= LEASE_SECONDS * 1000
    fleet.done.set()
    await first
    assert await store_client.exists(KEY) == 0


async def test_the_holder_of_a_lease_looks_up_once_more(once: Once, fleet: Fleet, store_client: Redis) -> None:
    fleet.left = "left while the last one gave the lease back"
    assert await once(0) == fleet.left
    assert (fleet.works, fleet.looks) == (0, 1)
    assert await store_client.exists(KEY) == 0


async def test_a_cancelled_worker_releases_the_lease(once: Once, fleet: Fleet, store_client: Redis) -> None:
    first = once(0)
    await fleet.working.wait()
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    assert await store_client.exists(KEY) == 0


async def test_one_of_those_who_wait_for_a_dead_holder_works(once: Once, fleet: Fleet, store: RedisSnapshots) -> None:
    assert (await store.take(SITE, "killed at its work", SHORT)).since is not None
    fleet.done.set()
    results = await asyncio.gather(*(once(process, pauses=(0.02,)) for process in (1, 2, 3)))
    assert fleet.works == 1
    assert sorted(results) == ["done", "done", "worked 1"]


class Renewals(RedisSnapshots):
    """A store that counts renewals."""

    def __init__(self, redis: GuardedClient) -> None:
        super().__init__(redis)
        self.count = 0
        self.enough = asyncio.Event()

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        await super().renew(origin, token, seconds)
        self.count += 1
        if self.count == 3 * RENEWALS:
            self.enough.set()


async def test_a_lease_is_renewed_for_as_long_as_its_holder_works(store_client: Redis, fleet: Fleet) -> None:
    store = Renewals(GuardedClient(store_client, monotonic=lambda: 0.0, timeout=20.0))
    working = asyncio.create_task(Lease(store, LONG).run_once(SITE, fleet.lookup, fleet.work, asyncio.Event()))
    await store.enough.wait()
    # Three times as long as the lease lasts without renewals.
    assert (await store.take(SITE, "another's", LONG)).since is None
    fleet.done.set()
    assert await working == "worked 1"
    renewed = store.count
    assert (await store.take(SITE, "another's", LONG)).since is not None
    await store.renew(SITE, "the first one's", LONG)
    assert await store_client.get(KEY) == b"another's"
    assert store.count == renewed + 1


async def test_hanging_work_is_waited_for_a_limited_time(
    store: RedisSnapshots, fleet: Fleet, store_client: Redis
) -> None:
    lease = Lease(store, 2 * SHORT, seconds=SHORT)
    hanging = asyncio.create_task(lease.run_once(SITE, fleet.lookup, fleet.work, asyncio.Event()))
    await fleet.working.wait()
    await until(lambda: store_client.exists(KEY), lambda count: count == 0)
    assert (await store.take(SITE, "another's", LONG)).since is not None
    fleet.done.set()
    await hanging


@pytest.mark.parametrize("value", ["a string without an end", "x" * 1000, ["not", "ours"]])
async def test_a_foreign_value_is_not_respected_as_a_lease(
    once: Once, fleet: Fleet, store_client: Redis, value: str | list[str]
) -> None:
    if isinstance(value, str):
        await store_client.set(KEY, value, ex=600 if len(value) > 64 else None)
    else:
        await store_client.rpush(KEY, *value)
    fleet.done.set()
    assert await once(0) == "worked 1"
    assert fleet.looks == 1


async def test_a_forged_lease_is_waited_for_once(once: Once, fleet: Fleet, store_client: Redis) -> None:
    await store_client.set(KEY, "somebody else's", ex=600)
    fleet.done.set()
    assert await once(0, seconds=SHORT, pauses=(0.05,)) == "worked 1"
    fleet.left = None
    fleet.looks = 0
    assert await once(0) == "worked 2"
    assert fleet.looks == 1


async def test_a_late_holder_does_not_release_the_next_lease(
    store: RedisSnapshots, fleet: Fleet, store_client: Redis
) -> None:
    late = asyncio.create_task(Lease(store, LONG).run_once(SITE, fleet.lookup, fleet.work, asyncio.Event()))
    await fleet.working.wait()
    await store_client.delete(KEY)
    assert (await store.take(SITE, "the next one's", LONG)).since is not None
    fleet.done.set()
    assert await late == "worked 1"
    assert await store_client.get(KEY) == b"the next one's"


async def test_leases_of_two_origins_are_independent(store: RedisSnapshots) -> None:
    assert (await store.take(SITE, "a", LONG)).since is not None
    assert (await store.take(SITE, "b", LONG)).since is None
    assert (await store.take(OTHER, "b", LONG)).since is not None
    assert (await store.take(SITE, "b", LONG, by_force=True)).since is not None
    await store.release(SITE, "a")
    assert (await store.take(SITE, "a", LONG)).since is None
    await store.release(SITE, "b")
    assert (await store.take(SITE, "a", LONG)).since is not None


async def test_a_forced_run_ignores_the_lease_and_the_next_caller_waits(
    once: Once, store: RedisSnapshots, fleet: Fleet
) -> None:
    assert (await store.take(SITE, "another's", LONG)).since is not None
    ordered = asyncio.create_task(Lease(store, LONG).run_now(SITE, fleet.work))
    await fleet.working.wait()
    other = once(1)
    fleet.done.set()
    assert await ordered == "worked 1"
    assert await other == "done"


async def test_without_the_store_every_process_works(store: RedisSnapshots, fleet: Fleet) -> None:
    fleet.done.set()
    down = SwitchableSnapshots(store.redis, Clock())
    down.on = False
    lease = Lease(down, LONG)
    for number in (1, 2):
        assert await lease.run_once(SITE, fleet.lookup, fleet.work, asyncio.Event()) == f"worked {number}"
        fleet.left = None
    assert await lease.run_now(SITE, fleet.work) == "worked 3"


async def test_a_waiting_process_works_if_the_store_goes_down(once: Once, store: RedisSnapshots, fleet: Fleet) -> None:
    assert (await store.take(SITE, "another's", LONG)).since is not None
    lease = Lease(store, LONG, pauses=NEVER)

    async def down(read: Read) -> str | None:
        if fleet.looks:
            raise StoreDown("it is switched off")
        return await fleet.lookup(read)

    fleet.done.set()
    waiting = asyncio.create_task(lease.run_once(SITE, down, fleet.work, fleet.news[0]))
    await fleet.looked.wait()
    fleet.news[0].set()
    assert await waiting == "worked 1"
