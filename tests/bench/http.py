"""The cost of an answer, compared with FastAPI, a bare ASGI application and protego: `make bench NAME=http`.

Every server is a separate process, started like `python -m app`; this process sends requests to them in alternating
rounds, over persistent connections. A figure is the CPU time of the server's process per request, including all threads
and the kernel's work for it: the median of the rounds. Nothing here asserts: the figures are for people, and for
docs/explanation/performance.md.
"""

import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from typing import Any, cast
from urllib.parse import urlencode

import uvloop

from tests.bench.bodies import body, paths
from tests.bench.core import processor

AGENT = "ExampleBot/1.0"
SIZES = (5, 20, 60, 100, 2000, 15_000)
FIELDS = "fields=verdict,rule,rate"
ORIGINS = 100
BATCH = 100
MAX_CONCURRENT, TURN_SECONDS, CONNECTIONS = 9, 0.4, 8
LOAD_SECONDS, LOAD_CONNECTIONS = 5.0, 64


class Connection(asyncio.Protocol):
    """One request at a time, as bytes; the answer is its body."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._received = bytearray()
        self._length = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport does not derive from it

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        assert self._transport is not None
        self._received.clear()
        self._length = -1
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._length < 0:
            ends = self._received.find(b"\r\n\r\n")
            if ends < 0:
                return
            head = bytes(self._received[:ends]).lower()
            if not head.startswith(b"http/1.1 200") and self._answer is not None:
                self._answer.set_exception(AssertionError(head.decode("ascii")))
                return
            at = head.index(b"content-length: ") + 16
            self._length = ends + 4 + int(head[at:].partition(b"\r\n")[0])
        if len(self._received) >= self._length and self._answer is not None:
            self._answer.set_result(bytes(self._received[self._received.index(b"\r\n\r\n") + 4 :]))
            self._answer = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


@dataclass(frozen=True, slots=True)
class Server:
    """A process, and the address it listens on."""

    pid: int
    port: int

    def cpu(self) -> float:
        """CPU seconds of all its threads, user and kernel."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9

    @asynccontextmanager
    async def connected(self, count: int) -> AsyncIterator[list[Connection]]:
        loop = asyncio.get_running_loop()
        made = [await loop.create_connection(Connection, "127.0.0.1", self.port) for _ in range(count)]
        try:
            yield [connection for _, connection in made]
        finally:
            for _, connection in made:
                connection.close()


@dataclass(frozen=True, slots=True)
class Contestant:
    """A server, and the request that is repeated."""

    name: str
    server: Server
    requests: Sequence[bytes]

    async def turn(self, seconds: float) -> tuple[float, float]:
        """CPU seconds per request, and requests per second, over several connections for `seconds`."""
        requests = cycle(self.requests)
        count = 0

        async def ask(connection: Connection, until: float) -> None:
            nonlocal count
            while time.perf_counter() < until:
                await connection.ask(next(requests))
                count += 1

        async with self.server.connected(CONNECTIONS) as connections:
            for connection in connections:
                await connection.ask(next(requests))
            begun, until = self.server.cpu(), time.perf_counter() + seconds
            await asyncio.gather(*(ask(connection, until) for connection in connections))
            return (self.server.cpu() - begun) / count, count / seconds

    async def latencies(self, rate: float, seconds: float) -> list[float]:
        """Seconds from the instant at which each of `rate` requests a second was due until its answer (open loop)."""
        requests, found = cycle(self.requests), list[float]()
        async with self.server.connected(LOAD_CONNECTIONS) as connections:
            free, due = list(connections), deque[float]()

            def send() -> None:
                while due and free:
                    connection, at = free.pop(), due.popleft()
                    connection.ask(next(requests)).add_done_callback(partial(done, connection, at))

            def done(connection: Connection, at: float, _answer: asyncio.Future[bytes]) -> None:
                found.append(time.perf_counter() - at)
                free.append(connection)
                send()

            begun = time.perf_counter()
            sent = 0
            while (now := time.perf_counter()) < begun + seconds:
                while sent < (now - begun) * rate:
                    due.append(now)  # this client's own delay does not count
                    sent += 1
                send()
                await asyncio.sleep(0.0005)
            while len(free) < LOAD_CONNECTIONS:  # noqa: ASYNC110 - wait for the last answers
                await asyncio.sleep(0.001)
        return found


