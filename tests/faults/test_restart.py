"""SIGHUP replaces all workers one by one, however slowly they start, and fails no request; SIGTERM stops cleanly."""

import asyncio
import re
import signal
from pathlib import Path
from urllib.parse import urlencode

import httpx
import psutil

from tests.faults.loopback import web
from tests.faults.process import Process, process
from tests.origins import text

CLOSED = text(200, "User-agent: *\nDisallow: /private/\n")
WORKERS = 2
CALLERS = 6
STARTED = re.compile(r"Started server process \[(\d+)\]")
SLOW_START = """
import sys, time
if "--multiprocessing-fork" in sys.argv:
    time.sleep(5.5)  # longer than uvicorn waits
"""


class Caller:
    """Repeats a question on one connection, and reconnects when the service closes it."""

    def __init__(self, url: str, query: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._address = host, int(port)
        self._request = f"GET /v1/allowed?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self.answers = self.closed_idle = 0
        self.failures: list[str] = []

    async def ask_on(self) -> None:
        while True:
            reader, writer = await asyncio.open_connection(*self._address)
            try:
                await self._use(reader, writer)
            finally:
                writer.transport.abort()

    async def _use(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        used = False
        while True:
            try:
                writer.write(self._request)
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, OSError) as error:
                # RFC 9112 9.3.1: an idle connection may be closed at any time, and the request is sent again.
                if used and not getattr(error, "partial", b""):
                    self.closed_idle += 1
                else:
                    self.failures.append(f"{error!r} on a connection that was {'used' if used else 'new'}")
                return
            length = re.search(rb"content-length: (\d+)", head.lower())
            assert length is not None
            body = await reader.readexactly(int(length[1]))
            if not head.startswith(b"HTTP/1.1 200 ") or b'"disallow"' not in body:
                self.failures.append(repr(head + body))
            self.answers += 1
            used = True
            if b"connection: close" in head.lower():
                return
            await asyncio.sleep(0.1)


def alive(service: Process) -> set[int]:
    """The current workers."""
    children = {child.pid for child in psutil.Process(service.pid).children()}
    return children & set(map(int, STARTED.findall(service.output)))


async def test_sighup_replaces_slow_workers_one_by_one_and_fails_no_request(store_url: str, tmp_path: Path) -> None:
    slow = tmp_path / "sitecustomize.py"
    table = tmp_path / "recheck.toml"
    table.write_text("")
    settings = {
        "REDIS_URL": store_url,
        "WORKERS": str(WORKERS),
        "ACCESS_LOG": "false",
        "PYTHONPATH": str(tmp_path),
        "RECHECK_FILE": str(table),
    }
    async with web(CLOSED) as origins:
        with process(**settings) as service:
            url = await asyncio.to_thread(service.wait_ready, WORKERS)
            before = alive(service)
            assert len(before) == WORKERS
            query = urlencode({"url": f"{origins.new()}/private/page", "agent": "ExampleBot"})
            callers = [Caller(url, query) for _ in range(CALLERS)]
            tasks = [asyncio.create_task(caller.ask_on()) for caller in callers]
            # Workers that fail to start replace none.
            table.write_text("this is not TOML")
            service.send_signal(signal.SIGHUP)
            await asyncio.to_thread(service.wait_for, "Restart aborted")
            assert alive(service) == before
            table.write_text("")
            slow.write_text(SLOW_START)
            service.send_signal(signal.SIGHUP)
            await asyncio.to_thread(service.wait_for, "All workers were replaced")
            await asyncio.to_thread(service.wait_for, "Finished server process", WORKERS)
            after = alive(service)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert [caller.failures for caller in callers] == [[]] * CALLERS
            assert all(caller.answers > 100 for caller in callers)
            assert len(after) == WORKERS
            assert not after & before
            assert service.output.count("Started server process") == 2 * WORKERS
            service.send_signal()
            assert await asyncio.to_thread(service.ended) == 0
            assert "Traceback" not in service.output.rpartition("Restart aborted")[2]


async def test_sigterm_ends_one_worker_with_status_0(store_url: str) -> None:
    # The test above stops two workers this way.
    with process(REDIS_URL=store_url, WORKERS="1") as service:
        await asyncio.to_thread(service.wait_ready)
        service.send_signal()
        assert await asyncio.to_thread(service.ended) == 0
        assert "Traceback" not in service.output


async def test_first_request_during_shutdown_is_answered(store_url: str) -> None:
    with process(REDIS_URL=store_url) as service:
        host, port = (await asyncio.to_thread(service.wait_ready)).removeprefix("http://").split(":")
        # An unused connection, and one with part of a request.
        first, second = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
        second[1].write(b"GET /healthz HTTP/1.1\r\n")
        # Connections are accepted in order: once a later one is answered, the process has both.
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/healthz")).status_code == 200
        service.send_signal()
        await asyncio.to_thread(service.wait_for, "Shutting down")
        first[1].write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        second[1].write(b"Host: localhost\r\n\r\n")
        for reader, writer in (first, second):
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"connection: close" in answer.lower()
            writer.close()
        assert await asyncio.to_thread(service.ended) == 0
