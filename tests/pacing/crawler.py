"""A crawler with many workers that uses permits: `python -m tests.pacing.crawler`, configured by a line of JSON.

It prints `ready`, waits for a second line, and then crawls until a third line or end of file.
"""

import asyncio
import json
import sys
import time
from datetime import datetime
from typing import Any

REQUEST = (
    "{method} {path} HTTP/1.1\r\nHost: {host}\r\nTurn: {grant}\r\n"
    "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)

IDLE = 3.0
"""Seconds after which an idle connection is not used again; the service closes it after 5."""


class Connection:
    """A connection that is kept open, and reopened when it is closed."""

    def __init__(self, url: str) -> None:
        self._host = url.removeprefix("http://")
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used_at = 0.0

    async def ask(self, method: str, path: str, body: object = None, grant: float = 0.0) -> tuple[int, bytes]:
        """Status and body of a response with a Content-Length; `grant` is the instant of the request's slot.

        A server may close an idle connection just as it is used again; then a new one is opened.
        """
        used = self._streams is not None
        try:
            return await self._ask(method, path, body, grant)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            if not used or (isinstance(error, asyncio.IncompleteReadError) and error.partial):
                raise
            return await self._ask(method, path, body, grant)

    async def _ask(self, method: str, path: str, body: object, grant: float) -> tuple[int, bytes]:
        content = b"" if body is None else json.dumps(body).encode()
        head = REQUEST.format(method=method, path=path, host=self._host, length=len(content), grant=f"{grant:.3f}")
        if time.monotonic() - self._used_at > IDLE:
            self.close()
        if self._streams is None:
            host, _, port = self._host.rpartition(":")
            self._streams = await asyncio.open_connection(host, int(port))
        reader, writer = self._streams
        try:
            writer.write(head.encode() + content)
            received = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(received.partition(b"content-length:")[2].partition(b"\r\n")[0])
            answer = await reader.readexactly(length)
        except BaseException:
            self.close()
            raise
        self._used_at = time.monotonic()
        if b"connection: close" in received:
            self.close()
        return int(received.split(b" ", 2)[1]), answer

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def work(service: Connection, origin: Connection, request: dict[str, Any], late: float) -> None:
    """Fetch the pages of the origin, one permit each; release a slot missed by more than `late` seconds."""
    while True:
        status, answer = await service.ask("POST", "/v1/permits", request)
        if status != 200:
            raise RuntimeError(f"a permit was answered with {status}: {answer!r}")
        permit = json.loads(answer)
        if permit["permit"] is None:
            await asyncio.sleep(permit["retry_after"] or 1.0)
            continue
        go_at = datetime.fromisoformat(permit["go_at"]).timestamp()
        while (left := go_at - time.time()) > 0:  # noqa: ASYNC110 - asyncio's clock is another
            await asyncio.sleep(left)
        outcome: dict[str, Any] = {"released": True}
        if time.time() <= go_at + late:
            status, _ = await origin.ask("GET", "/page", grant=go_at)
            outcome = {"status": status}
        await service.ask("POST", f"/v1/permits/{permit['permit']}/outcome", outcome)


async def main() -> None:
    """Crawl as configured by the first line of the input, from the second line to the third."""
    loop = asyncio.get_running_loop()

    async def line() -> str:
        return await loop.run_in_executor(None, sys.stdin.readline)

    config = json.loads(await line())
    request = {"url": config["origin"] + "/page", "agent": "ExampleBot", "caller": config["caller"], "max_wait": 60}
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await line()
    services = config["services"]
    workers: list[asyncio.Task[Any]] = [
        asyncio.create_task(
            work(Connection(services[at % len(services)]), Connection(config["origin"]), request, config["late"])
        )
        for at in range(config["workers"])
    ]
    end: asyncio.Task[Any] = asyncio.create_task(line())
    done, _ = await asyncio.wait([end, *workers], return_when=asyncio.FIRST_COMPLETED)
    for task in workers:
        task.cancel()
    for task in done - {end}:
        task.result()


if __name__ == "__main__":
    asyncio.run(main())
