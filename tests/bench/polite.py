"""How a site feels a fleet: the pace that follows beside a fixed one and per-worker AutoThrottle. `make bench-polite`.

Two processes of the service on one store give permits to the workers of each run; one of them is killed half way. All
runs go on at once, each in a pool of its own, so other load affects them alike. The sites are models: a page arrives
when a worker asks for it, and its time follows from the queue of the site. So the machine delays arrivals, but not
answers.
"""

import asyncio
import json
import os
import platform
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from app.redis.embedded import serve
from tests.faults.loopback import web
from tests.faults.process import process
from tests.origins import text
from tests.pacing.crawler import Connection

SECONDS = float(os.environ.get("POLITE_SECONDS", "900"))
WARM = SECONDS / 3
"""Pages of this first part are not counted."""

CALLERS, WORKERS, NAMES = 8, 3, 20
"""Callers of each run, workers of each caller, and names of each site."""

FLOOR = 0.05
TICK = 0.002
UNLOADED = {"M/M/1": 0.599, "knee": 0.192, "refuses": 0.139}
"""Seconds: the 95th percentile of the time of a page that comes alone, by the model."""

BEST = {"M/M/1": 1 / 3.1, "knee": 1 / 6.0}
"""Seconds: the shortest fixed interval at which the 95th percentile is at most 1.5 times that, by simulation."""


class Site:
    """A model of a site: `page` gives the seconds that a page takes which is asked for now, and its status."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._random = random.Random(kind)
        self._free = self._filled_at = 0.0
        self._tokens = 8.0

    def page(self, now: float) -> tuple[float, int]:
        match self.kind:
            case "M/M/1":  # 5 pages a second at most
                self._free = max(now, self._free) + self._random.expovariate(5)
                return self._free - now, 200
            case "knee":  # 0.15 s up to 6 pages a second
                begin = max(now, self._free)
                self._free = begin + 1 / 6
                return begin - now + 0.15 * self._random.lognormvariate(0, 0.15), 200
            case _:  # 0.1 s; more than 4 pages a second, and 8 in a burst, are refused
                self._tokens = min(8.0, self._tokens + (now - self._filled_at) * 4)
                self._filled_at = now
                if self._tokens < 1:
                    return 0.02, 503
                self._tokens -= 1
                return 0.1 * self._random.lognormvariate(0, 0.2), 200


@dataclass
class Run:
    """One way to crawl one site, and what came of it."""

    way: str
    site: Site
    hosts: Sequence[str]
    pages: list[tuple[float, float, int]] = field(default_factory=list)
    slots: list[tuple[float, float]] = field(default_factory=list)
    bounds: dict[str, int] = field(default_factory=dict)

    async def fetch(self) -> tuple[float, int]:
        """Ask for a page; return its seconds and status."""
        now = time.time()
        elapsed, status = self.site.page(now)
        self.pages.append((now, elapsed, status))
        await asyncio.sleep(elapsed)
        return elapsed, status

    def row(self, begun: float) -> str:
        """The result, as a row of a table."""
        counted = [page for page in self.pages if page[0] >= begun + WARM]
        good = [elapsed for _, elapsed, status in counted if status == 200]
        span = time.time() - begun - WARM
        p95 = statistics.quantiles(good, n=20)[-1] if len(good) > 1 else float("nan")
        taken = sorted(self.slots)
        close = sum(later < go + interval - TICK for (go, interval), (later, _) in pairwise(taken))
        refused = sum(status != 200 for _, _, status in counted)
        return (
            f"| {self.site.kind} | {self.way} | {p95 / UNLOADED[self.site.kind]:.2f} | {len(good) / span:.2f} "
            f"| {refused / max(1, len(counted)):.2%} | {len(taken)} | {close} |"
        )


class Service:
    """A worker's connections to the processes of the service; the other one is asked if one is gone."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._connections = [Connection(url) for url in urls]

    async def post(self, path: str, body: object) -> Any:
        for _ in range(20):
            try:
                status, answer = await self._connections[0].ask("POST", path, body)
            except (OSError, asyncio.IncompleteReadError):
                self._connections.reverse()
                continue
            if status == 200:
                return json.loads(answer)
            await asyncio.sleep(0.5)
        raise RuntimeError(f"{path} was not answered")


