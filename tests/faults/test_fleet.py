"""Four processes on one store fetch an origin once, even if the fetching one is killed."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from app.cache.codec import encode
from app.cache.freshness import DAY, Snapshot
from robots_core.robots.access import Successful, Validators
from tests.faults.until import until
from tests.forked import ForkedService
from tests.origins import Exchange, Gate, LoopbackOrigin, head, serve, text

FETCH_TIMEOUT = 60
"""Seconds within which no fetch times out while a test delays it."""

CALLERS = 200
FILE = text(200, "User-agent: *\nDisallow: /private/\n")
PATIENCE = httpx.Timeout(90.0)


class Fleet:
    """Running processes, with their URLs."""

    def __init__(self, processes: Sequence[ForkedService]) -> None:
        self.processes = processes
        self.urls = [process.listen() for process in processes]

    async def ask(self, origin: LoopbackOrigin, among: Sequence[int], callers: int) -> list[dict[str, Any]]:
        """The answers to concurrent callers, distributed over the processes."""
        limits = httpx.Limits(max_connections=callers)
        async with httpx.AsyncClient(timeout=PATIENCE, limits=limits) as client:
            query = {"url": f"{origin.url}/private/page", "agent": "ExampleBot", "wait": "60"}
            urls = [f"{self.urls[among[caller % len(among)]]}/v1/allowed" for caller in range(callers)]
            responses = await asyncio.gather(*(client.get(url, params=query) for url in urls))
        return [response.json() for response in responses]


@contextmanager
def running(store_url: str, count: int) -> Iterator[Fleet]:
    with ExitStack() as stack:
        processes = []
        for _ in range(count):
            processes.append(ForkedService(store_url, FETCH_TIMEOUT=str(FETCH_TIMEOUT)))
            stack.callback(processes[-1].kill)
        yield Fleet(processes)


@pytest.fixture(scope="module")
def fleet(store_url: str) -> Iterator[Fleet]:
    with running(store_url, 4) as four:
        yield four


async def all_look_for_the_lease(client: Redis, processes: int) -> None:
    """Wait until so many processes have tried to take a lease since the statistics were reset."""

    async def tried() -> int:
        statistics = await client.info("commandstats")
        return int(statistics.get("cmdstat_set", {"calls": 0})["calls"])

    await until(tried, lambda calls: calls >= processes)


async def test_200_callers_of_4_processes_cause_one_fetch(fleet: Fleet, store_client: Redis) -> None:
    gate = Gate(FILE)
    async with serve(gate) as origin:
        await store_client.config_resetstat()
        asking = asyncio.create_task(fleet.ask(origin, range(4), CALLERS))
        await origin.wait_for_requests(1)
        await all_look_for_the_lease(store_client, 4)
        gate.open.set()
        answers = await asking
        assert [answer["verdict"] for answer in answers] == ["disallow"] * CALLERS
        assert {answer["robots"]["source"] for answer in answers} <= {"fetched", "store", "memory"}
        assert len(origin.requests) == 1


async def test_due_copy_is_refreshed_by_one_fetch(fleet: Fleet, store_client: Redis) -> None:
    gate = Gate(head(304))
    async with serve(gate) as origin:
        copy = Snapshot(
            Successful(200, b"User-agent: *\nDisallow: /private/\n"), time.time() - 2 * DAY, None, Validators('"1"')
        )
        await store_client.set(f"robots:{{{origin.url}}}", encode(copy))
        await store_client.config_resetstat()
        asking = asyncio.create_task(fleet.ask(origin, range(4), CALLERS))
        await origin.wait_for_requests(1)
        await all_look_for_the_lease(store_client, 4)
        gate.open.set()
        answers = await asking
        assert [answer["verdict"] for answer in answers] == ["disallow"] * CALLERS
        assert all(answer["robots"]["age"] < 60 for answer in answers)
        assert len(origin.requests) == 1
        assert b'if-none-match: "1"' in origin.requests[0].lower()


async def test_killed_holder_of_a_lease_costs_one_more_fetch(fleet: Fleet, store_url: str, store_client: Redis) -> None:
    async with serve(Exchange.stall, FILE) as origin:
        with running(store_url, 1) as doomed:
            lost = asyncio.create_task(doomed.ask(origin, [0], 1))
            await origin.wait_for_requests(1)
            assert await store_client.exists(f"robots:{{{origin.url}}}:lease") == 1
            doomed.processes[0].kill()
            with pytest.raises(httpx.TransportError):
                await lost
        answers = await fleet.ask(origin, range(4), CALLERS)
        assert [answer["verdict"] for answer in answers] == ["disallow"] * CALLERS
        assert len(origin.requests) == 2


async def test_disconnecting_callers_fail_no_other_caller(fleet: Fleet, store_client: Redis) -> None:
    gate = Gate(FILE)
    async with serve(gate) as origin:
        leaving = [asyncio.create_task(fleet.ask(origin, [process], 10)) for process in range(4)]
        await origin.wait_for_requests(1)
        await store_client.config_resetstat()
        staying = asyncio.create_task(fleet.ask(origin, range(4), 20))
        await all_look_for_the_lease(store_client, 4)
        for task in leaving:
            task.cancel()
        await asyncio.wait(leaving)
        gate.open.set()
        assert [answer["verdict"] for answer in await staying] == ["disallow"] * 20
        assert len(origin.requests) == 1
