"""The cost of a permit: CPU of the store, compared with a plain SET; and eight processes of crawlers, 30 s.

`make bench NAME=pace`. Rounds alternate, so that other load affects all of them alike. Times are CPU times, so "a
second and core" is the work of one otherwise idle core.
"""

import asyncio
import math
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

from redis.asyncio import Redis

from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, Slot, SlotRequest
from app.store.circuit_breaker import IN_FLIGHT
from app.store.connect import connect
from app.store.embedded import serve
from app.store.guarded_client import GuardedClient
from tests.pacing.fleet import Log, crawl

ROUNDS = 5
CALLS = 4000
KEYS = [PaceKey.of(f"{number}.example.com", "ExampleBot") for number in range(500)]
SECOND = (PaceWindow(math.inf, 1.0),)
WINDOWS = tuple(
    PaceWindow((time.time() + 3600 * hour) if hour < 16 else math.inf, 1.0 + hour % 3) for hour in range(1, 17)
)
CRAWL = float(os.environ.get("CRAWL_SECONDS", "30"))

Call = Callable[[int], Awaitable[object]]


Clock = Callable[[], Awaitable[float]]


def store_cpu(client: Redis) -> Clock:
    """CPU seconds of the server, as it reports them: those of the system are rounded to hundredths."""

    async def read() -> float:
        info = await client.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])

    return read


async def spent(call: Call, calls: int, *clocks: Clock) -> list[float]:
    """CPU microseconds by each clock for one call, with as many concurrent calls as a process of the service makes."""
    before = [await clock() for clock in clocks]
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await call(number)

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return [(await clock() - begun) / calls * 1e6 for clock, begun in zip(clocks, before, strict=True)]


def print_row(name: str, micros: float, beside: float) -> None:
    print(f"| {name} | {micros:.1f} | {1e6 / micros:,.0f} | {micros / beside:.1f}x |")


async def store(client: Redis) -> None:
    """The script alone."""
    pace = RedisPacer(GuardedClient(client, monotonic=time.monotonic, timeout=20.0))

    def request(key: PaceKey, at: int, spans: tuple[PaceWindow, ...] = SECOND) -> SlotRequest:
        return SlotRequest(key, spans, f"caller-{at % 8}", max_wait=3600)

    async def reserve(request: SlotRequest) -> object:
        return await pace.reserve(request, QueueState(), closed_for=0.0, closed_if_behind=1.0)

    async def given_back(at: int) -> None:
        reply, _ = await pace.reserve(request(KEYS[at % 500], at), QueueState(), closed_for=0.0, closed_if_behind=1.0)
        if isinstance(reply, Slot):
            await pace.release(reply.key, reply.name)

    cases: dict[str, Call] = {
        "SET": lambda at: client.set(f"robots:{{{at % 500}}}", b"x" * 64, px=3_600_000),
        "a permit, 500 keys": lambda at: reserve(request(KEYS[at % 500], at)),
        "a permit, one key": lambda at: reserve(request(KEYS[0], at)),
        "a permit, 16 windows ahead": lambda at: reserve(request(KEYS[at % 500], at, WINDOWS)),
        "a permit given back": given_back,
    }
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, call in cases.items():
            await client.flushall()
            found[name] += await spent(call, CALLS, store_cpu(client))
    print("\n| the store | us | a second and core | beside SET |\n|---|---|---|---|")
    for name, micros in found.items():
        print_row(name, statistics.median(micros), statistics.median(found["SET"]))


def summary(log: Log, begin: float, end: float) -> str:
    """The result of a crawl, as a sentence."""
    return f"{log!r}; {log.used(begin, end):.1%} of it used"


async def measured(url: str) -> None:
    """Run all measurements."""
    client = connect(url)
    if not isinstance(client, Redis):
        raise TypeError(f"{url} is not a single server")
    await store(client)
    await client.flushall()
    print(f"\n8 processes of 50 workers, 20 pages a second, {CRAWL:.0f} s:")
    print(summary(*await crawl(url, processes=8, workers=50, seconds=CRAWL, late=0.02)))
    await client.aclose()


def main() -> None:
    """Measure with a dedicated server."""
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.python_implementation()} {platform.python_version()}")
    with suppress(KeyboardInterrupt), serve(None) as url:
        asyncio.run(measured(url))


if __name__ == "__main__":
    main()
