"""One fetch of one robots.txt over real sockets: what was found, and what a server cannot do to us."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from ipaddress import ip_network

import pytest

from app.fetch.client import PIECES_READ, UNCONDITIONAL, Fetcher
from app.fetch.guard import Address, AddressGuard, PortPolicy
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.origin import Origin
from app.robots.access import (
    BODY_LIMIT,
    Blocked,
    Busy,
    Cause,
    Fetched,
    Lifetime,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)
from tests.origins import Authority, Exchange, Names, Reply, head, redirect, serve, text

SITE = "www.example.com"
ROBOTS = b"User-agent: *\nDisallow: /private\n"
LONG_AGO = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody."""


def fetcher(
    *,
    resolver: Resolver | None = None,
    admitted: Sequence[str] = ("127.0.0.1/32",),
    ports: PortPolicy = PortPolicy(every=True),  # noqa: B008
    tls: ssl.SSLContext = NO_TLS,
    timeout: float = 5.0,
    concurrency: int = 256,
    waiting: int = 1024,
) -> Fetcher:
    return Fetcher(
        user_agent="RobotsDecisions/1 (+https://crawler.example/)",
        guard=AddressGuard([ip_network(network) for network in admitted]),
        ports=ports,
        resolver=Names({SITE: ["127.0.0.1"], "other.example": ["127.0.0.1"]}) if resolver is None else resolver,
        ssl_context=tls,
        timeout=timeout,
        concurrency=concurrency,
        waiting=waiting,
        now=lambda: LONG_AGO,
    )


async def answer_to(*replies: Reply, within: float = 5.0, validators: Validators = UNCONDITIONAL) -> Fetched:
    """What a fetch makes of a server that says this. It leaves no connection and no task behind, whatever it makes."""
    async with serve(*replies) as origin:
        fetched = await fetcher(timeout=within).fetch(origin.named(SITE), validators)
        await origin.left()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return fetched


def fields(request: bytes) -> dict[bytes, bytes]:
    lines = request.split(b"\r\n")[1:-2]
    pairs = [line.split(b": ", 1) for line in lines]
    assert len({name.lower() for name, _ in pairs}) == len(pairs)
    return {name.lower(): value for name, value in pairs}


# What is asked.


async def test_one_get_with_our_name_and_nothing_that_identifies_anybody_else() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        fetched = await fetcher().fetch(origin.named(SITE))
    assert fetched == Fetched(Successful(200, ROBOTS, content_type="text/plain"))
    assert origin.requests[0].startswith(b"GET /robots.txt HTTP/1.1\r\n")
    assert fields(origin.requests[0]) == {
        b"host": f"{SITE}:{origin.port}".encode(),
        b"user-agent": b"RobotsDecisions/1 (+https://crawler.example/)",
        b"accept": b"text/plain, */*;q=0.1",
        b"accept-encoding": b"gzip, deflate",
        b"connection": b"close",
    }


async def test_an_ipv6_literal_is_bracketed_in_the_host_field() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        await fetcher(resolver=Names({})).fetch(origin.named("::ffff:7f00:1"))
    assert fields(origin.requests[0])[b"host"] == f"[::ffff:7f00:1]:{origin.port}".encode()


