"""Hundreds of workers, in many processes, keep one pace: by the log of the origin that they crawl."""

import asyncio
from contextlib import suppress

import httpx
import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.pacing.redis_pacer import keys_of
from app.pacing.slots import PaceKey
from app.store.connect import connect
from tests.engines import QUOTED, free_port, node, sentinel_url, watched
from tests.exposition import value
from tests.faults.until import PATIENCE, until, until_so
from tests.pacing.fleet import RATE, Log, crawlers, logging_origin, services

SERVICES = 2


def within_the_rate(log: Log) -> bool:
    """Check that no page came before its slot, and that no period exceeded the rate by more than one slot.

    On a busy machine, pages may arrive late, and then too close to the next one; `make bench NAME=pace` measures an
    idle machine.
    """
    grants = log.at_slots()
    windows = all(grants.most_in(seconds) <= RATE * seconds + 1 for seconds in (1, 2, 5))
    return log.earliest > -0.005 and windows and grants.excess <= 1


@pytest.mark.usefixtures("store_client")
async def test_eight_processes_of_fifty_workers_keep_one_pace_and_use_it(store_url: str) -> None:
    with services(store_url, SERVICES, module="tests.patient_service") as urls:
        # A late page has used its slot, too.
        async with logging_origin() as (origin, log), crawlers(urls, origin, 8, 50, late=PATIENCE) as running:
            await until_so(lambda: log.at_slots().most_in(5) >= 0.95 * RATE * 5)
            await running.end()
    assert within_the_rate(log), (log, log.at_slots())
    assert log.files == 1


async def local_permits(url: str) -> float:
    """Permits that this process granted or denied without the store."""
    async with httpx.AsyncClient() as client:
        return value((await client.get(f"{url}/metrics")).text, "robots_permits_degraded_total")


@pytest.mark.parametrize(
    ("processes", "workers"),
    [(8, 50), (4, 5)],
    # With many slots ahead, no caller uses a local slot. With hardly any, all do.
    ids=["with many slots ahead", "with hardly any slots ahead"],
)
async def test_the_rate_holds_when_the_master_fails(processes: int, workers: int) -> None:
    with watched(1, 1) as fleet:
        url = sentinel_url(fleet)
        client = connect(url)
        assert isinstance(client, Redis)
        with services(url, SERVICES) as urls:
            async with logging_origin() as (origin, log), crawlers(urls, origin, processes, workers) as running:

                async def given() -> int:
                    """The number of slots granted, as the current master knows."""
                    with suppress(RedisError, OSError):
                        async with asyncio.timeout(1.0):
                            return int(await client.hget(keys_of(PaceKey("127.0.0.1", "examplebot"))[3], "count") or 0)
                    return 0

                await until_so(lambda: len(log.pages) >= 3 * RATE)
                before = await given()
                fleet.masters[0].kill()
                await until(given, lambda count: count > before + 2 * RATE)
                crawled = len(log.pages)
                await until_so(lambda: len(log.pages) >= crawled + 2 * RATE)
                await running.end()
            local = sum([await local_permits(url) for url in urls])
        await client.aclose()
    assert local > 0
    assert within_the_rate(log), (log, log.at_slots())


async def test_without_rank_and_store_no_process_gives_slots() -> None:
    settings = {"PACE_FLOOR": "0.2"}
    async with logging_origin() as (origin, _):
        with node(port=(port := free_port())) as server:
            url = f"redis://:{QUOTED}@127.0.0.1:{port}"
            server.stop()
            with services(url, 2, PACE_INSTANCES="", **settings) as urls:
                assert [await granted(url, origin) for url in urls * 3] == [False] * 6
                server.process.resume()
                assert await until(lambda: granted(urls[0], origin), bool)
            server.stop()
            with services(url, 2, PACE_INSTANCES="2", **settings) as urls:
                assert await until(lambda: granted(urls[0], origin), bool)
            server.process.resume()


async def granted(url: str, origin: str) -> bool:
    """Whether a permit is granted whose slot begins within 2 s."""
    request = {"url": f"{origin}/page", "agent": "ExampleBot", "max_wait": 2}
    async with httpx.AsyncClient(timeout=30.0) as client:
        return (await client.post(f"{url}/v1/permits", json=request)).json()["permit"] is not None
