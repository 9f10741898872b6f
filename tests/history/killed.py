"""A process that is killed as soon as it has replaced a version, before the history has it.

python -m tests.history.killed STORE_URL NOW BODY
"""

import asyncio
import os
import signal
import sys

from app.cache.freshness import Recheck, Snapshot
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.robots_cache import RobotsCache
from app.store.connect import connect
from app.store.guarded_client import GuardedClient
from app.store.store_clock import StoreClock
from robots_core.origin import Origin
from robots_core.robots.access import Fetched, Lifetime, Successful, Validators

SITE = Origin("https", "www.example.com", 443)


def kill(_origin: Origin, _ended: Snapshot, _following: Snapshot | None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, now: float, body: str) -> None:
    async def fetch(_origin: Origin, _validators: Validators, _caller: str) -> Fetched:
        return Fetched(Successful(200, body.encode()), None, Validators(), Lifetime())

    redis = GuardedClient(connect(url), monotonic=lambda: 0.0, timeout=20.0)
    store = RedisSnapshots(redis, clock=lambda: now)
    cache = RobotsCache(store, fetch, StoreClock(lambda: now, lambda: now), 1_000_000, on_version_ended=kill)
    await cache.refresh(SITE, Recheck())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), sys.argv[3]))
