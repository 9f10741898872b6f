"""Test doubles that several tests share: clocks that a test sets, and stores that a test makes fail or wait."""

import asyncio
from collections.abc import Mapping

from app.cache.freshness import Snapshot
from app.cache.invalidation import Event
from app.cache.ordering import Purged
from app.cache.redis_snapshots import Put, RedisSnapshots, Taken
from app.cache.visits import RedisVisits, Tally
from app.overrides.redis_overrides import RedisOverrides
from app.overrides.table import Override
from app.store.guarded_client import GuardedClient, StoreDown
from robots_core.origin import Origin


class Clock:
    """A clock that stands still until a test moves `now`, in seconds."""

    def __init__(self, now: float = 1_790_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class SleepingClock(Clock):
    """A monotonic clock that advances only by sleeps."""

    def __init__(self, now: float = 1000.0) -> None:
        super().__init__(now)
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


class _Switch:
    """A store that raises StoreDown while `on` is false."""

    def __init__(self, *, on: bool = True) -> None:
        self.on = on

    def _check(self) -> None:
        if not self.on:
            raise StoreDown("the test has switched it off")


class SwitchableSnapshots(RedisSnapshots, _Switch):
    """The snapshots and leases in Redis, which a test can switch off, and whose reads are counted."""

    def __init__(self, redis: GuardedClient, clock: Clock) -> None:
        super().__init__(redis, clock=clock)
        self.on = True
        self.gets = 0

    async def get(self, origin: Origin) -> Snapshot | Purged | None:
        self.gets += 1
        self._check()
        return await super().get(origin)

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float, lease: str = "") -> Put:
        self._check()
        return await super().put(origin, snapshot, keep_seconds, lease)

    async def purge(self, origin: Origin, keep_seconds: float, at: float | None = None) -> None:
        self._check()
        await super().purge(origin, keep_seconds, at)

    async def now(self, origin: Origin) -> float:
        self._check()
        return await super().now(origin)

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        self._check()
        return await super().suspect(origin, seconds)

    async def publish(self, event: Event, origin: Origin) -> None:
        self._check()
        await super().publish(event, origin)

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> Taken:
        self.gets += not by_force
        self._check()
        return await super().take(origin, token, seconds, by_force=by_force)

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        self._check()
        await super().renew(origin, token, seconds)

    async def release(self, origin: Origin, token: str) -> None:
        self._check()
        await super().release(origin, token)


class SlowSnapshots(RedisSnapshots, _Switch):
    """A store in memory whose reads and writes wait until a test lets them continue."""

    def __init__(self, clock: Clock) -> None:
        self.on = True
        self._now = clock
        self.has: Snapshot | None = None
        self.called = asyncio.Event()
        self.says_so = asyncio.Event()
        self.says_so.set()
        self.written = asyncio.Event()
        self.writes = asyncio.Event()
        self.writes.set()

    async def get(self, origin: Origin) -> Snapshot | None:
        found = self.has
        self.called.set()
        await self.says_so.wait()
        self._check()
        return found

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float, lease: str = "") -> Put:
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
        return self._now()

    async def suspect(self, origin: Origin, seconds: float) -> bool:
        self._check()
        return False

    async def publish(self, event: Event, origin: Origin) -> None:
        self._check()

    async def take(self, origin: Origin, token: str, seconds: float, *, by_force: bool = False) -> Taken:
        self._check()
        return Taken(self._now(), None if by_force else await self.get(origin))

    async def renew(self, origin: Origin, token: str, seconds: float) -> None:
        self._check()

    async def release(self, origin: Origin, token: str) -> None:
        self._check()


class SwitchableVisits(RedisVisits, _Switch):
    """The visits in Redis, which a test can switch off, delay and count."""

    def __init__(self, store: RedisVisits, *, on: bool = True) -> None:
        super().__init__(store._redis, clock=store._clock)
        self.on = on
        self.refused: set[Origin] = set()
        self.reads = 0
        self.written: list[int] = []
        self.called = asyncio.Event()
        self.let_go = asyncio.Event()
        self.let_go.set()

    async def read(self, origin: Origin) -> Tally | None:
        self.reads += 1
        self._check()
        return await super().read(origin)

    async def add(self, tallies: Mapping[Origin, Tally]) -> Mapping[Origin, Tally | None]:
        self.called.set()
        await self.let_go.wait()
        self._check()
        self.written.append(len(tallies))
        return await super().add({origin: tally for origin, tally in tallies.items() if origin not in self.refused})


class SwitchableOverrides(RedisOverrides):
    """The overrides in Redis, which fail after `left` more changes."""

    left = 1000

    async def put(self, override: Override, by: str, at: float) -> bool:
        self.left -= 1
        if self.left < 0:
            raise StoreDown("the test has switched it off")
        return await super().put(override, by, at)
