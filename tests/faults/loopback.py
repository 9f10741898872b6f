"""Many origins behind one listening socket: every address of 127.0.0.0/8 at its port is an origin.

Separate addresses matter, since a process opens at most four connections to one address.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import IPv4Address
from typing import TypeAlias

FIRST = int(IPv4Address("127.1.0.1"))

Reply: TypeAlias = bytes | Callable[["Visit"], Awaitable[None]]


class Visit:
    """One request: its destination address, and its connection."""

    def __init__(self, address: str, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send raw bytes. Raises ConnectionError once the client has disconnected."""
        self.writer.write(data)
        await self.writer.drain()


class Web:
    """`reply` is the answer of all origins except those in `replies`; `requests` counts them by address."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.replies: dict[str, Reply] = {}
        self.requests: dict[str, int] = {}
        self.open_now = 0
        self.port = 0
        self._given = 0
        self._handlers: set[asyncio.Task[None]] = set()

    def new(self, reply: Reply | None = None) -> str:
        """An origin that has not been used yet."""
        address = str(IPv4Address(FIRST + self._given))
        self._given += 1
        if reply is not None:
            self.replies[address] = reply
        return f"http://{address}:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self.open_now += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            address = writer.get_extra_info("sockname")[0]
            self.requests[address] = self.requests.get(address, 0) + 1
            reply = self.replies.get(address, self.reply)
            if isinstance(reply, bytes):
                writer.write(reply)
                await writer.drain()
            else:
                await reply(Visit(address, writer))
            writer.close()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()  # the client has disconnected, or the server stops
        finally:
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self.open_now -= 1
            self._handlers.discard(task)

    async def _end(self) -> None:
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)


@asynccontextmanager
async def web(reply: Reply, given: int = 0) -> AsyncIterator[Web]:
    """Serve until the block ends; the first `given` addresses are another's."""
    found = Web(reply)
    found._given = given
    server = await asyncio.start_server(found._serve, "0.0.0.0", 0, backlog=2048)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        await found._end()
        await server.wait_closed()
