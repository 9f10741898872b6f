"""A service under load while its store and its origins fail, for SOAK_SECONDS, to find leaks.

python -m tests.faults.soak

A real process with continuous callers; a Valkey that is killed, stopped, slowed down, filled up and flushed; origins
that answer 5xx, stall, reset, drip and send bombs. The resources of the process are measured at rest, after a warm-up
and at the end; `Figures.faults` lists the ones that have grown too much.

Every question gets a verdict throughout. Only the routes in NEEDS_STORE may refuse, with 503 `store-down`; any other
refusal is a fault too.
"""

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import psutil
from redis.asyncio import Redis

from app.store.embedded import serve as serve_valkey
from tests.faults.loopback import Visit, Web, web
from tests.faults.process import Process, process
from tests.faults.proxy import Proxy, proxy
from tests.faults.until import until
from tests.operator_token import TOKEN_HEADER
from tests.origins import head, text
from tests.valkey import process_of, stopped

SECONDS = 600.0
WARM_UP = 0.2
"""The share of the time after which resources are first measured."""

MORE_MEMORY, MORE_FILES, MORE_TASKS, MORE_THREADS = 24 * 1024 * 1024, 16, 4, 8
"""Maximum growth from then until the end, both at rest: bytes, descriptors, tasks, threads.

Descriptors may grow by the connections to the store, and to origins.
"""

NEEDS_STORE = {"DELETE /v1/robots", "GET /v1/robots/history"}
"""The routes that answer 503 `store-down` without the store.

Nothing but the store has the history of an origin, and only the store can tell other processes of a purge; the process
that is asked has purged its own copy by then. All other routes that the callers use answer from what the process has.
"""

CALLERS = 12
FETCH_TIMEOUT = 2.0
MEMORY_BYTES = 8 * 1024 * 1024

FILE = "User-agent: *\nDisallow: /private/\nCrawl-delay: 2\nSitemap: http://a.test/sitemap.xml\n" + "# padding\n" * 300
BOMB = zlib.compress(FILE.encode() + b"\0" * 20_000_000, wbits=31)


# Origins.


async def stalls(visit: Visit) -> None:
    """Stay silent for longer than any client waits."""
    await asyncio.sleep(2 * FETCH_TIMEOUT)


async def stalls_in_the_body(visit: Visit) -> None:
    """Send half of a response."""
    await visit.send(text(200, FILE)[:2000])
    await asyncio.sleep(2 * FETCH_TIMEOUT)


async def resets(visit: Visit) -> None:
    """Reset the connection, half of the time within the body."""
    if random.random() < 0.5:
        await visit.send(text(200, FILE)[:2000])
    visit.writer.transport.abort()


async def drips(visit: Visit) -> None:
    """Send a byte now and then."""
    for byte in text(200, FILE):
        await visit.send(bytes([byte]))
        await asyncio.sleep(0.1)


async def never_ends(visit: Visit) -> None:
    """Send an endless body."""
    await visit.send(head(200) + FILE.encode())
    while True:
        await visit.send(b"x" * 65_536)


BEHAVIOURS: list[bytes | Callable[[Visit], Awaitable[None]]] = [
    *([text(200, FILE)] * 20),
    text(500),
    text(503, "", {"Retry-After": "1"}),
    text(429),
    text(200, BOMB, {"Content-Encoding": "gzip"}),
    b"\x00\x01\x02 no HTTP\r\n\r\n",
    stalls,
    stalls_in_the_body,
    resets,
    drips,
    never_ends,
]


async def behaves(visit: Visit) -> None:
    """Change over time: a healthy origin fails, and recovers."""
    reply = random.choice(BEHAVIOURS)
    if isinstance(reply, bytes):
        await visit.send(reply)
    else:
        await reply(visit)


# The store.


