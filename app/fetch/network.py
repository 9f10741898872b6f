"""Resolve a host name, check every address, and connect to one that was checked (spec A32).

The check is below HTTP and TLS on purpose. Checking the name before something else resolves it again leaves a gap: a
name may first resolve to a public address and a moment later to 127.0.0.1 (DNS rebinding). Here a name is resolved
once per connection, and the socket connects to an address from that answer; TLS still verifies the name in the URL.

One refused address refuses the whole answer. Skipping it would be as safe for this service, but not for the fleet: a
crawler that gets "allow" resolves the name itself, and may use the other address. An answer that mixes public and
private addresses is also what an attempt at rebinding looks like, and no public site needs one.
"""
# ruff: noqa: ASYNC109 - the `timeout` parameters are httpcore2's interface

import asyncio
import math
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain, islice, zip_longest
from typing import Any, TypeAlias, TypeVar

import httpcore2

from app.fetch.guard import Address, AddressGuard, unmapped
from app.robots.access import BODY_LIMIT, Busy

Resolver: TypeAlias = Callable[[str], Awaitable[Sequence[Address]]]
"""Returns all addresses of a host name, best first; raises OSError if it has none or no name server answered."""

T = TypeVar("T")

Lookup: TypeAlias = Callable[[str], Iterable[str]]
"""A blocking resolver: returns addresses as text, a zone as `%zone`."""

MOST_ADDRESSES = 512
"""How many addresses a name may have: all are checked, so a name with more is refused."""

ADDRESSES_TRIED = 3
"""How many of the addresses are tried."""

CONNECTIONS_PER_ADDRESS = 4
"""How many connections to one address may be open at once, whatever names resolve to it."""

HEAD_BYTES = 128 * 1024
"""How much may be received before the head of the final response is complete, interim responses (1xx) included."""

BODY_BYTES = 4 * BODY_LIMIT
"""How much more may be received for the body: the file, and the framing of its chunks."""

READ_BYTES = 16 * 1024
"""How much is passed to the HTTP parser at once, which bounds how long it blocks the event loop."""

LOOPBACK: tuple[Address, ...] = (ip_address("127.0.0.1"), ip_address("::1"))
"""The addresses of `localhost`, whatever a name server says (RFC 6761 6.3)."""


class AddressRefused(Exception):
    """The guard refuses an address of the host; `address` is the first one."""

    def __init__(self, host: str, address: Address) -> None:
        super().__init__(f"{host!r} resolves to {address}, which may not be fetched from")
        self.address = address


class AddressBusy(Exception):
    """No connection was tried: to every address of the host, the permitted number of connections stayed open."""


class NameNotResolved(Exception):
    """The host name has no address or too many, or no name server answered."""


class TlsFailed(Exception):
    """TLS failed on an open connection: untrusted, another name, expired, or not TLS."""


class TooMuchSent(Exception):
    """The server sent more bytes than a robots.txt needs."""


class ReadingStopped(Exception):
    """The reader has stopped the stream with GuardedStream.stop()."""


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
        # server takes. So the slot is released when the thread ends, not when the caller does. Callers wait for a
        # slot here, where giving up leaves nothing behind in the executor's queue.
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
    """A context for TLS 1.2 or later that verifies certificate and name against the system's trust store."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@contextmanager
def _tls_errors() -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise TlsFailed(str(error)) from error
    except httpcore2.ConnectError as error:
        if isinstance(error.__cause__, ssl.SSLError):
            raise TlsFailed(str(error)) from error
        raise


class GuardedStream(httpcore2.AsyncNetworkStream):
    """A connection that limits the bytes received; closing it releases its slot at the address."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, release: Callable[[], None]) -> None:
        self._stream = stream
        self._release: Callable[[], None] | None = release
        self._received = 0
        self._allowance = HEAD_BYTES
        self._stopped = False

    def allow(self, count: int) -> None:
        """Permit so many more bytes."""
        self._allowance += count

    def stop(self) -> None:
        """Make the next read raise ReadingStopped, which ends httpcore2's generators properly."""
        self._stopped = True

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._stopped:
            raise ReadingStopped
        # A TLS stream answers from its buffer without suspending; this lets the deadline and other tasks run.
        await asyncio.sleep(0)
        with _tls_errors():
            data = await self._stream.read(min(max_bytes, READ_BYTES), timeout)
        if not data and self._received == 0:
            raise httpcore2.ReadError("the server closed the connection without a response")
        self._received += len(data)
        if self._received > self._allowance:
            raise TooMuchSent(f"the server sent {self._received} bytes; at most {self._allowance} are read")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _tls_errors():
            await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        release, self._release = self._release, None
        try:
            await self._stream.aclose()
        finally:
            if release is not None:
                release()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        # httpcore2 drops the plain stream once this is called. If the handshake ends early, by a cancellation too, no
        # other code would close the socket.
        try:
            with _tls_errors():
                self._stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            await self.aclose()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@dataclass(slots=True)
class _AddressSlots:
    free: asyncio.Semaphore
    users: int = 0


