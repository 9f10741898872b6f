"""Crowds that ask for permits by the real service and store: `python -m tests.bench.crowd [NAME ...]`.

Each crowd crawls a site of its own for CROWD_SECONDS, from PROCESSES processes; all that are named run at once, so that
other load affects them alike. A row says how many calls a page took, the share of the pace that was used, how many
pages the workers that had the fewest and the most got, the longest wait for one in intervals, the share of the first
key, the wait of a newcomer that comes after a third of the time, and slots that are too close. The last lines are the
CPU time of the services and of the store for a page, what of the latter is in scripts, and what the store takes when
nobody asks.

With CROWD_FAULTS=1, `kill -9` ends one of three services after a third of the time, and the master of the store after
two thirds: a replica takes over.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import Redis

from app.auth.keys import new_key
from app.store.connect import connect
from app.store.embedded import serve
from tests.bench.pace import store_cpu
from tests.engines import sentinel_url, watched
from tests.forked import ForkedService
from tests.origins import serve as origin
from tests.origins import text

SECONDS = float(os.environ.get("CROWD_SECONDS", "120"))
FAULTS = os.environ.get("CROWD_FAULTS") == "1"
PROCESSES = 8
IDLE = 5.0
TICK = 0.002
TRIP = 0.3
"""Seconds that a page takes."""


@dataclass(frozen=True)
class Crowd:
    """Workers of each key, which wait `max_wait` seconds at most.

    `quits` is the chance that one that was refused never comes back. `invented`: a worker names itself anew for
    each page. There are `sites` alike, each with such workers, whose figures are added up.
    """

    interval: float
    keys: tuple[int, ...]
    max_wait: float = 10.0
    quits: float = 0.0
    invented: bool = False
    newcomer: bool = False
    sites: int = 1


CROWDS = {
    "50": Crowd(1, (50,)),
    "200": Crowd(1, (200,)),
    "50-slow": Crowd(10, (50,)),
    "8-slow": Crowd(10, (8,), sites=5),
    "200-slow": Crowd(10, (200,)),
    "50-patient": Crowd(1, (50,), 300),
    "50-fast": Crowd(0.05, (50,)),
    "two-keys": Crowd(1, (1, 100)),
    "two-keys-slow": Crowd(10, (1, 100)),
    "two-crowds": Crowd(1, (50, 100)),
    "invented": Crowd(1, (1, 1000), invented=True),
    "quitters": Crowd(1, (50,), quits=0.1),
    "quitters-slow": Crowd(20, (50,), 3, quits=0.1),
    "newcomer": Crowd(1, (50,), newcomer=True),
    "newcomer-slow": Crowd(10, (20,), newcomer=True),
    "60": Crowd(60, (10,), sites=10),
    "60-two": Crowd(60, (5, 5), sites=10),
    "60-quitters": Crowd(60, (10,), quits=0.1, sites=10),
    "60-two-quitters": Crowd(60, (5, 5), quits=0.1, sites=10),
}


async def ask(streams: Any, host: str, key: str, body: object) -> Any:
    """The answer to a request for a permit."""
    reader, writer = streams
    content = json.dumps(body).encode()
    head = f"POST /v1/permits HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    received = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(received.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return json.loads(await reader.readexactly(length))


async def work(
    urls: Sequence[str], key: str, name: str, page: str, crowd: Crowd, late: float, found: list[Any]
) -> None:
    """A worker, which asks the next service if one does not answer.

    What it finds: its name, when it first asked, its calls, and when its slot began; or no slot yet.
    """
    dice, parts = Random(name + page), [urlsplit(url) for url in urls]
    await asyncio.sleep(late)
    streams, number, used = None, 0, 0.0
    entry: list[Any] = [name, time.time(), 0, 0.0]
    found.append(entry)
    while True:
        caller = f"{name}.{number}" if number else name
        body = {"url": page, "agent": "CrowdBot", "max_wait": crowd.max_wait, "caller": caller}
        try:
            if streams is None or time.time() - used > 3:
                streams = await asyncio.open_connection(parts[0].hostname, parts[0].port)
            answer = await ask(streams, parts[0].netloc, key, body)
        except (OSError, asyncio.IncompleteReadError):
            streams, parts = None, [*parts[1:], parts[0]]
            await asyncio.sleep(0.1)
            continue
        used = time.time()
        entry[2] += 1
        if answer.get("permit"):
            go = datetime.fromisoformat(answer["go_at"]).timestamp()
            entry[3] = go
            await asyncio.sleep(max(0.0, go - time.time()) + TRIP)
            entry = [name, time.time(), 0, 0.0]
            found.append(entry)
            number += crowd.invented
        elif dice.random() < crowd.quits:
            number += 1
            await asyncio.sleep(dice.random() * 20 * crowd.interval)
            entry[1] = time.time()
        else:
            await asyncio.sleep(answer.get("retry_after") or 1.0)


async def worker_process() -> None:
    """Workers of all crowds, as a line of JSON says, from the next line on; print what they found as JSON."""
    config = json.loads(sys.stdin.readline())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    found: dict[str, list[list[Any]]] = {}
    tasks = []
    for at, (crowd, site, key, number, late) in enumerate(config["workers"]):
        name, first = f"{key}-w{number}", at % len(config["services"])
        urls = config["services"][first:] + config["services"][:first]
        page, entries = config["pages"][crowd][site], found.setdefault(f"{crowd} {site}", [])
        tasks.append(asyncio.create_task(work(urls, config["keys"][key], name, page, CROWDS[crowd], late, entries)))
    done, _ = await asyncio.wait(tasks, timeout=config["seconds"], return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
    sys.stdout.write(json.dumps(found))


def row(name: str, crowd: Crowd, sites: Sequence[Sequence[Sequence[Any]]], begun: float, end: float) -> str:
    """What came of a crowd at its sites, without the first sixth of the time."""
    warm = begun + (end - begun) / 6
    close = 0
    for found in sites:
        goes = sorted(go for *_, go in found if go)
        close += sum(later < go + crowd.interval - TICK for go, later in pairwise(goes))
    entries = [(f"{who} {site}", *rest) for site, found in enumerate(sites) for who, *rest in found]
    counted = [who for who, _, _, go in entries if warm <= go < end]
    pages = max(1, len(counted))
    calls = sum(calls for _, asked, calls, _ in entries if asked >= warm)
    waits = [(min(go, end) if go else end) - asked for _, asked, _, go in entries if asked >= warm]
    by_worker = Counter({who: 0 for who, *_ in entries})
    by_worker.update(counted)
    new = [go - asked for who, asked, _, go in entries if who.startswith("k0-wnew") and go][:1]
    cells = [
        name,
        f"{calls / pages:.2f}",
        f"{len(counted) * crowd.interval / (end - warm) / len(sites):.3f}",
        f"{min(by_worker.values())} to {max(by_worker.values())}",
        f"{max(waits, default=0) / crowd.interval:.0f}",
        f"{sum(who.startswith('k0-') for who in counted) / pages:.2f}" if len(crowd.keys) > 1 else "",
        f"{new[0] / crowd.interval:.0f}" if new else "",
        f"{close} of {sum(1 for *_, go in entries if go)}",
    ]
    return f"| {' | '.join(cells)} |"


async def scripts_of(client: Redis) -> tuple[float, int]:
    """The seconds that the store has spent in scripts, and how many of them it ran."""
    stats = (await client.info("commandstats")).get("cmdstat_evalsha", {"usec": 0, "calls": 0})
    return stats["usec"] / 1e6, stats["calls"]


async def main(names: Sequence[str]) -> None:
    """Run the crowds of these names, or all."""
    names = names or list(CROWDS)
    keys, lines = zip(*(new_key(f"k{number}") for number in range(2)), strict=True)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        keys_file = Path(folder, "keys.toml")
        keys_file.touch(mode=0o600)  # noqa: ASYNC240 - nothing else runs yet
        keys_file.write_text("\n".join(lines))  # noqa: ASYNC240 - nothing else runs yet
        pages: dict[str, list[str]] = {name: [] for name in names}
        for name in names:
            robots = text(200, f"User-agent: *\nCrawl-delay: {CROWDS[name].interval}\n")
            for _ in range(CROWDS[name].sites):
                pages[name].append(f"{(await stack.enter_async_context(origin(robots))).url}/page")
        kills, count = list[Callable[[], None]](), 2
        if FAULTS:
            fleet, count = stack.enter_context(watched(1, 1)), 3
            store_url = sentinel_url(fleet)
            kills.append(fleet.masters[0].kill)
        else:
            store_url = stack.enter_context(serve(None))
        settings = {"API_KEYS_FILE": str(keys_file), "PACE_FLOOR": "0.05", "PACE_BY": "origin"}
        services = [ForkedService(store_url, PACE_INSTANCES=str(count), **settings) for _ in range(count)]
        for service in services:
            stack.callback(service.kill)
        urls = [service.listen() for service in services]
        client = connect(store_url)
        assert isinstance(client, Redis)
        stack.push_async_callback(client.aclose)
        await crawl(names, pages, keys, services, urls, client, [services[-1].die, *kills] if FAULTS else [])


async def crawl(
    names: Sequence[str],
    pages: dict[str, list[str]],
    keys: Sequence[str],
    services: Sequence[ForkedService],
    urls: Sequence[str],
    client: Redis,
    kills: Sequence[Callable[[], None]],
) -> None:
    """Run the crowds, and print their rows."""
    workers: list[tuple[str, int, str, object, float]] = []
    for name in names:
        for site in range(CROWDS[name].sites):
            for key, count in enumerate(CROWDS[name].keys):
                workers += [(name, site, f"k{key}", number, 0.0) for number in range(count)]
            if CROWDS[name].newcomer:
                workers.append((name, site, "k0", "new", SECONDS / 3))
    processes = []
    for number in range(PROCESSES):
        command = (sys.executable, "-m", "tests.bench.crowd", "--workers")
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "limit": 2**26}
        processes.append(await asyncio.create_subprocess_exec(*command, **pipes))  # type: ignore[arg-type]
        config = {
            "workers": workers[number::PROCESSES],
            "services": urls,
            "pages": pages,
            "keys": {f"k{at}": key for at, key in enumerate(keys)},
            "seconds": SECONDS,
        }
        processes[-1].stdin.write(json.dumps(config).encode() + b"\n")  # type: ignore[union-attr]
    for process in processes:
        assert process.stdout is not None
        await process.stdout.readline()
    cpu = store_cpu(client)
    idle = await cpu()
    await asyncio.sleep(IDLE)
    idle = (await cpu() - idle) / IDLE
    begun, spent, (scripts, runs) = time.time(), await cpu(), await scripts_of(client)
    served = sum(service.cpu() for service in services)
    outputs = asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    for kill in kills:
        await asyncio.sleep(SECONDS / 3)
        kill()
    lines = await outputs
    end = begun + SECONDS
    found: dict[str, list[list[Any]]] = {f"{name} {at}": [] for name in names for at in range(CROWDS[name].sites)}
    for output, _ in lines:
        for site, entries in json.loads(output).items():
            found[site] += entries
    print("| crowd | calls a page | pace | pages of a worker | longest wait | first key | newcomer | too close |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        print(row(name, CROWDS[name], [found[f"{name} {at}"] for at in range(CROWDS[name].sites)], begun, end))
    if kills:
        return
    given = max(1, sum(1 for entries in found.values() for entry in entries if entry[3]))
    spent, (later, later_runs) = await cpu() - spent, await scripts_of(client)
    served = sum(service.cpu() for service in services) - served
    print(f"CPU of the services for a page: {served / given * 1e6:.0f} us")
    print(f"CPU of the store for a page: {spent / given * 1e6:.0f} us, of which")
    in_scripts = (later - scripts) * 1e6
    print(f"- scripts: {in_scripts / given:.0f}, {in_scripts / max(1, later_runs - runs):.0f} each")
    print(f"- what it takes when nobody asks: {idle * SECONDS / given * 1e6:.0f}, {idle * 1e6:.0f} a second")


if __name__ == "__main__":
    asyncio.run(worker_process() if sys.argv[1:] == ["--workers"] else main(sys.argv[1:]))