class Store:
    """A Valkey behind a proxy, which can be replaced."""

    def __init__(self, between: Proxy, servers: ExitStack) -> None:
        """`servers` has the current server."""
        self.between = between
        self._servers = servers
        self.url = between.target

    async def killed(self, seconds: float) -> None:
        """Replace the server by an empty one."""
        client = Redis.from_url(self.url)
        os.kill(await process_of(client), signal.SIGKILL)
        await client.aclose()
        self._servers.close()
        await asyncio.sleep(seconds)
        self.url = self.between.target = await asyncio.to_thread(self._servers.enter_context, serve_valkey(None))
        self.between.cut()

    async def stopped(self, seconds: float) -> None:
        """Suspend the server, then resume it."""
        async with self._client() as client:
            with stopped(await process_of(client)):
                await asyncio.sleep(seconds)

    async def slow(self, seconds: float) -> None:
        """Delay its replies."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.between.held.clear()
            await asyncio.sleep(0.15)
            self.between.held.set()
            await asyncio.sleep(0.05)

    async def full(self, seconds: float) -> None:
        """Make it refuse writes."""
        async with self._client() as client:
            await client.config_set("maxmemory", "1")
            await asyncio.sleep(seconds)
            await client.config_set("maxmemory", "0")

    async def flushed(self, seconds: float) -> None:
        """Flush it."""
        async with self._client() as client:
            await client.flushall()
        await asyncio.sleep(seconds)

    async def cut_off(self, seconds: float) -> None:
        """Make it unreachable."""
        self.between.refusing = True
        self.between.cut()
        await asyncio.sleep(seconds)
        self.between.refusing = False

    async def nonsense(self, seconds: float) -> None:
        """Answer as another program."""
        self.between.nonsense = b"HTTP/1.1 400 Bad Request\r\n\r\n"
        self.between.cut()
        await asyncio.sleep(seconds)
        self.between.nonsense = None
        self.between.cut()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Redis]:
        client = Redis.from_url(self.url)
        try:
            yield client
        finally:
            await client.aclose()

    def close(self) -> None:
        """Stop the current server."""
        self._servers.close()


# Callers.


@dataclass
class Tally:
    """The answers that callers got."""

    answers: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    def judge(self, answer: dict[str, object]) -> None:
        """Check that there is a verdict, and that none of these origins is ever allowed."""
        verdict = str(answer.get("verdict", "problem"))
        self.answers[verdict] += 1
        if answer.get("allowed") or verdict not in {"disallow", "defer"}:
            self.wrong.append(json.dumps(answer)[:300])

    def note(self, answer: httpx.Response) -> bool:
        """Count an answer, and check that it succeeds or is a refusal of NEEDS_STORE; whether it succeeds."""
        status = answer.status_code
        self.answers[str(status)] += 1
        if status in {200, 204}:
            return True
        route = f"{answer.request.method} {answer.url.path}"
        kind = str(answer.json().get("type")).rpartition(":")[2] if status == 503 else str(status)
        self.refusals[f"{kind} of {route}"] += 1
        if kind != "store-down" or route not in NEEDS_STORE or "Retry-After" not in answer.headers:
            self.wrong.append(f"{answer.request.url}: {status} {answer.text[:300]}")
        return False


class Callers:
    """Callers that ask continuously, unless they are paused."""

    def __init__(self, url: str, origins: Web, count: int, tally: Tally) -> None:
        limits = httpx.Limits(max_connections=CALLERS)
        self._client = httpx.AsyncClient(base_url=url, timeout=60.0, limits=limits, headers=TOKEN_HEADER)
        self._address = url.removeprefix("http://").split(":")
        self._origins = [origins.new() for _ in range(count)]
        self._tally = tally
        self._work = asyncio.Event()
        self._busy = 0

    async def rest(self) -> None:
        """Pause; return once all requests are answered."""
        self._work.clear()

        async def busy() -> int:
            return self._busy

        await until(busy, lambda number: number == 0)
        await self._client.aclose()
        self._client = httpx.AsyncClient(base_url=self._client.base_url, timeout=60.0, headers=TOKEN_HEADER)

    def work(self) -> None:
        """Run all callers until they are cancelled."""
        self._work.set()

    async def call(self) -> None:
        """Run one caller."""
        asks = [self._ask] * 12 + [self._batch, self._stream, self._purge, self._look, self._leave, self._babble]
        while True:
            await self._work.wait()
            self._busy += 1
            try:
                await random.choice(asks)()
            finally:
                self._busy -= 1
            await asyncio.sleep(random.random() * 0.02)

    def _question(self) -> dict[str, str | float]:
        agent = random.choice(["ExampleBot", "SeznamBot/4.0", "Googlebot"])
        question: dict[str, str | float] = {"url": f"{random.choice(self._origins)}/private/page", "agent": agent}
        return {**question, "max_age": 1, "wait": 1} if random.random() < 0.3 else question

    async def _ask(self) -> None:
        answer = await self._client.get("/v1/allowed", params=self._question())
        if self._tally.note(answer):
            self._tally.judge(answer.json())

    async def _batch(self) -> None:
        answer = await self._client.post("/v1/allowed", json={"items": [self._question() for _ in range(20)]})
        if self._tally.note(answer):
            for one in answer.json()["answers"]:
                self._tally.judge(one)

    async def _stream(self) -> None:
        body = "\n".join(json.dumps(self._question()) for _ in range(20))
        headers = {"Content-Type": "application/x-ndjson"}
        answer = await self._client.post("/v1/allowed", content=body, headers=headers)
        if self._tally.note(answer):
            for line in answer.text.splitlines():
                self._tally.judge(json.loads(line))

    async def _purge(self) -> None:
        self._tally.note(await self._client.delete("/v1/robots", params={"url": random.choice(self._origins)}))

    async def _look(self) -> None:
        path = random.choice(["/v1/robots", "/v1/robots/history", "/readyz", "/metrics", "/v1/overrides"])
        query = {"url": random.choice(self._origins)} if path.startswith("/v1/robots") else {}
        self._tally.note(await self._client.get(path, params=query))

    async def _leave(self) -> None:
        """Ask, and disconnect before the answer."""
        await self._say(
            f"GET /v1/allowed?agent=a&url={random.choice(self._origins)}/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )

    async def _babble(self) -> None:
        """Send half a head, half a body, or no HTTP."""
        half = [
            "GET /v1/allo",
            "POST /v1/test HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{",
            "\0\1\2\r\n\r\n",
        ]
        await self._say(random.choice(half))

    async def _say(self, words: str) -> None:
        _, writer = await asyncio.open_connection(self._address[0], int(self._address[1]))
        writer.write(words.encode())
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.transport.abort()

    async def aclose(self) -> None:
        """Disconnect."""
        await self._client.aclose()


# Resources, and their growth.


@dataclass(frozen=True)
class Resources:
    """The resources of a process at rest."""

    memory: int
    files: int
    tasks: int
    threads: int

    def __str__(self) -> str:
        return f"{self.memory / 2**20:.1f} MiB, {self.files} files, {self.tasks} tasks, {self.threads} threads"


@dataclass(frozen=True)
class Figures:
    """The results."""

    seconds: float
    warm: Resources
    end: Resources
    highest: int
    tally: Tally
    more_memory: int

    @property
    def faults(self) -> list[str]:
        """Everything that is wrong."""
        bounds = {"memory": self.more_memory, "files": MORE_FILES, "tasks": MORE_TASKS, "threads": MORE_THREADS}
        grown = {name: getattr(self.end, name) - getattr(self.warm, name) for name in bounds}
        found = [f"{grown[name]} more {name}; {bound} at most" for name, bound in bounds.items() if grown[name] > bound]
        return found + self.tally.wrong[:10]

    def __str__(self) -> str:
        rows = {
            "seconds": f"{self.seconds:.0f}",
            "after the warm-up": str(self.warm),
            "at the end": str(self.end),
            "most memory meanwhile": f"{self.highest / 2**20:.1f} MiB",
            "answers": listed(self.tally.answers),
            "refusals": listed(self.tally.refusals),
            "faults of the store": listed(self.tally.faults),
        }
        return "\n".join(f"{name:24}{value}" for name, value in rows.items())


def listed(counts: Counter[str]) -> str:
    """The counts, the highest first."""
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


async def resources(service: Process, client: httpx.AsyncClient, at_rest: int) -> Resources:
    """The resources of the process once all requests are finished; `at_rest` is its number of tasks before the load."""

    async def under_way() -> float:
        lines = (await client.get("/metrics")).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("robots_fetches_in_flight "))

    await until(under_way, lambda number: number == 0)
    # Late calls to the store end within a few seconds; a task that never ends shows in the number below.
    with suppress(TimeoutError):
        await until(partial(tasks_of, client), lambda number: number <= at_rest)
    one = psutil.Process(service.pid)
    return Resources(one.memory_info().rss, one.num_fds(), await tasks_of(client), one.num_threads())


async def tasks_of(client: httpx.AsyncClient) -> int:
    """The number of tasks."""
    return int((await client.get("/tasks")).text)


async def soak(seconds: float, *, origins: int, fault_seconds: float, more_memory: int = MORE_MEMORY) -> Figures:
    """Run load and faults for `seconds` over `origins` origins, each fault for `fault_seconds`.

    `more_memory` replaces MORE_MEMORY if the warm-up is too short to touch everything.
    """
    tally = Tally()
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = ExitStack()
        between = await stack.enter_async_context(proxy(servers.enter_context(serve_valkey(None)), directory))
        store = Store(between, servers)
        stack.callback(store.close)
        places = await stack.enter_async_context(web(behaves))
        settings = {"FETCH_TIMEOUT": str(FETCH_TIMEOUT), "MEMORY_BYTES": str(MEMORY_BYTES), "ACCESS_LOG": "false"}
        service = stack.enter_context(process(module="tests.faults.watched", REDIS_URL=between.url, **settings))
        url = await asyncio.to_thread(service.wait_ready)
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60.0))
        await client.get("/readyz")
        at_rest = await tasks_of(client)
        callers = Callers(url, places, origins, tally)
        stack.push_async_callback(callers.aclose)
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(callers.call()) for _ in range(CALLERS)]
            callers.work()
            await fail(store, tally, seconds * WARM_UP, fault_seconds)
            await callers.rest()
            warm = await resources(service, client, at_rest)
            callers.work()
            highest = await fail(store, tally, seconds * (1 - WARM_UP), fault_seconds, service.pid)
            await callers.rest()
            end = await resources(service, client, at_rest)
            for task in calls:
                task.cancel()
        await until(partial(client.get, "/readyz"), lambda ready: ready.json()["store"] == "ok")
        service.send_signal()
        await asyncio.to_thread(service.ended)
        tally.wrong += [
            line for line in service.output.splitlines() if "Traceback" in line or "never retrieved" in line
        ]
    return Figures(time.monotonic() - begun, warm, end, highest, tally, more_memory)


async def fail(store: Store, tally: Tally, seconds: float, fault_seconds: float, pid: int | None = None) -> int:
    """Run one fault after the other, with as much time in between; return the peak memory.

    With `pid`, the process whose memory is measured, every fault occurs at least once.
    """
    faults = [store.killed, store.stopped, store.slow, store.full, store.flushed, store.cut_off, store.nonsense]
    ends = time.monotonic() + seconds
    highest = 0
    turn = 0
    while time.monotonic() < ends or (pid is not None and turn < len(faults)):
        fault = faults[turn % len(faults)]
        turn += 1
        await fault(fault_seconds)
        tally.faults[fault.__name__] += 1
        await asyncio.sleep(fault_seconds)
        if pid is not None:
            highest = max(highest, psutil.Process(pid).memory_info().rss)
    return highest


async def in_turns(stalling: int, healthy: int, rounds: int) -> list[tuple[float, float]]:
    """Seconds to answer about cold healthy origins, without and with stalled ones, in alternation."""
    found: list[tuple[float, float]] = []
    async with AsyncExitStack() as stack:
        valkey = stack.enter_context(serve_valkey(None))
        places = await stack.enter_async_context(web(text(200, FILE)))
        # A busy machine must not cause a defer, since the two times are compared.
        service = stack.enter_context(process(REDIS_URL=valkey, FETCH_TIMEOUT="60", ACCESS_LOG="false"))
        url = await asyncio.to_thread(service.wait_ready)
        host, port = url.removeprefix("http://").split(":")

        async def ask(origin: str) -> None:
            # Without a client library, whose cost would dominate.
            reader, writer = await asyncio.open_connection(host, int(port))
            path = f"/v1/allowed?agent=a&wait=60&url={origin}/private/"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            assert b'"verdict":"disallow"' in answer

        async def answered(others: list[str]) -> float:
            behind = [asyncio.create_task(ask(origin)) for origin in others for _ in range(2)]
            await asyncio.sleep(0.5)
            begun = time.monotonic()
            await asyncio.gather(*(ask(origin) for origin in [places.new() for _ in range(healthy)] for _ in range(2)))
            seconds = time.monotonic() - begun
            for task in behind:
                task.cancel()
            await asyncio.gather(*behind, return_exceptions=True)
            return seconds

        await answered([])
        while len(found) < rounds:
            without = await answered([])
            found.append((without, await answered([places.new(stalls) for _ in range(stalling)])))
    return found


def main() -> int:
    """Run, and print the results; exit with 1 if anything is wrong."""
    turns = asyncio.run(in_turns(50, 450, rounds=5))
    without, stalled = (sum(seconds) for seconds in zip(*turns, strict=True))
    print(f"900 callers, 450 cold origins, {len(turns)} times: {without:.1f} s")
    print(f"the same with 50 that stall: {stalled:.1f} s, {stalled / without:.2f}x")
    figures = asyncio.run(soak(float(os.environ.get("SOAK_SECONDS") or SECONDS), origins=1500, fault_seconds=4.0))
    print(figures)
    for fault in figures.faults:
        print(f"NOT AS IT SHOULD BE: {fault}")
    return 1 if figures.faults else 0


if __name__ == "__main__":
    sys.exit(main())