@pytest.mark.parametrize("user_agent", ["", "a\r\nX: y", "a\x00", "bücher", " padded"])
def test_a_user_agent_that_cannot_be_sent_is_refused_at_the_start(user_agent: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        Fetcher(
            user_agent=user_agent,
            guard=AddressGuard(),
            ports=PortPolicy(),
            resolver=Names({}),
            ssl_context=NO_TLS,
        )


async def test_no_cookie_comes_back_and_no_credential_is_sent() -> None:
    async with serve(text(200)) as last:
        step = text(302, "", {"Location": f"http://user:secret@other.example:{last.port}/r", "Set-Cookie": "id=1"})
        async with serve(step) as first:
            fetched = await fetcher().fetch(first.named(SITE))
    assert fetched.final_url == f"http://other.example:{last.port}/r"
    request = last.requests[0].lower()
    assert all(word not in request for word in (b"cookie", b"authorization", b"secret", b"user:", b"referer"))


# What is found: statuses.


@pytest.mark.parametrize("status", [200, 201, 203, 299])
async def test_rfc9309_2xx_is_a_file(status: int) -> None:
    assert (await answer_to(text(status, ROBOTS))).access == Successful(status, ROBOTS, content_type="text/plain")


async def test_spec_a7_204_is_an_empty_file_and_206_is_no_file() -> None:
    assert (await answer_to(head(204))).access == Successful(204, b"")
    assert (await answer_to(text(206, ROBOTS))).access == Unreachable(Cause.BAD_RESPONSE, 206)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
async def test_rfc9309_4xx_is_unavailable_and_keeps_its_status(status: int) -> None:
    assert (await answer_to(text(status, ROBOTS))).access == Unavailable(status)


async def test_the_body_of_a_4xx_is_not_waited_for() -> None:
    async def endless_apology(exchange: Exchange) -> None:
        await exchange.send(head(404, {"Content-Length": "1000000"}))
        await exchange.stall()

    assert (await answer_to(endless_apology)).access == Unavailable(404)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
async def test_rfc9309_5xx_is_unreachable_and_keeps_its_status(status: int) -> None:
    assert (await answer_to(text(status))).access == Unreachable(Cause.SERVER_ERROR, status)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("30", 30), ("Sun, 06 Nov 1994 08:50:37 GMT", 60), ("999999999", 86_400), ("-1", None), ("later", None)],
)
async def test_spec_a14_429_and_503_say_when_to_come_back(written: str, seconds: int | None) -> None:
    limited = await answer_to(text(429, "", {"Retry-After": written}))
    assert limited.access == Unreachable(Cause.TOO_MANY_REQUESTS, 429, seconds)
    down = await answer_to(text(503, "", {"Retry-After": written}))
    assert down.access == Unreachable(Cause.SERVER_ERROR, 503, seconds)


@pytest.mark.parametrize("status", [300, 304, 305, 306, 399, 600, 999])
async def test_a_status_that_answers_nothing_that_was_asked_is_a_bad_response(status: int) -> None:
    assert (await answer_to(text(status))).access == Unreachable(Cause.BAD_RESPONSE, status)


async def test_an_interim_response_is_passed_over() -> None:
    assert (await answer_to(head(103, {"Link": "</a>"}) + text(200, ROBOTS))).access == Successful(
        200, ROBOTS, content_type="text/plain"
    )


# What comes with it.


async def test_rfc9110_validators_make_the_request_conditional_on_every_hop() -> None:
    validators = Validators(etag='W/"á"', last_modified="Sun, 06 Nov 1994 08:49:37 GMT")
    async with serve(redirect("/r"), head(304, {"ETag": '"b"', "Cache-Control": "max-age=60"})) as origin:
        fetched = await fetcher().fetch(origin.named(SITE), validators)
    assert fetched == Fetched(
        NotModified(),
        final_url=f"http://{SITE}:{origin.port}/r",
        validators=Validators(etag='"b"'),
        lifetime=Lifetime(cache_control="max-age=60"),
    )
    for request in origin.requests:
        assert fields(request)[b"if-none-match"] == b'W/"\xe1"'
        assert fields(request)[b"if-modified-since"] == b"Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize("etag", ["a\r\nX: y", "a\x00", "snow☃", "", "a" * 2000])
async def test_a_validator_that_cannot_be_sent_makes_no_request_conditional(etag: str) -> None:
    async with serve(head(304)) as origin:
        fetched = await fetcher().fetch(origin.named(SITE), Validators(etag=etag))
    assert fetched.access == Unreachable(Cause.BAD_RESPONSE, 304)
    assert b"if-none-match" not in fields(origin.requests[0])


async def test_what_the_server_says_of_freshness_comes_along_with_any_status() -> None:
    said = {
        "ETag": '"1"',
        "Last-Modified": "Sat, 05 Nov 1994 00:00:00 GMT",
        "Cache-Control": "max-age=5",
        "Expires": "0",
        "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
        "Age": "3",
    }
    for status in (200, 404):
        fetched = await answer_to(text(status, "", said))
        assert fetched.validators == Validators('"1"', "Sat, 05 Nov 1994 00:00:00 GMT")
        assert fetched.lifetime == Lifetime("max-age=5", "0", "Sun, 06 Nov 1994 08:49:37 GMT", "3")


