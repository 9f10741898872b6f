"""`robots-decisions check` for URLs of warm sites in random order, beside `batch` for the same list sorted by site.

`python -m tests.bench.bulk [--urls 1000000] [--sites 2000] [--against TREE] [--rounds 3]`. `batch` is that of the
client of TREE. Both ask the service of this tree, in turns. The ratios are those of the medians.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from app.store.embedded import serve
from tests.bench.core import processor
from tests.bench.crawl import Site, file_of
from tests.bench.http import Server, free_port, process

ROOT = Path(__file__).parents[2]
SORTED_BATCH = """
import json, sys
from robots_decisions import Client
with Client(sys.argv[1], agent="ExampleBot") as client, open(sys.argv[2]) as urls, open(sys.argv[3], "w") as out:
    for answer in client.batch(line.strip() for line in urls):
        out.write(json.dumps({"url": answer.url, "verdict": answer.verdict, "reason": answer.reason}) + "\\n")
"""


class Took(NamedTuple):
    """What one run took: seconds, CPU seconds of the client and of the service, and the client's memory in MB."""

    wall: float
    client: float
    service: float
    peak: float


@contextmanager
def sites() -> Iterator[int]:
    """A site of 3 KB of rules at every address of loopback; yields its port."""
    port, loop = free_port(), asyncio.new_event_loop()
    content = file_of(3000)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    response = head.encode() + content
    loop.run_until_complete(loop.create_server(lambda: Site(response), "0.0.0.0", port, backlog=1000))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield port
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def took(service: Server, command: list[str], environment: Mapping[str, str], folder: Path) -> Took:
    """Run a client to its end."""
    begun, before = time.perf_counter(), service.cpu()
    running = subprocess.Popen([sys.executable, *command], cwd=folder, env=environment)
    peak = 0.0
    while (ended := os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is None:
        peak = max(peak, psutil.Process(running.pid).memory_info().rss / 2**20)
        time.sleep(0.1)
    wall = time.perf_counter() - begun
    times = psutil.Process(running.pid).cpu_times()  # it has ended, and is not reaped yet
    client = times.user + times.system
    running.wait()
    assert running.returncode in {0, 1}, (command, ended)
    return Took(wall, client, service.cpu() - before, peak)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--sites", type=int, default=2000)
    parser.add_argument("--against", type=Path, default=ROOT)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    port = free_port()
    with TemporaryDirectory() as name, sites() as site, serve(None) as store:
        folder = Path(name)
        names = [f"http://127.1.{n // 250}.{n % 250 + 1}:{site}" for n in range(given.sites)]
        urls = [f"{names[n % given.sites]}/section-{n % 97}/page-{n}.html" for n in range(given.urls)]
        (folder / "sorted").write_text("".join(f"{url}\n" for url in sorted(urls)))
        Random(1).shuffle(urls)
        (folder / "random").write_text("".join(f"{url}\n" for url in urls))
        (folder / "batch.py").write_text(SORTED_BATCH)
        settings = {
            "PORT": str(port), "REDIS_URL": store, "ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*",
            "ACCESS_LOG": "false",
        }  # fmt: skip
        with process(["app"], port, environment=settings) as service:
            url = f"http://127.0.0.1:{port}"
            own = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src")}
            other = {**os.environ, "PYTHONPATH": str(given.against.resolve() / "clients/python/src")}
            check = ["-m", "robots_decisions", "check", "random", "--server", url]
            took(service, [*check, "--origins-only", "--output", "origins.jsonl"], own, folder)
            found: dict[str, list[Took]] = {"check": [], "batch": []}
            for _ in range(given.rounds):
                found["batch"].append(took(service, ["batch.py", url, "sorted", "batch.jsonl"], other, folder))
                arguments = [*check, "--agent", "ExampleBot", "--output", "check.jsonl"]
                found["check"].append(took(service, arguments, own, folder))
            lines = {name: sum(1 for _ in (folder / f"{name}.jsonl").open()) for name in found}
            assert set(lines.values()) == {given.urls}, lines
    print(f"{processor()}; {given.urls} URLs of {given.sites} sites, {given.rounds} rounds")
    middle = {name: Took(*map(median, zip(*rounds, strict=True))) for name, rounds in found.items()}
    for name, it in middle.items():
        print(
            f"{name}: {it.wall:.1f} s, {given.urls / it.wall:.0f} URLs/s, CPU client {it.client:.1f} s, "
            f"service {it.service:.1f} s, client's memory {it.peak:.0f} MB"
        )
    ratios = [f"{name} {a / b:.2f}" for name, a, b in zip(Took._fields, middle["check"], middle["batch"], strict=True)]
    print(f"check / batch: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
