"""Draw the dashboard's panels for the documentation, from a real Prometheus: `make generate NAME=dashboard`.

Two services answer a crawl of a few origins for SECONDS while Prometheus scrapes them. Then each panel sends its own
query, as in Grafana. Grafana itself takes no part: the picture has what its panels show, and not its looks.
Prometheus is the one in PATH, or that of `make check NAME=deploy`.
"""

import asyncio
import json
import random
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from app.store.embedded import serve
from tests.cli.serving import service
from tests.docs.examples import ROOT
from tests.operator_token import TOKEN_HEADER
from tests.origins import Exchange, text
from tests.origins import serve as serve_origin

DASHBOARD = ROOT / "deploy" / "helm" / "robots-decisions" / "files" / "dashboard.json"

SECONDS = 180
"""For how long the services are asked."""

ROWS = ("Overview", "Decisions", "Fetches")
"""The rows of panels that are drawn."""

_VARIABLES = {"$namespace": ".*", "$instance": ".*", "$__rate_interval": "20s"}
_STEP = 2
_RULES = "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n"


class Line(NamedTuple):
    """A line of a panel: its legend, and its points as seconds since the start and values."""

    legend: str
    seconds: list[float]
    values: list[float]


async def slow(exchange: Exchange) -> None:
    """Answer after a moment, as sites far away do."""
    await asyncio.sleep(random.expovariate(2))
    await exchange.send(text(200, _RULES))


@asynccontextmanager
async def prometheus(targets: list[str]) -> AsyncIterator[httpx.AsyncClient]:
    """A Prometheus that scrapes the targets every second."""
    binary = shutil.which("prometheus") or str(ROOT / "build" / "deploy" / "prometheus" / "usr" / "bin" / "prometheus")
    with TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as free:
        address = "{}:{}".format(*free.getsockname())
        free.close()
        config = configuration(Path(folder), targets)
        arguments = (f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}")
        process = await asyncio.create_subprocess_exec(binary, *arguments, "--log.level=error")
        try:
            async with httpx.AsyncClient(base_url=f"http://{address}", timeout=30) as client:
                yield client
        finally:
            process.terminate()
            await process.wait()


def configuration(folder: Path, targets: list[str]) -> Path:
    """The configuration of such a Prometheus, as a file."""
    static = [
        {"targets": [target], "labels": {"namespace": "robots", "pod": f"pod-{number}"}}
        for number, target in enumerate(targets)
    ]
    scraping = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "robots", "static_configs": static}],
    }
    path = folder / "prometheus.yml"
    path.write_text(json.dumps(scraping))  # which is YAML, too
    return path


