"""The hosts of a pool share one pace through the death of a process and a fail-over."""

import asyncio
import json
import random
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from app.pacing.membership import AGREED_AFTER, ANNOUNCE_INTERVAL
from tests.engines import sentinel_url, watched
from tests.faults.loopback import web
from tests.faults.until import until_so
from tests.forked import ForkedService
from tests.origins import text
from tests.pacing.crawler import Connection

PROCESSES = 3
FLOORS = (0.05, 0.1, 0.2)
"""Seconds: the floor of each host of the pool."""

ELAPSED = 0.06
"""Seconds that every page takes, so that 0.072 s is the least interval."""

TICK = 0.002


class Taken(NamedTuple):
    """A slot: when it begins, and how long it lasts by the answer; `degraded`: it was given without the store."""

    go_at: float
    interval: float
    bound: str
    degraded: bool

    @property
    def lasts(self) -> float:
        """Without the store, a process takes one slot of each PROCESSES."""
        return self.interval / PROCESSES if self.degraded else self.interval


class Crawl:
    """Workers that fetch pages of all hosts, and ask another process when theirs is gone."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts = hosts
        self.taken: list[Taken] = []
        self.pools: set[str] = set()
        self.enough = asyncio.Event()

    def count(self, since: int, **members: object) -> int:
        """How many slots there were after the first `since`, with these members."""
        return sum(all(getattr(slot, name) == value for name, value in members.items()) for slot in self.taken[since:])

    async def work(self, services: Sequence[str]) -> None:
        connections = [Connection(url) for url in services]

        async def post(path: str, body: object) -> Any:
            for _ in range(100):
                try:
                    status, answer = await connections[0].ask("POST", path, body)
                except (OSError, asyncio.IncompleteReadError):
                    connections.append(connections.pop(0))
                    continue
                if status == 200:
                    return json.loads(answer)
                await asyncio.sleep(0.1)
            raise AssertionError(f"{path} was not answered")

        async def page() -> None:
            url = f"{random.choice(self.hosts)}/page"
            permit = await post("/v1/permits", {"url": url, "agent": "ExampleBot", "max_wait": 2})
            self.pools.add(permit["pool"])
            if permit["permit"] is None:
                await asyncio.sleep(permit["retry_after"] or 0.1)
                return
            go_at = datetime.fromisoformat(permit["go_at"]).timestamp()
            self.taken.append(Taken(go_at, permit["interval"], permit["bound"], permit["degraded"]))
            await asyncio.sleep(permit["wait"] + ELAPSED)
            done = {"permit": permit["permit"], "status": 200, "elapsed": ELAPSED}
            await post("/v1/permits/outcomes", {"items": [done]})

        try:
            while not self.enough.is_set():
                await page()
        finally:
            for connection in connections:
                connection.close()

    @property
    def too_close(self) -> list[tuple[Taken, Taken]]:
        return [
            (one, next_) for one, next_ in pairwise(sorted(self.taken)) if next_.go_at < one.go_at + one.lasts - TICK
        ]


async def test_no_slot_of_a_pool_is_too_close_when_process_and_master_die(tmp_path: Path) -> None:
    table = tmp_path / "recheck.toml"
    with watched(1, 1) as fleet, ExitStack() as stack:
        async with web(text(404)) as sites:
            hosts = [sites.new() for _ in FLOORS]
            addresses = [host.split("/")[2].split(":")[0] for host in hosts]
            floors = [f'"{address}" = {{floor = {floor}}}' for address, floor in zip(addresses, FLOORS, strict=True)]
            table.write_text("\n".join([*floors, "[pools]", f"shop = {json.dumps(addresses)}"]) + "\n")
            settings = {"RECHECK_FILE": str(table), "PACE_FLOOR": "0.01", "PACE_INSTANCES": str(PROCESSES)}
            processes = [ForkedService(sentinel_url(fleet), "app.__main__", **settings) for _ in range(PROCESSES)]
            for process in processes:
                stack.callback(process.kill)
            urls = [process.listen() for process in processes]
            crawl = Crawl(hosts)
            async with asyncio.TaskGroup() as group:
                for number in range(2 * PROCESSES):
                    at = number % PROCESSES
                    group.create_task(crawl.work([*urls[at:], *urls[:at]]))
                await until_so(lambda: crawl.count(0, bound="latency") >= 20)
                # Without the store, a process gives no slots before the fleet has agreed on ranks.
                await asyncio.sleep(AGREED_AFTER + 2 * ANNOUNCE_INTERVAL)
                before = len(crawl.taken)
                processes[0].die()
                await until_so(lambda: crawl.count(before) >= 20)
                fleet.copied()
                fleet.replicas[0].stop()  # so that it does not take over for now
                fleet.masters[0].kill()
                await until_so(lambda: crawl.count(0, degraded=True) >= 10)
                fleet.replicas[0].process.resume()
                before = len(crawl.taken)
                await until_so(lambda: crawl.count(before, degraded=False) >= 20)
                crawl.enough.set()
    assert crawl.pools == {"pool:shop"}
    assert crawl.too_close == []
