"""One fetch of one robots.txt over real sockets: what was found, and what a server cannot do to us."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from app.fetch.client import PIECES_AT_ONCE, PIECES_READ, UNCONDITIONAL, Fetcher
from app.fetch.guard import Address, AddressGuard, PortPolicy
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.fetch.response import Body
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
from tests.faults.until import until_so
from tests.origins import LOOPBACKS, NO_TLS, Authority, Exchange, Names, Reply, head, redirect, serve, text

SITE = "www.example.com"
ROBOTS = b"User-agent: *\nDisallow: /private\n"
LONG_AGO = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT


def fetcher(
    *,
    resolver: Resolver | None = None,
    admitted: Sequence[str] = ("127.0.0.1/32",),
    ports: PortPolicy = PortPolicy(every=True),  # noqa: B008
    tls: ssl.SSLContext = NO_TLS,
    timeout: float = 5.0,
    concurrency: int = 256,
    slow: int = 512,
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
        slow=slow,
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


@pytest.mark.parametrize("host", LOOPBACKS)
async def test_an_origin_is_asked_by_its_address_whatever_its_family(host: str) -> None:
    async with serve(text(200, ROBOTS), host=host) as origin:
        fetched = await fetcher(resolver=Names({}), admitted=[host]).fetch(origin.named(host))
        by_name = await fetcher(resolver=Names({SITE: [host]}), admitted=[host]).fetch(origin.named(SITE))
        localhost = await fetcher(resolver=Names({}), admitted=[host]).fetch(origin.named("localhost"))
        await origin.left()
    assert fetched == by_name == localhost == Fetched(Successful(200, ROBOTS, content_type="text/plain"))
    assert fields(origin.requests[0])[b"host"] == origin.named(host).authority.encode()


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


async def test_hostile_bytes_of_a_location_are_encoded_in_the_request_line() -> None:
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


async def test_a_rebinding_name_is_judged_by_the_address_that_is_used() -> None:
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


# What is read, however it is framed; tests/faults/test_wicked.py has what is not.


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


# How much is read.


CHUNKED = head(200, {"Transfer-Encoding": "chunked"})


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


async def test_a_file_in_many_pieces_leaves_others_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    feed = Body.feed

    def counted(body: Body, piece: bytes) -> None:
        fed[-1] += 1
        feed(body, piece)

    def next_turn() -> None:
        fed.append(0)
        if sum(fed) < 20_000:
            asyncio.get_running_loop().call_soon(next_turn)

    monkeypatch.setattr(Body, "feed", counted)
    next_turn()
    await answer_to(CHUNKED + b"1\r\n\n\r\n" * 20_000 + b"0\r\n\r\n", within=60)
    assert sum(fed) == 20_000
    assert max(fed) <= PIECES_AT_ONCE


# The deadline.


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


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


async def test_https_sends_the_urls_name_to_the_checked_address() -> None:
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


async def test_an_old_version_of_tls_is_not_spoken() -> None:
    assert client_tls().minimum_version is ssl.TLSVersion.TLSv1_2
    assert client_tls().verify_mode is ssl.CERT_REQUIRED
    assert client_tls().check_hostname


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


async def test_a_fetch_that_finds_an_address_full_is_no_fact_about_the_origin() -> None:
    names = Names({f"{number}.example": ["127.0.0.1"] for number in range(5)})
    async with serve(stall) as origin:
        our = fetcher(resolver=names, timeout=2.0)
        found = await asyncio.gather(
            *(our.fetch(origin.named(f"{number}.example")) for number in range(5)), return_exceptions=True
        )
        await origin.left()
    assert [result for result in found if not isinstance(result, Busy)] == [Fetched(Unreachable(Cause.TIMEOUT))] * 4
    assert sum(isinstance(result, Busy) for result in found) == 1


async def test_a_fetch_beyond_the_process_limit_is_rejected_at_once() -> None:
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

    our = fetcher(resolver=slow_to_end, concurrency=1, slow=0, timeout=0.05)
    first = asyncio.create_task(our.fetch(Origin("http", SITE, 80)))
    with pytest.raises(Busy):
        await asyncio.create_task(our.fetch(Origin("http", "other.example", 80)))
    go.set()
    with pytest.raises(Busy):
        await first


async def test_origins_that_stall_keep_no_others_waiting() -> None:
    async with serve(stall) as stalling, serve(text(404)) as prompt:
        our = fetcher(concurrency=2, slow=3, timeout=2.0)
        stalled = [asyncio.create_task(our.fetch(stalling.named("127.0.0.1"))) for _ in range(3)]
        await until_so(lambda: our.slow == 3)
        found = await asyncio.gather(*(our.fetch(prompt.named("127.0.0.1")) for _ in range(20)))
        assert {fetched.access for fetched in found} == {Unavailable(404)}
        assert not any(fetch.done() for fetch in stalled)
        assert (our.under_way, our.slow, our.waiting) == (3, 3, 0)
        assert {(await fetch).access for fetch in stalled} == {Unreachable(Cause.TIMEOUT)}
        assert (our.under_way, our.slow) == (0, 0)


async def test_a_fetch_dropped_for_room_says_nothing_about_its_origin() -> None:
    async with serve(stall) as origin, serve(text(404)) as prompt:
        our = fetcher(concurrency=1, slow=1, timeout=2.0)
        patient = asyncio.create_task(our.fetch(origin.named("127.0.0.1")))
        await until_so(lambda: our.slow == 1)
        one_too_many = asyncio.create_task(our.fetch(origin.named("localhost")))
        await origin.asked(2)
        behind = asyncio.create_task(our.fetch(prompt.named("127.0.0.1")))
        with pytest.raises(Busy):
            await one_too_many
        assert (await behind).access == Unavailable(404)
        assert (await patient).access == Unreachable(Cause.TIMEOUT)
        await origin.left()


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
