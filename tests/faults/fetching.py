"""A fetcher with the production guard, and a network that connects public addresses to a test's origins.

async with nothing_left(), serve(text(200)) as origin:
    wire = Wire({PUBLIC: origin})
    fetched = await fetcher(Names({SITE: [PUBLIC]}), wire).fetch(origin.named(SITE))
assert wire.tried == [PUBLIC]
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psutil

from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import Resolver, connect
from app.fetch.profile import FetchProfile
from tests.faults.until import until_so
from tests.origins import NO_TLS, LoopbackOrigin

SITE = "www.example.com"
PUBLIC = "93.184.216.34"
"""An address that the guard admits."""


class Wire:
    """Connects the public address of each origin to loopback, and refuses all others; counts above TLS, below HTTP."""

    def __init__(self, routes: Mapping[str, LoopbackOrigin]) -> None:
        self._routes = {address: str(origin.address) for address, origin in routes.items()}
        self.tried: list[str] = []
        self.received = 0
        self.open_now = 0

    async def __call__(
        self, protocol: asyncio.BufferedProtocol, address: str, port: int, tls: ssl.SSLContext | None, host: str
    ) -> asyncio.Transport:
        self.tried.append(address)
        if address not in self._routes:
            raise ConnectionRefusedError(f"nothing listens at {address}")
        return await connect(_Counted(protocol, self), self._routes[address], port, tls, host)


class _Counted(asyncio.BufferedProtocol):
    """Passes everything on to a protocol."""

    def __init__(self, protocol: asyncio.BufferedProtocol, wire: Wire) -> None:
        self._protocol = protocol
        self._wire = wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire.open_now += 1
        self._protocol.connection_made(transport)

    def get_buffer(self, sizehint: int) -> Any:
        return self._protocol.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._wire.received += nbytes
        self._protocol.buffer_updated(nbytes)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.open_now -= 1
        self._protocol.connection_lost(exc)


def fetcher(
    resolver: Resolver,
    wire: Wire,
    *,
    tls: ssl.SSLContext = NO_TLS,
    timeout: float = 20.0,
    ports: PortPolicy = PortPolicy(every=True),  # noqa: B008
) -> Fetcher:
    """The fetcher as `main` builds it, without allowed addresses."""
    return Fetcher(
        profile=FetchProfile("RobotsDecisions/1"),
        guard=AddressGuard(),
        ports=ports,
        resolver=resolver,
        ssl_context=tls,
        connect=wire,
        timeout=timeout,
    )


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """Check that the block leaves no new task and no new socket behind."""
    tasks, sockets = asyncio.all_tasks(), _sockets()
    async with asyncio.timeout(60):  # fail instead of hanging the suite
        yield
    await until_so(lambda: asyncio.all_tasks() <= tasks and _sockets() <= sockets)


def _sockets() -> set[int]:
    return {connection.fd for connection in psutil.Process().net_connections("all")}