async def test_a_field_of_absurd_length_counts_as_absent() -> None:
    fetched = await answer_to(text(200, ROBOTS, {"ETag": '"' + "e" * 5000 + '"', "Content-Type": "t" * 5000}))
    assert fetched == Fetched(Successful(200, ROBOTS))


# Redirects.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_rfc9309_a_redirect_is_followed_to_another_host(status: int) -> None:
    async with (
        serve(text(200, ROBOTS)) as last,
        serve(redirect(f"http://other.example:{last.port}/r", status)) as first,
    ):
        fetched = await fetcher().fetch(first.named(SITE))
    assert fetched.access == Successful(200, ROBOTS, content_type="text/plain")
    assert fetched.final_url == f"http://other.example:{last.port}/r"
    assert fields(last.requests[0])[b"host"] == f"other.example:{last.port}".encode()


async def test_spec_a9_five_redirects_are_followed_and_a_sixth_leads_nowhere() -> None:
    hops: list[Reply] = [redirect(f"/{hop}") for hop in range(1, 6)]
    five = await answer_to(*hops, text(200, ROBOTS))
    assert isinstance(five.access, Successful)
    assert five.final_url is not None
    assert five.final_url.endswith("/5")
    six = await answer_to(*hops, redirect("/6", 308), text(200, ROBOTS))
    assert six.access == Unavailable(308, Cause.REDIRECT_LOOP)


async def test_spec_a9_a_loop_leads_nowhere() -> None:
    assert (await answer_to(redirect("/robots.txt#again"))).access == Unavailable(301, Cause.REDIRECT_LOOP)
    assert (await answer_to(redirect("/a"), redirect("b"), redirect("a", 302))).access == Unavailable(
        302, Cause.REDIRECT_LOOP
    )


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "ftp://other.example/", "gopher://127.0.0.1:6379/_x", "http://[::1", "https://"],
)
async def test_spec_a9_a_location_that_cannot_be_fetched_leads_nowhere(location: str) -> None:
    assert await answer_to(redirect(location)) == Fetched(Unavailable(301, Cause.REFUSED_REDIRECT))


async def test_spec_a9_a_redirect_without_location_leads_nowhere() -> None:
    assert (await answer_to(text(302))).access == Unavailable(302, Cause.REFUSED_REDIRECT)


async def test_hostile_octets_of_a_location_never_reach_the_request_line_as_they_are() -> None:
    async with serve(redirect("/\xc3\xb6"), redirect("/a b\x01\x7f\xff?q=\xa0x"), text(200)) as origin:
        fetched = await fetcher().fetch(origin.named(SITE))
    assert isinstance(fetched.access, Successful)
    assert [request.split(b"\r\n")[0] for request in origin.requests] == [
        b"GET /robots.txt HTTP/1.1",
        b"GET /%C3%B6 HTTP/1.1",
        b"GET /a%20b%01%7F%FF?q=%A0x HTTP/1.1",
    ]


# Where a fetch may go.


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
async def test_spec_a32_a_name_that_leads_to_a_private_address_is_blocked(address: str) -> None:
    fetched = await fetcher(admitted=(), resolver=Names({SITE: [address]})).fetch(Origin("http", SITE, 80))
    assert fetched == Fetched(Blocked(address))


@pytest.mark.parametrize("target", ["127.0.0.2", "10.0.0.1", "[::1]", "[::ffff:169.254.169.254]", "inside.example"])
async def test_spec_a32_a_redirect_to_a_private_address_teaches_nothing(target: str) -> None:
    names = Names({SITE: ["127.0.0.1"], "inside.example": ["192.168.0.1", "fd00::1"]})
    async with serve(redirect(f"http://{target}/robots.txt", 307)) as origin:
        fetched = await fetcher(resolver=names).fetch(origin.named(SITE))
    assert fetched.access == Unreachable(Cause.REFUSED_REDIRECT, 307)