async def compare(contestants: Sequence[Contestant]) -> list[float]:
    """CPU seconds per request of each server: the median over alternating rounds."""
    taken: list[list[float]] = [[] for _ in contestants]
    for contestant in contestants:
        await contestant.turn(TURN_SECONDS / 2)
    for _ in range(MAX_CONCURRENT):
        for contestant, seconds in zip(contestants, taken, strict=True):
            seconds.append((await contestant.turn(TURN_SECONDS))[0])
    return [median(seconds) for seconds in taken]


def get(url: str, **parameters: str) -> bytes:
    query = urlencode({"url": url, "agent": AGENT, **parameters})
    return f"GET /v1/allowed?{query} HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n".encode()


def post(items: Sequence[Mapping[str, str]], query: str = "") -> bytes:
    content = json.dumps({"items": items}).encode()
    head = f"POST /v1/allowed{query} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
    return f"{head}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


class Origins:
    """Web servers on loopback addresses: the port is the number of rules in their robots.txt."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        addresses = [f"127.0.1.{number}" for number in range(1, ORIGINS + 1)]
        servers = []
        for rules in SIZES:
            self.ports[rules] = port = free_port()
            servers.append(await asyncio.start_server(self._answering(body(rules)), addresses, port))
        try:
            yield
        finally:
            for server in servers:
                server.close()

    @staticmethod
    def _answering(content: bytes) -> Any:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(content)}\r\nConnection: close"

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head.encode() + b"\r\n\r\n" + content)
            await writer.drain()
            writer.close()

        return answer

    def urls(self, rules: int, origins: int) -> list[str]:
        """BATCH URLs, spread over `origins` origins."""
        count = paths(rules, queries=True)
        port = self.ports[rules]
        return [f"http://127.0.1.{n % origins + 1}:{port}{count[n % len(count)]}" for n in range(BATCH)]

    def batch(self, rules: int, origins: int, query: str = "") -> bytes:
        return post([{"url": url, "agent": AGENT} for url in self.urls(rules, origins)], query)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def process(
    arguments: Sequence[str],
    port: int,
    content: bytes = b"",
    environment: Mapping[str, str] | None = None,
    tree: Path | None = None,
) -> Iterator[Server]:
    """A server of this checkout or of `tree`, which listens."""
    kept = {name: value for name, value in os.environ.items() if name not in {"REDIS_URL", "API_KEYS_FILE"}}
    if tree:
        kept["PYTHONPATH"] = f"{tree}/core"
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=tree,
        env={**kept, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        assert running.stdin is not None
        running.stdin.write(content)
        running.stdin.close()
        try:
            _await_listening(running, port)
            yield Server(running.pid, port)
        finally:
            running.terminate()


def _await_listening(running: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(600):
        if running.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"{running.args!r} does not listen on port {port}")


def service(access_log: str, tree: Path | None = None, **settings: str) -> AbstractContextManager[Server]:
    """The service of this checkout or of `tree`, started by its command with these settings."""
    port = free_port()
    environment = {
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WORKERS": "1",
        "ALLOW_ADDRESSES": "127.0.0.0/8",
        "ALLOW_PORTS": "*",
        "ACCESS_LOG": access_log,
        "LOG_FORMAT": "json",
        **settings,
    }
    return process(["app"], port, environment=environment, tree=tree)


def peer(name: str, content: bytes) -> AbstractContextManager[Server]:
    """One of http_peers."""
    port = free_port()
    return process(["tests.bench.http_peers", name, str(port)], port, content)


async def _single(origins: Origins, ours: Server, stack: ExitStack) -> None:
    urls = origins.urls(60, 10)
    async with ours.connected(1) as [connection]:
        answers = [await connection.ask(get(url)) for url in urls]
    assert all(json.loads(answer)["verdict"] in {"allow", "disallow"} for answer in answers)
    answer = answers[-1]
    requests = [get(url) for url in urls]
    bare, constant = (stack.enter_context(peer(name, answer)) for name in ("bare", "constant"))
    logging = stack.enter_context(service("true"))
    contestants = [
        Contestant("a FastAPI route, a constant model", constant, requests),
        Contestant("GET /v1/allowed, ACCESS_LOG=false", ours, requests),
        Contestant("GET /v1/allowed, ACCESS_LOG=true", logging, requests),
        Contestant("a bare ASGI application", bare, requests),
    ]
    taken = await compare(contestants)
    print(f"\nOne hot answer of {len(answer)} bytes; CPU of the server per request")
    for contestant, seconds in zip(contestants, taken, strict=True):
        print(f"  {contestant.name:<36}{seconds * 1e6:>9.1f} us{seconds / taken[0]:>8.2f} of FastAPI")
    rate = 0.5 * median([(await contestants[1].turn(TURN_SECONDS))[1] for _ in range(MAX_CONCURRENT)])
    print(f"\nHalf load: {rate:,.0f} requests a second, half of what ours answers here; from due to answered, in ms")
    for contestant in (contestants[1], contestants[3], contestants[1], contestants[3]):
        found = quantiles(await contestant.latencies(rate, LOAD_SECONDS), n=1000)
        shown = ", ".join(f"p{share / 10:g} {found[share - 1] * 1e3:.2f}" for share in (500, 990, 999))
        print(f"  {contestant.name:<36}  {shown}")


async def _batches(origins: Origins, ours: Server, stack: ExitStack) -> None:
    sizes = json.dumps({str(port): rules for rules, port in origins.ports.items()}).encode()
    try:
        protego: Server | None = stack.enter_context(peer("protego", sizes))
    except SystemExit as error:
        print(f"not measured: protego ({error})")
        protego = None
    print(f"\nPOST /v1/allowed, {BATCH} hot pairs; per decision")
    print(f"  {'rules':>7}{'origins':>9}{'ours':>12}{'a second':>12}{FIELDS:>27}{'protego':>12}")
    for rules, spread in [(size, 10) for size in SIZES] + [(5, ORIGINS), (60, ORIGINS)]:
        request = origins.batch(rules, spread)
        async with ours.connected(1) as [connection]:
            shown = json.loads(await connection.ask(request))["answers"]
            assert all(answer["verdict"] in {"allow", "disallow"} for answer in shown)
        contestants = [
            Contestant("ours", ours, [request]),
            Contestant(FIELDS, ours, [origins.batch(rules, spread, f"?{FIELDS}")]),
        ]
        differ = ""
        if protego is not None:
            async with protego.connected(1) as [connection]:
                theirs = json.loads(await connection.ask(request))["answers"]
            count = sum(it["allowed"] != other["allowed"] for it, other in zip(shown, theirs, strict=True))
            differ = f"   {count} verdicts differ" if count else ""
            contestants.append(Contestant("protego", protego, [request]))
        mine, some, *others = [seconds / BATCH for seconds in await compare(contestants)]
        line = (
            f"  {rules:>7,}{spread:>9}{mine * 1e6:>9.1f} us{1 / mine:>12,.0f}{some * 1e6:>16.1f} us{some / mine:>7.2f}x"
        )
        beside = [f"{other * 1e6:>9.1f} us{other / mine:>8.2f}x, {other / some:.2f}x of fields" for other in others]
        print(line + "".join(beside) + differ, flush=True)


async def main() -> None:
    """Print the whole comparison."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("fastapi", "uvicorn", "uvloop", "protego"))
    print(f"{datetime.now(UTC):%Y-%m-%d}, {python}, {processor()}; {libraries}")
    origins = Origins()
    with ExitStack() as stack:
        async with origins.serving():
            ours = stack.enter_context(service("false"))
            await _single(origins, ours, stack)
            await _batches(origins, ours, stack)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
