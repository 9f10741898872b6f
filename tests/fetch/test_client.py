"""Fetching one robots.txt over real sockets: outcomes, and bounds on hostile servers."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_network

import pytest

from app.fetch.client import UNCONDITIONAL, Fetcher
from app.fetch.exchange import PIECES_LIMIT, _Chunked
from app.fetch.guard import Address, AddressGuard, PortPolicy
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.fetch.profile import FetchProfile
from app.fetch.response import READ_BYTES
from robots_core.origin import Origin
from robots_core.robots.access import (
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
        profile=FetchProfile("RobotsDecisions/1 (+https://crawler.example/)"),
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
    """The outcome of a fetch from a server with these replies. Checks that no connection and no task remains."""
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


# The request.


async def test_a_fetch_sends_one_get_with_our_user_agent_only() -> None:
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
async def test_origins_are_fetched_by_ipv4_and_ipv6_literals(host: str) -> None:
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
        FetchProfile(user_agent)


async def test_a_profile_that_was_removed_is_not_replaced_by_the_default() -> None:
    async with serve(text(200, ROBOTS)) as origin:
        with pytest.raises(Busy):
            await fetcher().fetch(origin.named(SITE).with_profile("removed"))
    assert origin.connections == 0


async def test_no_cookies_and_no_credentials_are_sent() -> None:
    async with serve(text(200)) as last:
        step = text(302, "", {"Location": f"http://user:secret@other.example:{last.port}/r", "Set-Cookie": "id=1"})
        async with serve(step) as first:
            fetched = await fetcher().fetch(first.named(SITE))
    assert fetched.final_url == f"http://other.example:{last.port}/r"
    request = last.requests[0].lower()
    assert all(word not in request for word in (b"cookie", b"authorization", b"secret", b"user:", b"referer"))


# Statuses.


@pytest.mark.parametrize("status", [200, 202, 403, 404, 429, 503])
async def test_q9_a_response_that_says_it_is_a_challenge_is_one(status: int) -> None:
    sent = text(status, "<html>Just a moment...", {"CF-Mitigated": " Challenge ", "Retry-After": "30"})
    assert (await answer_to(sent)).access == Unreachable(Cause.CHALLENGE, status, 30)


@pytest.mark.parametrize("kind", ["text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml"])
async def test_q9_a_403_or_503_with_a_page_says_so_and_keeps_its_meaning(kind: str) -> None:
    def page(status: int) -> Reply:
        return head(status, {"Content-Type": kind, "Content-Length": "6"}) + b"<html>"

    assert (await answer_to(page(403))).access == Unavailable(403, Cause.HTML_PAGE)
    assert (await answer_to(page(503))).access == Unreachable(Cause.HTML_PAGE, 503)
    assert (await answer_to(page(404))).access == Unavailable(404)
    assert (await answer_to(page(500))).access == Unreachable(Cause.SERVER_ERROR, 500)


async def test_q9_a_403_or_503_without_a_page_says_nothing_of_one() -> None:
    assert (await answer_to(text(403, "no", {"CF-Mitigated": "block"}))).access == Unavailable(403)
    assert (await answer_to(text(503, "no"))).access == Unreachable(Cause.SERVER_ERROR, 503)


@pytest.mark.parametrize("status", [200, 201, 203, 299])
async def test_rfc9309_2xx_is_a_file(status: int) -> None:
    assert (await answer_to(text(status, ROBOTS))).access == Successful(status, ROBOTS, content_type="text/plain")


async def test_spec_a7_204_is_an_empty_file_and_206_is_unreachable() -> None:
    assert (await answer_to(head(204))).access == Successful(204, b"")
    assert (await answer_to(text(206, ROBOTS))).access == Unreachable(Cause.BAD_RESPONSE, 206)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
async def test_rfc9309_4xx_is_unavailable_and_keeps_its_status(status: int) -> None:
    assert (await answer_to(text(status, ROBOTS))).access == Unavailable(status)


async def test_the_body_of_a_4xx_is_not_read() -> None:
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
async def test_spec_a14_retry_after_of_429_and_503_is_reported(written: str, seconds: int | None) -> None:
    limited = await answer_to(text(429, "", {"Retry-After": written}))
    assert limited.access == Unreachable(Cause.TOO_MANY_REQUESTS, 429, seconds)
    down = await answer_to(text(503, "", {"Retry-After": written}))
    assert down.access == Unreachable(Cause.SERVER_ERROR, 503, seconds)


async def test_interim_responses_are_skipped() -> None:
    assert (await answer_to(head(103, {"Link": "</a>"}) + text(200, ROBOTS))).access == Successful(
        200, ROBOTS, content_type="text/plain"
    )


# Validators and freshness.


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
async def test_a_validator_that_cannot_be_sent_is_left_out(etag: str) -> None:
    async with serve(head(304)) as origin:
        fetched = await fetcher().fetch(origin.named(SITE), Validators(etag=etag))
    assert fetched.access == Unreachable(Cause.BAD_RESPONSE, 304)
    assert b"if-none-match" not in fields(origin.requests[0])


async def test_freshness_fields_are_reported_for_any_status() -> None:
    fields = {
        "ETag": '"1"',
        "Last-Modified": "Sat, 05 Nov 1994 00:00:00 GMT",
        "Cache-Control": "max-age=5",
        "Expires": "0",
        "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
        "Age": "3",
    }
    for status in (200, 404):
        fetched = await answer_to(text(status, "", fields))
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


async def test_spec_a9_five_redirects_are_followed_and_no_sixth() -> None:
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


# Addresses and ports.


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
async def test_spec_a32_a_name_with_a_private_address_is_blocked(address: str) -> None:
    fetched = await fetcher(admitted=(), resolver=Names({SITE: [address]})).fetch(Origin("http", SITE, 80))
    assert fetched == Fetched(Blocked(address))


async def test_a_redirect_to_the_callers_port_is_followed() -> None:
    async with serve(redirect("/moved"), text(200)) as origin:
        fetched = await fetcher(ports=PortPolicy()).fetch(origin.named(SITE))
    assert fetched.access == Successful(200, b"", content_type="text/plain")


async def test_a_name_is_resolved_once_per_hop() -> None:
    names = Names({SITE: ["127.0.0.1"]})
    async with serve(redirect("/moved"), text(200)) as origin:
        await fetcher(resolver=names).fetch(origin.named(SITE))
    assert names.queries == [SITE, SITE]
    assert origin.connections == 2


async def test_a_rebinding_name_is_checked_by_the_address_in_use() -> None:
    answers = iter(["127.0.0.1", "127.0.0.2"])

    async def rebinding(name: str) -> Sequence[Address]:
        return await Names({name: [next(answers)]})(name)

    async with serve(redirect("/again")) as origin:
        fetched = await fetcher(resolver=rebinding).fetch(origin.named(SITE))
    assert fetched.access == Unreachable(Cause.REFUSED_REDIRECT, 301)
    assert len(origin.requests) == 1


# Failures below HTTP.


async def test_a_name_without_address_has_the_cause_dns() -> None:
    fetched = await fetcher(resolver=Names({})).fetch(Origin("http", SITE, 80))
    assert fetched == Fetched(Unreachable(Cause.DNS))


async def test_a_redirect_to_an_unknown_name_is_dns_and_says_where() -> None:
    fetched = await answer_to(redirect("http://nowhere.example/r"))
    assert fetched == Fetched(Unreachable(Cause.DNS), final_url="http://nowhere.example/r")


async def test_a_refused_connection_has_the_cause_connection() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound but not listening, so the port stays closed
        fetched = await fetcher().fetch(Origin("http", SITE, bound.getsockname()[1]))
    said = getattr(fetched.access, "detail", None)  # asyncio's own text has the address
    assert (fetched, said) == (Fetched(Unreachable(Cause.CONNECTION)), "connection refused")


# Framing; tests/faults/test_hostile_origins.py has invalid framing.


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


# The limit.


CHUNKED = head(200, {"Transfer-Encoding": "chunked"})


@pytest.mark.parametrize("more", [0, 1])
async def test_spec_a24_a_file_is_truncated_one_byte_past_the_limit(more: int) -> None:
    access = (await answer_to(text(200, b"a" * (BODY_LIMIT + more)))).access
    assert isinstance(access, Successful)
    assert len(access.body) == BODY_LIMIT
    assert access.truncated is bool(more)


async def test_a_file_sent_line_by_line_is_read() -> None:
    lines = b"1\r\n\n\r\n" * (PIECES_LIMIT - 1)
    access = (await answer_to(CHUNKED + lines + b"0\r\n\r\n", within=60)).access
    assert access == Successful(200, b"\n" * (PIECES_LIMIT - 1))


async def test_a_file_in_many_pieces_lets_other_tasks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    read, begin = list[int](), _Chunked._begin

    def counted(framing: _Chunked, line: bytes) -> None:
        read[-1] += 1
        begin(framing, line)

    def next_turn() -> None:
        read.append(0)
        if sum(read) < 40_000:
            asyncio.get_running_loop().call_soon(next_turn)

    monkeypatch.setattr(_Chunked, "_begin", counted)
    next_turn()
    chunk = b"1\r\n\n\r\n"
    await answer_to(CHUNKED + chunk * 20_000 + b"0\r\n\r\n", within=60)
    assert sum(read) == 2 * 20_000 + 1  # of each chunk, the line of its size and the one behind it
    assert max(read) <= 2 * (READ_BYTES // len(chunk) + 1)


# The deadline.


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


async def test_the_deadline_includes_the_time_of_the_resolver() -> None:
    async def never(name: str) -> Sequence[Address]:
        await asyncio.Event().wait()
        return []

    fetched = await fetcher(resolver=never, timeout=0.05).fetch(Origin("http", SITE, 80))
    assert fetched == Fetched(Unreachable(Cause.TIMEOUT))


async def test_the_deadline_covers_all_hops() -> None:
    fetched = await answer_to(redirect("/a"), redirect("/b"), stall, within=0.2)
    assert fetched.access == Unreachable(Cause.TIMEOUT)
    assert fetched.final_url is not None
    assert fetched.final_url.endswith("/b")


async def test_a_fetch_that_is_cancelled_closes_its_connection() -> None:
    async with serve(stall) as origin:
        our = fetcher()
        task = asyncio.create_task(our.fetch(origin.named(SITE)))
        await origin.wait_for_requests(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await origin.left()
        await our.aclose()


# TLS.


async def test_https_verifies_the_urls_name_at_the_checked_address() -> None:
    authority = Authority()
    async with serve(text(200, ROBOTS), tls=authority.server_context(SITE)) as origin:
        fetched = await fetcher(tls=authority.client_context()).fetch(origin.named(SITE))
        await origin.left()
    assert fetched.access == Successful(200, ROBOTS, content_type="text/plain")
    assert authority.requested_names == [SITE]


async def test_the_system_resolver_and_tls_work_together() -> None:
    authority, resolver = Authority(), SystemResolver(threads=1)
    try:
        async with serve(text(200, ROBOTS), tls=authority.server_context("localhost")) as origin:
            fetched = await fetcher(tls=authority.client_context(), resolver=resolver).fetch(origin.named("localhost"))
    finally:
        resolver.close()
    assert isinstance(fetched.access, Successful)


async def test_old_versions_of_tls_are_refused() -> None:
    assert client_tls().minimum_version is ssl.TLSVersion.TLSv1_2
    assert client_tls().verify_mode is ssl.CERT_REQUIRED
    assert client_tls().check_hostname


# The queue.


async def test_one_address_gets_four_connections_whatever_the_names() -> None:
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


async def test_a_fetch_that_finds_its_address_full_is_busy() -> None:
    names = Names({f"{number}.example": ["127.0.0.1"] for number in range(5)})
    async with serve(stall) as origin:
        our = fetcher(resolver=names, timeout=2.0)
        found = await asyncio.gather(
            *(our.fetch(origin.named(f"{number}.example")) for number in range(5)), return_exceptions=True
        )
        await origin.left()
    assert [result for result in found if not isinstance(result, Busy)] == [Fetched(Unreachable(Cause.TIMEOUT))] * 4
    [busy] = [str(result) for result in found if isinstance(result, Busy)]
    assert busy == (
        "4 fetches from 127.0.0.1, which the host shares with others, are under way (FETCHES_PER_ADDRESS), and none "
        "ended in time; retry in 2 s."
    )


async def test_a_fetch_beyond_the_queue_is_rejected_at_once() -> None:
    go = asyncio.Event()

    async def hold(exchange: Exchange) -> None:
        await go.wait()
        await exchange.send(text(404))

    async with serve(hold) as origin:
        our = fetcher(concurrency=1, waiting=1)
        first = asyncio.create_task(our.fetch(origin.named(SITE)))
        await origin.wait_for_requests(1)
        second = asyncio.create_task(our.fetch(origin.named(SITE)))
        await asyncio.sleep(0)  # let it enter the queue
        with pytest.raises(Busy) as busy:
            await our.fetch(origin.named(SITE))
        assert busy.value.retry_after == 5
        go.set()
        assert (await first).access == (await second).access == Unavailable(404)
        assert (await our.fetch(origin.named(SITE))).access == Unavailable(404)


async def test_a_fetch_whose_time_ends_in_the_queue_is_busy() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow_to_end(name: str) -> Sequence[Address]:
        if name != SITE:
            return []
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            while not go.is_set():
                with suppress(asyncio.CancelledError):  # a second time, at the end of its time
                    await go.wait()
        return []

    our = fetcher(resolver=slow_to_end, concurrency=1, slow=0, timeout=1.0)
    first = asyncio.create_task(our.fetch(Origin("http", SITE, 80)))
    await asked.wait()
    try:
        with pytest.raises(Busy):
            await our.fetch(Origin("http", "other.example", 80))
    finally:
        go.set()
    with pytest.raises(Busy):
        await first


async def test_stalling_origins_do_not_delay_other_fetches() -> None:
    async with serve(stall) as stalling, serve(text(404)) as prompt:
        our = fetcher(concurrency=2, slow=3, timeout=2.0)
        stalled = [asyncio.create_task(our.fetch(stalling.named("127.0.0.1"))) for _ in range(3)]
        await until_so(lambda: our.queue.slow == 3)
        found = await asyncio.gather(*(our.fetch(prompt.named("127.0.0.1")) for _ in range(20)))
        assert {fetched.access for fetched in found} == {Unavailable(404)}
        assert not any(fetch.done() for fetch in stalled)
        assert (our.queue.in_flight, our.queue.slow, our.queue.waiting) == (3, 3, 0)
        assert {(await fetch).access for fetch in stalled} == {Unreachable(Cause.TIMEOUT)}
        assert (our.queue.in_flight, our.queue.slow) == (0, 0)


async def test_a_slow_fetch_that_is_abandoned_is_busy() -> None:
    async with serve(stall) as origin, serve(text(404)) as prompt:
        our = fetcher(concurrency=1, slow=1, timeout=2.0)
        patient = asyncio.create_task(our.fetch(origin.named("127.0.0.1")))
        await until_so(lambda: our.queue.slow == 1)
        one_too_many = asyncio.create_task(our.fetch(origin.named("localhost")))
        await origin.wait_for_requests(2)
        behind = asyncio.create_task(our.fetch(prompt.named("127.0.0.1")))
        with pytest.raises(Busy):
            await one_too_many
        assert (await behind).access == Unavailable(404)
        assert (await patient).access == Unreachable(Cause.TIMEOUT)
        await origin.left()
