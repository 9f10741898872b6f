"""Serve an application with the production server, for callers that send raw bytes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from app.main.server.connection import Connection

Address = tuple[str, int]
Protocol = type[asyncio.Protocol]

PATIENCE = 30.0
"""Seconds within which a server must answer or close, even on a busy machine."""


@asynccontextmanager
async def serve_app(app: Any, http: Protocol = Connection) -> AsyncIterator[tuple[Address, uvicorn.Server]]:
    """Serve the application, without its lifespan, while the block lasts."""
    config = uvicorn.Config(app, http=http, lifespan="off", log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield listener.getsockname(), server
        finally:
            server.should_exit = True
            await serving


class Caller:
    """A connection that sends raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send, unless the server has closed already."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            pass

    async def receive(self, size: int = 65_536) -> bytes:
        """The next bytes; none if the server has closed."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.read(size)
            except ConnectionError:
                return b""

    async def end(self) -> bytes:
        """All bytes until the server closes."""
        received = b""
        while piece := await self.receive():
            received += piece
        return received

    async def answer(self) -> bytes:
        """One answer with a Content-Length."""
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            return head + await self._reader.readexactly(int(length.partition(b":")[2]))


@asynccontextmanager
async def connect(address: Address, *, window: int | None = None) -> AsyncIterator[Caller]:
    """A connection; with `window`, its receive buffer holds about so many bytes."""
    raw = socket.socket()
    raw.setblocking(False)
    if window is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    await asyncio.get_running_loop().sock_connect(raw, address)
    reader, writer = await asyncio.open_connection(sock=raw, limit=window or 2**16)
    try:
        yield Caller(reader, writer)
    finally:
        writer.transport.abort()


def status(answer: bytes) -> int:
    """The status of an answer; 0 for none."""
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0
