"""From a name to a connection: resolved once, every address judged, the connection made to a judged one (spec A32).

The check sits below HTTP and TLS on purpose. Rewriting the URL to an address, or checking the name before somebody
else resolves it again, leaves a gap: a name that answers with a public address first and 127.0.0.1 a moment later
(DNS rebinding). Here the name is resolved once per connection, and the socket goes to an address out of that answer;
TLS above still asks for, and verifies, the name in the URL.

One address that is not admitted refuses the whole answer. Passing over it would be as safe for this service, but not
for the fleet: a crawler that is told "allow" resolves the name for itself, and may take the other address. An answer
that mixes public and private ones is also what an attempt at rebinding looks like, and no site on the web needs one.
"""
# ruff: noqa: ASYNC109 - the `timeout` parameters are httpcore's interface

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

import httpcore

from app.fetch.guard import Address, AddressGuard, unmapped
from app.robots.access import BODY_LIMIT, Busy

Resolver: TypeAlias = Callable[[str], Awaitable[Sequence[Address]]]
"""Every address of a host name, best first; OSError if the name has none or no server answered."""

T = TypeVar("T")

Lookup: TypeAlias = Callable[[str], Iterable[str]]
"""The same, blocking: addresses as text, a zone as `%zone`."""

MOST_ADDRESSES = 512
"""How many addresses a name may have: all are judged, so a name with more is refused."""

ADDRESSES_TRIED = 3
"""How many of them a connection is tried to."""

CONNECTIONS_PER_ADDRESS = 4
"""How many connections to one address may be open at once, whatever names lead there."""

HEAD_BYTES = 128 * 1024
"""How much may come before the final response's head is complete, interim responses (1xx) included."""

BODY_BYTES = 4 * BODY_LIMIT
"""How much more may come for the body: the file itself, and what chunking lays around it."""

READ_BYTES = 16 * 1024
"""How much is handed up at once, and so how long HTTP's parser holds the event loop at a stretch."""


LOOPBACK: tuple[Address, ...] = (ip_address("127.0.0.1"), ip_address("::1"))
"""What `localhost` means, whatever a name server says (RFC 6761 6.3)."""


class AddressRefused(Exception):
    """The guard does not admit one of the host's addresses: `address` is the first such."""

    def __init__(self, host: str, address: Address) -> None:
        super().__init__(f"{host!r} leads to {address}, which may not be fetched from")
        self.address = address


class NoPlace(Exception):
    """No connection was tried: as many as may be were open to every address of the host, for as long as could be."""


class NameNotResolved(Exception):
    """The host name has no address, or more than are judged, or no name server answered."""


class TlsFailed(Exception):
    """The connection was made, and TLS on it failed: no trust, another name, out of date, no TLS at all."""


class TooMuchSent(Exception):
    """The server sent more bytes than a robots.txt needs."""


class ReadingStopped(Exception):
    """The reader above has what it wants, and has said so by `GuardedStream.stop`."""


def look_up(name: str) -> list[str]:
    """The system's own resolver, hosts file included; it blocks, and raises OSError."""
    found = socket.getaddrinfo(name.encode("ascii"), None, type=socket.SOCK_STREAM)
    return [_as_text(sockaddr) for *_, sockaddr in found]


def _as_text(sockaddr: tuple[Any, ...]) -> str:
    # An IPv6 socket address is (address, port, flow, zone), and the zone is not in the text.
    zoned = len(sockaddr) == 4 and sockaddr[3]
    return f"{sockaddr[0]}%{sockaddr[3]}" if zoned else str(sockaddr[0])


