"""Hostile origins over real sockets and TLS: outcomes, bounded time and bytes, and no leaks.

Every row goes through a fetcher as `main` builds it, by name and public address; `nothing_left` asserts that no new
task and no new socket remains.
"""

import asyncio
import gzip
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pytest

from app.fetch.client import UNCONDITIONAL
from app.fetch.exchange import HEAD_BYTES
from app.fetch.guard import PortPolicy
from app.fetch.network import client_tls
from app.fetch.response import BODY_BYTES, READ_BYTES
from robots_core.origin import Origin
from robots_core.robots.access import (
    BODY_LIMIT,
    Access,
    Cause,
    Fetched,
    Lifetime,
    NotModified,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)
from robots_core.robots.judge import recognise_challenge
from tests.core.alike import assert_word_decides_alike
from tests.faults.fetching import PUBLIC, SITE, Wire, fetcher, nothing_left, received
from tests.faults.hostile_replies import (
    BROTLI,
    CHUNKED,
    allow_old_tls,
    deflated_zeros,
    dripping,
    endless,
    handshaking,
    old_tls,
    resetting,
    stalling,
    zipped_zeros,
    zstd_zeros,
)
from tests.origins import Authority, Handler, Names, Reply, head, redirect, serve, text

ROBOTS = b"User-agent: *\nDisallow: /private\n"
ELSEWHERE = "other.example"
FILE = text(200, ROBOTS)
NAMES = Names({SITE: [PUBLIC], ELSEWHERE: [PUBLIC], "inside.example": ["192.168.0.1", "fd00::1"]})

HEAD = HEAD_BYTES + READ_BYTES
"""Bytes read, at most, of a response without a usable body."""

WHOLE = HEAD_BYTES + BODY_BYTES + READ_BYTES
"""Bytes read, at most, of a response with a body."""

SHORT = 1.0
"""The fetch timeout for silent and slow origins, in seconds."""

BAD = Unreachable(Cause.BAD_RESPONSE)
BAD_200 = Unreachable(Cause.BAD_RESPONSE, 200)
LOST = Unreachable(Cause.CONNECTION)
LATE = Unreachable(Cause.TIMEOUT)
LATE_200 = Unreachable(Cause.TIMEOUT, 200)
PLAIN = "text/plain"


@dataclass(frozen=True, slots=True)
class Row:
    """The behaviour of an origin, and the expected outcome; `read_limit` is the most bytes read."""

    access: Access
    replies: tuple[Reply, ...] = ()
    read_limit: int = HEAD
    at_once: Handler | None = None
    within: float = 20.0
    validators: Validators = UNCONDITIONAL


def sends(access: Access, *replies: Reply, read_limit: int = HEAD) -> Row:
    return Row(access, replies, read_limit)


def is_late(access: Access, reply: Handler, read_limit: int = HEAD) -> Row:
    return Row(access, (reply,), read_limit, within=SHORT)


def coded(coding: str, body: bytes) -> bytes:
    return text(200, body, {"Content-Encoding": coding})


def sized(*lengths: str, body: bytes = ROBOTS) -> bytes:
    return head(200, [("Content-Length", length) for length in lengths]) + body


