"""Processes of the service, processes that crawl by its permits, and an origin that logs its requests."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time

from tests.forked import ForkedService

ROOT = Path(__file__).parent.parent.parent
TURN = re.compile(rb"\r\nTurn: ([0-9.]+)\r\n")
RATE = 20
"""Documents a second."""

TICK = 0.002
"""Seconds by which grants may seem closer than they are: their instants are in milliseconds."""

ROBOTS = f"User-agent: *\nRequest-rate: {RATE}/1s\n".encode()


@dataclass(repr=False)
class Log:
    """The instants of page requests, in Unix seconds, and the number of requests for robots.txt.

    `grants` are the instants of the slots of these pages; a page that arrives late is due to a busy machine.
    """

    pages: list[float] = field(default_factory=list)
    grants: list[float] = field(default_factory=list)
    files: int = 0

    @property
    def earliest(self) -> float:
        """The least delay of a page after its slot, in seconds."""
        return min(page - grant for page, grant in zip(self.pages, self.grants, strict=True))

    def at_slots(self) -> "Log":
        """The log as if each page had arrived at the instant of its slot."""
        return Log(sorted(self.grants))

    def __repr__(self) -> str:
        most = {seconds: self.most_in(seconds) for seconds in (0.5, 1, 2, 5)}
        return f"{len(self.pages)} pages, at most so many in so many seconds: {most}; {self.excess:.2f} beyond the rate"

    def most_in(self, seconds: float) -> int:
        """The most pages in any period of `seconds`."""
        most = first = 0
        for at, instant in enumerate(self.pages):
            while self.pages[first] <= instant - seconds + TICK:
                first += 1
            most = max(most, at - first + 1)
        return most

    @property
    def excess(self) -> float:
        """By how many pages the log exceeds the rate in the worst period of any length that begins with a page.

        Differences of up to TICK are not counted.
        """
        least, worst = float("inf"), 0.0
        for at, instant in enumerate(self.pages):
            due = at - instant * RATE
            least = min(least, due)
            worst = max(worst, due - least)
        return max(0.0, worst - TICK * RATE)

    def used(self, begin: float, end: float) -> float:
        """The share of the rate that was used between two instants."""
        return sum(begin <= page < end for page in self.pages) / (RATE * (end - begin))


@asynccontextmanager
async def logging_origin() -> AsyncIterator[tuple[str, Log]]:
    """An origin with persistent connections and a log."""
    log = Log()
    writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                body = b"page"
                if request.startswith(b"GET /robots.txt "):
                    log.files += 1
                    body = ROBOTS
                else:
                    log.pages.append(time())
                    log.grants.append(float(TURN.search(request)[1]))  # type: ignore[index]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body))
                writer.write(body)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            writers.discard(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", log
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await server.wait_closed()


@contextmanager
def services(store_url: str, count: int, *, module: str = "app.__main__", **others: str) -> Iterator[list[str]]:
    """Processes of the service on one store; `others` override their settings."""
    settings = {"PACE_FLOOR": "0.01", "PACE_INSTANCES": str(count), **others}
    with ExitStack() as stack:
        processes = []
        for _ in range(count):
            processes.append(ForkedService(store_url, module, **settings))
            stack.callback(processes[-1].kill)
        yield [process.listen() for process in processes]


@dataclass
class Crawlers:
    """Crawler processes."""

    processes: Sequence[asyncio.subprocess.Process]

    async def send(self, text: str) -> None:
        """Send a line to all of them."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{text}\n".encode())
            await process.stdin.drain()

    async def end(self) -> None:
        """Stop them, and check their results."""
        await self.send("end")
        codes = await asyncio.gather(*(process.wait() for process in self.processes))
        assert codes == [0] * len(self.processes)


@asynccontextmanager
async def crawlers(
    urls: Sequence[str], origin: str, processes: int, workers: int, *, late: float = 5.0
) -> AsyncIterator[Crawlers]:
    """Processes with several workers each, which have started to crawl.

    A caller that is delayed for more than `late` seconds releases its slot.
    """
    async with AsyncExitStack() as stack:
        started = []
        for number in range(processes):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.pacing.crawler",
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            stack.push_async_callback(_ended, process)
            started.append(process)
            config = {
                "services": urls,
                "origin": origin,
                "workers": workers,
                "caller": f"crawler-{number}",
                "late": late,
            }
            assert process.stdin is not None
            process.stdin.write(json.dumps(config).encode() + b"\n")
        for process in started:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        crawlers = Crawlers(started)
        await crawlers.send("go")
        yield crawlers


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def crawl(
    store_url: str, *, processes: int, workers: int, seconds: float, late: float = 5.0
) -> tuple[Log, float, float]:
    """The log of an origin that is crawled for `seconds`, the end of its first second and the start of its last."""
    with services(store_url, 2) as urls:
        async with logging_origin() as (origin, log), crawlers(urls, origin, processes, workers, late=late) as running:
            await asyncio.sleep(seconds)
            end = time()
            await running.end()
        return log, log.pages[0] + 1.0, end