async def test_a_redirect_to_a_port_that_is_no_web_port_teaches_nothing() -> None:
    async with serve(text(200)) as other, serve(redirect(f"http://other.example:{other.port}/")) as first:
        fetched = await fetcher(ports=PortPolicy()).fetch(first.named(SITE))
    assert fetched == Fetched(Unreachable(Cause.REFUSED_REDIRECT, 301))
    assert other.connections == 0


async def test_a_redirect_to_the_asked_port_is_followed() -> None:
    async with serve(redirect("/moved"), text(200)) as origin:
        fetched = await fetcher(ports=PortPolicy()).fetch(origin.named(SITE))
    assert fetched.access == Successful(200, b"", content_type="text/plain")


async def test_a_name_is_resolved_once_per_hop() -> None:
    names = Names({SITE: ["127.0.0.1"]})
    async with serve(redirect("/moved"), text(200)) as origin:
        await fetcher(resolver=names).fetch(origin.named(SITE))
    assert names.asked == [SITE, SITE]
    assert origin.connections == 2


async def test_of_public_and_private_addresses_only_the_admitted_one_is_connected_to() -> None:
    names = Names({SITE: ["10.0.0.1", "127.0.0.2", "127.0.0.1"]})
    async with serve(text(200, ROBOTS)) as origin:
        fetched = await fetcher(resolver=names).fetch(origin.named(SITE))
    assert isinstance(fetched.access, Successful)
    assert origin.connections == 1


async def test_a_name_that_changes_its_mind_is_judged_by_the_answer_that_is_used() -> None:
    answers = iter(["127.0.0.1", "127.0.0.2"])

    async def rebinding(name: str) -> Sequence[Address]:
        return await Names({name: [next(answers)]})(name)

    async with serve(redirect("/again")) as origin:
        fetched = await fetcher(resolver=rebinding).fetch(origin.named(SITE))
    assert fetched.access == Unreachable(Cause.REFUSED_REDIRECT, 301)
    assert len(origin.requests) == 1


# What goes wrong below HTTP.


async def test_a_name_without_address_is_dns() -> None:
    fetched = await fetcher(resolver=Names({})).fetch(Origin("http", SITE, 80))
    assert fetched == Fetched(Unreachable(Cause.DNS))


async def test_a_name_without_address_behind_a_redirect_is_dns_and_says_where() -> None:
    fetched = await answer_to(redirect("http://nowhere.example/r"))
    assert fetched == Fetched(Unreachable(Cause.DNS), final_url="http://nowhere.example/r")


async def test_a_refused_connection_is_connection() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can have the port
        fetched = await fetcher().fetch(Origin("http", SITE, bound.getsockname()[1]))
    assert fetched == Fetched(Unreachable(Cause.CONNECTION))


async def reset(exchange: Exchange) -> None:
    exchange.reset()


async def reset_midway(exchange: Exchange) -> None:
    await exchange.send(head(200, {"Content-Length": "1000"}) + ROBOTS)
    exchange.reset()


async def test_a_reset_and_a_close_without_an_answer_are_connection() -> None:
    assert (await answer_to(reset)).access == Unreachable(Cause.CONNECTION)
    assert (await answer_to(b"")).access == Unreachable(Cause.CONNECTION)
    midway = (await answer_to(reset_midway)).access
    assert isinstance(midway, Unreachable)
    assert midway.cause is Cause.CONNECTION


# What goes wrong in HTTP.


