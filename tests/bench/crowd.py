"""Crowds that ask for permits by the real service and store: `python -m tests.bench.crowd [NAME ...]`.

Each crowd crawls a site of its own for CROWD_SECONDS, from PROCESSES processes; all that are named run at once, so that
other load affects them alike. A row says how many calls a page took, the share of the pace that was used, how many
pages the workers that had the fewest and the most got, the longest wait for one in intervals, the share of the first
key, the wait of a newcomer that comes after a third of the time, and slots that are too close. The last line is the CPU
time of the store for a page.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
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
from tests.origins import serve as origin
from tests.origins import text
from tests.pacing.fleet import services

SECONDS = float(os.environ.get("CROWD_SECONDS", "120"))
PROCESSES = 8
TICK = 0.002
TRIP = 0.3
"""Seconds that a page takes."""


@dataclass(frozen=True)
class Crowd:
    """Workers of each key, which wait `max_wait` seconds at most.

    `quits` is the chance that one that was refused never comes back. `invented`: a worker names itself anew for
    each page.
    """

    interval: float
    keys: tuple[int, ...]
    max_wait: float = 10.0
    quits: float = 0.0
    invented: bool = False
    newcomer: bool = False


CROWDS = {
    "50": Crowd(1, (50,)),
    "200": Crowd(1, (200,)),
    "50-slow": Crowd(10, (50,)),
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


async def work(url: str, key: str, name: str, page: str, crowd: Crowd, late: float, found: list[Any]) -> None:
    """A worker. What it finds: its name, when it first asked, its calls, and when its slot began; or no slot yet."""
    dice, parts = Random(name), urlsplit(url)
    await asyncio.sleep(late)
    streams, number, used = None, 0, 0.0
    entry: list[Any] = [name, time.time(), 0, 0.0, 0.0]
    found.append(entry)
    while True:
        caller = f"{name}.{number}" if number else name
        body = {"url": page, "agent": "CrowdBot", "max_wait": crowd.max_wait, "caller": caller}
        try:
            if streams is None or time.time() - used > 3:
                streams = await asyncio.open_connection(parts.hostname, parts.port)
            answer = await ask(streams, parts.netloc, key, body)
        except (OSError, asyncio.IncompleteReadError):
            streams = None
            continue
        used = time.time()
        entry[2] += 1
        if answer.get("permit"):
            go = datetime.fromisoformat(answer["go_at"]).timestamp()
            entry[3:] = [go, answer["interval"]]
            await asyncio.sleep(max(0.0, go - time.time()) + TRIP)
            entry = [name, time.time(), 0, 0.0, 0.0]
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
    for at, (crowd, key, number, late) in enumerate(config["workers"]):
        name = f"{key}-w{number}"
        url, page = config["services"][at % len(config["services"])], config["pages"][crowd]
        entries = found.setdefault(crowd, [])
        tasks.append(asyncio.create_task(work(url, config["keys"][key], name, page, CROWDS[crowd], late, entries)))
    done, _ = await asyncio.wait(tasks, timeout=config["seconds"], return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
    sys.stdout.write(json.dumps(found))


def row(name: str, crowd: Crowd, found: Sequence[Sequence[Any]], begun: float, end: float) -> str:
    """What came of a crowd, without the first sixth of the time."""
    warm = begun + (end - begun) / 6
    goes = sorted((go, interval, who) for who, _, _, go, interval in found if go)
    close = sum(later < go + interval - TICK for (go, interval, _), (later, _, _) in pairwise(goes))
    counted = [who for go, _, who in goes if warm <= go < end]
    calls = sum(calls for _, asked, calls, _, _ in found if asked >= warm)
    waits = [(min(go, end) if go else end) - asked for _, asked, _, go, _ in found if asked >= warm]
    by_worker = Counter({who: 0 for who, *_ in found})
    by_worker.update(counted)
    first = sum(who.startswith("k0-") for who in counted) / max(1, len(counted))
    new = [go - asked for who, asked, _, go, _ in found if who.endswith("-wnew") and go][:1]
    cells = [
        name,
        f"{calls / max(1, len(counted)):.2f}",
        f"{len(counted) * crowd.interval / (end - warm):.3f}",
        f"{min(by_worker.values())} to {max(by_worker.values())}",
        f"{max(waits, default=0) / crowd.interval:.0f}",
        f"{first:.2f}" if len(crowd.keys) > 1 else "",
        f"{new[0] / crowd.interval:.0f}" if new else "",
        f"{close} of {len(goes)}",
    ]
    return f"| {' | '.join(cells)} |"


async def main(names: Sequence[str]) -> None:
    """Run the crowds of these names, or all."""
    names = names or list(CROWDS)
    keys, lines = zip(*(new_key(f"k{number}") for number in range(2)), strict=True)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        keys_file = Path(folder, "keys.toml")
        keys_file.touch(mode=0o600)  # noqa: ASYNC240 - nothing else runs yet
        keys_file.write_text("\n".join(lines))  # noqa: ASYNC240 - nothing else runs yet
        store_url = stack.enter_context(serve(None))
        pages = {}
        for name in names:
            robots = text(200, f"User-agent: *\nCrawl-delay: {CROWDS[name].interval}\n")
            pages[name] = f"{(await stack.enter_async_context(origin(robots))).url}/page"
        settings = {"API_KEYS_FILE": str(keys_file), "PACE_FLOOR": "0.05", "PACE_BY": "origin"}
        urls = stack.enter_context(services(store_url, 2, **settings))
        await crawl(names, pages, keys, urls, store_url)


async def crawl(
    names: Sequence[str], pages: dict[str, str], keys: Sequence[str], urls: Sequence[str], store_url: str
) -> None:
    """Run the crowds, and print their rows."""
    workers: list[tuple[str, str, object, float]] = []
    for name in names:
        for key, count in enumerate(CROWDS[name].keys):
            workers += [(name, f"k{key}", number, 0.0) for number in range(count)]
        if CROWDS[name].newcomer:
            workers.append((name, "k0", "new", SECONDS / 3))
    client = connect(store_url)
    assert isinstance(client, Redis)
    cpu = store_cpu(client)
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
    begun, spent = time.time(), await cpu()
    outputs = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    spent, end = await cpu() - spent, begun + SECONDS
    await client.aclose()
    found: dict[str, list[list[Any]]] = {name: [] for name in names}
    for output, _ in outputs:
        for name, entries in json.loads(output).items():
            found[name] += entries
    print("| crowd | calls a page | pace | pages of a worker | longest wait | first key | newcomer | too close |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        print(row(name, CROWDS[name], found[name], begun, end))
    given = sum(1 for entries in found.values() for entry in entries if entry[3])
    print(f"CPU of the store for a page: {spent / max(1, given) * 1e6:.0f} us")


if __name__ == "__main__":
    asyncio.run(worker_process() if sys.argv[1:] == ["--workers"] else main(sys.argv[1:]))
