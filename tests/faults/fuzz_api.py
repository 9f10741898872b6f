"""`make fuzz NAME=api`: hostile requests to a running service, for FUZZ_SECONDS, from FUZZ_SEED.

python -m tests.faults.fuzz_api

First schemathesis sends valid and invalid requests to every route; then come requests that no client sends
(hostile_requests). Meanwhile, /healthz is requested on a separate connection, and the memory of the process is
measured.

The run fails if the service answers 500, exits, logs an unexpected error, uses more than FUZZ_RSS_MB, or leaves
/healthz or a connection without an answer for HANG seconds. The requests under way are then stored in build/fuzz-api.
"""

import asyncio
import json
import os
import random
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import httpx
import psutil

from tests.faults.hostile_requests import Hostile, file, requests
from tests.faults.loopback import web
from tests.faults.process import Process, process
from tests.origins import text

SECONDS = 60.0
RSS_MB = 500
"""MiB that the process may use: a minute takes less than 300, and the limit of the manifests is 1 GiB."""

HANG = 30.0
"""Seconds after which an answer counts as missing, even on a busy machine."""

AT_ONCE = 4
"""Concurrent connections: enough to interact, few enough to identify a culprit."""

FILES = 30
"""Origins, each with its own hostile file."""

EXAMPLES_A_MINUTE = 4
"""Requests of schemathesis per route and kind, for every minute of the run; one at least."""

UNREAD = 0.3
"""Seconds for which a client that reads nothing stays connected."""

READ = 64 * 1024 * 1024
"""Bytes of an answer to read before closing the connection."""

LEFT = Path("build/fuzz-api")
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3}) ")
_ERRORS = ("unexpected error", "Traceback", "Exception in ASGI")


class Broken(Exception):
    """The service misbehaved; the message says how."""


