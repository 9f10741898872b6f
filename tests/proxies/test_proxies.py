"""The configurations of deploy/proxies: a crawler that knows nothing of robots.txt gets what it may."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address

import pytest

from app.api.routes.check import ENVOY
from app.fetch.guard import PLATFORMS, RANGES
from tests.cli.serving import service
from tests.origins import Exchange, Reply, serve, text
from tests.proxies.proxy import EXAMPLES, nginx

pytestmark = pytest.mark.usefixtures("store_client")

ROBOTS = "User-agent: ExampleBot\nDisallow: /private/\nDisallow: /a%2Fb\n"
AGENT = {"User-Agent": "ExampleBot/1.0"}


def site(robots: bytes) -> Reply:
    """A site with this answer to /robots.txt, and a page at every other path."""

    async def answer(exchange: Exchange) -> None:
        await exchange.send(robots if exchange.path.endswith("/robots.txt") else text(200, "page"))

    return answer


async def test_proxy_passes_on_what_is_allowed(store_url: str) -> None:
    async with serve(site(text(200, ROBOTS))) as origin, service(store_url) as url, nginx(url) as client:
        page = await client.get(f"{origin.url}/page?a=1", headers=AGENT)
        assert (page.status_code, page.text) == (200, "page")
        for path in ("/private/", "/a%2Fb"):
            refused = await client.get(f"{origin.url}{path}", headers=AGENT)
            assert refused.status_code == 403
        other = await client.get(f"{origin.url}/private/", headers={"User-Agent": "OtherBot"})
        assert other.status_code == 200
        paths = [request.split(b" ")[1] for request in origin.requests]
    assert not any(b"a%2Fb" in path for path in paths)
    assert len(paths) == 3  # the file, and two pages


async def test_proxy_answers_503_for_defer(store_url: str) -> None:
    async with serve(site(text(500))) as origin, service(store_url) as url, nginx(url) as client:
        deferred = await client.get(f"{origin.url}/page", headers=AGENT)
        assert deferred.status_code == 503
        assert len(origin.requests) == 1
        assert int(deferred.headers["retry-after"]) > 0


async def test_proxy_fails_closed_without_a_service(store_url: str) -> None:
    async with serve(site(text(200))) as origin:
        async with service(store_url) as url:
            pass
        async with nginx(url) as client:
            page = await client.get(f"{origin.url}/page", headers=AGENT)
        assert page.status_code in {403, 503}
        assert origin.requests == []


def spellings() -> Iterator[str]:
    """Hosts at each end of every range that the service refuses."""
    for row in (*RANGES, *PLATFORMS):
        for address in {row.network[0], row.network[-1]}:
            if isinstance(address, IPv6Address):
                yield from (f"[{address}]", f"[{address.exploded.upper()}]")
            else:
                number = int(address)
                yield from (f"{address}", f"[::ffff:{address}]", f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]")
                yield f"[64:ff9b::{address}]"
    yield from ("127.1", "2130706433", "127.0.0.1.", "localhost", "LOCALHOST", "localhost.", "a.localhost")


async def test_nginx_refuses_private_destinations() -> None:
    # Without a service, what is not refused gets a 503, and no site is connected to.
    async with nginx("http://127.0.0.1:9", loopback=False) as client:
        for host in spellings():
            for port in ("", ":8081"):
                refused = await client.get("http://site.example/", headers={"Host": f"{host}{port}"})
                assert refused.status_code == 403, host
        for host in (
            "1.1.1.1",
            "9.255.255.255",
            "172.32.0.0",
            "223.255.255.255",
            "[2606:4700::1111]",
            "www.example.com",
        ):
            asked = await client.get("http://site.example/", headers={"Host": host})
            assert asked.status_code == 503, host


async def test_nginx_neither_asks_about_a_private_destination_nor_reaches_it(store_url: str) -> None:
    async with serve(site(text(200))) as origin, service(store_url) as url:
        async with nginx(url, loopback=False) as client:
            assert (await client.get(f"{origin.url}/page", headers=AGENT)).status_code == 403
            # The service itself, whose operators' routes nginx must not open either.
            assert (await client.get(f"{url}/v1/overrides", headers=AGENT)).status_code == 403
        assert origin.requests == []


async def test_nginx_keeps_its_connection_after_a_disallow(store_url: str) -> None:
    async with serve(site(text(200, ROBOTS))) as origin, service(store_url) as url, relay(url) as (relayed, opened):
        async with nginx(relayed) as client:
            for _ in range(5):
                assert (await client.get(f"{origin.url}/private/", headers=AGENT)).status_code == 403
        assert len(opened) == 1


@asynccontextmanager
async def relay(url: str) -> AsyncIterator[tuple[str, list[object]]]:
    """A way to the service that lists the connections which were opened."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    opened: list[object] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(reader)
        behind, ahead = await asyncio.open_connection(host, port)
        await asyncio.gather(copy(reader, ahead), copy(behind, writer), return_exceptions=True)

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", opened


def test_envoy_example_asks_by_the_route_for_it() -> None:
    example = (EXAMPLES / "envoy.yaml").read_text()
    assert f"path_prefix: {ENVOY}\n" in example
    assert [f"- exact: {name}\n" in example for name in ("user-agent", "x-forwarded-proto")] == [True, True]
    assert "failure_mode_allow: false\n" in example
