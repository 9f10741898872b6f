"""Resolve a host name, check every address, and connect to one that was checked (spec A32).

The check is below HTTP and TLS on purpose. Checking the name before something else resolves it again leaves a gap: a
name may first resolve to a public address and a moment later to 127.0.0.1 (DNS rebinding). Here a name is resolved
once per connection, and the socket connects to an address from that answer; TLS still verifies the name in the URL.

One refused address refuses the whole answer. Skipping it would be as safe for this service, but not for the fleet: a
crawler that gets "allow" resolves the name itself, and may use the other address. An answer that mixes public and
private addresses is also what an attempt at rebinding looks like, and no public site needs one.
"""

import asyncio
import math
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain, islice, zip_longest
from typing import Any, TypeAlias

from app.fetch.exchange import Exchange, tls_detail
from app.fetch.guard import Address, AddressGuard, unmapped
from app.fetch.race import AddressBusy, Attempt, Progress, Race
from app.fetch.sockets import Connect, connect
from robots_core.robots.access import Busy

Resolver: TypeAlias = Callable[[str], Awaitable[Sequence[Address]]]
"""Returns all addresses of a host name, best first; raises OSError if it has none or no name server answered."""

Lookup: TypeAlias = Callable[[str], Iterable[str]]
"""A blocking resolver: returns addresses as text, a zone as `%zone`."""

MOST_ADDRESSES = 512
"""How many addresses a name may have: all are checked, so a name with more is refused."""

ADDRESSES_TRIED = 3
"""How many of the addresses are tried."""

CONNECTIONS_PER_ADDRESS = 4
"""How many connections to one address may be open at once, by default."""

LOOPBACK: tuple[Address, ...] = (ip_address("127.0.0.1"), ip_address("::1"))
"""The addresses of `localhost`, whatever a name server says (RFC 6761 6.3)."""


class AddressRefused(Exception):
    """The guard refuses an address of the host; `address` is the first one."""

    def __init__(self, host: str, address: Address) -> None:
        super().__init__(f"{host!r} resolves to {address}, which may not be fetched from")
        self.address = address


class HostsShareAddress(Busy):
    """The fetch was not begun, for the reason of AddressBusy."""


class NameNotResolved(Exception):
    """The host name has no address or too many, or no name server answered."""


class TlsFailed(Exception):
    """TLS failed on an open connection: untrusted, another name, expired, or not TLS."""


class HandshakeEnded(TlsFailed, ConnectionError):
    """The connection ended during the TLS handshake; another address may do better."""


def look_up(name: str) -> list[str]:
    """Resolve a name as the system does, hosts file included. Blocks; raises OSError."""
    found = socket.getaddrinfo(name.encode("ascii"), None, type=socket.SOCK_STREAM)
    return [_as_text(sockaddr) for *_, sockaddr in found]


def _as_text(sockaddr: tuple[Any, ...]) -> str:
    # An IPv6 socket address is (address, port, flow, zone), and the zone is not in the text.
    zoned = len(sockaddr) == 4 and sockaddr[3]
    return f"{sockaddr[0]}%{sockaddr[3]}" if zoned else str(sockaddr[0])


