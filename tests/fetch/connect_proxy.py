"""A proxy that opens tunnels (CONNECT, RFC 9110 9.3.6): real sockets, in the event loop of the test."""

import asyncio
from contextlib import suppress

from tests.origins import Exchange, Handler


def tunnels(answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> Handler:
    """A handler that connects to the target of a CONNECT, sends the answer, and passes everything on."""

    async def handle(exchange: Exchange) -> None:
        host, _, port = exchange.path.rpartition(":")
        await relay(exchange, host.strip("[]"), int(port), answer)

    return handle


async def relay(exchange: Exchange, host: str, port: int, answer: bytes = b"") -> None:
    """Connect, send the answer to the client, and pass on what either says until both have ended."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        await exchange.send(answer)
        async with asyncio.TaskGroup() as both:
            both.create_task(_pass_on(exchange._reader, writer))
            both.create_task(_pass_on(reader, exchange._writer))
    finally:
        writer.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
