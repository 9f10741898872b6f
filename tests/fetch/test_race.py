"""The next address begins while one says nothing; one request is sent, attempts are bounded, and no socket is left."""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_network

import pytest

from app.fetch.client import Fetcher
from app.fetch.guard import Address, AddressGuard, PortPolicy
from app.fetch.network import ADDRESSES_TRIED
from app.fetch.profile import FetchProfile
from app.fetch.race import NEXT_AFTER
from app.fetch.sockets import Connect, connect
from robots_core.robots.access import Cause, Fetched, Successful, Unreachable
from tests.faults.fetching import dropping, nothing_left
from tests.faults.until import until_so
from tests.fetch.connect_proxy import relay
from tests.origins import LOOPBACKS, NO_TLS, Authority, Exchange, LoopbackOrigin, Names, serve, text

SITE, OTHER = "www.example.com", "www.example.org"
FOUND = Fetched(Successful(200, b"", content_type="text/plain"))
TIMED_OUT = Fetched(Unreachable(Cause.TIMEOUT))
FIRST, SECOND = "127.0.0.2", "127.0.0.1"


class Recorded:
    """A Connect of the system's sockets that records what is tried, and the most sockets to one address at once."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.most = 0
        self._connecting: Counter[Address] = Counter()
        self._connected: list[tuple[Address, socket.socket]] = []

    async def __call__(self, address: Address, port: int) -> socket.socket:
        self.tried.append(str(address))
        self._connecting[address] += 1
        open_now = sum(to == address and connected.fileno() >= 0 for to, connected in self._connected)
        self.most = max(self.most, self._connecting[address] + open_now)
        try:
            connected = await connect(address, port)
        finally:
            self._connecting[address] -= 1
        self._connected.append((address, connected))
        return connected


class Gated:
    """A Connect that leads every address to a server, each once its gate is open."""

    def __init__(self, server: LoopbackOrigin, gates: Mapping[str, asyncio.Event]) -> None:
        self._server = server
        self._gates = gates
        self.tried: list[str] = []

    async def __call__(self, address: Address, port: int) -> socket.socket:
        self.tried.append(str(address))
        if len(self.tried) == len(self._gates):
            for gate in self._gates.values():
                gate.set()
        await self._gates[str(address)].wait()
        return await connect(self._server.address, self._server.port)


def fetcher(
    connect: Connect, *addresses: str, tls: ssl.SSLContext = NO_TLS, timeout: float = 30.0, per_address: int = 4
) -> Fetcher:
    return Fetcher(
        profile=FetchProfile("ExampleBot/1.0"),
        guard=AddressGuard([ip_network("127.0.0.0/8"), ip_network("::1")]),
        ports=PortPolicy(every=True),
        resolver=Names({SITE: addresses, OTHER: addresses[-1:]}),
        ssl_context=tls,
        connect=connect,
        timeout=timeout,
        per_address=per_address,
    )


@pytest.mark.parametrize("silent", [FIRST, *LOOPBACKS[1:]])
async def test_the_next_address_is_tried_while_one_drops_packets(silent: str) -> None:
    async with nothing_left(), serve(text(200)) as origin:
        with dropping(silent, origin.port):
            wire = Recorded()
            assert await fetcher(wire, silent, SECOND).fetch(origin.named(SITE)) == FOUND
        await origin.left()
        assert wire.tried == [silent, SECOND]
        assert origin.connections == 1


async def test_ten_silent_addresses_cost_three_attempts_and_one_timeout() -> None:
    addresses = [f"127.0.1.{number}" for number in range(1, 11)]
    async with nothing_left(), serve(text(200)) as origin:
        wire = Gated(origin, {address: asyncio.Event() for address in addresses})
        ours = fetcher(wire, *addresses, timeout=NEXT_AFTER * 4)
        assert await ours.fetch(origin.named(SITE)) == TIMED_OUT
        assert wire.tried == addresses[:ADDRESSES_TRIED]
        assert ours._network._in_use == {}
        assert origin.connections == 0


@pytest.mark.parametrize("tls", [False, True])
async def test_of_addresses_that_connect_at_once_one_is_asked(tls: bool) -> None:
    authority = Authority()
    context = authority.server_context(SITE) if tls else None
    async with nothing_left(), serve(text(200), tls=context) as origin:
        gates = dict.fromkeys((FIRST, SECOND), asyncio.Event())
        wire = Gated(origin, gates)
        ours = fetcher(wire, FIRST, SECOND, tls=authority.client_context())
        assert await ours.fetch(origin.named(SITE)) == FOUND
        await origin.left()
        assert wire.tried == [FIRST, SECOND]
        assert len(origin.requests) == 1
        assert ours._network._in_use == {}


async def test_losers_end_before_the_request_does() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def hold(exchange: Exchange) -> None:
        asked.set()
        await go.wait()
        await exchange.send(text(200))

    async with nothing_left(), serve(hold) as origin:
        never, open_gate = asyncio.Event(), asyncio.Event()
        open_gate.set()
        wire = Gated(origin, {FIRST: never, SECOND: open_gate, "127.0.0.3": never})
        ours = fetcher(wire, FIRST, SECOND)
        fetch = asyncio.create_task(ours.fetch(origin.named(SITE)))
        await asked.wait()
        await until_so(lambda: len(ours._network._in_use) == 1)
        go.set()
        assert await fetch == FOUND


async def test_a_slow_handshake_is_not_a_reason_to_ask_another_address() -> None:
    authority = Authority()
    async with nothing_left(), serve(text(200), tls=authority.server_context(SITE)) as behind:

        async def late(exchange: Exchange) -> None:
            await asyncio.sleep(NEXT_AFTER * 2)
            await relay(exchange, str(behind.address), behind.port)

        async with serve(at_once=late) as origin:
            open_gate = asyncio.Event()
            open_gate.set()
            wire = Gated(origin, {FIRST: open_gate, SECOND: open_gate})
            ours = fetcher(wire, FIRST, SECOND, tls=authority.client_context())
            assert await ours.fetch(behind.named(SITE)) == FOUND
            assert wire.tried == [FIRST]


async def test_a_handshake_that_stalls_leaves_time_for_the_next_address() -> None:
    authority = Authority()

    async def stall(exchange: Exchange) -> None:
        await exchange.stall()

    async with (
        nothing_left(),
        serve(at_once=stall, host=FIRST) as silent,
        serve(text(200), tls=authority.server_context(SITE)) as origin,
    ):
        tried: list[str] = []

        async def to_either(address: Address, _port: int) -> socket.socket:
            tried.append(str(address))
            server = silent if str(address) == FIRST else origin
            return await connect(server.address, server.port)

        ours = fetcher(to_either, FIRST, SECOND, tls=authority.client_context(), timeout=3.0)
        assert await ours.fetch(origin.named(SITE)) == FOUND
        assert tried == [FIRST, SECOND]


async def test_every_attempt_counts_among_the_connections_to_its_address() -> None:
    async with nothing_left(), serve(text(200)) as origin:
        with dropping(FIRST, origin.port):
            wire = Recorded()
            ours = fetcher(wire, FIRST, SECOND, per_address=1)
            asked = [ours.fetch(origin.named(host)) for host in (SITE, OTHER, SITE, OTHER)]
            assert await asyncio.gather(*asked) == [FOUND] * 4
        assert wire.most == 1
        assert ours._network._in_use == {}


@pytest.mark.parametrize("tls", [False, True])
async def test_a_fetch_may_be_cancelled_at_any_step(tls: bool) -> None:
    authority = Authority()
    context = authority.server_context(SITE) if tls else None
    async with nothing_left(), serve(text(200), tls=context) as origin:
        ours = fetcher(Recorded(), SECOND, tls=authority.client_context())
        for steps in range(60):
            fetch = asyncio.create_task(ours.fetch(origin.named(SITE)))
            for _ in range(steps):
                await asyncio.sleep(0)
            fetch.cancel()
            await asyncio.wait([fetch])
            assert ours._network._in_use == {}
        await origin.left()
