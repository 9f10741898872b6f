"""Fetches through a proxy: to the checked address, verified by the host's name, whatever the proxy answers."""

import asyncio
import ssl
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from app.fetch import proxy as proxy_module
from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.profile import FetchProfile
from app.fetch.proxy import ANSWER_BYTES, Proxy, Tunnels, read_proxy
from robots_core.origin import Origin
from robots_core.robots.access import Blocked, Cause, Fetched, Successful, Unreachable
from tests.faults.fetching import dropping, nothing_left
from tests.fetch.connect_proxy import tunnels
from tests.origins import LOOPBACKS, NO_TLS, Authority, Exchange, Handler, Names, Reply, head, redirect, serve, text

SITE, OTHER = "www.example.com", "www.example.org"
FOUND = Fetched(Successful(200, b"", content_type="text/plain"))
OPEN = b"HTTP/1.1 200 OK\r\n\r\n"
PASSWORD = "p:ä@s/s"


def fetcher(
    via: str,
    addresses: Sequence[str] = ("127.0.0.1",),
    *,
    admitted: Sequence[str] = ("127.0.0.0/8", "::1"),
    tls: ssl.SSLContext = NO_TLS,
    timeout: float = 20.0,
) -> Fetcher:
    names = Names({SITE: addresses, OTHER: addresses, "proxy.example": ["127.0.0.1"]})
    return Fetcher(
        profile=FetchProfile("ExampleBot/1.0"),
        guard=AddressGuard([ip_network(network) for network in admitted]),
        ports=PortPolicy(every=True),
        resolver=names,
        ssl_context=tls,
        connect=Tunnels(read_proxy(via), names),
        timeout=timeout,
    )


async def outcome(
    *answers: Reply, scheme: str = "http", at_once: Handler | None = None, within: float = 20.0
) -> Fetched:
    """The outcome of a fetch through a proxy with these answers to CONNECT. Checks that nothing is left."""
    async with nothing_left(), serve(*answers, at_once=at_once) as proxy:
        fetched = await fetcher(proxy.url, timeout=within).fetch(Origin(scheme, SITE, 80))
        await proxy.left()
    return fetched


@pytest.mark.parametrize("answer", [OPEN, b"HTTP/1.0 200 Connection established\r\nProxy-agent: x\r\n\r\n", head(204)])
@pytest.mark.parametrize("address", LOOPBACKS)
async def test_a_tunnel_leads_to_the_checked_address(address: str, answer: bytes) -> None:
    async with nothing_left(), serve(text(200), host=address) as origin, serve(tunnels(answer)) as proxy:
        ours = fetcher(f"http://proxy.example:{proxy.port}", [address])
        assert await ours.fetch(origin.named(SITE)) == FOUND
        await proxy.left()
    target = f"[{address}]:{origin.port}" if ":" in address else f"{address}:{origin.port}"
    assert proxy.requests == [f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()]
    assert f"\r\nHost: {SITE}:{origin.port}\r\n".encode() in origin.requests[0]


@pytest.mark.parametrize(("certified", "cause"), [(SITE, None), (OTHER, Cause.TLS), ("127.0.0.1", Cause.TLS)])
async def test_the_certificate_is_verified_inside_the_tunnel(certified: str, cause: Cause | None) -> None:
    authority = Authority()
    server = authority.server_context(certified)
    async with nothing_left(), serve(text(200), tls=server) as origin, serve(tunnels()) as proxy:
        fetched = await fetcher(proxy.url, tls=authority.client_context()).fetch(origin.named(SITE))
        await proxy.left()
    assert authority.requested_names == [SITE]
    assert fetched == (FOUND if cause is None else Fetched(Unreachable(cause)))


