"""Consumers, services and masters of the store are killed, and a group still gets every change."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import httpx
import pytest
from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError

from app.history.change_groups import OLDEST, RedisChangeGroups
from app.history.redis_changes import STREAM
from app.redis.connect import connect
from app.redis.guarded_client import TIMEOUT, GuardedClient, StoreDown
from tests.engines import Fleet, Node, cluster_url, clustered, sentinel_url, watched
from tests.faults.until import until
from tests.history.feed import add_changes, end_leases
from tests.service_process import ROOT, started

GROUP = "index"


def leased(service: str) -> list[str]:
    response = httpx.get(f"{service}/v1/changes", params={"group": GROUP}, timeout=60)
    assert response.status_code == 200, response.text
    return [json.loads(line)["id"] for line in response.text.splitlines()]


def acknowledged(service: str, ids: list[str]) -> int:
    body = {"group": GROUP, "ids": ids}
    response = httpx.post(f"{service}/v1/changes/acknowledgements", json=body, timeout=60)
    return int(response.json()["acknowledged"])


async def test_changes_of_a_killed_consumer_go_to_another(store_url: str, store_client: Redis) -> None:
    added = await add_changes(store_client, 5)
    with started(REDIS_URL=store_url) as service:
        command = [sys.executable, "-m", "tests.history.consumer", service.url, GROUP]
        consumer = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        assert consumer.stdout is not None
        read = (await consumer.stdout.readline()).decode().split()
        consumer.kill()
        await consumer.wait()
        assert read == added[:2]
        assert leased(service.url) == added[2:]
        assert acknowledged(service.url, added[2:4]) == 2
        service.signal(signal.SIGKILL)
    await end_leases(store_client, GROUP)
    with started(REDIS_URL=store_url) as service:
        assert leased(service.url) == [*added[:2], added[4]]
        assert acknowledged(service.url, added) == 3
        await end_leases(store_client, GROUP)
        assert leased(service.url) == []


@contextmanager
def sentinels() -> Iterator[tuple[Fleet, str, Node]]:
    with watched(3, 1) as fleet:
        yield fleet, sentinel_url(fleet), fleet.masters[0]


@contextmanager
def cluster() -> Iterator[tuple[Fleet, str, Node]]:
    with clustered(1) as fleet:
        yield fleet, cluster_url(fleet), fleet.masters[key_slot(STREAM.encode()) * len(fleet.masters) // 16384]


@pytest.mark.parametrize("engine", [sentinels, cluster])
async def test_a_group_survives_the_loss_of_a_master(
    engine: Callable[[], AbstractContextManager[tuple[Fleet, str, Node]]],
) -> None:
    with engine() as (fleet, url, master):
        client = connect(url)
        patient, hasty = (
            RedisChangeGroups(GuardedClient(client, monotonic=time.monotonic, timeout=timeout))
            for timeout in (20, TIMEOUT)
        )
        found: list[str] = []
        later: list[str] = []

        async def add() -> list[str]:
            with suppress(RedisError, OSError):
                later.extend(await add_changes(client, 2))
            return later

        async def read_on() -> set[str]:
            with suppress(StoreDown, RedisError, OSError):
                await end_leases(client, GROUP)  # also of changes in answers that were lost
                leased = [id_ for id_, _ in await hasty.lease(GROUP, 100)]
                found.extend(map(str, leased))
                await hasty.acknowledge(GROUP, leased)
            return set(found)

        try:
            added = await add_changes(client, 5)
            processed = [id_ for id_, _ in await patient.lease(GROUP, 2, OLDEST)]
            assert await patient.acknowledge(GROUP, processed) == 2
            leased = [str(id_) for id_, _ in await patient.lease(GROUP, 1)]
            fleet.copied()
            master.kill()
            await until(add, bool)
            await until(read_on, set(later).issubset)
        finally:
            await client.aclose()
        assert leased == added[2:3]
        assert {*added[2:], *later} <= set(found)
        assert set(found).isdisjoint(added[:2])