@pytest.mark.parametrize(
    "sent",
    [
        b"User-agent: *\r\nDisallow:\r\n\r\n",
        b"<html>hello</html>",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 20 Short\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: \x00\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
        head(200, {"Content-Length": "100"}) + ROBOTS,
        head(200, {"Content-Length": "-1"}) + ROBOTS,
        head(200, {"Content-Length": "1e3"}) + ROBOTS,
        head(200, [("Content-Length", "1"), ("Content-Length", "2")]) + b"ab",
        head(200, {"Transfer-Encoding": "chunked"}) + b"zz\r\n",
        head(200, {"Transfer-Encoding": "chunked"}) + b"5\r\nabc",
        head(200, {"Transfer-Encoding": "chunked"}) + b"3\r\nabcXX0\r\n\r\n",
        head(200, {"Transfer-Encoding": "chunked"}) + b"3\r\nabc\r\n",
        head(200, {"Transfer-Encoding": "gzip, chunked"}) + b"0\r\n\r\n",
        text(200, ROBOTS, {"Content-Encoding": "br"}),
        text(200, ROBOTS, {"Content-Encoding": "gzip"}),
        text(200, gzip.compress(ROBOTS)[:-3], {"Content-Encoding": "gzip"}),
        text(200, gzip.compress(gzip.compress(ROBOTS)), {"Content-Encoding": "gzip, gzip"}),
    ],
)
async def test_spec_a15_an_answer_that_makes_no_sense_is_a_bad_response(sent: bytes) -> None:
    access = (await answer_to(sent)).access
    assert isinstance(access, Unreachable)
    assert access.cause is Cause.BAD_RESPONSE


@pytest.mark.parametrize(
    "sent",
    [
        head(200) + ROBOTS,
        b"HTTP/1.0 200 OK\r\n\r\n" + ROBOTS,
        b"HTTP/1.1 200\r\n\r\n" + ROBOTS,
        head(200, {"Transfer-Encoding": "chunked"}) + b"%x;a=b\r\n%b\r\n0\r\nT: x\r\n\r\n" % (len(ROBOTS), ROBOTS),
        text(200, gzip.compress(ROBOTS), {"Content-Encoding": "GZIP", "Content-Type": "text/plain"}),
        text(200, ROBOTS) + b"and more than was announced",
    ],
)
async def test_a_file_is_read_in_every_framing(sent: bytes) -> None:
    access = (await answer_to(sent)).access
    assert isinstance(access, Successful)
    assert access.body == ROBOTS
    assert not access.truncated


# What a server sends without end.


def repeating(start: bytes, again: bytes) -> Callable[[Exchange], Awaitable[None]]:
    async def send_on(exchange: Exchange) -> None:
        await exchange.send(start)
        while True:
            await exchange.send(again)

    return send_on


CHUNKED = head(200, {"Transfer-Encoding": "chunked"})


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-Padding: " + b"a" * 1000 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"a" * 1000),
        (b"", b"HTTP/1.1 103 Early\r\n\r\n" * 50),
        (b"", b"\r\n" * 500),
        (b"", b"garbage without a line end"),
        (CHUNKED, b"1;" + b"x" * 1000 + b"\r\na\r\n"),
        (CHUNKED, b"1\r\na\r\n" * 200),
        (CHUNKED + b"0\r\n", b"X-Trailer: a\r\n" * 100),
        (head(200, {"Content-Encoding": "gzip"}), gzip.compress(b"") * 50),
    ],
)
async def test_what_never_ends_is_given_up_by_its_size(start: bytes, again: bytes) -> None:
    access = (await answer_to(repeating(start, again), within=60)).access
    assert isinstance(access, Unreachable)
    assert access.cause is Cause.BAD_RESPONSE


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (head(200), b"Disallow: /a\n" * 100),
        (head(200, {"Content-Length": "1" + "0" * 18}), b"Disallow: /a\n" * 100),
        (CHUNKED, b"d\r\nDisallow: /a\n\r\n" * 100),
    ],
)
async def test_spec_a24_a_body_without_end_is_read_up_to_the_limit(start: bytes, again: bytes) -> None:
    access = (await answer_to(repeating(start, again), within=60)).access
    assert isinstance(access, Successful)
    assert access.truncated
    assert access.body == (b"Disallow: /a\n" * 40_000)[:BODY_LIMIT]


async def test_a_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 20_000_000)
    assert (await answer_to(text(200, bomb, {"Content-Encoding": "gzip"}))).access == Successful(
        200, b"\0" * BODY_LIMIT, truncated=True, content_type="text/plain"
    )


@pytest.mark.parametrize("more", [0, 1])
async def test_spec_a24_a_file_of_the_limit_is_whole_and_one_octet_more_is_not(more: int) -> None:
    access = (await answer_to(text(200, b"a" * (BODY_LIMIT + more)))).access
    assert isinstance(access, Successful)
    assert len(access.body) == BODY_LIMIT
    assert access.truncated is bool(more)


