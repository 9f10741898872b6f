"""A proxy to the store that can cut, delay, redirect or corrupt connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

PIECE = 65_536


class Proxy:
    """Forwards connections to `url` to the socket of `target`, until a switch is set.

    `refusing`: every new connection is closed. `nonsense`: everything is answered with these bytes. `latency`: seconds
    by which the first answer on a new connection is delayed. `held`: answers are held back while the event is not set.
    `answers` counts the pieces of answers that were forwarded.
    """

    def __init__(self, url: str, target: str) -> None:
        self.url = url
        self.target = target
        self.refusing = False
        self.nonsense: bytes | None = None
        self.latency = 0.0
        self.connections = 0
        self.answers = 0
        self.held = asyncio.Event()
        self.held.set()
        self._closing = asyncio.Event()
        self._open: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}

    def cut(self) -> None:
        """Reset all connections; new ones may be opened."""
        for writers in self._open.values():
            for writer in writers:
                writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        task = asyncio.current_task()
        assert task is not None
        writers = self._open[task] = [writer]
        self.connections += 1
        try:
            if self.refusing:
                return
            if self.nonsense is not None:
                await self._babble(reader, writer, self.nonsense)
                return
            behind, ahead = await asyncio.open_unix_connection(unquote(self.target.removeprefix("unix://")))
            writers.append(ahead)
            ways = [asyncio.create_task(self._there(reader, ahead)), asyncio.create_task(self._back(behind, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass  # one side has closed, or there is no server
        finally:
            for one in writers:
                one.transport.abort()
            for one in writers:
                with suppress(OSError):
                    await one.wait_closed()
            del self._open[task]

    async def _babble(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, nonsense: bytes) -> None:
        while await reader.read(PIECE):
            writer.write(nonsense)
            await writer.drain()

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = True
        while data := await reader.read(PIECE):
            if first and self.latency:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self.latency)
            first = False
            await self.held.wait()
            self.answers += 1
            writer.write(data)
            await writer.drain()

    async def end(self) -> None:
        """End every connection."""
        self._closing.set()
        self.held.set()
        self.cut()
        await asyncio.gather(*self._open)


@asynccontextmanager
async def proxy(target: str, directory: Path) -> AsyncIterator[Proxy]:
    """A proxy to the store whose `unix://` URL is `target`, on a socket in `directory`."""
    path = directory / "proxy.sock"
    between = Proxy(f"unix://{path}", target)
    server = await asyncio.start_unix_server(between.serve, path)
    try:
        yield between
    finally:
        server.close()
        await between.end()
        await server.wait_closed()
