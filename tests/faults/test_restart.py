"""SIGHUP replaces all workers one by one, however slowly they start, and fails no request; SIGTERM is a clean end."""

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
    time.sleep(5.5)  # more than uvicorn waits for
"""


class Caller:
    """Asks the same question again and again on one connection. A new one replaces it where the service closed it."""

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
            await asyncio.sleep(0.005)


def alive(service: Process) -> set[int]:
    """The workers that there are now."""
    children = {child.pid for child in psutil.Process(service.pid).children()}
    return children & set(map(int, STARTED.findall(service.said)))


async def test_sighup_replaces_slow_workers_one_by_one_and_fails_no_request(store_url: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_START)
    settings = {"REDIS_URL": store_url, "WORKERS": str(WORKERS), "ACCESS_LOG": "false", "PYTHONPATH": str(tmp_path)}
    async with web(CLOSED) as origins:
        with process(**settings) as service:
            url = await asyncio.to_thread(service.listens, WORKERS)
            before = alive(service)
            assert len(before) == WORKERS
            query = urlencode({"url": f"{origins.new()}/private/page", "agent": "ExampleBot"})
            callers = [Caller(url, query) for _ in range(CALLERS)]
            tasks = [asyncio.create_task(caller.ask_on()) for caller in callers]
            service.tell(signal.SIGHUP)
            await asyncio.to_thread(service.says, "All workers were replaced")
            await asyncio.to_thread(service.says, "Finished server process", WORKERS)
            after = alive(service)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert [caller.failures for caller in callers] == [[]] * CALLERS
            assert all(caller.answers > 100 for caller in callers)
            assert len(after) == WORKERS
            assert not after & before
            assert service.said.count("Started server process") == 2 * WORKERS
            service.tell()
            assert await asyncio.to_thread(service.ended) == 0
            assert "Traceback" not in service.said


async def test_workers_that_cannot_start_replace_none(store_url: str, tmp_path: Path) -> None:
    table = tmp_path / "recheck.toml"
    table.write_text("")
    with process(REDIS_URL=store_url, WORKERS="2", RECHECK_FILE=str(table)) as service:
        await asyncio.to_thread(service.listens, 2)
        before = alive(service)
        table.write_text("this is no TOML")
        service.tell(signal.SIGHUP)
        await asyncio.to_thread(service.says, "Restart aborted")
        assert alive(service) == before
        table.write_text("")
        service.tell(signal.SIGHUP)
        await asyncio.to_thread(service.says, "All workers were replaced")
        assert not alive(service) & before
        service.tell()
        assert await asyncio.to_thread(service.ended) == 0


async def test_sigterm_ends_one_worker_with_status_0(store_url: str) -> None:
    # Two workers end so in the tests above.
    with process(REDIS_URL=store_url, WORKERS="1") as service:
        await asyncio.to_thread(service.listens)
        service.tell()
        assert await asyncio.to_thread(service.ended) == 0
        assert "Traceback" not in service.said


async def test_a_first_request_on_its_way_when_the_process_ends_is_answered(store_url: str) -> None:
    with process(REDIS_URL=store_url) as service:
        host, port = (await asyncio.to_thread(service.listens)).removeprefix("http://").split(":")
        # One connection that has not been used, and one with a request that has begun to arrive.
        first, second = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
        second[1].write(b"GET /healthz HTTP/1.1\r\n")
        # Connections are taken in turn: when a later one has its answer, both are with the process.
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/healthz")).status_code == 200
        service.tell()
        await asyncio.to_thread(service.says, "Shutting down")
        first[1].write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        second[1].write(b"Host: localhost\r\n\r\n")
        for reader, writer in (first, second):
            said = await reader.read()
            assert said.startswith(b"HTTP/1.1 200 ")
            assert b"connection: close" in said.lower()
            writer.close()
        assert await asyncio.to_thread(service.ended) == 0
