"""From a name to a connection: resolving, checking and connecting, and limits per address."""

import asyncio
import gc
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar

import pytest

from app.fetch.exchange import Exchange
from app.fetch.guard import Address, AddressGuard
from app.fetch.network import (
    CONNECTIONS_PER_ADDRESS,
    MOST_ADDRESSES,
    AddressRefused,
    NameNotResolved,
    Network,
    Resolver,
    SystemResolver,
    TlsFailed,
)
from app.fetch.race import AddressBusy
from app.fetch.sockets import connect
from robots_core.robots.access import Busy
from tests.faults.until import until_so
from tests.origins import Authority, LoopbackOrigin, Names, serve, text

NAME = "www.example.com"


class Sockets:
    """A Connect that records addresses; `dead` ones refuse, `silent` ones never answer, others lead to `server`.

    Without a server, they lead to one that says nothing.
    """

    other_ends: ClassVar[list[socket.socket]] = []

    def __init__(
        self, dead: Sequence[str] = (), silent: Sequence[str] = (), server: LoopbackOrigin | None = None
    ) -> None:
        self._dead = dead
        self._silent = silent
        self._server = server
        self.tried: list[str] = []

    async def __call__(self, address: Address, port: int) -> socket.socket:
        self.tried.append(str(address))
        if str(address) in self._dead:
            raise ConnectionRefusedError(f"{address} refused the connection")
        if str(address) in self._silent:
            await asyncio.Event().wait()
        if self._server is not None:
            return await connect(self._server.address, self._server.port)
        ours, other = socket.socketpair()
        self.other_ends.append(other)
        return ours


@pytest.fixture(autouse=True)
def other_ends() -> Iterator[None]:
    """Close the other ends of the sockets of a test."""
    yield
    while Sockets.other_ends:
        Sockets.other_ends.pop().close()


async def opened(
    network: Network, host: str, port: int = 80, *, within: float = 5.0, tls: ssl.SSLContext | None = None
) -> AsyncExitStack:
    """An open connection to the host; raises as `Network.open`."""
    deadline, stack = asyncio.get_running_loop().time() + within, AsyncExitStack()
    async with asyncio.timeout_at(deadline):
        await stack.enter_async_context(network.open(exchange_of, host, port, tls, deadline))
    return stack


def exchange_of() -> Exchange:
    return Exchange(b"", lambda _status, _headers: None)


async def ask(resolver: Resolver, name: str) -> Sequence[Address]:
    return await resolver(name)


async def never(name: str) -> Sequence[Address]:
    await asyncio.Event().wait()
    return []


def network_of(addresses: Sequence[str], sockets: Sockets, admitted: Sequence[str] = ()) -> Network:
    guard = AddressGuard([ip_network(network) for network in admitted])
    return Network(guard, Names({NAME: addresses}), sockets)


@pytest.mark.parametrize("private", ["10.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::a00:1"])
async def test_one_private_address_refuses_the_whole_answer(private: str) -> None:
    public = ["93.184.216.34", "2606:4700::1"]
    for addresses in ([private, *public], [*public, private], [*public] * 100 + [private]):
        sockets = Sockets()
        with pytest.raises(AddressRefused) as refused:
            await opened(network_of(addresses, sockets), NAME)
        assert refused.value.address == ip_address(private)
        assert sockets.tried == []


@pytest.mark.parametrize("name", ["localhost", "a.b.localhost"])
async def test_rfc6761_localhost_is_loopback_without_a_name_server(name: str) -> None:
    names, sockets = Names({name: ["93.184.216.34"]}), Sockets()
    with pytest.raises(AddressRefused):
        await opened(Network(AddressGuard(), names, sockets), name)
    for admitted in ("127.0.0.1", "::1"):
        network = Network(AddressGuard([ip_network(admitted)]), names, sockets)
        await (await opened(network, name)).aclose()
    assert sockets.tried == ["127.0.0.1", "::1"]
    assert names.queries == []


@pytest.mark.parametrize("host", ["10.0.0.1", "::1", "169.254.169.254", "64:ff9b::a00:1"])
async def test_an_ip_literal_is_checked_without_being_resolved(host: str) -> None:
    names, sockets = Names({}), Sockets()
    with pytest.raises(AddressRefused) as refused:
        await opened(Network(AddressGuard(), names, sockets), host)
    assert refused.value.address == ip_address(host)
    assert names.queries == sockets.tried == []


async def test_a_refusal_names_the_first_refused_address() -> None:
    sockets = Sockets()
    with pytest.raises(AddressRefused) as refused:
        await opened(network_of(["10.0.0.1", "127.0.0.1"], sockets), NAME)
    assert str(refused.value.address) == "10.0.0.1"
    assert sockets.tried == []