async def test_a_refused_address_never_reaches_the_proxy() -> None:
    async with nothing_left(), serve(redirect("http://10.0.0.1/robots.txt")) as origin, serve(tunnels()) as proxy:
        refused = await fetcher(proxy.url, admitted=[]).fetch(origin.named(SITE))
        assert refused == Fetched(Blocked("127.0.0.1"))
        assert proxy.connections == 0
        redirected = await fetcher(proxy.url).fetch(origin.named(SITE))
        await proxy.left()
    assert redirected.access == Unreachable(Cause.REFUSED_REDIRECT, 301)
    assert proxy.connections == len(origin.requests) == 1


async def test_no_tunnel_is_used_for_two_names() -> None:
    async with nothing_left(), serve(text(200)) as origin, serve(tunnels()) as proxy:
        ours = fetcher(proxy.url)
        for host in (SITE, OTHER, SITE):
            assert await ours.fetch(origin.named(host)) == FOUND
        await proxy.left()
    assert proxy.connections == origin.connections == 3


async def test_credentials_are_for_the_proxy_alone() -> None:
    async with nothing_left(), serve(text(200)) as origin, serve(tunnels(), head(407)) as proxy:
        via = f"http://fleet:p%3A%C3%A4%40s%2Fs@127.0.0.1:{proxy.port}/"
        ours = fetcher(via)
        assert await ours.fetch(origin.named(SITE)) == FOUND
        refused = (await ours.fetch(origin.named(SITE))).access
        await proxy.left()
    sent = b"Basic ZmxlZXQ6cDrDpEBzL3M="
    assert all(request.endswith(b"\r\nProxy-Authorization: %b\r\n\r\n" % sent) for request in proxy.requests)
    assert b"uthorization" not in origin.requests[0]
    assert isinstance(refused, Unreachable)
    shown = f"{refused} {read_proxy(via)}"
    assert all(secret not in shown for secret in ("fleet", PASSWORD, sent.decode(), "%3A"))


async def stalling(exchange: Exchange) -> None:
    await exchange.stall()


async def endless(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await exchange.send(b"X: " + b"a" * 1000 + b"\r\n")


async def resetting(exchange: Exchange) -> None:
    exchange.reset()


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (head(407), "the proxy answered CONNECT with 407: FETCH_PROXY has no credentials that it accepts"),
        (head(401), "the proxy answered CONNECT with 401: FETCH_PROXY has no credentials that it accepts"),
        (head(403), "the proxy answered CONNECT with 403: its rules refuse the address or the port"),
        (head(405), "the proxy answered CONNECT with 405: it permits no CONNECT"),
        (head(502), "the proxy answered CONNECT with 502: it could not reach the address"),
        (head(404), "the proxy answered CONNECT with 404"),
        (head(100), "the proxy answered CONNECT with 100"),
        (redirect("http://127.0.0.1/"), "the proxy answered CONNECT with 301"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "the proxy did not answer CONNECT as HTTP does"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "the proxy did not answer CONNECT as HTTP does"),
        (b"HTTP/1.1\r\n\r\n", "the proxy did not answer CONNECT as HTTP does"),
        (b"", "the proxy closed the connection without a whole answer to CONNECT"),
        (b"HTTP/1.1 200 OK\r\n", "the proxy closed the connection without a whole answer to CONNECT"),
        (OPEN + text(200, "User-agent: *"), "the proxy sent data through a tunnel that had not been used"),
        (endless, f"the answer of the proxy to CONNECT has more than {ANSWER_BYTES} bytes"),
        (resetting, "the connection to the proxy was reset"),
    ],
)
async def test_an_answer_that_opens_no_tunnel_is_the_proxys_failure(answer: Reply, detail: str) -> None:
    for scheme in ("http", "https"):
        access = (await outcome(answer, scheme=scheme)).access
        assert isinstance(access, Unreachable)
        assert (access.cause, access.status, access.detail) == (Cause.PROXY, None, detail)


