"""Count the connections of a fleet to each server of its store, and measure the memory of a key.

    python -m tests.store.connections [PROCESSES]

Real processes of the service grant permits for many keys, to many concurrent callers, on one server and on a cluster of
three masters. Then the first server is suspended for some seconds.
"""

import asyncio
import math
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

import httpx
from redis.exceptions import RedisError

from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import PaceWindow
from app.pacing.slots import PaceKey, QueueState, SlotRequest
from app.store.connect import connect
from app.store.guarded_client import GuardedClient
from robots_core.origin import Origin
from tests.engines import QUOTED, Fleet, Node, alone, cluster_url, clustered
from tests.pacing.fleet import logging_origin, services

CALLERS = 40
"""Callers of each process."""

LOAD_SECONDS, HANG_SECONDS = 10.0, 3.0
MAX_KEYS = 5_000


async def ask_on(client: httpx.AsyncClient, url: str, origin: str, number: int) -> None:
    """Request permits continuously, each for another agent."""
    asked = 0
    while True:
        asked += 1
        request = {"url": f"{origin}/page", "agent": f"bot{number}x{asked % 500}", "max_wait": 60}
        with suppress(httpx.HTTPError):
            await client.post(f"{url}/v1/permits", json=request)


async def most(nodes: Sequence[Node], seconds: float) -> list[int]:
    """The most connections of each server within so many seconds, except this one."""
    found = [0] * len(nodes)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        for at, node in enumerate(nodes):
            with suppress(RedisError):
                info = await asyncio.to_thread(node.ask, "INFO", "clients")
                found[at] = max(found[at], info["connected_clients"] - 1)
        await asyncio.sleep(0.05)
    return found


async def measure(name: str, url: str, fleet: Fleet, processes: int) -> None:
    limits = httpx.Limits(max_connections=None)
    with services(url, processes) as urls:
        async with logging_origin() as (origin, _), httpx.AsyncClient(timeout=60.0, limits=limits) as client:
            idle = await most(fleet.masters, 2.0)
            asking = [
                asyncio.create_task(ask_on(client, urls[number % processes], origin, number))
                for number in range(processes * CALLERS)
            ]
            loaded = await most(fleet.masters, LOAD_SECONDS)
            fleet.masters[0].stop()
            await asyncio.sleep(HANG_SECONDS)
            fleet.masters[0].process.resume()
            woken = await most(fleet.masters, LOAD_SECONDS)
            for one in asking:
                one.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
    sys.stdout.write(f"{name}, {processes} processes; connections of each server:\n")
    sys.stdout.write(f"  at rest {idle}, under load {loaded}, after the first hung for {HANG_SECONDS:.0f} s {woken}\n")


async def lane_bytes(fleet: Fleet) -> None:
    """The memory of a key with one granted permit."""
    [server] = fleet.masters
    client = connect(f"redis://:{QUOTED}@{fleet.hosts}")
    pace = RedisPacer(GuardedClient(client, monotonic=time.monotonic, timeout=20.0))
    server.ask("FLUSHALL")
    origins = [Origin("https", f"www.example-{number}.com", 443) for number in range(MAX_KEYS + 1)]
    await _permit(pace, origins[-1])
    before = server.ask("INFO", "memory")["used_memory"]
    for origin in origins[:MAX_KEYS]:
        await _permit(pace, origin)
    after = server.ask("INFO", "memory")["used_memory"]
    await client.aclose()
    sys.stdout.write(f"a key with one permit: {(after - before) / MAX_KEYS:.0f} bytes\n")


async def _permit(pace: RedisPacer, origin: Origin) -> None:
    await pace.reserve(
        SlotRequest(PaceKey.of(origin.host, "ExampleBot"), (PaceWindow(math.inf, 1.0),), "crawler"),
        QueueState(),
        closed_for=0,
        closed_if_behind=0,
    )


async def main(processes: int) -> None:
    with alone() as one:
        await lane_bytes(one)
        await measure("one server", f"redis://:{QUOTED}@{one.hosts}", one, processes)
    with clustered(0, cluster_require_full_coverage="no", cluster_node_timeout="15000") as three:
        await measure("a cluster", cluster_url(three), three, processes)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 16))