class _ConnectionLimit:
    """At most `each` connections to one address; an address without users or waiters takes no memory."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._in_use: dict[Address, _AddressSlots] = {}

    async def acquire(self, address: Address) -> Callable[[], None]:
        """Wait for a slot at the address; returns a function that releases it, to be called once."""
        slots = self._in_use.setdefault(address, _AddressSlots(asyncio.Semaphore(self._each)))
        slots.users += 1
        try:
            await slots.free.acquire()
        except BaseException:
            self._leave(address, slots)
            raise

        def release() -> None:
            slots.free.release()
            self._leave(address, slots)

        return release

    def _leave(self, address: Address, slots: _AddressSlots) -> None:
        slots.users -= 1
        if slots.users == 0:
            del self._in_use[address]

    def __len__(self) -> int:
        return len(self._in_use)


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """The network backend of httpcore2, behind the guard; `sockets` connects to addresses that it admits."""

    def __init__(
        self, guard: AddressGuard, resolver: Resolver, sockets: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._sockets = httpcore2.AnyIOBackend() if sockets is None else sockets
        self._limit = _ConnectionLimit(CONNECTIONS_PER_ADDRESS)

    @property
    def addresses_in_use(self) -> int:
        """The number of addresses that have a connection or a fetch that waits for one."""
        return len(self._limit)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to an admitted address of `host` within `timeout` seconds, including the time to resolve it.

        Raises NameNotResolved, AddressRefused, AddressBusy, httpcore2.ConnectError and httpcore2.ConnectTimeout.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        addresses = self._admitted(host, await _in_time(self._resolve(host), deadline, f"no address of {host!r}"))
        failure: Exception = httpcore2.ConnectError(f"{host!r} has no address")
        for left in range(len(addresses), 0, -1):
            address = addresses[-left]
            until = deadline
            if deadline is not None and left > 1:
                # An address that swallows packets must not use up the time of the others: every attempt but the last
                # gets an equal share of the time left, and one more share remains for the request itself.
                until = loop.time() + (deadline - loop.time()) / (left + 1)
            try:
                return await self._open(address, port, until, local_address, socket_options)
            except (AddressBusy, httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                # An address that was not tried might have answered, so the failures of the others do not count.
                failure = failure if isinstance(failure, AddressBusy) else error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no URL leads to a file of this machine."""
        raise httpcore2.ConnectError(f"{path!r} is a local socket, which no robots.txt is fetched from")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _resolve(self, host: str) -> Sequence[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        if host == "localhost" or host.endswith(".localhost"):
            # A name server could answer anything, so none is asked. Both addresses are this machine's own: if only one
            # of them is admitted, it is used, and the other does not refuse the whole answer.
            return [address for address in LOOPBACK if self._guard.admits(address)] or LOOPBACK
        try:
            found = await self._resolver(host)
        except OSError as error:
            raise NameNotResolved(f"{host!r} has no address: {error}") from error
        if not found:
            raise NameNotResolved(f"{host!r} has no address")
        if len(found) > MOST_ADDRESSES:
            raise NameNotResolved(f"{host!r} has more than {MOST_ADDRESSES} addresses")
        return found

    def _admitted(self, host: str, found: Sequence[Address]) -> Sequence[Address]:
        refused = next((address for address in found if not self._guard.admits(address)), None)
        if refused is not None:
            raise AddressRefused(host, refused)
        return _alternate_families([unmapped(address) for address in found])[:ADDRESSES_TRIED]

    async def _open(
        self,
        address: Address,
        port: int,
        until: float | None,
        local_address: str | None,
        options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> GuardedStream:
        release = await self._slot(address, until)
        try:
            connecting = self._sockets.connect_tcp(str(address), port, None, local_address, options)
            return GuardedStream(await _in_time(connecting, until, f"no connection to {address}"), release)
        except BaseException:
            release()
            raise

    async def _slot(self, address: Address, until: float | None) -> Callable[[], None]:
        # At most half of the time, since the request needs some too. It ends before the deadline of the whole fetch,
        # so that a fetch that asked no server is not taken for one that got no answer.
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(None if until is None else now + (until - now) / 2):
                return await self._limit.acquire(address)
        except TimeoutError:
            raise AddressBusy(
                f"{CONNECTIONS_PER_ADDRESS} connections to {address} are open, and none ended in time"
            ) from None


async def _in_time(step: Awaitable[T], until: float | None, missing: str) -> T:
    try:
        async with asyncio.timeout_at(until):
            return await step
    except TimeoutError:
        raise httpcore2.ConnectTimeout(f"{missing} in time") from None


def _alternate_families(addresses: Sequence[Address]) -> list[Address]:
    """The addresses with IPv6 and IPv4 alternating, the first one's family first, so that few attempts cover both."""
    ours = [address for address in addresses if address.version == addresses[0].version]
    others = [address for address in addresses if address.version != addresses[0].version]
    return [address for address in chain.from_iterable(zip_longest(ours, others)) if address is not None]
