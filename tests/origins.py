"""Small web servers on loopback with responses from the test: real sockets, real TLS, raw bytes.

async with serve(text(200, "User-agent: *\nDisallow: /")) as origin:
    ... fetch origin.named("www.example.com") with a resolver that leads the name to origin.address ...
assert origin.requests[0].startswith(b"GET /robots.txt ")
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

import trustme

from robots_core.origin import Origin


class Exchange:
    """One request and its connection; `head` is the request as sent, up to its empty line."""

    def __init__(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, closing: asyncio.Event
    ) -> None:
        self.head = head
        self._reader = reader
        self._writer = writer
        self._closing = closing

    @property
    def path(self) -> str:
        """The request target."""
        return self.head.split(b" ", 2)[1].decode("ascii")

    @property
    def protocol(self) -> str | None:
        """The protocol that the client and the server agreed on (ALPN)."""
        found: str | None = self._writer.get_extra_info("ssl_object").selected_alpn_protocol()
        return found

    async def send(self, data: bytes) -> None:
        """Send raw bytes. Raises ConnectionError once the client has disconnected."""
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self, size: int) -> bytes:
        """Read exactly `size` bytes from the client. Raises asyncio.IncompleteReadError if it disconnects."""
        return await self._reader.readexactly(size)

    async def stall(self) -> None:
        """Stay silent until the client disconnects or the server is closed."""
        gone = asyncio.ensure_future(self._reader.read())
        closed = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({gone, closed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            closed.cancel()
            await asyncio.gather(gone, closed, return_exceptions=True)

    def abort(self) -> None:
        """End the connection at once: over TLS, without close_notify."""
        self._writer.transport.abort()

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Handler: TypeAlias = Callable[[Exchange], Awaitable[None]]
Reply: TypeAlias = bytes | Handler
"""Bytes to send before closing the connection, or a handler."""


class LoopbackOrigin:
    """A running server: its address, and its requests."""

    def __init__(self, host: str, port: int, scheme: str) -> None:
        self.address: IPv4Address | IPv6Address = ip_address(host)
        self.port = port
        self.scheme = scheme
        self.requests: list[bytes] = []
        self.connections = 0
        self.open_now = 0
        self.most_at_once = 0
        self._changed = asyncio.Condition()

    @property
    def url(self) -> str:
        """The origin, by its address for http, by `localhost` for https."""
        return (self.named("localhost") if self.scheme == "https" else self.named(str(self.address))).key

    def named(self, host: str) -> Origin:
        """This server as the origin of a host name or address."""
        return Origin(self.scheme, host, self.port)

    async def wait_for_requests(self, count: int) -> None:
        """Wait until `count` requests have arrived."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def left(self) -> None:
        """Wait until no connection is open."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.open_now == 0)

    async def _note(self, opened: int = 0, request: bytes | None = None) -> None:
        async with self._changed:
            self.connections += max(opened, 0)
            self.open_now += opened
            self.most_at_once = max(self.most_at_once, self.open_now)
            if request is not None:
                self.requests.append(request)
            self._changed.notify_all()


class Gate:
    """A reply that waits until it is released."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply
        self.open = asyncio.Event()

    async def __call__(self, exchange: Exchange) -> None:
        await self.open.wait()
        await exchange.send(self._reply)


