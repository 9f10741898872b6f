"""How a site feels a fleet: the pace that follows beside a fixed one and AutoThrottle. `make bench NAME=polite`.

Two processes of the service on one store give permits to the workers of each run; one of them is killed half way. All
runs go on at once, each in a pool of its own, so other load affects them alike. The sites are models: a page arrives
when a worker asks for it, and its time follows from the queue of the site. So a busy machine delays arrivals, but not
answers; the column `late` says by how much. Arrivals that bunch up make the site slower, and so the pace that follows:
compare rows only if `late` is far below an interval.

The first argument is the path of a picture, if one is to be drawn. From the environment: POLITE_SECONDS; POLITE_SITES,
the sites to crawl, such as `M/M/1,knee`; POLITE_RUNS, how often each way crawls a site of its own at once; and
POLITE_WORKERS of each caller.
"""

import asyncio
import json
import math
import os
import platform
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from app.store.embedded import serve
from tests.faults.loopback import web
from tests.faults.process import process
from tests.origins import text
from tests.pacing.crawler import Connection

SECONDS = float(os.environ.get("POLITE_SECONDS", "900"))
WARM = max(SECONDS / 3, min(360.0, SECONDS / 2))
"""Pages of this first part are not counted. Means go back a minute, and the crawl begins with a burst at the floor."""

RUNS = int(os.environ.get("POLITE_RUNS", "1"))

CALLERS, WORKERS, NAMES = 8, int(os.environ.get("POLITE_WORKERS", "3")), 20
"""Callers of each run, workers of each caller, and names of each site."""

FLOOR = 0.05
TICK = 0.002
UNLOADED = {"M/M/1": 0.599, "knee": 0.192, "refuses": 0.139}
"""Seconds: the 95th percentile of the time of a page that comes alone, by the model."""

BEST = {"M/M/1": 1 / 3.1, "knee": 1 / 6.0}
"""Seconds: the shortest fixed interval at which the 95th percentile is at most 1.5 times that, by simulation."""

SITES = os.environ.get("POLITE_SITES", ",".join(UNLOADED)).split(",")

SPAN = 20.0
"""Seconds over which the picture shows a rate."""


