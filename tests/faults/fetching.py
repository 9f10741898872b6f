"""A fetcher with the production guard, and a network that connects public addresses to a test's origins.

async with nothing_left(), serve(text(200)) as origin:
    wire = Wire({PUBLIC: origin})
    fetched = await fetcher(Names({SITE: [PUBLIC]}), wire).fetch(origin.named(SITE))
assert wire.tried == [PUBLIC]
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpcore2
import psutil

from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import Resolver
from app.fetch.profile import FetchProfile
from tests.faults.until import until_so
from tests.origins import NO_TLS, LoopbackOrigin

SITE = "www.example.com"
PUBLIC = "93.184.216.34"
"""An address that the guard admits."""


class Wire(httpcore2.AsyncNetworkBackend):
    """Connects the public address of each origin to loopback, and refuses all others."""

    def __init__(self, routes: Mapping[str, LoopbackOrigin]) -> None:
        self._routes = {address: str(origin.address) for address, origin in routes.items()}
        self._sockets = httpcore2.AnyIOBackend()
        self.tried: list[str] = []
        self.received = 0
        self.open_now = 0

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.tried.append(host)
        if host not in self._routes:
            raise httpcore2.ConnectError(f"nothing listens at {host}")
        stream = await self._sockets.connect_tcp(self._routes[host], port, timeout, local_address, socket_options)
        self.open_now += 1
        return _Counted(stream, self)


class _Counted(httpcore2.AsyncNetworkStream):
    """A connection that counts received bytes, above TLS and below HTTP."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire
        self._open = True

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = await self._stream.read(max_bytes, timeout)
        self._wire.received += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        self._wire.open_now -= self._open
        self._open = False
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        self._stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


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
        sockets=wire,
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