async def test_an_ipv4_mapped_address_is_connected_to_as_ipv4() -> None:
    sockets = Sockets()
    await (await opened(network_of(["::ffff:93.184.216.34"], sockets), NAME)).aclose()
    assert sockets.tried == ["93.184.216.34"]


async def test_three_addresses_are_tried_with_families_alternating() -> None:
    addresses = ["2606:4700::1", "2606:4700::2", "2606:4700::3", "93.184.216.34", "93.184.216.35"]
    sockets = Sockets(dead=addresses)
    with pytest.raises(ConnectionRefusedError):
        await opened(network_of(addresses, sockets), NAME)
    assert sockets.tried == ["2606:4700::1", "93.184.216.34", "2606:4700::2"]


async def test_an_address_that_swallows_packets_leaves_time_for_the_next() -> None:
    sockets = Sockets(silent=["2606:4700::1"])
    network = network_of(["2606:4700::1", "93.184.216.34"], sockets)
    await (await opened(network, NAME, within=0.3)).aclose()
    assert sockets.tried == ["2606:4700::1", "93.184.216.34"]
    assert network._in_use == {}


async def test_silence_everywhere_is_a_timeout_and_releases_all_addresses() -> None:
    sockets = Sockets(silent=["93.184.216.34", "93.184.216.35"])
    network = network_of(["93.184.216.34", "93.184.216.35"], sockets)
    with pytest.raises(TimeoutError):
        await opened(network, NAME, within=0.1)
    assert network._in_use == {}


async def test_a_resolver_that_never_answers_times_out() -> None:
    with pytest.raises(TimeoutError):
        await opened(Network(AddressGuard(), never, Sockets()), NAME, within=0.05)


@pytest.mark.parametrize("table", [{}, {NAME: []}])
async def test_a_name_without_addresses_is_not_resolved(table: dict[str, list[str]]) -> None:
    with pytest.raises(NameNotResolved):
        await opened(Network(AddressGuard(), Names(table), Sockets()), NAME)


async def test_a_fifth_connection_to_an_address_waits_for_a_close() -> None:
    network = network_of(["93.184.216.34"], Sockets())
    streams = [await opened(network, NAME) for _ in range(CONNECTIONS_PER_ADDRESS)]
    with pytest.raises(AddressBusy):
        await opened(network, NAME, within=1)
    await streams[0].aclose()
    await streams[0].aclose()  # closing twice releases one slot, not two
    streams.append(await opened(network, NAME, within=5))
    with pytest.raises(AddressBusy):
        await opened(network, NAME, within=1)
    assert len(network._in_use) == 1
    for stream in streams:
        await stream.aclose()
    assert network._in_use == {}


async def test_the_connections_to_an_address_may_be_fewer_or_more() -> None:
    for allowed in (1, 9):
        network = Network(AddressGuard(), Names({NAME: ["93.184.216.34"]}), Sockets(), per_address=allowed)
        streams = [await opened(network, NAME) for _ in range(allowed)]
        with pytest.raises(AddressBusy, match=f"^{allowed} fetches from 93.184.216.34"):
            await opened(network, NAME, within=1)
        for stream in streams:
            await stream.aclose()


async def test_a_busy_address_leaves_time_for_the_next() -> None:
    sockets = Sockets(dead=["93.184.216.35"])
    full, other, dead = "93.184.216.34", "93.184.216.36", "93.184.216.35"
    names = Names({NAME: [full], "both.example": [full, other], "dead.example": [full, dead]})
    network = Network(AddressGuard(), names, sockets)
    streams = [await opened(network, NAME) for _ in range(CONNECTIONS_PER_ADDRESS)]
    streams.append(await opened(network, "both.example", within=1))
    with pytest.raises(AddressBusy):
        await opened(network, "dead.example", within=1)
    assert sockets.tried[CONNECTIONS_PER_ADDRESS:] == ["93.184.216.36", "93.184.216.35"]
    for stream in streams:
        await stream.aclose()


async def test_a_full_address_does_not_delay_another_name() -> None:
    names = Names({NAME: ["93.184.216.34"], "other.example": ["93.184.216.35"]})
    network = Network(AddressGuard(), names, Sockets())
    streams = [await opened(network, NAME) for _ in range(CONNECTIONS_PER_ADDRESS)]
    streams.append(await opened(network, "other.example", within=5))
    for stream in streams:
        await stream.aclose()


