"""What a crawl costs: new origins, permits, outcomes, and all of them together. `make bench NAME=crawl`.

New origins are asked about in turns with a naive service (`naive`) and, with `AGAINST=TREE`, the service of another
checkout. Every server is a process of its own; this one sends the requests and serves the sites. Figures are CPU times
of a server's process and of the store for one request: the median of alternating rounds.
"""

import argparse
import asyncio
import json
import platform
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import accumulate, count, product
from pathlib import Path
from random import Random
from statistics import median
from string import ascii_lowercase
from tempfile import NamedTemporaryFile
from typing import cast

import trustme
import uvloop
from redis.asyncio import Redis

from app.store.embedded import serve
from tests.bench.core import processor
from tests.bench.http import AGENT, Connection, Server, free_port, get, process

ROUNDS, COLD, REQUESTS, ITEMS = 7, 300, 1000, 100
CONNECTIONS = 4
"""Requests at once about new origins, which have one address here: the service opens no more connections to one."""

PARTS = ("origins", "permits", "pools", "orders", "crawl")

WORKERS, ORIGINS, PAGES, CRAWLS = 20, 2000, 10_000, 3
LISTED, BATCH, FIELDS = 20_000, 200, "fields=verdict,rule,rate"
"""URLs of a list about ORIGINS, and of one batch, whose answer comes in one piece; and what a frontier reads of it."""

_agents = (f"Bot{''.join(letters)}" for letters in product(ascii_lowercase, repeat=3))
"""Names of crawlers, each for one use."""

SITE = "crawl.localhost"
"""Names below it are this machine's (RFC 6761), so no name server is asked. A wildcard needs the two labels."""

FILES = {"300 B": 300, "30 KB": 30_000}
LISTED_FILES = {"300 B": 300, "4 KB": 4000}  # the median of the corpus is 0.6 KB, the mean 4 KB


def file_of(size: int) -> bytes:
    """A robots.txt of about `size` bytes."""
    lines = accumulate((f"Disallow: /section-{n}/private/\n" for n in count()), initial="User-agent: *\n")
    return next(text for text in lines if len(text) >= size).encode()


class Site(asyncio.Protocol):
    """Answers each request with the same file, and closes the connection."""

    def __init__(self, response: bytes) -> None:
        self._response = response
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"\r\n\r\n"):
            self._transport.write(self._response)
            self._transport.close()