async def crawl(url: str, origins: list[str], seconds: float) -> None:
    """Ask a service about pages of the origins, more often about the first ones, at a pace that rises and falls."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    async with httpx.AsyncClient(base_url=url, headers=TOKEN_HEADER, timeout=60) as client:
        while (passed := loop.time() - begin) < seconds:
            if random.random() < 0.02:  # so that it is fetched again
                await client.delete("/v1/robots", params={"url": random.choice(origins)})
            origin = origins[min(int(random.expovariate(0.7)), len(origins) - 1)]
            path = random.choice(("/", "/a", "/b", "/private/c"))
            await client.get("/v1/allowed", params={"url": origin + path, "agent": "ExampleBot", "wait": 10})
            await asyncio.sleep(0.05 + 0.1 * abs(passed / seconds - 0.5))


async def measured(seconds: float) -> dict[str, list[Line]]:
    """The lines of each panel of ROWS, by its title, after a crawl of so many seconds."""
    async with AsyncExitStack() as stack:
        store_url = stack.enter_context(serve(None))
        urls = [await stack.enter_async_context(service(store_url, MIN_REFETCH_SECONDS="1")) for _ in range(2)]
        replies = (text(200, _RULES), slow, text(404), text(200, "User-agent: *\nDisallow: /\n"), slow, text(503), b"")
        origins = [(await stack.enter_async_context(serve_origin(reply))).url for reply in replies]
        client = await stack.enter_async_context(prometheus([url.removeprefix("http://") for url in urls]))
        await asyncio.gather(*(crawl(url, origins, seconds) for url in urls * 4))
        now = float((await client.get("/api/v1/query", params={"query": "time()"})).json()["data"]["result"][1])
        found: dict[str, list[Line]] = {}
        for panel in panels():
            lines = [await asked(client, target, now - seconds, now) for target in panel["targets"]]
            found[panel["title"]] = [line for some in lines for line in some]
        return found


async def asked(client: httpx.AsyncClient, target: Mapping[str, str], start: float, end: float) -> list[Line]:
    """What the query of a target gives, as Grafana would ask for it."""
    query = target["expr"]
    for name, value in _VARIABLES.items():
        query = query.replace(name, value)
    parameters: dict[str, str | float] = {"query": query, "start": start, "end": end, "step": _STEP}
    answer = (await client.get("/api/v1/query_range", params=parameters)).json()
    assert answer["status"] == "success", answer
    lines = []
    for series in answer["data"]["result"]:
        legend = target.get("legendFormat", "")
        for name, value in series["metric"].items():
            legend = legend.replace(f"{{{{{name}}}}}", value)
        points = [(float(at) - start, float(value)) for at, value in series["values"] if value != "NaN"]
        lines.append(Line(legend, [at for at, _ in points], [value for _, value in points]))
    return lines


def panels() -> list[dict[str, Any]]:
    """The panels of ROWS, in order."""
    found, row = [], ""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
        elif row in ROWS:
            found.append(panel)
    return found


def draw(lines: Mapping[str, list[Line]], path: Path) -> None:
    """Write a PNG of the panels, in the rows of the dashboard's grid; numbers need less height than graphs."""
    rows = [list(row) for _, row in groupby(panels(), key=lambda panel: panel["gridPos"]["y"])]
    heights = [0.9 if row[0]["type"] == "stat" else 2.1 for row in rows]
    figure = Figure(figsize=(12.8, sum(heights)), dpi=100, layout="constrained")
    grid = figure.add_gridspec(len(rows), 1, height_ratios=heights)
    for number, row in enumerate(rows):
        cells = grid[number].subgridspec(1, len(row), width_ratios=[panel["gridPos"]["w"] for panel in row])
        for column, panel in enumerate(row):
            axes = figure.add_subplot(cells[column])
            axes.set_title(panel["title"], fontsize=9, loc="left", fontweight="bold")
            unit = panel["fieldConfig"]["defaults"].get("unit", "none")
            (_number if panel["type"] == "stat" else _graph)(axes, lines[panel["title"]], unit)
    figure.savefig(path)


def _number(axes: Axes, lines: list[Line], unit: str) -> None:
    axes.set_axis_off()
    value = lines[0].values[-1] if lines and lines[0].values else 0.0
    shown = {"percentunit": f"{value:.1%}", "reqps": f"{value:.0f}/s"}.get(unit, f"{value:.0f}")
    axes.text(0.5, 0.5, shown, ha="center", va="center", fontsize=22, color="#2a7f4f", transform=axes.transAxes)


def _graph(axes: Axes, lines: list[Line], unit: str) -> None:
    for line in lines:
        axes.plot(line.seconds, line.values, linewidth=1.1, label=line.legend[:34])
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.grid(visible=True, linewidth=0.4)
    axes.tick_params(labelsize=7)
    axes.xaxis.set_major_formatter(lambda seconds, _: f"{seconds / 60:g} min")
    axes.set_xticks(range(0, SECONDS + 1, 60))
    suffix = {"reqps": "/s", "s": " s"}.get(unit, "")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}{suffix}")
    if any(line.legend for line in lines):
        axes.legend(fontsize=6.5, loc="upper right", framealpha=0.7)


def main() -> None:
    """Write the PNG that the argument names."""
    draw(asyncio.run(measured(SECONDS)), Path(sys.argv[1]))


if __name__ == "__main__":
    main()
