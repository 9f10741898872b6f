"""The longest pause of the event loop with ORIGINS (100,000) cached origins, beside none: `make bench NAME=pauses`.

Two real processes share a store. One caches every origin. Then both answer the same number of questions in alternating
rounds, and each reports the longest pause of its event loop per round, and the CPU time of its garbage collections in
quiet moments. Pauses do not include time in which a process waits for a CPU, and the medians are compared, so other
load hardly matters. Exits with 1 if the ratio is above MOST.
"""

import asyncio
import os
import random
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from statistics import median

import httpx
import psutil
from redis.asyncio import Redis

from app.cache.codec import encode
from app.cache.freshness import Snapshot
from app.cache.redis_snapshots import snapshot_key
from app.store.embedded import serve as serve_valkey
from robots_core.origin import read_target
from robots_core.robots.access import Successful
from tests.faults.process import process

ORIGINS = 100_000
HOT = 20
"""Origins that half of the questions to both services are about."""

TURNS, QUESTIONS, CALLERS, BATCH = 7, 3000, 8, 500
MOST = 3.0
"""The largest ratio to the pause of the empty service."""


def url_of(number: int) -> str:
    """A page of an origin."""
    return f"https://www.host-{number}.example/page"


def file_of(number: int) -> bytes:
    """The origin's file: ten rules that no other file has."""
    rules = "".join(f"Disallow: /{number}/{rule}\n" for rule in range(10))
    return f"User-agent: *\n{rules}Crawl-delay: 2\n".encode()


@dataclass
class Service:
    """One of the two services, and the numbers of its origins."""

    name: str
    client: httpx.AsyncClient
    pid: int
    numbers: range
    pauses: list[float] = field(default_factory=list)
    collections: list[float] = field(default_factory=list)

    async def touch_all(self) -> None:
        """Ask about every origin once."""
        batches = iter(range(0, len(self.numbers), BATCH))

        async def some() -> None:
            for start in batches:
                items = [{"url": url_of(number), "agent": "a"} for number in self.numbers[start : start + BATCH]]
                allowed = 0
                while allowed < len(items):  # on a busy machine, the store may be late and count as down
                    answer = await self.client.post("/v1/allowed", json={"items": items})
                    allowed = answer.text.count('"verdict":"allow"')

        await asyncio.gather(some(), some())

    async def turn(self) -> float:
        """Ask QUESTIONS questions; return the longest pause meanwhile, in milliseconds."""
        await self.client.get("/pauses")
        questions = iter(range(QUESTIONS))

        async def some() -> None:
            for number in questions:
                wanted = random.choice(self.numbers) if number % 2 else number % HOT
                answer = await self.client.get("/v1/allowed", params={"url": url_of(wanted), "agent": "a"})
                assert answer.status_code == 200, answer.text

        await asyncio.gather(*(some() for _ in range(CALLERS)))
        self.pauses.append((await self.client.get("/pauses")).json()["loop"])
        return self.pauses[-1]

    @property
    def pause(self) -> float:
        """The median over rounds of the longest pause, in milliseconds."""
        return median(self.pauses)

    async def collect(self) -> None:
        """Make the service collect garbage, as in a quiet moment."""
        self.collections.append((await self.client.get("/collection")).json())

    @property
    def memory(self) -> float:
        """The resident memory of the service, in MiB."""
        return float(psutil.Process(self.pid).memory_info().rss) / 2**20


async def fill(url: str, origins: int) -> None:
    """Write the snapshots that the service would have written."""
    client, now = Redis.from_url(url), time.time()
    for start in range(0, origins, 1000):
        pipeline = client.pipeline(transaction=False)
        for number in range(start, min(start + 1000, origins)):
            data = encode(Snapshot(Successful(200, file_of(number)), now))
            pipeline.set(snapshot_key(read_target(url_of(number)).origin), data, ex=86_400)
        await pipeline.execute()
    await client.aclose()


async def measure(origins: int) -> tuple[Service, Service]:
    """Measure the empty service and the one with `origins` origins."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(serve_valkey(None))
        await fill(store, origins)
        services = []
        for name, numbers in (("nothing", range(HOT)), (f"{origins:,} origins", range(origins))):
            running = stack.enter_context(process(module="tests.faults.watched", REDIS_URL=store, ACCESS_LOG="false"))
            url = await asyncio.to_thread(running.wait_ready)
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=120.0))
            services.append(Service(name, client, running.pid, numbers))
        for service in services:
            await service.touch_all()
            await service.collect()
        print("turn   " + "".join(f"{service.name:>20}" for service in services))
        for turn in range(TURNS):
            row = [await service.turn() for service in services]
            print(f"{turn + 1:<7}" + "".join(f"{pause:>17.1f} ms" for pause in row))
        for service in services:
            await service.collect()
            print(
                f"holds {service.name}: pause {service.pause:.1f} ms (median of the turns' longest), "
                f"collection in the first quiet moment {service.collections[0]:.1f} ms, "
                f"in a later one {service.collections[1]:.1f} ms; {service.memory:.0f} MiB"
            )
        return services[0], services[1]


def main() -> int:
    """Measure and compare; exit with 1 if the ratio is too large."""
    empty, full = asyncio.run(measure(int(os.environ.get("ORIGINS") or ORIGINS)))
    ratio = full.pause / empty.pause
    print(f"pause: {ratio:.2f}x; {MOST:g}x at most")
    return 1 if ratio > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