@asynccontextmanager
async def site(size: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Sites with a file of `size` bytes under every name; yields their port."""
    content = file_of(size)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    loop, port = asyncio.get_running_loop(), free_port()
    server = await loop.create_server(lambda: Site(head.encode() + content), "127.0.0.1", port, ssl=tls, backlog=1000)
    try:
        yield port
    finally:
        server.close()


@dataclass(frozen=True, slots=True)
class Spent:
    """For one request: CPU microseconds of the server and of the store, and how often the store was sent something."""

    server: float
    store: float
    trips: float

    @property
    def total(self) -> float:
        """The CPU of both."""
        return self.server + self.store


@dataclass
class Rounds:
    """The figures of one kind of request, one for each round."""

    found: list[Spent] = field(default_factory=list)

    def middle(self) -> Spent:
        """The median of each figure."""
        found = self.found
        return Spent(
            median(it.server for it in found), median(it.store for it in found), median(it.trips for it in found)
        )


class Meter:
    """Sends requests to servers that share a store, and reads the clocks."""

    def __init__(self, store: Redis) -> None:
        self._store = store

    async def spent(
        self,
        server: Server,
        requests: Iterator[bytes],
        connections: int = CONNECTIONS,
        per: int = 1,
        answers: list[bytes] | None = None,
    ) -> Spent:
        """Send all requests over so many connections; each counts as `per`. Answers are added to `answers`."""
        done = 0

        async def work(connection: Connection) -> None:
            nonlocal done
            for request in requests:
                answer = await connection.ask(request)
                done += per
                if answers is not None:
                    answers.append(answer)

        async with server.connected(connections) as opened:
            before, cpu = await self._clocks(), server.cpu()
            await asyncio.gather(*map(work, opened))
            used, after = server.cpu() - cpu, await self._clocks()
        return Spent(used / done * 1e6, (after[0] - before[0]) / done * 1e6, (after[1] - before[1]) / done)

    async def _clocks(self) -> tuple[float, int]:
        """The store's CPU seconds, and how often it has read from a connection."""
        info = await self._store.info("everything")
        return info["used_cpu_user"] + info["used_cpu_sys"], info["total_reads_processed"]


@contextmanager
def service(store: str, authority: str, tree: Path | None = None, **settings: str) -> Iterator[Server]:
    """The service of this checkout or of `tree`, with more settings."""
    port = free_port()
    environment = {
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WORKERS": "1",
        "ALLOW_ADDRESSES": "127.0.0.0/8",
        "ALLOW_PORTS": "*",
        "ACCESS_LOG": "false",
        "REDIS_URL": store,
        "SSL_CERT_FILE": authority,
        **settings,
    }
    with process(["app"], port, environment=environment, tree=tree) as server:
        yield server


@contextmanager
def naive(store: str, authority: str) -> Iterator[Server]:
    """The naive service."""
    port = free_port()
    environment = {"REDIS_URL": store, "SSL_CERT_FILE": authority}
    with process(["tests.bench.naive", str(port)], port, environment=environment) as server:
        yield server


def post(path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
    return f"{head}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def print_row(name: str, spent: Spent, beside: float) -> None:
    print(f"| {name} | {spent.server:.0f} | {spent.server / beside:.2f} | {spent.store:.0f} | {spent.trips:.1f} |")


def print_head(what: str, unit: str) -> None:
    print(f"\n| {what} | CPU, us | of {unit} | the store's, us | sent to the store |\n|---|---|---|---|---|")


async def new_origins(meter: Meter, servers: Mapping[str, Server], authority: trustme.CA) -> None:
    """New origins, one question about each."""
    names = count()
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(f"*.{SITE}").configure_cert(certificate)
    print_head("a new origin", "the naive service")
    for scheme, tls in (("http", None), ("https", certificate)):
        for kind, size in FILES.items():
            async with site(size, tls) as port:

                def questions(number: int, scheme: str = scheme, port: int = port) -> Iterator[bytes]:
                    return (get(f"{scheme}://n{next(names)}.{SITE}:{port}/page") for _ in range(number))

                found = {name: Rounds() for name in servers}
                for server in servers.values():
                    await meter.spent(server, questions(COLD // 4))
                for _ in range(ROUNDS):
                    for name, server in servers.items():
                        found[name].found.append(await meter.spent(server, questions(COLD)))
            for name, rounds in found.items():
                print_row(f"{scheme}, {kind}: {name}", rounds.middle(), found["naive"].middle().server)


async def permit_turns(meter: Meter, server: Server, urls: Sequence[str]) -> Mapping[str, Spent]:
    """What a hot GET, a permit, an outcome and a permit of a batch cost once."""

    def wanted() -> list[dict[str, object]]:
        # Agents have queues of their own. Once the times of pages are known, one gives slots for some seconds only.
        agent = next(_agents)
        return [{"url": url, "agent": agent, "max_wait": 3600} for url in urls]

    def outcomes(granted: Sequence[bytes]) -> Sequence[bytes]:
        permits = [json.loads(answer)["permit"] for answer in granted]
        reported = {"status": 200, "elapsed": 0.1}
        # A store that is slow for once refuses one.
        return [post(f"/v1/permits/{permit}/outcome", reported) for permit in permits if permit is not None]

    granted: list[bytes] = []
    one, several = wanted(), wanted()
    batches = [{"items": several[start : start + ITEMS]} for start in range(0, len(several), ITEMS)]
    return {
        "a hot GET": await meter.spent(server, map(get, urls)),
        "a permit": await meter.spent(server, (post("/v1/permits", it) for it in one), answers=granted),
        "an outcome": await meter.spent(server, iter(outcomes(granted))),
        "a permit, 100 items": await meter.spent(server, (post("/v1/permits/batch", it) for it in batches), per=ITEMS),
    }


async def permits(meter: Meter, servers: Mapping[str, Server]) -> None:
    """Permits and outcomes of 40 origins whose files are in memory; servers take turns."""
    found: dict[str, dict[str, Rounds]] = {name: defaultdict(Rounds) for name in servers}
    async with site(300) as port:
        urls = [f"http://p{number % 40}.{SITE}:{port}/{number}" for number in range(REQUESTS)]
        for server in servers.values():
            await meter.spent(server, map(get, urls))
        for _ in range(ROUNDS):
            for name, server in servers.items():
                for kind, spent in (await permit_turns(meter, server, urls)).items():
                    found[name][kind].found.append(spent)
    for name, rows in found.items():
        if len(servers) > 1:
            print(f"\n{name}:")
        print_head("a request", "a hot GET")
        for kind, rounds in rows.items():
            print_row(kind, rounds.middle(), rows["a hot GET"].middle().server)
    ours, *others = found.items()
    for name, rows in others:
        for kind in ("a permit", "a permit, 100 items"):
            ratios = [a.total / b.total for a, b in zip(ours[1][kind].found, rows[kind].found, strict=True)]
            print(f"\n{kind}: {median(ratios):.2f} times that of {name}, by the CPU of service and store")


async def orders(meter: Meter, server: Server) -> None:
    """Batches about URLs of origins that are in memory: sorted by origin, in random order, and for some members."""
    print_head("an item of a batch", "a sorted list")
    for kind, size in LISTED_FILES.items():
        async with site(size) as port:
            sorted_list = [
                {"url": f"http://l{size}-{rank}.{SITE}:{port}/{number}", "agent": AGENT}
                for rank in range(ORIGINS)
                for number in range(LISTED // ORIGINS)
            ]
            lists = {
                "sorted": (sorted_list, ""),
                "in random order": (Random(1).sample(sorted_list, LISTED), ""),
                f"sorted, {FIELDS}": (sorted_list, f"?{FIELDS}"),
            }
            found = {name: Rounds() for name in lists}
            sizes: dict[str, int] = {}
            await meter.spent(server, batches(sorted_list), 1)
            for _ in range(ROUNDS):
                for name, (items, query) in lists.items():
                    answers: list[bytes] = []
                    found[name].found.append(
                        await meter.spent(server, batches(items, query), 1, BATCH, answers=answers)
                    )
                    sizes[name] = sum(map(len, answers)) // len(items)
        for name, rounds in found.items():
            print_row(f"{kind}, {name}: {sizes[name]} bytes", rounds.middle(), found["sorted"].middle().server)


def batches(items: Sequence[Mapping[str, str]], query: str = "") -> Iterator[bytes]:
    """The requests about a list of items."""
    path = f"/v1/allowed{query}"
    return (post(path, {"items": items[start : start + BATCH]}) for start in range(0, len(items), BATCH))


def pages(random: Random, crawl: int, port: int) -> list[str]:
    """The pages of a crawl: the origin at rank n is as frequent as 1/n (Zipf)."""
    ranks = random.choices(range(ORIGINS), [1 / rank for rank in range(1, ORIGINS + 1)], k=PAGES)
    return [f"http://c{crawl}-{rank}.{SITE}:{port}/{number}" for number, rank in enumerate(ranks)]


async def crawl(meter: Meter, server: Server) -> None:
    """A permit for each page, and one outcome in ten; origins are new when their first page comes."""
    found = Rounds()
    new: list[int] = []
    async with site(300) as port:
        for number in range(CRAWLS):
            urls = pages(Random(number), number, port)
            answers: list[bytes] = []

            def requests(urls: Sequence[str] = urls, answers: list[bytes] = answers) -> Iterator[bytes]:
                for number, url in enumerate(urls):
                    yield post("/v1/permits", {"url": url, "agent": AGENT, "max_wait": 3600})
                    if number % 10 == 0 and answers and (permit := json.loads(answers[-1]).get("permit")):
                        yield post(f"/v1/permits/{permit}/outcome", {"status": 200, "elapsed": 0.1})

            spent = await meter.spent(server, requests(), WORKERS, answers=answers)
            share = len(answers) / PAGES
            found.found.append(Spent(spent.server * share, spent.store * share, spent.trips * share))
            new.append(len({url.split("/")[2] for url in urls}))
    spent = found.middle()
    print(f"\nA crawl of {PAGES:,} pages of {median(new):,.0f} origins, by Zipf's law, {WORKERS} workers; per page:")
    print(
        f"{spent.server:.0f} us of the service, {spent.store:.0f} us of the store, sent to it {spent.trips:.2f} times"
    )


async def measured(
    store: str, authority: trustme.CA, certificate: str, against: Path | None, parts: Sequence[str]
) -> None:
    """Run these parts."""
    with ExitStack() as stack:
        client = Redis.from_url(store)
        meter = Meter(client)
        ours = stack.enter_context(service(store, certificate))
        servers = {"ours": ours}
        if against is not None:
            servers[f"{against.name}"] = stack.enter_context(service(store, certificate, against))
        if "origins" in parts:
            with naive(store, certificate) as server:
                await new_origins(meter, {**servers, "naive": server}, authority)
        if "permits" in parts:
            await permits(meter, servers)
        if "pools" in parts:
            with service(store, certificate, PACE_BY="origin") as server:
                await permits(meter, {"PACE_BY=host": ours, "PACE_BY=origin": server})
        for name in servers:
            if against is not None and not {"orders", "crawl"}.isdisjoint(parts):
                print(f"\n{name}:")
            if "orders" in parts:
                await orders(meter, servers[name])
            if "crawl" in parts:
                await crawl(meter, servers[name])
            await client.flushall()
        await client.aclose()


def main() -> None:
    """Measure with a dedicated store."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all, or some of {', '.join(PARTS)}")
    given = parser.parse_args()
    parts = given.parts or PARTS
    if unknown := set(parts).difference(PARTS):
        parser.error(f"{', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("fastapi", "aiohttp", "redis", "protego"))
    print(f"{datetime.now(UTC):%Y-%m-%d}, {python}, {processor()}; {libraries}")
    authority = trustme.CA()
    tree = None if given.against is None else given.against.resolve()
    with NamedTemporaryFile(suffix=".pem") as certificate, serve(None) as store:
        certificate.write(authority.cert_pem.bytes())
        certificate.flush()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(measured(store, authority, certificate.name, tree, parts))


if __name__ == "__main__":
    main()