class Watch:
    """Requests /healthz repeatedly on one connection, and checks the process in between."""

    def __init__(self, service: Process, most: int) -> None:
        self._service = service
        self._most = most
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.broken: str | None = None
        self.peak = self.probes = self.late = 0
        self.worst = 0.0
        self.under_way: Sequence[str] = [
            "schemathesis"
        ]  # the current requests, and those at the time of the worst answer
        self.met: Sequence[str] = ()

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join(HANG * 2)

    def _run(self) -> None:
        measured = psutil.Process(self._service.pid)
        host, _, port = self._service.url.removeprefix("http://").partition(":")
        try:
            with socket.create_connection((host, int(port)), HANG) as connection:
                while not self._over.wait(0.02):
                    self._probe(connection)
                    self.peak = max(self.peak, measured.memory_info().rss // 2**20)
                    if self.peak > self._most:
                        raise Broken(f"the process holds {self.peak} MiB; {self._most} are its bound")
                    if any(error in self._service.output for error in _ERRORS):
                        raise Broken(f"an error was logged: {self._service.output[-4000:]}")
        except (Broken, OSError, psutil.Error) as error:
            self.broken = str(error) or repr(error)

    def _probe(self, connection: socket.socket) -> None:
        begun = time.monotonic()
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while not received.endswith(b'{"status":"ok"}'):
            piece = connection.recv(4096)
            if not piece:
                raise Broken(f"/healthz was answered with {received!r}")
            received += piece
        waited = time.monotonic() - begun
        self.probes += 1
        self.late += waited > 0.1
        if waited > self.worst:
            self.worst, self.met = waited, tuple(self.under_way)


class Fuzzer:
    """Sends hostile requests, and counts the responses by kind."""

    def __init__(self, service: Process, watch: Watch, seed: int, origins: Sequence[str]) -> None:
        host, _, port = service.url.removeprefix("http://").partition(":")
        self._address = host, int(port)
        self._watch = watch
        self._requests = requests(random.Random(seed), origins)
        self._under_way: list[Hostile] = []
        self.answers: Counter[tuple[str, str]] = Counter()

    async def run(self, seconds: float) -> None:
        """Send for so long; raises Broken."""
        until = time.monotonic() + seconds
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(self._send_all(until))
        except* Broken as broken:
            self._leave()
            raise broken.exceptions[0] from None

    async def _send_all(self, until: float) -> None:
        while time.monotonic() < until:
            if self._watch.broken is not None:
                raise Broken(self._watch.broken)
            hostile = next(self._requests)
            self._under_way.append(hostile)
            self._watch.under_way = [one.kind for one in self._under_way]
            status = await self._send(hostile)
            self.answers[hostile.kind, status] += 1
            if status.startswith("5") and status != "503":
                raise Broken(f"{hostile.kind} was answered with {status}")
            self._under_way.remove(hostile)

    async def _send(self, hostile: Hostile) -> str:
        """The status of the last answer, or what came instead."""
        try:
            reader, writer = await asyncio.open_connection(*self._address)
        except OSError as error:
            raise Broken(f"no connection is accepted: {error}") from None
        writing = asyncio.create_task(_write(writer, hostile))
        try:
            async with asyncio.timeout(HANG):
                if not hostile.reads:
                    await asyncio.wait([writing], timeout=UNREAD)
                    return "not read"
                statuses = await _statuses(reader)
        except TimeoutError:
            raise Broken(f"{hostile.kind} was neither answered nor refused within {HANG:.0f} s") from None
        finally:
            writer.transport.abort()
            writing.cancel()
            await asyncio.wait([writing])
        return statuses[-1].decode() if statuses else "closed"

    def _leave(self) -> None:
        """Store the current requests in LEFT."""
        LEFT.mkdir(parents=True, exist_ok=True)
        for number, hostile in enumerate(self._under_way):
            (LEFT / f"{number}-{hostile.kind.replace(' ', '-')}").write_bytes(b"".join(hostile.pieces))


async def _write(writer: asyncio.StreamWriter, hostile: Hostile) -> None:
    with suppress(OSError):
        for piece in hostile.pieces:
            writer.write(piece)
            await writer.drain()
        if hostile.ends:
            writer.write_eof()


async def _statuses(reader: asyncio.StreamReader) -> list[bytes]:
    found: list[bytes] = []
    read = 0
    with suppress(OSError):
        while read < READ and (piece := await reader.read(2**18)):
            read += len(piece)
            found += _STATUS.findall(piece)
    return found


def schema_of(url: str) -> dict[str, object]:
    """The service's OpenAPI document."""
    described: dict[str, object] = httpx.get(f"{url}/openapi.json").json()
    return described


async def fuzz(seconds: float, seed: int, most: int) -> str:
    """The results of one run. Raises Broken."""
    # Each process of the tests imports this module, and schemathesis takes half a second to import.
    from tests.api.schema_fuzz import broken_promises

    settings = {"FETCH_TIMEOUT": "1", "MEMORY_BYTES": str(16 * 2**20), "ACCESS_LOG": "false"}
    chance = random.Random(seed)
    async with web(text(404)) as origins:
        hostile = [origins.new(text(200, file(chance))) for _ in range(FILES)]
        with process(**settings) as service:
            await asyncio.to_thread(service.wait_ready)
            with Watch(service, most) as watch:
                described = await asyncio.to_thread(schema_of, service.url)
                examples = max(1, round(EXAMPLES_A_MINUTE * seconds / 60))
                broken = await asyncio.to_thread(broken_promises, described, service.url, examples, seed)
                if broken:
                    raise Broken("\n\n".join(broken))
                fuzzer = Fuzzer(service, watch, seed, hostile)
                await fuzzer.run(seconds)
            if watch.broken is not None:
                raise Broken(watch.broken)
    kinds: dict[str, dict[str, int]] = {}
    for (kind, status), count in sorted(fuzzer.answers.items()):
        kinds.setdefault(kind, {})[status] = count
    lines = [f"{kind}: {json.dumps(statuses)}" for kind, statuses in kinds.items()]
    lines.append(
        f"/healthz: {watch.probes} requests, {watch.late} later than 0.1 s, the latest after {watch.worst:.2f} s "
        f"(with {', '.join(watch.met)})"
    )
    lines.append(f"memory: {watch.peak} MiB at most; {most} are the bound")
    return "\n".join(lines)


def main() -> int:
    """Run, and print the results and the seed; exit with 1 if the service broke."""
    seconds = float(os.environ.get("FUZZ_SECONDS") or SECONDS)
    seed = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().randrange(2**32))
    print(f"FUZZ_SEED={seed}", flush=True)
    try:
        print(asyncio.run(fuzz(seconds, seed, int(os.environ.get("FUZZ_RSS_MB") or RSS_MB))))
    except Broken as broken:
        print(f"broken: {broken}\nwhat was under way is in {LEFT}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
