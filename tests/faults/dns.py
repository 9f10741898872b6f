"""A DNS server for tests, over UDP and TCP on loopback, and a resolver that queries it as the system would.

async with name_server({"www.example.com": [addresses("93.184.216.34"), addresses("10.0.0.1")]}) as server:
    resolver = SystemResolver(threads=4, lookup=server.look_up)
    ... the first lookup gets the first answer, and so on; the last one answers all further lookups ...
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock
from typing import cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.resolver
import dns.rrset

UDP_BYTES = 512
"""The longest UDP response to a client without EDNS (RFC 1035 4.2.1); longer ones need TCP."""

CHAIN = 40
"""Aliases that the server follows for a client."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer about a name: addresses, an alias, an error, or none at all."""

    addresses: tuple[str, ...] = ()
    alias: str | None = None
    rcode: dns.rcode.Rcode = dns.rcode.NOERROR
    silent: bool = False


def addresses(*texts: str) -> Answer:
    """A and AAAA records; without any, the name exists and has none."""
    return Answer(addresses=texts)


def alias(name: str) -> Answer:
    """A CNAME record."""
    return Answer(alias=name)


SERVFAIL = Answer(rcode=dns.rcode.SERVFAIL)
REFUSED = Answer(rcode=dns.rcode.REFUSED)
NXDOMAIN = Answer(rcode=dns.rcode.NXDOMAIN)
SILENCE = Answer(silent=True)


class NameServer:
    """A running recursive server; `questions` has its questions as (name, type, transport), in order."""

    def __init__(self, zone: Mapping[str, Sequence[Answer]], port: int, patience: float) -> None:
        self.questions: list[tuple[str, str, str]] = []
        self.lookups_under_way = 0
        self._zone = zone
        self._counting = Lock()
        self._stub = dns.resolver.Resolver(configure=False)
        self._stub.nameservers = ["127.0.0.1"]
        self._stub.port = port
        self._stub.lifetime = patience

    def look_up(self, name: str) -> list[str]:
        """Every address of the name, IPv6 first. Raises socket.gaierror for none. Blocks, as getaddrinfo does."""
        with self._counting:
            self.lookups_under_way += 1
        found: list[str] = []
        failure = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        try:
            for kind in ("AAAA", "A"):
                try:
                    found += self._resolve(name, kind)
                except dns.resolver.NXDOMAIN:
                    continue
                except dns.exception.DNSException as error:
                    failure = socket.gaierror(socket.EAI_AGAIN, str(error))
        finally:
            with self._counting:
                self.lookups_under_way -= 1
        if not found:
            raise failure
        return found

    def _resolve(self, name: str, kind: str) -> list[str]:
        answer = self._stub.resolve(dns.name.from_text(name), kind, raise_on_no_answer=False)
        return [] if answer.rrset is None else [str(record) for record in answer.rrset]

    def answer(self, query: dns.message.Message, transport: str) -> dns.message.Message | None:
        """The response to a question; None for silence."""
        question = query.question[0]
        kind = dns.rdatatype.to_text(question.rdtype)
        name = question.name.to_text(omit_final_dot=True)
        times = sum(entry[:2] == (name, kind) for entry in self.questions)
        self.questions.append((name, kind, transport))
        response = dns.message.make_response(query, recursion_available=True)
        for _ in range(CHAIN):
            answer = self._answer_for(name, times)
            if answer.silent:
                return None
            response.set_rcode(answer.rcode)
            records = (
                [answer.alias + "."] if answer.alias else [text for text in answer.addresses if _kind(text) == kind]
            )
            if records:
                records_kind = "CNAME" if answer.alias else kind
                response.answer.append(dns.rrset.from_text_list(name + ".", 0, "IN", records_kind, records))
            if answer.alias is None:
                break
            name = answer.alias
        return response

    def _answer_for(self, name: str, times: int) -> Answer:
        answers = self._zone.get(name, [NXDOMAIN])
        return answers[min(times, len(answers) - 1)]


def _kind(address: str) -> str:
    return "AAAA" if ":" in address else "A"


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.server: NameServer | None = None
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.server is None or self._transport is None:
            return
        response = self.server.answer(dns.message.from_wire(data), "udp")
        if response is not None:
            self._transport.sendto(response.to_wire(max_size=UDP_BYTES, prefer_truncation=True), addr)


@asynccontextmanager
async def name_server(zone: Mapping[str, Sequence[Answer]], patience: float = 5.0) -> AsyncIterator[NameServer]:
    """Serve a zone; a client gives up after `patience` seconds without an answer."""
    connections: set[asyncio.Task[None]] = set()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(2), "big")
                response = server.answer(dns.message.from_wire(await reader.readexactly(length)), "tcp")
                if response is not None:
                    writer.write(response.to_wire(prepend_length=True))
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.transport.abort()
            connections.discard(task)

    streams = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    port = streams.sockets[0].getsockname()[1]
    datagrams, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        _Datagrams, local_addr=("127.0.0.1", port)
    )
    server = NameServer(zone, port, patience)
    protocol.server = server
    try:
        yield server
    finally:
        datagrams.close()
        streams.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await streams.wait_closed()
