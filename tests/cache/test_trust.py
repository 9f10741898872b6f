"""Snapshots that were learned together are not looked up together again."""

from app.cache.freshness import Recheck, Snapshot
from app.cache.robots_cache import RobotsCache
from app.store.store_clock import StoreClock
from robots_core.origin import Origin, read_target
from robots_core.robots.access import Fetched, Unavailable, Validators

TRUST = 30


class Store:
    """A store with the same snapshot for every origin."""

    async def get(self, origin: Origin) -> Snapshot:
        return Snapshot(Unavailable(404), 1000.0)


async def test_trust_of_many_origins_ends_spread_over_time() -> None:
    now = 1000.0

    async def fetch(origin: Origin, validators: Validators, caller: str) -> Fetched:
        raise AssertionError(origin)

    cache = RobotsCache(Store(), fetch, StoreClock(lambda: now, lambda: now), 10_000_000, trust=TRUST)  # type: ignore[arg-type]
    origins = [read_target(f"https://host-{number}.example/").origin for number in range(300)]
    for origin in origins:
        await cache.get(origin, Recheck())
    ended = []
    for second in range(TRUST + 1):
        now = 1000.0 + second
        trusted = [origin for origin in origins if cache.get_trusted(origin, now) is not None]
        ended.append(len(origins) - len(trusted))
        origins = trusted
    assert sum(ended[: TRUST // 2]) == 0
    assert origins == []
    assert max(ended) < 60  # of 300 in 15 s