class SystemResolver:
    """A Resolver that asks the system, in `threads` threads of its own, so that slow names delay no other work.

    Raises Busy if no thread becomes free within `patience` seconds, which says nothing about the name.
    """

    def __init__(self, threads: int = 256, lookup: Lookup = look_up, patience: float = 2.0) -> None:
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="resolver")
        self._free = asyncio.Semaphore(threads)
        self._patience = patience

    async def __call__(self, name: str) -> Sequence[Address]:
        # A lookup cannot be interrupted: a caller whose time is up leaves its thread busy for as long as a dead name
        # server takes. So the thread is free when it ends, not when the caller does. Callers wait for one here, where
        # giving up leaves nothing behind in the executor's queue.
        await self._wait_for_a_thread()
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._lookup, name)
        running.add_done_callback(self._release)
        await asyncio.wait([running])
        # One more than allowed, so that the caller sees that there are too many.
        return [ip_address(text) for text in islice(dict.fromkeys(running.result()), MOST_ADDRESSES + 1)]

    def _release(self, lookup: "asyncio.Future[Iterable[str]]") -> None:
        self._free.release()
        # Retrieved, or asyncio would log the traceback of each lookup that fails after its caller has given up.
        if not lookup.cancelled():
            lookup.exception()

    async def _wait_for_a_thread(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise Busy(math.ceil(self._patience)) from None

    def close(self) -> None:
        """Accept no more names; running lookups end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def client_tls() -> ssl.SSLContext:
    """A context for HTTP over TLS 1.2 or later that verifies certificate and name against the system's trust store."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(slots=True)
class _AddressInUse:
    """The connections to an address, which is forgotten once it has no `users` that have or wait for one."""

    free: asyncio.Semaphore
    users: int = 0


@dataclass(eq=False)
class Network:
    """Connects to hosts, behind the guard; `connect` connects to addresses that it admits.

    `per_address`: how many connections to one address may be open at once, whatever names resolve to it.
    """

    guard: AddressGuard
    resolver: Resolver
    connect: Connect = connect
    per_address: int = CONNECTIONS_PER_ADDRESS

    def __post_init__(self) -> None:
        # Of those that have a connection, or a fetch that waits for one.
        self._in_use: dict[Address, _AddressInUse] = {}

    @asynccontextmanager
    async def open(
        self, exchange_of: Callable[[], Exchange], host: str, port: int, tls: ssl.SSLContext | None, deadline: float
    ) -> AsyncIterator[Exchange]:
        """Connect to an admitted address of `host`, with TLS if there is a context; the block has its exchange.

        Every address that is tried gets an exchange of its own. At the end of the block, all connections are closed.
        `deadline` (the event loop's time) is when the caller gives up. Raises NameNotResolved, AddressRefused,
        AddressBusy, TlsFailed and OSError.
        """
        addresses = self._admitted(host, await self._resolve(host))
        race = Race(deadline)

        def attempt(address: Address) -> Attempt:
            return lambda progress: self._attempt(progress, exchange_of(), address, port, tls, host, deadline)

        try:
            yield await race.first([attempt(address) for address in addresses])
        finally:
            await race.aclose()

    async def _resolve(self, host: str) -> Sequence[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        if host == "localhost" or host.endswith(".localhost"):
            # A name server could answer anything, so none is asked. Both addresses are this machine's own: if only one
            # of them is admitted, it is used, and the other does not refuse the whole answer.
            return [address for address in LOOPBACK if self.guard.admits(address)] or LOOPBACK
        try:
            found = await self.resolver(host)
        except OSError as error:
            raise NameNotResolved(f"the host name has no address: {error.strerror or 'the lookup failed'}") from error
        if not found:
            raise NameNotResolved("the host name has no address")
        if len(found) > MOST_ADDRESSES:
            raise NameNotResolved(f"the host name has more than {MOST_ADDRESSES} addresses")
        return found

    def _admitted(self, host: str, found: Sequence[Address]) -> Sequence[Address]:
        refused = next((address for address in found if not self.guard.admits(address)), None)
        if refused is not None:
            raise AddressRefused(host, refused)
        return _alternate_families([unmapped(address) for address in found])[:ADDRESSES_TRIED]

    async def _attempt(
        self,
        progress: Progress,
        exchange: Exchange,
        address: Address,
        port: int,
        tls: ssl.SSLContext | None,
        host: str,
        deadline: float,
    ) -> None:
        """Connect, and hold the connection until it is closed."""
        async with self._room_at(address, deadline):
            connected = await self.connect(address, port)
            progress.connected = True
            transport = await _handed_over(connected, exchange, tls, host)
            try:
                if progress.won(exchange):
                    await exchange.closed.wait()
            finally:
                transport.abort()
                await exchange.closed.wait()

    @asynccontextmanager
    async def _room_at(self, address: Address, until: float) -> AsyncIterator[None]:
        """Wait for one of the connections to the address that may be open, and hold it while the block lasts."""
        now = asyncio.get_running_loop().time()
        found = self._in_use.setdefault(address, _AddressInUse(asyncio.Semaphore(self.per_address)))
        found.users += 1
        try:
            # At most half of the time, since the request needs some too. It ends before the deadline of the whole
            # fetch, so that a fetch that asked no server is not taken for one that got no answer.
            try:
                async with asyncio.timeout_at(now + (until - now) / 2 if found.free.locked() else None):
                    await found.free.acquire()
            except TimeoutError:
                raise AddressBusy(
                    f"{self.per_address} fetches from {address}, which the host shares with others, are under way "
                    "(FETCHES_PER_ADDRESS), and none ended in time"
                ) from None
            try:
                yield
            finally:
                found.free.release()
        finally:
            found.users -= 1
            if found.users == 0:
                del self._in_use[address]


async def _handed_over(
    connected: socket.socket, exchange: Exchange, tls: ssl.SSLContext | None, host: str
) -> asyncio.Transport:
    """The transport of an exchange over the socket, after the TLS handshake if there is a context."""
    loop, name = asyncio.get_running_loop(), None if tls is None else host
    try:
        transport, _ = await loop.create_connection(lambda: exchange, sock=connected, ssl=tls, server_hostname=name)
    except ssl.SSLError as error:
        raise TlsFailed(tls_detail(error)) from None
    except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError):
        if tls is None:
            raise
        raise HandshakeEnded("the connection was closed during the TLS handshake") from None
    return transport


def _alternate_families(addresses: Sequence[Address]) -> list[Address]:
    """The addresses with IPv6 and IPv4 alternating, the first one's family first, so that few attempts cover both."""
    ours = [address for address in addresses if address.version == addresses[0].version]
    others = [address for address in addresses if address.version != addresses[0].version]
    return [address for address in chain.from_iterable(zip_longest(ours, others)) if address is not None]
