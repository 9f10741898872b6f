"""Bounds of a connection: heads, bodies, pipelined requests and unread answers."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.middleware import body_limit
from app.api.middleware.body_limit import REQUEST_BODY_LIMIT, BodyLimit
from app.api.problems import Problem
from app.main.server.connection import HEAD_LIMIT, PIPELINED, Connection
from app.main.server.connection_limits import UnreadAnswers, max_connections
from tests.api.raw_client import connect, serve_app, status
from tests.faults.until import until_so

SHORT = 0.2
"""Seconds that slow clients get in these tests."""

GET = b"GET /page HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /page HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /page HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


class Hasty(Connection):
    head_seconds = rest_seconds = read_seconds = SHORT


class Small(Connection):
    limit = 2


async def send_text(send: Send, text: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send_text(send, scope["path"].encode())


async def size(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the size of the body, unless the client leaves."""
    received = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        received += len(message["body"])
        more = message["more_body"]
    await send_text(send, b"%d" % received)


class Flood:
    """Sends without end, until the client leaves; `over` is set then."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(self._gone(receive))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await asyncio.sleep(0)
        self.over.set()

    async def _gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BODY_SECONDS", "SILENCE_SECONDS"):
        monkeypatch.setattr(body_limit, name, SHORT)


def reading(app: ASGIApp, *, streamed: bool = False) -> ASGIApp:
    """The application behind a BodyLimit, whose problems are answered."""
    bounded = BodyLimit(app, lambda _: streamed)

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await bounded(scope, receive, send)
        except Problem as problem:
            await problem.response()(scope, receive, send)

    return answered


# Heads.


LARGE = [
    b"GET /page HTTP/1.1\r\nHost: h\r\nX-Long: " + b"a" * HEAD_LIMIT + b"\r\n\r\n",
    b"GET /page HTTP/1.1\r\nHost: h\r\nX-Endless: " + b"a" * (HEAD_LIMIT + 1),
    b"GET /page HTTP/1.1\r\nHost: h\r\n" + b"a:\r\n" * (HEAD_LIMIT // 4),
    b"GET /page HTTP/1.1\r\nHost: h\r\n" + b"a: b\r\n" * 40_000,
    b"GET /" + b"a" * HEAD_LIMIT + b" HTTP/1.1\r\nHost: h\r\n\r\n",
]


async def test_large_heads_are_refused() -> None:
    async with serve_app(hello) as (address, _):
        for head in LARGE:
            async with connect(address) as caller:
                await caller.send(head)
                answer = await caller.answer()
                assert status(answer) == 431
                assert b"problem:head-too-large" in answer


async def test_a_body_does_not_count_as_head() -> None:
    async with serve_app(size) as (address, _), connect(address) as caller:
        await caller.send(POST % 200_000 + b"x" * 200_000)
        assert (await caller.answer()).endswith(b"200000")
        await caller.send(GET)
        assert (await caller.answer()).endswith(b"\r\n0")


async def test_slow_heads_time_out() -> None:
    async with serve_app(hello, Hasty) as (address, _), connect(address) as caller:
        await caller.send(GET[:20])
        assert b"problem:slow-request" in await caller.end()


async def test_a_slow_second_head_times_out() -> None:
    async with serve_app(hello, Hasty) as (address, _), connect(address) as caller:
        await caller.send(GET)
        assert status(await caller.answer()) == 200
        await caller.send(b"GE")
        assert b"problem:slow-request" in await caller.end()


@pytest.mark.parametrize("data", [b"", b"\r\n"])
async def test_a_connection_without_a_request_is_closed(data: bytes) -> None:
    async with serve_app(hello, Hasty) as (address, server), connect(address) as caller:
        await caller.send(data)
        await caller.end()
        await until_so(lambda: not server.server_state.connections)


async def test_a_head_may_arrive_byte_by_byte() -> None:
    async with serve_app(hello) as (address, _), connect(address) as caller:
        for byte in GET:
            await caller.send(bytes([byte]))
        assert (await caller.answer()).endswith(b"/page")


# Invalid HTTP.


NONSENSE = [
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /page HTTP/1.1\r\nno colon\r\n\r\n",
    b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"POST /page HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST /page HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na",
    b"POST /page HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
    CHUNKED + b"not a size\r\n",
    CHUNKED + b"ffffffffffffffffff\r\n",
]


async def test_invalid_http_is_refused_and_closes_the_connection() -> None:
    async with serve_app(size) as (address, _):
        for data in NONSENSE:
            async with connect(address) as caller:
                await caller.send(data)
                answer = await caller.end()
                assert status(answer) == 400
                assert b"problem:bad-http" in answer
                assert answer.count(b"HTTP/1.1") == 1


async def test_requests_before_invalid_http_are_answered() -> None:
    async with serve_app(size) as (address, _), connect(address) as caller:
        await caller.send(POST % 3 + b"{}{}{}{}")
        answer = await caller.end()
        assert status(answer) == 200
        assert answer.endswith(b"\r\n3")


async def test_an_upgrade_is_ignored() -> None:
    async with serve_app(hello) as (address, _), connect(address) as caller:
        await caller.send(GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert (await caller.answer()).endswith(b"/page")


async def test_rfc9112_the_authority_of_an_absolute_target_replaces_host() -> None:
    async def host(scope: Scope, receive: Receive, send: Send) -> None:
        await send_text(send, b"%s %s" % (scope["path"].encode(), dict(scope["headers"])[b"host"]))

    async with serve_app(host) as (address, _), connect(address) as caller:
        await caller.send(b"GET http://evil.test:80/page?a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await caller.answer()).endswith(b"\r\n/page evil.test:80")
        await caller.send(b"GET /page?at=http://evil.test/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await caller.answer()).endswith(b"\r\n/page localhost")


# Pipelined requests.


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serve_app(hello) as (address, _), connect(address) as caller:
        await caller.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(PIPELINED)))
        for number in range(PIPELINED):
            assert (await caller.answer()).endswith(b"/%d" % number)


async def test_pipelined_requests_are_bounded() -> None:
    async with serve_app(hello) as (address, _), connect(address) as caller:
        await caller.send(GET * 10_000)
        assert (await caller.end()).count(b"HTTP/1.1 200") == PIPELINED + 1


# Bodies.


async def test_slow_bodies_time_out() -> None:
    async with serve_app(reading(size)) as (address, _), connect(address) as caller:
        await caller.send(POST % 100 + b"{")
        answer = await caller.end()
        assert status(answer) == 408
        assert b"problem:slow-request" in answer


async def test_a_streamed_body_ends_when_its_sender_is_silent() -> None:
    async with serve_app(reading(size, streamed=True)) as (address, _), connect(address) as caller:
        await caller.send(CHUNKED + b"5\r\nabcde\r\n")
        assert (await caller.answer()).endswith(b"\r\n5")


async def test_a_false_content_length_is_refused() -> None:
    async with serve_app(reading(size)) as (address, _), connect(address) as caller:
        await caller.send(POST % (10**30))
        assert status(await caller.end()) in {400, 413}


async def test_the_rest_of_a_refused_body_is_not_read_for_long() -> None:
    async with serve_app(reading(size), Hasty) as (address, server), connect(address) as caller:
        await caller.send(POST % (REQUEST_BODY_LIMIT + 1))
        assert status(await caller.answer()) == 413
        for _ in range(1000):
            await caller.send(b"x")
        await until_so(lambda: not server.server_state.connections)


async def test_all_bodies_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "BODIES_LIMIT", 1000)
    app = reading(size)
    async with serve_app(app) as (address, _), connect(address) as first, connect(address) as second:
        await second.send(POST % 1001 + b"x" * 1001)
        answer = await second.answer()
        assert status(answer) == 503
        assert b"retry-after: 1" in answer
        await first.send(POST % 1000 + b"x" * 1000)
        assert status(await first.answer()) == 200


# Answers.


async def test_a_client_that_reads_nothing_is_disconnected() -> None:
    flood = Flood()
    async with serve_app(flood, Hasty) as (address, server), connect(address, window=4096) as caller:
        await caller.send(GET)
        await asyncio.wait_for(flood.over.wait(), 30)
        await until_so(lambda: not server.server_state.connections)


async def test_unread_answers_are_bounded_over_all_connections() -> None:
    sent = 300_000  # of each answer; the system takes some of it for the sockets

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await send_text(send, b"x" * sent)

    class Forgetful(Connection):
        unread = UnreadAnswers(limit=5 * sent)

    async with serve_app(large, Forgetful) as (address, server), AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(connect(address, window=4096)) for _ in range(40)]
        for caller in callers:
            await caller.send(GET)
        await until_so(lambda: len(server.server_state.connections) <= 10)
        held = [cast("Connection", it).transport.get_write_buffer_size() for it in server.server_state.connections]
        assert sum(held) <= 5 * sent
        # The last caller is served as soon as it reads.
        assert len(await callers[-1].answer()) > sent


async def test_a_slow_reader_is_served_while_there_is_room() -> None:
    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await send_text(send, b"x" * 300_000)

    async with serve_app(large) as (address, _):
        for _ in range(3):
            async with connect(address, window=4096) as caller:
                await caller.send(GET * 3)
                for _ in range(3):
                    assert len(await caller.answer()) > 300_000


# Connections.


async def test_connections_beyond_the_limit_get_503_and_then_are_closed() -> None:
    async with serve_app(hello, Small) as (address, server):
        async with connect(address) as one, connect(address) as two:
            for caller in (one, two):
                await caller.send(GET)
                assert status(await caller.answer()) == 200
            async with connect(address) as three, connect(address) as four:
                await three.send(GET)
                answer = await three.end()
                assert status(answer) == 503
                assert b"retry-after: 1" in answer
                await four.send(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
                assert status(await four.answer()) == 200
                async with connect(address) as five, connect(address) as six:
                    await five.send(b"")
                    await six.send(GET)
                    assert await six.end() == b""
        await until_so(lambda: not server.server_state.connections)
        async with connect(address) as again:
            await again.send(GET)
            assert status(await again.answer()) == 200


def test_some_connections_are_always_served() -> None:
    assert max_connections() > 0


# Shutdown.


async def test_shutdown_waits_for_answers_but_not_for_idle_connections() -> None:
    go = asyncio.Event()
    asked = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            await size(scope, receive, send)
            return
        asked.set()
        await go.wait()
        await send_text(send, b"at last")

    async with (
        serve_app(slow, Hasty) as (address, server),
        connect(address) as answered,
        connect(address) as half,
        connect(address) as idle,
    ):
        await half.send(POST % 100 + b"{")
        await answered.send(GET)
        await asked.wait()
        server.should_exit = True
        assert await half.end() == b""
        assert await idle.end() == b""
        go.set()
        assert (await answered.end()).endswith(b"at last")


async def test_an_old_connection_ends_after_its_next_answer() -> None:
    """The first request comes after the age, and is answered; the client is told that it was the last."""
    old = cast("type[Connection]", partial(Connection, max_age=0.0))
    async with serve_app(hello, http=old) as (address, _), connect(address) as caller:
        await caller.send(GET)
        answer = await caller.end()
        assert status(answer) == 200
        assert b"\r\nconnection: close\r\n" in answer


async def test_a_young_connection_is_kept() -> None:
    young = cast("type[Connection]", partial(Connection, max_age=3600.0))
    async with serve_app(hello, http=young) as (address, _), connect(address) as caller:
        for _ in range(3):
            await caller.send(GET)
            answer = await caller.answer()
            assert status(answer) == 200
            assert b"connection: close" not in answer


async def test_connections_of_one_moment_end_at_different_ones() -> None:
    made: list[Connection] = []

    class Noted(Connection):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, max_age=3600.0, **options)
            made.append(self)

    async with serve_app(hello, http=Noted) as (address, _), AsyncExitStack() as stack:
        for _ in range(8):
            caller = await stack.enter_async_context(connect(address))
            await caller.send(GET)
            await caller.answer()
        ends = [connection._last_from for connection in made if connection._last_from is not None]
        assert len(set(ends)) == 8


async def test_every_pipelined_request_ends_when_a_body_is_broken() -> None:
    ended: list[str] = []

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})  # it has come a moment too late
        ended.append(scope["path"])

    broken = b"POST /last HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    async with serve_app(slow) as (address, _), connect(address) as caller:
        await caller.send(b"GET /first HTTP/1.1\r\nHost: h\r\n\r\n" + broken)
        await until_so(lambda: "/first" in ended)