@asynccontextmanager
async def serve(
    *replies: Reply,
    tls: ssl.SSLContext | None = None,
    greeting: bytes = b"",
    at_once: Handler | None = None,
    host: str = "127.0.0.1",
) -> AsyncIterator[LoopbackOrigin]:
    """Answer the first request with the first reply, and so on; the last reply answers every request after it.

    A `greeting` is sent on every connection before its request; `at_once` handles the connection from the start,
    and no request is read.
    """
    closing = asyncio.Event()
    handlers: set[asyncio.Task[None]] = set()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            await origin._note(opened=1)
            writer.write(greeting)
            if at_once is not None:
                await at_once(Exchange(b"", reader, writer, closing))
                return
            head = await reader.readuntil(b"\r\n\r\n")
            reply = replies[min(len(origin.requests), len(replies) - 1)]
            await origin._note(request=head)
            exchange = Exchange(head, reader, writer, closing)
            if isinstance(reply, bytes):
                await exchange.send(reply)
            else:
                await reply(exchange)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client has disconnected, as clients with a deadline do
        finally:
            await _close(writer, at_once=closing.is_set())
            await origin._note(opened=-1)
            handlers.discard(task)

    server = await asyncio.start_server(serve_one, host, 0, ssl=tls)
    origin = LoopbackOrigin(host, server.sockets[0].getsockname()[1], "http" if tls is None else "https")
    try:
        yield origin
    finally:
        server.close()
        closing.set()
        for task in handlers:
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
        await server.wait_closed()


async def _close(writer: asyncio.StreamWriter, *, at_once: bool) -> None:
    """Close after sending buffered data, unless `at_once`; the end of the server aborts what takes longer."""
    if at_once:
        writer.transport.abort()
    writer.close()
    try:
        await writer.wait_closed()
    except (ConnectionError, ssl.SSLError):
        pass
    except asyncio.CancelledError:
        writer.transport.abort()


def http_only(reply: bytes) -> Handler:
    """A handler for `at_once` that hangs up on a TLS handshake, as servers without TLS do."""

    async def answer(exchange: Exchange) -> None:
        if (head := await exchange.receive(1)) == b"\x16":
            return
        while not head.endswith(b"\r\n\r\n"):
            head += await exchange.receive(1)
        await exchange.send(reply)

    return answer


def text(status: int, body: str | bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """A response with the right Content-Length; `headers` are added, and may replace text/plain."""
    content = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": "text/plain", "Content-Length": str(len(content)), **(headers or {})}
    return head(status, fields) + content


def head(status: int, headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> bytes:
    """The status line, the fields and the empty line; values are encoded as ISO 8859-1."""
    fields = headers.items() if isinstance(headers, Mapping) else headers
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def redirect(location: str, status: int = 301) -> bytes:
    """A redirect."""
    return text(status, "", {"Location": location})


class Names:
    """A resolver with a table, which records its queries; other names have no address."""

    def __init__(self, table: Mapping[str, Sequence[str]]) -> None:
        self._table = {name: [ip_address(address) for address in addresses] for name, addresses in table.items()}
        self.queries: list[str] = []

    async def __call__(self, name: str) -> Sequence[IPv4Address | IPv6Address]:
        self.queries.append(name)
        if name not in self._table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._table[name]


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


LOOPBACKS = ("127.0.0.1", "::1") if _has_ipv6() else ("127.0.0.1",)
"""The loopback addresses of this machine, without ::1 if the kernel has no IPv6."""

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts no CA."""


class Authority:
    """A test CA."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.requested_names: list[str | None] = []

    def client_context(self) -> ssl.SSLContext:
        """A client context that trusts only this CA."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._ca.configure_trust(context)
        return context

    def trusted_by(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """Add this CA to the context, and return it."""
        self._ca.configure_trust(context)
        return context

    def self_signed_context(self) -> ssl.SSLContext:
        """A server context with the CA's own, self-signed certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with self._ca.private_key_pem.tempfile() as key, self._ca.cert_pem.tempfile() as certificate:
            context.load_cert_chain(certificate, key)
        return context

    def server_context(
        self, *names: str, since: datetime | None = None, until: datetime | None = None
    ) -> ssl.SSLContext:
        """A server context with a certificate for these names; `requested_names` records the names in SNI."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names, not_before=since, not_after=until).configure_cert(context)

        def remember(_socket: object, name: str | None, _context: object) -> None:
            self.requested_names.append(name)

        context.sni_callback = remember
        return context