class SystemResolver:
    """A Resolver that asks the system, in `threads` threads of its own: no other work waits behind slow names.

    Raises Busy where no thread is free for `patience` seconds: that says nothing about the name.
    """

    def __init__(self, threads: int = 256, lookup: Lookup = look_up, patience: float = 2.0) -> None:
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="resolver")
        self._free = asyncio.Semaphore(threads)
        self._patience = patience

    async def __call__(self, name: str) -> Sequence[Address]:
        # A lookup cannot be interrupted: a caller whose time is up leaves its thread behind, busy for as long as a
        # dead name server keeps it. So a place is given back by the thread's end and not by the caller's, and who
        # finds no free place waits here, where giving up leaves nothing behind in the executor's queue.
        await self._wait_for_a_thread()
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._lookup, name)
        running.add_done_callback(self._end)
        await asyncio.wait([running])
        # One more than allowed, so that the caller sees that there are too many.
        return [ip_address(text) for text in islice(dict.fromkeys(running.result()), MOST_ADDRESSES + 1)]

    def _end(self, lookup: "asyncio.Future[Iterable[str]]") -> None:
        self._free.release()
        # Retrieved, or asyncio would log a traceback for each name that fails after its caller has given up.
        if not lookup.cancelled():
            lookup.exception()

    async def _wait_for_a_thread(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise Busy(math.ceil(self._patience)) from None

    def close(self) -> None:
        """Take no more names; lookups under way end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def client_tls() -> ssl.SSLContext:
    """TLS 1.2 or later, the system's trust, certificate and name verified."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@contextmanager
def _telling_tls_apart() -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise TlsFailed(str(error)) from error
    except httpcore.ConnectError as error:
        if isinstance(error.__cause__, ssl.SSLError):
            raise TlsFailed(str(error)) from error
        raise


class GuardedStream(httpcore.AsyncNetworkStream):
    """One connection: what comes through it is counted, and closing it gives its place at the address back."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, give_back: Callable[[], None]) -> None:
        self._stream = stream
        self._give_back: Callable[[], None] | None = give_back
        self._received = 0
        self._allowance = HEAD_BYTES
        self._stopped = False

    def allow(self, count: int) -> None:
        """Let so much more come."""
        self._allowance += count

    def stop(self) -> None:
        """Let the next read raise ReadingStopped: httpcore's generators end from below, and none is left half run."""
        self._stopped = True

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._stopped:
            raise ReadingStopped
        # A TLS stream answers out of its buffer without suspending. This lets the deadline, and everybody else, in.
        await asyncio.sleep(0)
        with _telling_tls_apart():
            data = await self._stream.read(min(max_bytes, READ_BYTES), timeout)
        if not data and self._received == 0:
            raise httpcore.ReadError("the server closed the connection without sending a single byte of a response")
        self._received += len(data)
        if self._received > self._allowance:
            raise TooMuchSent(f"the server sent {self._received} bytes; at most {self._allowance} are read")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _telling_tls_apart():
            await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        give_back, self._give_back = self._give_back, None
        try:
            await self._stream.aclose()
        finally:
            if give_back is not None:
                give_back()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        # httpcore forgets the plain stream once this is called: whatever ends the handshake, a deadline's
        # cancellation too, no other code would close the socket.
        try:
            with _telling_tls_apart():
                self._stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            await self.aclose()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


@dataclass(slots=True)
class _Place:
    free: asyncio.Semaphore
    users: int = 0


class _Places:
    """At most `each` connections to one address; an address without users or waiters takes no memory."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._places: dict[Address, _Place] = {}

    async def take(self, address: Address) -> Callable[[], None]:
        """Wait for a place; the answer, called once, gives it back."""
        place = self._places.setdefault(address, _Place(asyncio.Semaphore(self._each)))
        place.users += 1
        try:
            await place.free.acquire()
        except BaseException:
            self._leave(address, place)
            raise

        def give_back() -> None:
            place.free.release()
            self._leave(address, place)

        return give_back

    def _leave(self, address: Address, place: _Place) -> None:
        place.users -= 1
        if place.users == 0:
            del self._places[address]

    def __len__(self) -> int:
        return len(self._places)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """httpcore's way to the network, through the guard; `sockets` makes the connections to addresses it admitted."""

    def __init__(
        self, guard: AddressGuard, resolver: Resolver, sockets: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._sockets = httpcore.AnyIOBackend() if sockets is None else sockets
        self._places = _Places(CONNECTIONS_PER_ADDRESS)

    @property
    def addresses_in_use(self) -> int:
        """How many addresses have a connection, or somebody who waits for one."""
        return len(self._places)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to an admitted address of `host` within `timeout` seconds, the resolver's time included.

        Raises NameNotResolved, AddressRefused, NoPlace, httpcore.ConnectError, httpcore.ConnectTimeout.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        addresses = self._admitted(host, await _in_time(self._resolve(host), deadline, f"no address of {host!r}"))
        failure: Exception = httpcore.ConnectError(f"{host!r} has no address that a connection was tried to")
        for left in range(len(addresses), 0, -1):
            address = addresses[-left]
            until = deadline
            if deadline is not None and left > 1:
                # An address that swallows packets must not eat the time of those after it: every try but the last
                # has an equal share of what is left, and one more share is kept for the exchange itself.
                until = loop.time() + (deadline - loop.time()) / (left + 1)
            try:
                return await self._open(address, port, until, local_address, socket_options)
            except (NoPlace, httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                # An address that was never asked might have answered: that the others did not is not the whole truth.
                failure = failure if isinstance(failure, NoPlace) else error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Refused, always: no URL leads to a file of this machine."""
        raise httpcore.ConnectError(f"{path!r} is a socket of this machine, which no robots.txt is fetched from")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _resolve(self, host: str) -> Sequence[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        if host == "localhost" or host.endswith(".localhost"):
            # No name server is asked, whose answer could be anything. The two addresses are one machine's own, not a
            # stranger's mixture: where only one of them is admitted, it is the one that is meant.
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
        return _families_in_turn([unmapped(address) for address in found])[:ADDRESSES_TRIED]

    async def _open(
        self,
        address: Address,
        port: int,
        until: float | None,
        local_address: str | None,
        options: Iterable[httpcore.SOCKET_OPTION] | None,
    ) -> GuardedStream:
        give_back = await self._place(address, until)
        try:
            connecting = self._sockets.connect_tcp(str(address), port, None, local_address, options)
            return GuardedStream(await _in_time(connecting, until, f"no connection to {address}"), give_back)
        except BaseException:
            give_back()
            raise

    async def _place(self, address: Address, until: float | None) -> Callable[[], None]:
        # Waiting takes half of the time at most, since the exchange needs some too; and it ends before the deadline
        # of the whole fetch does, so that a fetch which never asked anybody is not taken for one without an answer.
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(None if until is None else now + (until - now) / 2):
                return await self._places.take(address)
        except TimeoutError:
            raise NoPlace(
                f"{CONNECTIONS_PER_ADDRESS} connections to {address} are open, and none ended in time"
            ) from None


async def _in_time(step: Awaitable[T], until: float | None, missed: str) -> T:
    try:
        async with asyncio.timeout_at(until):
            return await step
    except TimeoutError:
        raise httpcore.ConnectTimeout(f"{missed} in time") from None


def _families_in_turn(addresses: Sequence[Address]) -> list[Address]:
    """The same addresses, IPv6 and IPv4 by turns from the first one's family on, so that few tries meet both."""
    ours = [address for address in addresses if address.version == addresses[0].version]
    others = [address for address in addresses if address.version != addresses[0].version]
    return [address for address in chain.from_iterable(zip_longest(ours, others)) if address is not None]