async def test_a_tls_failure_is_the_hosts_and_no_other_address_is_tried() -> None:
    authority = Authority()
    async with serve(text(200), tls=authority.server_context(NAME)) as server:
        sockets = Sockets(server=server)
        network = network_of(["93.184.216.34", "93.184.216.35"], sockets)
        with pytest.raises(TlsFailed, match="an authority that is not trusted"):
            await opened(network, NAME, 443, tls=Authority().client_context())
        await server.left()
    assert sockets.tried == ["93.184.216.34"]
    assert authority.requested_names == [NAME]
    assert network._in_use == {}


async def test_a_connection_that_is_given_up_releases_its_slot() -> None:
    network = network_of(["93.184.216.34"], Sockets(silent=["93.184.216.34"]))
    tasks = [asyncio.create_task(opened(network, NAME)) for _ in range(CONNECTIONS_PER_ADDRESS + 2)]
    await until_so(lambda: len(network._in_use) == 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert network._in_use == {}


async def test_the_system_resolver_knows_localhost() -> None:
    resolver = SystemResolver(threads=1)
    try:
        assert all(address.is_loopback for address in await resolver("localhost"))
    finally:
        resolver.close()


async def test_a_resolver_returns_a_bounded_list_of_distinct_addresses() -> None:
    many = [f"93.184.{high}.{low}" for high in range(4) for low in range(250) for _ in range(2)]
    resolver = SystemResolver(threads=1, lookup=lambda _: many)
    try:
        assert [str(address) for address in await resolver(NAME)] == many[: 2 * (MOST_ADDRESSES + 1) : 2]
    finally:
        resolver.close()


async def test_a_resolver_keeps_the_zone_of_an_address() -> None:
    resolver = SystemResolver(threads=1, lookup=lambda _: ["fe80::1%2"])
    network = Network(AddressGuard([ip_network("fe80::/10")]), resolver, Sockets())
    try:
        with pytest.raises(AddressRefused):
            await opened(network, NAME)
    finally:
        resolver.close()


async def test_an_abandoned_lookup_keeps_its_thread_and_queues_nothing() -> None:
    loop = asyncio.get_running_loop()
    begun, go = asyncio.Event(), threading.Event()
    looked_up: list[str] = []

    def lookup(name: str) -> list[str]:
        looked_up.append(name)
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        return ["93.184.216.34"]

    resolver = SystemResolver(threads=1, lookup=lookup)
    try:
        given_up = loop.create_task(ask(resolver, "slow.example"))
        await begun.wait()
        waiting = [loop.create_task(ask(resolver, f"{number}.example")) for number in range(3)]
        await asyncio.sleep(0)
        for task in (given_up, *waiting):
            task.cancel()
        await asyncio.gather(given_up, *waiting, return_exceptions=True)
        last = loop.create_task(ask(resolver, "last.example"))
        go.set()
        assert [str(address) for address in await last] == ["93.184.216.34"]
        assert looked_up == ["slow.example", "last.example"]
    finally:
        go.set()
        resolver.close()


async def test_an_abandoned_lookup_that_fails_is_not_logged() -> None:
    loop = asyncio.get_running_loop()
    begun, go = asyncio.Event(), threading.Event()
    logged: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: logged.append(context))

    def lookup(name: str) -> list[str]:
        if name == "healthy.example":
            return ["93.184.216.34"]
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "no name server answered")

    resolver = SystemResolver(threads=1, lookup=lookup)
    try:
        given_up = loop.create_task(ask(resolver, "slow.example"))
        await begun.wait()
        given_up.cancel()
        await asyncio.wait([given_up])
        go.set()
        assert await resolver("healthy.example")  # there is one thread, so the lookup before has ended
        del given_up
        gc.collect()  # asyncio logs an exception that was never retrieved when its future is collected
        assert logged == []
    finally:
        go.set()
        resolver.close()


async def test_a_lookup_without_a_free_thread_is_busy_not_a_dns_failure() -> None:
    loop = asyncio.get_running_loop()
    begun, go = asyncio.Event(), threading.Event()

    def lookup(name: str) -> list[str]:
        loop.call_soon_threadsafe(begun.set)
        go.wait()
        return ["93.184.216.34"]

    resolver = SystemResolver(threads=1, lookup=lookup, patience=0.05)
    try:
        first = loop.create_task(ask(resolver, "slow.example"))
        await begun.wait()
        with pytest.raises(Busy) as busy:
            await resolver("healthy.example")
        assert busy.value.retry_after == 1
        go.set()
        await first
        assert await resolver("healthy.example")
    finally:
        go.set()
        resolver.close()