async def test_a_file_sent_line_by_line_is_read() -> None:
    lines = b"1\r\n\n\r\n" * (PIECES_READ - 1)
    access = (await answer_to(CHUNKED + lines + b"0\r\n\r\n", within=60)).access
    assert access == Successful(200, b"\n" * (PIECES_READ - 1))


# The deadline.


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


def dripping(start: bytes, drop: bytes) -> Callable[[Exchange], Awaitable[None]]:
    async def drip(exchange: Exchange) -> None:
        await exchange.send(start)
        while True:
            await exchange.send(drop)
            await asyncio.sleep(0.01)

    return drip


async def stall_after_head(exchange: Exchange) -> None:
    await exchange.send(head(200, {"Content-Length": "10"}))
    await exchange.stall()


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (stall, None),
        (stall_after_head, 200),
        (dripping(b"HTTP/1.1 200 OK\r\nX: ", b"a"), None),
        (dripping(b"", head(103)), None),
        (dripping(head(200), b"a"), 200),
        (dripping(CHUNKED, b"1\r\na\r\n"), 200),
    ],
)
async def test_a_server_that_stalls_or_drips_meets_the_one_deadline(reply: Reply, status: int | None) -> None:
    assert await answer_to(reply, within=0.2) == Fetched(Unreachable(Cause.TIMEOUT, status))


async def test_a_resolver_without_an_answer_meets_the_same_deadline() -> None:
    async def never(name: str) -> Sequence[Address]:
        await asyncio.Event().wait()
        return []

    fetched = await fetcher(resolver=never, timeout=0.05).fetch(Origin("http", SITE, 80))
    assert fetched == Fetched(Unreachable(Cause.TIMEOUT))


async def test_the_deadline_is_for_all_hops_together() -> None:
    fetched = await answer_to(redirect("/a"), redirect("/b"), stall, within=0.2)
    assert fetched.access == Unreachable(Cause.TIMEOUT)
    assert fetched.final_url is not None
    assert fetched.final_url.endswith("/b")


async def test_a_silent_tls_handshake_meets_the_deadline_and_its_socket_is_closed() -> None:
    async with serve(stall) as origin:
        fetched = await fetcher(timeout=0.2).fetch(Origin("https", SITE, origin.port))
        await origin.left()
    assert fetched == Fetched(Unreachable(Cause.TIMEOUT))