HTTP: dict[str, Row] = {
    # Not HTTP/1.1.
    "HTTP/0.9": sends(BAD, b"User-agent: *\r\nDisallow:\r\n\r\n"),
    "HTTP/0.9, a page": sends(BAD, b"<html>hello</html>"),
    "HTTP/2 by name": sends(BAD, b"HTTP/2 200 OK\r\n\r\n"),
    "HTTP/2 frames": sends(BAD, b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64" * 20),
    "a status line and no more": sends(BAD, b"HTTP/1.1 200"),
    "half a head": sends(BAD, b"HTTP/1.1 200 OK\r\n"),
    "a status below 100": sends(BAD, b"HTTP/1.1 099 Low\r\n\r\n"),
    "a status of two digits": sends(BAD, b"HTTP/1.1 20 Short\r\n\r\n"),
    "a field without a colon": sends(Successful(200, b""), b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"),
    "a field with a NUL": sends(BAD, b"HTTP/1.1 200 OK\r\nA: \x00\r\n\r\n"),
    "a protocol switched to": sends(BAD, b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "another protocol": sends(BAD, b"SSH-2.0-OpenSSH_9.6\r\n"),
    "TLS where HTTP was expected": sends(BAD, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100),
    "nothing at all": sends(LOST, b""),
    # Endless heads.
    "fields without end": sends(BAD, endless(b"HTTP/1.1 200 OK\r\n", b"X-Padding: " + b"a" * 1000 + b"\r\n")),
    "small fields without end": sends(BAD, endless(b"HTTP/1.1 200 OK\r\n", b"a:\r\n" * 500)),
    "folded lines without end": sends(BAD, endless(b"HTTP/1.1 200 OK\r\nA: b\r\n", b" c\r\n" * 500)),
    "one field without end": sends(BAD, endless(b"HTTP/1.1 200 OK\r\nX: ", b"a" * 1000)),
    "a status line without end": sends(BAD, endless(b"HTTP/1.1 200 ", b"OK" * 500)),
    "empty lines without end": sends(BAD, endless(b"", b"\r\n" * 500)),
    "noise without end": sends(BAD, endless(b"", b"garbage without a line end")),
    "100 Continue without end": sends(BAD, endless(b"", head(100) * 50)),
    "103 Early Hints without end": sends(BAD, endless(b"", head(103, {"Link": "</a>"}) * 50)),
    "1xx of every kind without end": sends(BAD, endless(b"", head(102) + head(104) + head(199))),
    "a thousand 100 Continue and a file": sends(
        Successful(200, ROBOTS, content_type=PLAIN), head(100) * 1000 + text(200, ROBOTS), read_limit=WHOLE
    ),
    # Lengths and chunks.
    "Content-Length too long": sends(BAD_200, sized("100")),
    "Content-Length too short": sends(Successful(200, ROBOTS[:5]), sized("5")),
    "Content-Length negative": sends(BAD, sized("-1")),
    "Content-Length signed": sends(BAD, sized("+34")),
    "Content-Length with an exponent": sends(BAD, sized("1e3")),
    "Content-Length hexadecimal": sends(BAD, sized("0x22")),
    "Content-Length twice, one way": sends(Successful(200, ROBOTS[:5]), sized("5", "5")),
    "Content-Length twice, two ways": sends(BAD, sized("5", "6")),
    "Content-Length a list, one way": sends(Successful(200, ROBOTS[:5]), sized("5, 5")),
    "Content-Length a list, two ways": sends(BAD, sized("5, 6")),
    "Content-Length a list and a field, one way": sends(Successful(200, ROBOTS[:5]), sized("5 ,\t5", " 5", "5")),
    "Content-Length a list and a field, two ways": sends(BAD, sized("5, 5", "6")),
    "Content-Length a list with nothing in it": sends(BAD, sized("5, ")),
    "Content-Length twice, written in two ways": sends(BAD, sized("5", "05")),
    "Content-Length twice, one of them empty": sends(BAD, sized("5", "")),
    "Content-Length in two cases": sends(
        Successful(200, ROBOTS[:5]), head(200, [("CONTENT-LENGTH", "5"), ("content-length", "5")]) + ROBOTS
    ),
    "Content-Length five thousand times": sends(Successful(200, ROBOTS[:5]), sized(*["5"] * 5000), read_limit=WHOLE),
    "Content-Length twice before a file": sends(
        Successful(200, ROBOTS, content_type=PLAIN), head(103, [("Content-Length", "0")] * 2) + FILE, read_limit=WHOLE
    ),
    "Content-Length of twenty digits": sends(BAD, sized("9" * 20)),
    "Content-Length of a thousand digits": sends(BAD, sized("9" * 1000)),
    "a length and chunks": sends(
        Successful(200, b"abc"),
        head(200, [("Content-Length", "1"), ("Transfer-Encoding", "chunked")]) + b"3\r\nabc\r\n0\r\n\r\n",
    ),
    "a chunk of no size": sends(BAD_200, CHUNKED + b"zz\r\n"),
    "a chunk of negative size": sends(BAD_200, CHUNKED + b"-1\r\na\r\n"),
    "a chunk of a size without end": sends(BAD_200, CHUNKED + b"f" * 1000 + b"\r\na"),
    "a chunk cut short": sends(BAD_200, CHUNKED + b"5\r\nabc"),
    "a chunk too long": sends(BAD_200, CHUNKED + b"3\r\nabcXX0\r\n\r\n"),
    "no last chunk": sends(BAD_200, CHUNKED + b"3\r\nabc\r\n"),
    "an unknown transfer coding": sends(BAD, head(200, {"Transfer-Encoding": "gzip, chunked"}) + b"0\r\n\r\n"),
    "chunk extensions without end": sends(
        BAD_200, endless(CHUNKED, b"1;" + b"x" * 1000 + b"\r\na\r\n"), read_limit=WHOLE
    ),
    "chunks of one byte without end": sends(BAD_200, endless(CHUNKED, b"1\r\na\r\n" * 200), read_limit=WHOLE),
    "trailers without end": sends(Successful(200, b""), endless(CHUNKED + b"0\r\n", b"X-Trailer: a\r\n" * 100)),
    # Endless bodies.
    "a body without end": sends(
        Successful(200, b"a" * BODY_LIMIT, truncated=True), endless(head(200), b"a" * 1000), read_limit=WHOLE
    ),
    "a body of an exabyte": sends(
        Successful(200, b"a" * BODY_LIMIT, truncated=True),
        endless(sized("1" + "0" * 18, body=b""), b"a" * 1000),
        read_limit=WHOLE,
    ),
    "a body of chunks without end": sends(
        Successful(200, b"a" * BODY_LIMIT, truncated=True),
        endless(CHUNKED, b"14\r\n" + b"a" * 20 + b"\r\n"),
        read_limit=WHOLE,
    ),
    "a body of a 404 without end": sends(Unavailable(404), endless(head(404), b"a" * 1000)),
    "a body of a 503 without end": sends(Unreachable(Cause.SERVER_ERROR, 503), endless(head(503), b"a" * 1000)),
    # Content codings.
    "a gzip bomb": sends(
        Successful(200, b"\0" * (BODY_LIMIT + 1), truncated=True, content_type=PLAIN),
        coded("gzip", zipped_zeros(20_000_000)),
    ),
    "a deflate bomb": sends(
        Successful(200, b"\0" * (BODY_LIMIT + 1), truncated=True, content_type=PLAIN),
        coded("deflate", deflated_zeros(20_000_000)),
    ),
    "gzip members of nothing without end": sends(
        BAD_200, endless(head(200, {"Content-Encoding": "gzip"}), gzip.compress(b"") * 50), read_limit=WHOLE
    ),
    "a gzip bomb in a gzip bomb": sends(BAD_200, coded("gzip, gzip", gzip.compress(zipped_zeros(20_000_000)))),
    "gzip a hundred times": sends(BAD_200, coded(", ".join(["gzip"] * 100), gzip.compress(ROBOTS))),
    "two fields of gzip": sends(
        BAD_200, head(200, [("Content-Encoding", "gzip")] * 2) + gzip.compress(gzip.compress(ROBOTS))
    ),
    "a br bomb, unrequested": sends(
        Successful(200, b"\0" * (BODY_LIMIT + 1), truncated=True, content_type=PLAIN), coded("br", BROTLI)
    ),
    "a zstd bomb, unrequested": sends(BAD_200, coded("zstd", zstd_zeros(20_000_000))),
    "gzip in name only": sends(Successful(200, ROBOTS, content_type=PLAIN), coded("gzip", ROBOTS)),
    "gzip cut short": sends(BAD_200, coded("gzip", gzip.compress(ROBOTS)[:-3])),
    "gzip with a wrong checksum": sends(BAD_200, coded("gzip", gzip.compress(ROBOTS)[:-8] + b"\0" * 8)),
    # Redirects.
    "a redirect to itself": sends(Unavailable(301, Cause.REDIRECT_LOOP), redirect("/robots.txt")),
    "a redirect to itself that sets a cookie": sends(
        Unavailable(302, Cause.COOKIE_LOOP), text(302, "", {"Location": "/robots.txt", "Set-Cookie": "seen=1; Path=/"})
    ),
    "a redirect to itself by a fragment": sends(Unavailable(301, Cause.REDIRECT_LOOP), redirect("/robots.txt#again")),
    "a circle of two": sends(Unavailable(301, Cause.REDIRECT_LOOP), redirect("/a"), redirect("/b"), redirect("/a")),
    "six redirects": sends(
        Unavailable(308, Cause.REDIRECT_LOOP), *(redirect(f"/{hop}") for hop in range(5)), redirect("/6", 308)
    ),
    "a redirect without a Location": sends(Unreachable(Cause.BAD_RESPONSE, 302), text(302)),
    "a redirect with an empty Location": sends(Unreachable(Cause.BAD_RESPONSE, 302), head(302, {"Location": ""})),
    "a redirect with two Locations": sends(
        Unreachable(Cause.BAD_RESPONSE, 302), head(302, [("Location", "/a"), ("Location", "/b")])
    ),
    "a redirect of a body without end": sends(
        Unavailable(301, Cause.REFUSED_REDIRECT), endless(head(301, {"Location": "file:///etc/passwd"}), b"a" * 1000)
    ),
    "a Location of 100 KB": sends(Unreachable(Cause.BAD_RESPONSE, 301), redirect("/" + "a" * 90_000)),
    **{
        f"a redirect to {location}": sends(Unavailable(301, Cause.REFUSED_REDIRECT), redirect(location))
        for location in (
            "file:///etc/passwd",
            "file://localhost/etc/passwd",
            "data:text/plain,Allow: /",
            "javascript:alert(1)",
            "ftp://other.example/robots.txt",
            "gopher://127.0.0.1:6379/_FLUSHALL",
            "unix:///var/run/docker.sock",
            "ws://other.example/",
        )
    },
    **{
        f"a redirect to {location}": sends(Unreachable(Cause.BAD_RESPONSE, 301), redirect(location))
        for location in (
            "https://",
            "http://other.example:0/",
            "http://other.example:65536/",
            "http://a..b/",
            "http://2130706433/",
            "http://127.1/",
            "http://[::1%25lo]/",
            "http://other.example: 80/",
        )
    },
    **{
        f"a redirect to {host}": sends(
            Unreachable(Cause.REFUSED_REDIRECT, 307), redirect(f"http://{host}/robots.txt", 307)
        )
        for host in ("127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254", "localhost", "inside.example")
    },
    # Unexpected statuses.
    **{
        f"{status} unasked": sends(Unreachable(Cause.BAD_RESPONSE, status), text(status))
        for status in (206, 300, 304, 305, 306, 399, 600, 999)
    },
    "206 with all of the file": sends(
        Unreachable(Cause.BAD_RESPONSE, 206), text(206, ROBOTS, {"Content-Range": f"bytes 0-33/{len(ROBOTS)}"})
    ),
    "401 with a challenge": sends(Unavailable(401), text(401, "", {"WWW-Authenticate": 'Basic realm="give me all"'})),
    "407 with a challenge": sends(Unavailable(407), text(407, "", {"Proxy-Authenticate": "NTLM"})),
    "416 unasked": sends(Unavailable(416), text(416, "", {"Content-Range": "bytes */5"})),
    "a page as the file": sends(
        Successful(200, b"<!doctype html><title>Hi</title>", content_type="text/html"),
        text(200, "<!doctype html><title>Hi</title>", {"Content-Type": "text/html"}),
    ),
    "a challenge page with 202": sends(
        Unreachable(Cause.CHALLENGE, 202),
        text(202, "<html><title>Are you human?</title></html>", {"Content-Type": "text/html"}),
    ),
    # Retry-After.
    **{
        f"Retry-After: {written:.20}": sends(
            Unreachable(Cause.SERVER_ERROR, 503, seconds), text(503, "", {"Retry-After": written})
        )
        for written, seconds in (
            ("999999999999", 86_400),
            ("9" * 1000, 86_400),
            ("9" * 5000, None),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
            ("Thu, 01 Jan 1970 00:00:00 GMT", None),
            ("Mon, 01 Jan 0001 00:00:00 +2359", None),
            ("-1", None),
            ("1e9", None),
        )
    },
    # Connections that end before their time.
    "reset when accepted": Row(LOST, at_once=resetting()),
    "reset in the middle of the request": Row(LOST, at_once=resetting(after=10)),
    "reset instead of an answer": sends(LOST, resetting()),
    "reset in the status line": sends(LOST, resetting(b"HTTP/1.1 2")),
    "reset in the head": sends(LOST, resetting(b"HTTP/1.1 200 OK\r\nX: ")),
}

LATE_ROWS: dict[str, Row] = {
    # Concurrently, since each takes the whole timeout.
    "accepted and never answered": Row(LATE, at_once=stalling(), within=SHORT),
    "a request and no answer": is_late(LATE, stalling()),
    "silence in the status line": is_late(LATE, stalling(b"HTTP/1.1 2")),
    "silence in the head": is_late(LATE, stalling(b"HTTP/1.1 200 OK\r\nX:")),
    "silence after 100 Continue": is_late(LATE, stalling(head(100))),
    "silence after the head": is_late(LATE_200, stalling(head(200, {"Content-Length": "10"})), WHOLE),
    "silence in the body": is_late(LATE_200, stalling(sized("100")), WHOLE),
    "silence in a chunk": is_late(LATE_200, stalling(CHUNKED + b"5\r\nabc"), WHOLE),
    "silence before the last chunk": is_late(LATE_200, stalling(CHUNKED + b"3\r\nabc\r\n"), WHOLE),
    "silence in gzip": is_late(LATE_200, stalling(coded("gzip", gzip.compress(ROBOTS))[:-5]), WHOLE),
    "a head in drops": is_late(LATE, dripping(b"HTTP/1.1 200 OK\r\nX: ", b"a")),
    "103 in drops": is_late(LATE, dripping(b"", head(103))),
    "a body in drops": is_late(LATE_200, dripping(head(200), b"a"), WHOLE),
    "chunks in drops": is_late(LATE_200, dripping(CHUNKED, b"1\r\na\r\n"), WHOLE),
    "gzip in drops": is_late(LATE_200, dripping(head(200, {"Content-Encoding": "gzip"}), gzip.compress(b"")), WHOLE),
    "a redirect, and silence behind it": Row(LATE, (redirect("/a"), redirect("/b"), stalling()), within=SHORT),
}

RESET_LATER: dict[str, Row] = {
    # A reset may discard data that was sent before it, including the status.
    "reset after the head": sends(Unreachable(Cause.CONNECTION, 200), resetting(head(200, {"Content-Length": "10"}))),
    "reset in the body": sends(Unreachable(Cause.CONNECTION, 200), resetting(sized("1000"))),
    "reset in a chunk": sends(Unreachable(Cause.CONNECTION, 200), resetting(CHUNKED + b"5\r\nab")),
    "reset in a body without a length": sends(Unreachable(Cause.CONNECTION, 200), resetting(head(200) + ROBOTS)),
}


async def outcome(row: Row) -> Fetched:
    """The outcome for the row's origin. Checks that nothing stays open, and the bytes read."""
    async with serve(*row.replies, at_once=row.at_once) as origin:
        wire = Wire({PUBLIC: origin})
        ours = fetcher(NAMES, wire, timeout=row.within)
        with received() as sizes:
            fetched = recognise_challenge(await ours.fetch(origin.named(SITE), row.validators))
        assert wire.open_now == ours.queue.in_flight == ours.queue.waiting == 0
        await origin.left()
    assert sum(sizes) <= row.read_limit
    if not isinstance(fetched.access, NotModified):
        assert_word_decides_alike(fetched.access)
    return fetched


@pytest.mark.parametrize("row", HTTP.values(), ids=HTTP)
async def test_hostile_response_has_its_outcome(row: Row) -> None:
    async with nothing_left():
        assert (await outcome(row)).access == row.access


async def test_slow_origin_ends_at_the_deadline() -> None:
    async with nothing_left():
        found = await asyncio.gather(*map(outcome, LATE_ROWS.values()))
    assert {name: fetched.access for name, fetched in zip(LATE_ROWS, found, strict=True)} == {
        name: row.access for name, row in LATE_ROWS.items()
    }


@pytest.mark.parametrize("row", RESET_LATER.values(), ids=RESET_LATER)
async def test_a_response_cut_by_a_reset_is_discarded(row: Row) -> None:
    async with nothing_left():
        assert (await outcome(row)).access in (row.access, LOST)


async def test_server_that_never_accepts_ends_at_the_deadline() -> None:
    async with nothing_left(), serve(b"") as origin:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            wire = Wire({PUBLIC: origin})
            fetched = await fetcher(NAMES, wire, timeout=SHORT).fetch(Origin("http", SITE, listener.getsockname()[1]))
    assert fetched == Fetched(LATE)


async def test_304_counts_only_for_a_conditional_request() -> None:
    async with nothing_left():
        fetched = await outcome(Row(BAD, (head(304),), validators=Validators(etag='"1"')))
    assert fetched.access == NotModified()


@pytest.mark.parametrize("port", [1, 22, 25, 6379, 8000, 65535])
async def test_redirect_to_a_port_without_a_web_server_is_unreachable(port: int) -> None:
    async with nothing_left(), serve(redirect(f"http://{ELSEWHERE}:{port}/")) as origin:
        wire = Wire({PUBLIC: origin})
        fetched = await fetcher(NAMES, wire, ports=PortPolicy()).fetch(origin.named(SITE))
    assert fetched.access == Unreachable(Cause.REFUSED_REDIRECT, 301)
    assert wire.tried == [PUBLIC]


@pytest.mark.parametrize(
    "dates",
    [
        {"Date": "Thu, 01 Jan 1970 00:00:00 GMT", "Expires": "Fri, 31 Dec 9999 23:59:59 GMT"},
        {"Date": "Fri, 31 Dec 9999 23:59:59 GMT", "Expires": "Mon, 01 Jan 0001 00:00:00 GMT"},
        {"Date": "Sat, 32 Foo 99999 25:61:61 GMT", "Expires": "-1"},
        {"Cache-Control": "max-age=" + "9" * 500, "Age": "9" * 500},
    ],
)
async def test_unusual_dates_are_stored_as_sent(dates: Mapping[str, str]) -> None:
    async with nothing_left():
        fetched = await outcome(sends(BAD, text(200, ROBOTS, dates)))
    assert fetched == Fetched(
        Successful(200, ROBOTS, content_type=PLAIN),
        lifetime=Lifetime(
            date=dates.get("Date"),
            expires=dates.get("Expires"),
            cache_control=dates.get("Cache-Control"),
            age=dates.get("Age"),
        ),
    )


async def test_no_cookie_is_returned_and_no_auth_challenge_is_answered() -> None:
    given = {"Set-Cookie": "id=1; Path=/; Max-Age=99999999", "WWW-Authenticate": "Basic", "Location": "/next"}
    async with nothing_left(), serve(text(302, "", given), text(401, "", given)) as origin:
        ours = fetcher(NAMES, Wire({PUBLIC: origin}))
        assert (await ours.fetch(origin.named(SITE))).access == Unavailable(401)
        assert (await ours.fetch(origin.named(SITE))).access == Unavailable(401)
    assert len(origin.requests) == 3
    for request in origin.requests:
        assert all(word not in request.lower() for word in (b"cookie", b"authorization", b"id=1"))


# TLS.


async def over_tls(server: ssl.SSLContext, client: ssl.SSLContext, reply: Reply = FILE) -> Fetched:
    """The outcome for an origin with one context and a client with the other."""
    async with nothing_left(), serve(reply, tls=server) as origin:
        wire = Wire({PUBLIC: origin})
        with received() as sizes:
            fetched = await fetcher(NAMES, wire, tls=client).fetch(origin.named(SITE))
        assert wire.open_now == 0
        await origin.left()
    assert sum(sizes) <= WHOLE
    assert len(origin.requests) == isinstance(fetched.access, Successful)
    return fetched


async def test_valid_certificate_is_accepted() -> None:
    ours = Authority()
    fetched = await over_tls(ours.server_context(SITE), ours.trusted_by(client_tls()))
    assert fetched.access == Successful(200, ROBOTS, content_type=PLAIN)


@pytest.mark.parametrize(
    ("names", "since", "until", "detail"),
    [
        ((ELSEWHERE,), None, None, "the certificate is for another host name"),
        (("example.com",), None, None, "the certificate is for another host name"),
        (("*.www.example.com",), None, None, "the certificate is for another host name"),
        ((PUBLIC,), None, None, "the certificate is for another host name"),
        ((SITE,), datetime(2000, 6, 1), datetime(2001, 1, 1), "the certificate has expired"),  # noqa: DTZ001
        ((SITE,), datetime(2037, 1, 1), datetime(2038, 1, 1), "the certificate is not valid yet"),  # noqa: DTZ001
    ],
    ids=["another name", "the name above", "the names below", "the address", "out of date", "not yet"],
)
async def test_spec_a15_invalid_certificate_is_a_tls_failure(
    names: tuple[str, ...], since: datetime | None, until: datetime | None, detail: str
) -> None:
    ours = Authority()
    server = ours.server_context(*names, since=since, until=until)
    fetched = await over_tls(server, ours.trusted_by(client_tls()))
    assert fetched == Fetched(Unreachable(Cause.TLS))
    assert isinstance(fetched.access, Unreachable)
    assert fetched.access.detail == detail


async def test_spec_a15_an_untrusted_certificate_is_a_tls_failure() -> None:
    ours, theirs = Authority(), Authority()
    for server, detail in (
        (theirs.server_context(SITE), "the certificate is of an authority that is not trusted"),
        (theirs.self_signed_context(), "the certificate is self-signed"),
    ):
        fetched = await over_tls(server, ours.trusted_by(client_tls()))
        assert fetched == Fetched(Unreachable(Cause.TLS))
        assert isinstance(fetched.access, Unreachable)
        assert (fetched.access.detail or "").startswith(detail)


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_spec_a15_old_tls_version_is_a_tls_failure(newest: ssl.TLSVersion) -> None:
    ours = Authority()
    server = old_tls(ours, SITE, newest)
    async with nothing_left(), serve(at_once=handshaking(server)) as origin:
        ourselves = fetcher(NAMES, Wire({PUBLIC: origin}), tls=ours.trusted_by(client_tls()))
        fetched = await ourselves.fetch(Origin("https", SITE, origin.port))
        await origin.left()
    assert fetched == Fetched(Unreachable(Cause.TLS))
    # The server does support it: a client that does, too, gets an answer.
    lenient = ours.trusted_by(allow_old_tls(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)))
    assert isinstance((await over_tls(server, lenient)).access, Successful)


@pytest.mark.parametrize(
    ("at_once", "cause"),
    [
        (resetting(), Cause.TLS),
        (resetting(after=50), Cause.TLS),
        (resetting(b"\x16\x03\x03", after=50), Cause.TLS),
        (endless(b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"), Cause.TLS),
        (endless(b"", b"\0" * 1000), Cause.TLS),
        (stalling(b"\x15\x03\x03\x00\x02\x02\x28"), Cause.TLS),
        (stalling(), Cause.TIMEOUT),
        (stalling(b"\x16\x03\x03"), Cause.TIMEOUT),
        (dripping(b"\x16\x03\x03\x04\x00\x02", b"\0"), Cause.TIMEOUT),
    ],
    ids=["reset", "reset later", "reset in a record", "HTTP", "zeros", "alert", "silence", "half", "drops"],
)
async def test_spec_a15_a_failed_handshake_is_classified_by_its_failure(at_once: Handler, cause: Cause) -> None:
    within = SHORT if cause is Cause.TIMEOUT else 20.0
    async with nothing_left(), serve(at_once=at_once) as origin:
        wire = Wire({PUBLIC: origin})
        fetched = await fetcher(NAMES, wire, timeout=within).fetch(Origin("https", SITE, origin.port))
        assert wire.open_now == 0
        await origin.left()
    assert fetched == Fetched(Unreachable(cause))


async def test_an_endless_body_over_tls_is_read_up_to_the_limit_and_closed() -> None:
    ours = Authority()
    reply = endless(head(200), b"a" * 10_000)
    fetched = await over_tls(ours.server_context(SITE), ours.trusted_by(client_tls()), reply)
    assert fetched.access == Successful(200, b"a" * BODY_LIMIT, truncated=True)


async def test_spec_a8_a_redirect_from_https_to_http_is_followed() -> None:
    ours = Authority()
    async with nothing_left(), serve(text(200, ROBOTS)) as plain:
        there = f"http://{ELSEWHERE}:{plain.port}/robots.txt"
        async with serve(redirect(there), tls=ours.server_context(SITE)) as origin:
            wire = Wire({PUBLIC: origin})
            fetched = await fetcher(NAMES, wire, tls=ours.trusted_by(client_tls())).fetch(origin.named(SITE))
    assert fetched == Fetched(Successful(200, ROBOTS, content_type=PLAIN), final_url=there)