@pytest.mark.parametrize(
    ("scheme", "cause", "detail"),
    [
        ("http", Cause.CONNECTION, "the connection was closed without a response"),
        ("https", Cause.TLS, "the connection was closed during the TLS handshake"),
    ],
)
async def test_a_tunnel_that_closes_at_once_is_a_closed_connection(scheme: str, cause: Cause, detail: str) -> None:
    async def closing(exchange: Exchange) -> None:
        await exchange.send(OPEN)
        await exchange.receive(1)  # or the end would come with the answer

    access = (await outcome(closing, scheme=scheme)).access
    assert access == Unreachable(cause)
    assert isinstance(access, Unreachable)
    assert access.detail == detail


async def test_a_silent_proxy_is_a_timeout() -> None:
    for at_once in (stalling, None):
        assert await outcome(stalling, at_once=at_once, within=0.3) == Fetched(Unreachable(Cause.TIMEOUT))


async def test_a_proxy_that_cannot_be_reached_is_named_as_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "PROXY_PATIENCE", 0.2)
    async with nothing_left(), serve(text(200)) as gone:
        pass
    with dropping("127.0.0.2", gone.port):
        for via, detail in (
            (f"http://127.0.0.1:{gone.port}", "no connection to the proxy: connection refused"),
            (f"http://127.0.0.2:{gone.port}", "no connection to the proxy: there was none within 0.2 s"),
            ("http://unknown.example:3128", "the name of the proxy could not be resolved"),
        ):
            access = (await fetcher(via).fetch(Origin("http", SITE, 80))).access
            assert isinstance(access, Unreachable)
            assert (access.cause, access.detail) == (Cause.PROXY, detail)


async def test_the_next_address_is_tried_if_the_proxy_cannot_reach_one() -> None:
    async with nothing_left(), serve(text(200)) as origin, serve(head(502), tunnels()) as proxy:
        assert await fetcher(proxy.url, ["127.0.0.2", "127.0.0.1"]).fetch(origin.named(SITE)) == FOUND
        await proxy.left()
    assert [request.split()[1].rpartition(b":")[0] for request in proxy.requests] == [b"127.0.0.2", b"127.0.0.1"]


async def test_a_fetch_through_a_proxy_may_be_cancelled_at_any_step() -> None:
    async with nothing_left(), serve(text(200)) as origin, serve(tunnels()) as proxy:
        ours = fetcher(proxy.url)
        for steps in range(0, 60, 2):
            fetch = asyncio.create_task(ours.fetch(origin.named(SITE)))
            for _ in range(steps):
                await asyncio.sleep(0)
            fetch.cancel()
            await asyncio.wait([fetch])
            assert ours._network._in_use == {}
        await proxy.left()


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://proxy.example:3128", Proxy("proxy.example", 3128)),
        ("HTTP://Proxy.Example:80/", Proxy("proxy.example", 80)),
        ("http://10.0.0.1:3128", Proxy("10.0.0.1", 3128)),
        ("http://[fd00::1]:3128", Proxy("fd00::1", 3128)),
        ("http://fleet@proxy.example:1", Proxy("proxy.example", 1, b"Basic ZmxlZXQ6")),
    ],
)
def test_a_url_of_a_proxy_is_read(url: str, proxy: Proxy) -> None:
    assert read_proxy(url) == proxy


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("proxy.example:3128", "over http"),
        ("https://u:secret@proxy.example:3128", "over http"),
        ("socks5://u:secret@proxy.example:1080", "over http"),
        ("http://u:secret@proxy.example", "no port"),
        ("http://u:secret@:3128", "not a URL"),
        ("http://u:secret@proxy.example:secret", "not a URL"),
        ("http://u:secret@proxy.example:99999", "not a URL"),
        ("http://u:secret@[::1:3128", "not a URL"),
        ("http://u:secret@proxy.example:3128/path", "nothing may follow"),
        ("http://u:secret@proxy.example:3128?a=b", "nothing may follow"),
        ("http://u%3Ax:secret@proxy.example:3128", "cannot be sent"),
        ("http://u:secret%0D%0AX:y@proxy.example:3128", "cannot be sent"),
    ],
)
def test_a_bad_url_of_a_proxy_is_refused_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        read_proxy(url)
    assert "secret" not in str(refused.value)