class Site:
    """A model of a site: `page` gives the seconds that a page takes which is asked for now, and its status."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self._random = random.Random(f"{kind} {seed}")
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
    """One way to crawl one site, and what came of it; `late` is how long after its slot each page was asked for."""

    way: str
    site: Site
    hosts: Sequence[str]
    pages: list[tuple[float, float, int]] = field(default_factory=list)
    slots: list[tuple[float, float]] = field(default_factory=list)
    late: list[float] = field(default_factory=list)

    async def fetch(self, go: float | None = None) -> tuple[float, int]:
        """Ask for a page, whose slot began at `go`; return its seconds and status."""
        now = time.time()
        elapsed, status = self.site.page(now)
        self.pages.append((now, elapsed, status))
        if go is not None:
            self.late.append(now - go)
        await asyncio.sleep(elapsed)
        return elapsed, status

    @property
    def close(self) -> int:
        """How many slots began before the one before them was over."""
        return sum(later < go + interval - TICK for (go, interval), (later, _) in pairwise(sorted(self.slots)))


def row(runs: Sequence[Run], begun: float, span: float) -> str:
    """What came of the runs of one way to crawl one site, as a row of a table."""
    counted = [page for run in runs for page in run.pages if begun + WARM <= page[0] < begun + WARM + span]
    good = [elapsed for _, elapsed, status in counted if status == 200]
    kind = runs[0].site.kind
    p95 = statistics.quantiles(good, n=20)[-1] if len(good) > 1 else math.nan
    intervals = [length for run in runs for go, length in run.slots if begun + WARM <= go < begun + WARM + span]
    late = [late for run in runs for late in run.late]
    cells = [
        kind,
        runs[0].way,
        f"{p95 / UNLOADED[kind]:.2f}",
        f"{len(good) / span / len(runs):.2f}",
        f"{sum(status != 200 for _, _, status in counted) / max(1, len(counted)):.2%}",
        f"{sum(run.close for run in runs)} of {sum(len(run.slots) for run in runs)}" if intervals else "",
        f"{statistics.mean(intervals):.3f} s" if intervals else "",
        f"{sum(intervals) / span / len(runs):.0%}" if intervals else "",
        f"{statistics.quantiles(late, n=20)[-1] * 1000:.0f} ms" if len(late) > 1 else "",
    ]
    return f"| {' | '.join(cells)} |"


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
        await asyncio.sleep(max(0.0, go - time.time()))
        elapsed, status = await run.fetch(go)
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


def ways(kind: str) -> Mapping[str, float | None]:
    """How to crawl a site: the name, and the interval of a fixed pace."""
    if kind in BEST:
        return {"follows": None, f"fixed, {1 / BEST[kind]:.1f} a second": BEST[kind], "AutoThrottle": None}
    return {"follows": None, "fixed, 5 a second": 0.2}


async def measured(store: str, directory: Path, picture: Path | None) -> None:
    """Run all, and print the table."""
    async with web(text(404)) as sites:
        runs, lines, pools = list[Run](), list[str](), ["[pools]"]
        for kind in SITES:
            for way, interval in ways(kind).items():
                for number in range(RUNS):
                    hosts = [sites.new() for _ in range(NAMES)]
                    addresses = [host.split("/")[2].split(":")[0] for host in hosts]
                    pools.append(f"run{len(runs)} = {json.dumps(addresses)}")
                    if interval is not None:
                        lines += [f'"{address}" = {{floor = {interval:.4f}}}' for address in addresses]
                    runs.append(Run(way, Site(kind, number), hosts))
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
    span = time.time() - begun - WARM
    print(f"{CALLERS} callers of {WORKERS} workers, {NAMES} names, {RUNS} runs each; {SECONDS:.0f} s, of which the")
    print(f"first {WARM:.0f} are not counted; load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores")
    print("\n| site | pace | p95, times unloaded | pages a second | refused | too close | interval | used | late |")
    print("|---|---|---|---|---|---|---|---|---|")
    groups = [list(those) for _, those in groupby(runs, lambda run: (run.site.kind, run.way))]
    for those in groups:
        print(row(those, begun, span))
    if picture is not None:
        draw([those[0] for those in groups], begun, picture)


def draw(runs: Sequence[Run], begun: float, picture: Path) -> None:
    """The good pages a second over time, one plot for each site."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.4 * len(SITES)), layout="constrained")
    plots = figure.subplots(len(SITES), 1, sharex=True, squeeze=False)[:, 0]
    for kind, plot in zip(SITES, plots, strict=True):
        for run in runs:
            if run.site.kind == kind:
                counts = [0] * int(SECONDS // SPAN)
                for at, _, status in run.pages:
                    if status == 200 and at - begun < len(counts) * SPAN:
                        counts[int((at - begun) // SPAN)] += 1
                instants = [(number + 0.5) * SPAN / 60 for number in range(len(counts))]
                plot.plot(instants, [count / SPAN for count in counts], label=run.way, linewidth=1.5)
        plot.set_title(kind, fontsize=11)
        plot.set_ylabel("good pages a second")
        plot.set_ylim(bottom=0)
        plot.grid(visible=True, color="#dddddd", linewidth=0.6)
        plot.legend(frameon=False, ncols=3, fontsize=9)
    plots[-1].set_xlabel("minutes")
    figure.savefig(picture, dpi=80)


def main(picture: Path | None = None) -> None:
    """Measure with a dedicated server, and draw the picture."""
    print(f"{datetime.now():%Y-%m-%d}, {platform.python_implementation()} {platform.python_version()}")  # noqa: DTZ005
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as directory, serve(None) as store:
        asyncio.run(measured(store, Path(directory), picture))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