async def test_a_fetch_that_is_cancelled_closes_its_connection() -> None:
    async with serve(stall) as origin:
        our = fetcher()
        task = asyncio.create_task(our.fetch(origin.named(SITE)))
        await origin.asked(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await origin.left()
        await our.aclose()


# TLS.


async def test_https_asks_for_the_name_in_the_url_and_connects_to_the_checked_address() -> None:
    authority = Authority()
    async with serve(text(200, ROBOTS), tls=authority.server_context(SITE)) as origin:
        fetched = await fetcher(tls=authority.client_context()).fetch(origin.named(SITE))
        await origin.left()
    assert fetched.access == Successful(200, ROBOTS, content_type="text/plain")
    assert authority.names_asked == [SITE]


async def test_the_system_resolver_and_tls_work_together() -> None:
    authority, resolver = Authority(), SystemResolver(threads=1)
    try:
        async with serve(text(200, ROBOTS), tls=authority.server_context("localhost")) as origin:
            fetched = await fetcher(tls=authority.client_context(), resolver=resolver).fetch(origin.named("localhost"))
    finally:
        resolver.close()
    assert isinstance(fetched.access, Successful)


@pytest.mark.parametrize(
    ("name", "until", "trusted"),
    [("other.example", None, True), (SITE, datetime(2001, 1, 1), True), (SITE, None, False)],  # noqa: DTZ001
    ids=["another name", "out of date", "another authority"],
)
async def test_a_certificate_that_does_not_hold_is_tls(name: str, until: datetime | None, trusted: bool) -> None:
    authority = Authority()
    client = authority.client_context() if trusted else client_tls()
    async with serve(text(200, ROBOTS), tls=authority.server_context(name, until=until)) as origin:
        fetched = await fetcher(tls=client).fetch(origin.named(SITE))
        await origin.left()
    assert fetched == Fetched(Unreachable(Cause.TLS))
    assert origin.requests == []


async def test_plain_http_on_an_https_port_is_tls() -> None:
    async with serve(stall, greeting=text(400)) as origin:
        fetched = await fetcher().fetch(Origin("https", SITE, origin.port))
        await origin.left()
    assert fetched == Fetched(Unreachable(Cause.TLS))


async def test_an_old_version_of_tls_is_not_spoken() -> None:
    assert client_tls().minimum_version is ssl.TLSVersion.TLSv1_2
    assert client_tls().verify_mode is ssl.CERT_REQUIRED
    assert client_tls().check_hostname


async def test_an_endless_body_over_tls_is_read_up_to_the_limit_and_closed() -> None:
    authority = Authority()
    reply = repeating(head(200), b"a" * 10_000)
    async with serve(reply, tls=authority.server_context(SITE)) as origin:
        fetched = await fetcher(tls=authority.client_context()).fetch(origin.named(SITE))
        await origin.left()
    assert fetched.access == Successful(200, b"a" * BODY_LIMIT, truncated=True)


# How many at once.


async def test_no_more_than_four_connections_to_one_address_whatever_the_names() -> None:
    names = Names({f"{number}.example": ["127.0.0.1"] for number in range(12)})
    four, go = asyncio.Event(), asyncio.Event()

    async def hold(exchange: Exchange) -> None:
        if len(origin.requests) >= 4:
            four.set()
        await go.wait()
        await exchange.send(text(200))

    async with serve(hold) as origin:
        our = fetcher(resolver=names)
        fetches = [asyncio.create_task(our.fetch(origin.named(f"{number}.example"))) for number in range(12)]
        await four.wait()
        go.set()
        found = await asyncio.gather(*fetches)
    assert all(fetched.access == Successful(200, b"", content_type="text/plain") for fetched in found)
    assert origin.most_at_once == 4


async def test_past_the_bound_of_the_process_a_fetch_is_told_at_once_to_come_back() -> None:
    go = asyncio.Event()

    async def hold(exchange: Exchange) -> None:
        await go.wait()
        await exchange.send(text(404))

    async with serve(hold) as origin:
        our = fetcher(concurrency=1, waiting=1)
        first = asyncio.create_task(our.fetch(origin.named(SITE)))
        await origin.asked(1)
        second = asyncio.create_task(our.fetch(origin.named(SITE)))
        await asyncio.sleep(0)  # its turn, in which it gets in line
        with pytest.raises(Busy) as busy:
            await our.fetch(origin.named(SITE))
        assert busy.value.retry_after == 5
        go.set()
        assert (await first).access == (await second).access == Unavailable(404)
        assert (await our.fetch(origin.named(SITE))).access == Unavailable(404)


async def test_a_fetch_whose_time_ends_in_line_is_no_fact_about_the_origin() -> None:
    go = asyncio.Event()

    async def slow_to_end(name: str) -> Sequence[Address]:
        try:
            await asyncio.Event().wait()
        finally:
            await go.wait()
        return []

    our = fetcher(resolver=slow_to_end, concurrency=1, timeout=0.05)
    first = asyncio.create_task(our.fetch(Origin("http", SITE, 80)))
    with pytest.raises(Busy):
        await asyncio.create_task(our.fetch(Origin("http", "other.example", 80)))
    go.set()
    assert (await first).access == Unreachable(Cause.TIMEOUT)


async def test_closing_waits_for_what_is_under_way_and_begins_nothing() -> None:
    go = asyncio.Event()

    async def hold(exchange: Exchange) -> None:
        await go.wait()
        await exchange.send(text(404))

    async with serve(hold) as origin:
        our = fetcher()
        fetch = asyncio.create_task(our.fetch(origin.named(SITE)))
        await origin.asked(1)
        closing = asyncio.create_task(our.aclose())
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await our.fetch(origin.named(SITE))
        assert not closing.done()
        go.set()
        await closing
        assert (await fetch).access == Unavailable(404)