async def paced(run: Run, service: Service, caller: str, *, reports: bool) -> None:
    """A worker that asks for permits, and reports its pages if `reports`; 429 and 503 in any case."""
    pick = random.Random(caller)
    while True:
        url = f"{pick.choice(run.hosts)}/page"
        permit = await service.post(
            "/v1/permits", {"url": url, "agent": "ExampleBot", "caller": caller, "max_wait": 10}
        )
        if permit["permit"] is None:
            await asyncio.sleep(permit["retry_after"] or 1.0)
            continue
        go = datetime.fromisoformat(permit["go_at"]).timestamp()
        run.slots.append((go, permit["interval"]))
        run.bounds[permit["bound"]] = run.bounds.get(permit["bound"], 0) + 1
        await asyncio.sleep(max(0.0, go - time.time()))
        elapsed, status = await run.fetch()
        if reports or status != 200:
            outcome = {"status": status, **({"elapsed": elapsed} if reports else {})}
            await service.post("/v1/permits/outcomes", {"items": [{"permit": permit["permit"], **outcome}]})


async def auto_throttled(run: Run) -> None:
    """A worker with a delay of its own, by Scrapy's rule with a target of one request at a time."""
    delay = 5.0
    await asyncio.sleep(random.random() * delay)
    while True:
        elapsed, status = await run.fetch()
        new = min(max(elapsed, (delay + elapsed) / 2), 60.0)
        if status == 200 or new > delay:
            delay = new
        await asyncio.sleep(delay)


async def crawl(runs: Sequence[Run], urls: Sequence[str], kill: Callable[[], None]) -> float:
    """Crawl all sites; return when it began."""
    begun, tasks = time.time(), []
    for run in runs:
        for caller in range(CALLERS):
            for _ in range(WORKERS):
                if run.way == "AutoThrottle":
                    tasks.append(asyncio.create_task(auto_throttled(run)))
                    continue
                service = Service(urls if caller % 2 else urls[::-1])
                tasks.append(
                    asyncio.create_task(paced(run, service, f"crawler-{caller}", reports=run.way == "follows"))
                )
    done, _ = await asyncio.wait(tasks, timeout=SECONDS / 2, return_when=asyncio.FIRST_EXCEPTION)
    if not done:
        kill()
        done, _ = await asyncio.wait(tasks, timeout=SECONDS / 2, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
    return begun


async def measured(store: str, directory: Path) -> None:
    """Run all, and print the table."""
    async with web(text(404)) as sites:

        def run(way: str, kind: str) -> Run:
            return Run(way, Site(kind), [sites.new() for _ in range(NAMES)])

        runs = [run(way, kind) for kind in BEST for way in ("follows", "best fixed pace", "AutoThrottle")]
        runs += [run(way, "refuses") for way in ("follows", "fixed, 0.2 s")]
        lines, pools = [], ["[pools]"]
        for number, one in enumerate(runs):
            addresses = [host.split("/")[2].split(":")[0] for host in one.hosts]
            pools.append(f"run{number} = {json.dumps(addresses)}")
            interval = {"best fixed pace": BEST.get(one.site.kind), "fixed, 0.2 s": 0.2}.get(one.way)
            lines += [f'"{address}" = {{floor = {interval:.4f}}}' for address in addresses if interval is not None]
        table = directory / "recheck.toml"
        table.write_text("\n".join([*lines, *pools]) + "\n")
        settings = {
            "REDIS_URL": store,
            "RECHECK_FILE": str(table),
            "PACE_FLOOR": str(FLOOR),
            "PACE_INSTANCES": "2",
            "ACCESS_LOG": "false",
        }
        with process(**settings) as one_process, process(**settings) as other:
            urls = [one_process.wait_ready(), other.wait_ready()]
            begun = await crawl(runs, urls, lambda: os.kill(other.pid, signal.SIGKILL))
        print(
            f"{CALLERS} callers of {WORKERS} workers, {NAMES} names each, {SECONDS:.0f} s, the first third not counted"
        )
        print("\n| site | pace | p95, times unloaded | pages a second | refused | slots | too close |")
        print("|---|---|---|---|---|---|---|")
        for one in runs:
            print(one.row(begun))


def main() -> None:
    """Measure with a dedicated server."""
    print(f"{datetime.now():%Y-%m-%d}, {platform.python_implementation()} {platform.python_version()}")  # noqa: DTZ005
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as directory, serve(None) as store:
        asyncio.run(measured(store, Path(directory)))


if __name__ == "__main__":
    main()
