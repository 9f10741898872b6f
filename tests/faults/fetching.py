"""A fetcher with the production guard, and a network that connects public addresses to a test's origins.

async with nothing_left(), serve(text(200)) as origin:
    wire = Wire({PUBLIC: origin})
    fetched = await fetcher(Names({SITE: [PUBLIC]}), wire).fetch(origin.named(SITE))
assert wire.tried == [PUBLIC]
"""

import asyncio
import os
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

from app.fetch.client import Fetcher
from app.fetch.exchange import Exchange
from app.fetch.guard import Address, AddressGuard, PortPolicy
from app.fetch.network import Resolver
from app.fetch.profile import FetchProfile
from app.fetch.sockets import connect
from tests.faults.until import until_so
from tests.origins import NO_TLS, LoopbackOrigin

SITE = "www.example.com"
PUBLIC = "93.184.216.34"
"""An address that the guard admits."""


class Wire:
    """Connects the public address of each origin to loopback, and refuses all others."""

    def __init__(self, routes: Mapping[str, LoopbackOrigin]) -> None:
        self._routes = {address: origin.address for address, origin in routes.items()}
        self._connected: list[socket.socket] = []
        self.tried: list[str] = []

    @property
    def open_now(self) -> int:
        """The connections that are not closed."""
        return sum(connected.fileno() >= 0 for connected in self._connected)

    async def __call__(self, address: Address, port: int) -> socket.socket:
        self.tried.append(str(address))
        if str(address) not in self._routes:
            raise ConnectionRefusedError(f"nothing listens at {address}")
        self._connected.append(await connect(self._routes[str(address)], port))
        return self._connected[-1]


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


@contextmanager
def received() -> Iterator[list[int]]:
    """The sizes of what fetches receive in the block, above TLS and below HTTP."""
    sizes: list[int] = []
    updated = Exchange.buffer_updated

    def count(exchange: Exchange, nbytes: int) -> None:
        sizes.append(nbytes)
        updated(exchange, nbytes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Exchange, "buffer_updated", count)
        yield sizes


@contextmanager
def dropping(host: str, port: int) -> Iterator[None]:
    """A listener whose queue of connections is full: the kernel drops each further SYN, as a router without a route."""
    family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(0)
        waiting = [socket.socket(family) for _ in range(3)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex((host, port))
            yield
        finally:
            for each in waiting:
                each.close()


def _sockets() -> set[int]:
    # psutil would read the tables of all sockets of the machine.
    return {fd for fd in (int(path.name) for path in Path("/dev/fd").iterdir()) if _is_socket(fd)}


def _is_socket(fd: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:  # the descriptor that listed them is closed
        return False
