"""How long the event loop stands still in a service that holds ORIGINS (100,000) origins, beside one that holds none.

python -m tests.faults.pauses

Two real processes on one store. One is asked about every origin once, so that it holds them all; then both answer the
same number of questions, by turns, and each tells for how long its loop stood still at the longest, and what the
garbage collections cost that it makes in quiet moments. It ends with 1 where what is held makes the longest pause more
than MOST times as long.
"""

import asyncio
import os
import random
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import httpx
import psutil

from app.cache.codec import encode
from app.cache.freshness import Snapshot
from app.cache.redis_snapshots import snapshot_key
from app.origin import read_target
from app.redis.connect import connect
from app.redis.embedded import serve as serve_valkey
from app.robots.access import Successful
from tests.faults.process import process

ORIGINS = 100_000
HOT = 20
"""Origins that both services are asked about in half of the questions."""

MAX_CONCURRENT, QUESTIONS, CALLERS, BATCH = 4, 4000, 8, 500
MOST = 3.0
"""How many times as long the longest pause may be as in the service that holds nothing."""


def url_of(number: int) -> str:
    """A page of an origin."""
    return f"https://www.host-{number}.example/page"


def file_of(number: int) -> bytes:
    """Its file: ten rules, as no other has them."""
    rules = "".join(f"Disallow: /{number}/{rule}\n" for rule in range(10))
    return f"User-agent: *\n{rules}Crawl-delay: 2\n".encode()


@dataclass
class Service:
    """One of the two, and the numbers of the origins that it is asked about."""

    name: str
    client: httpx.AsyncClient
    pid: int
    asked: range
    longest: float = 0.0
    collections: list[float] = field(default_factory=list)

    async def touch_all(self) -> None:
        """Ask about every origin once."""
        batches = iter(range(0, len(self.asked), BATCH))

        async def some() -> None:
            for start in batches:
                items = [{"url": url_of(number), "agent": "a"} for number in self.asked[start : start + BATCH]]
                answer = await self.client.post("/v1/allowed", json={"items": items})
                assert answer.text.count('"verdict":"allow"') == len(items), answer.text[:500]

        await asyncio.gather(some(), some())

    async def turn(self) -> float:
        """Ask QUESTIONS questions; the longest pause meanwhile, in milliseconds."""
        await self.client.get("/pauses")
        questions = iter(range(QUESTIONS))

        async def some() -> None:
            for number in questions:
                wanted = random.choice(self.asked) if number % 2 else number % HOT
                answer = await self.client.get("/v1/allowed", params={"url": url_of(wanted), "agent": "a"})
                assert answer.status_code == 200, answer.text

        await asyncio.gather(*(some() for _ in range(CALLERS)))
        pauses = (await self.client.get("/pauses")).json()
        self.longest = max(self.longest, pauses["loop"])
        return float(pauses["loop"])

    async def collect(self) -> None:
        """Let it collect its garbage, as it does in a quiet moment."""
        self.collections.append((await self.client.get("/collection")).json())

    @property
    def memory(self) -> float:
        """Its resident memory, in MiB."""
        return float(psutil.Process(self.pid).memory_info().rss) / 2**20


async def fill(url: str, origins: int) -> None:
    """Write the snapshots that the service would have written."""
    client, now = connect(url), time.time()
    for start in range(0, origins, 1000):
        pipeline = client.pipeline(transaction=False)
        for number in range(start, min(start + 1000, origins)):
            data = encode(Snapshot(Successful(200, file_of(number)), now))
            pipeline.set(snapshot_key(read_target(url_of(number)).origin), data, ex=86_400)
        await pipeline.execute()
    await client.aclose()


async def measure(origins: int) -> tuple[Service, Service]:
    """The service that holds nothing, and the one that holds so many origins, both measured."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(serve_valkey(None))
        await fill(store, origins)
        services = []
        for name, asked in (("nothing", range(HOT)), (f"{origins:,} origins", range(origins))):
            running = stack.enter_context(process(module="tests.faults.watched", REDIS_URL=store, ACCESS_LOG="false"))
            url = await asyncio.to_thread(running.listens)
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=120.0))
            services.append(Service(name, client, running.pid, asked))
        for service in services:
            await service.touch_all()
            await service.collect()
        print("turn   " + "".join(f"{service.name:>20}" for service in services))
        for turn in range(MAX_CONCURRENT):
            row = [await service.turn() for service in services]
            print(f"{turn + 1:<7}" + "".join(f"{pause:>17.1f} ms" for pause in row))
        for service in services:
            await service.collect()
            print(
                f"holds {service.name}: longest pause {service.longest:.1f} ms, "
                f"collection in the first quiet moment {service.collections[0]:.1f} ms, "
                f"in a later one {service.collections[1]:.1f} ms; {service.memory:.0f} MiB"
            )
        return services[0], services[1]


def main() -> int:
    """Measure, and say how they compare; 1 where too much."""
    empty, full = asyncio.run(measure(int(os.environ.get("ORIGINS") or ORIGINS)))
    ratio = full.longest / empty.longest
    print(f"longest pause: {ratio:.2f}x; {MOST:g}x at most")
    return 1 if ratio > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
