"""Reading a response piece by piece: what it costs, and how it ends; test_hostile_origins.py has the outcomes."""

import asyncio
from collections.abc import Iterable
from typing import Any

import httptools
import pytest

from app.fetch import exchange
from app.fetch.exchange import HEAD_BYTES, PIECES_LIMIT, Exchange
from app.fetch.network import client_tls
from app.fetch.response import READ_BYTES, Body, Headers, decoder
from robots_core.robots.access import Cause, Successful
from tests.faults.fetching import PUBLIC, SITE, Wire, fetcher, nothing_left
from tests.origins import Authority, Names, head, serve, text
from tests.origins import Exchange as Served

ROBOTS = b"User-agent: *\nDisallow: /private\n"


class Pipe(asyncio.Transport):
    """A transport without a network."""

    def __init__(self, protocol: Exchange) -> None:
        super().__init__()
        self._protocol = protocol
        self.sent = b""
        self.paused = False
        protocol.connection_made(self)
        assert self.sent == b""
        protocol.begin()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def abort(self) -> None:
        asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)


def read_all(_status: int, headers: Headers) -> Body:
    return Body(decoder(headers))


async def received(pieces: Iterable[bytes]) -> Exchange:
    """The exchange at its end, for which each piece was a read of its own."""
    ours = Exchange(b"request", read_all)
    pipe = Pipe(ours)
    assert pipe.sent == b"request"
    for piece in pieces:
        assert not pipe.paused
        ours.get_buffer(-1)[: len(piece)] = piece
        ours.buffer_updated(len(piece))
        if pipe.paused:
            await asyncio.sleep(0)
    pipe.abort()
    await ours.closed.wait()
    return ours


def drops(data: bytes) -> Iterable[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def bytes_fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is passed to the parser from now on."""
    sizes: list[int] = []

    class Parser(httptools.HttpResponseParser):
        def feed_data(self, data: Any) -> None:
            sizes.append(len(data))
            super().feed_data(data)

    monkeypatch.setattr(exchange, "HttpResponseParser", Parser)
    return sizes


async def test_a_head_that_drips_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = bytes_fed(monkeypatch)
    interim, final = head(103, {"Link": "</a>"}), head(200, {"X": "a" * 20_000})
    ours = await received(drops(interim + final + ROBOTS))
    assert sizes[:2] == [len(interim), len(final)]
    assert sum(sizes) == len(interim + final)
    assert ours.failure is None
    assert ours.body is not None
    assert ours.body.read() == ROBOTS


@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
async def test_a_response_is_the_same_in_every_two_pieces(line_end: bytes) -> None:
    chunks = b"1;x=y\r\nU\r\n%x\r\n%b\r\n0\r\nT: x\r\n\r\n" % (len(ROBOTS) - 1, ROBOTS[1:])
    final = head(200, [("Transfer-Encoding", "chunked"), ("Content-Length", "5"), ("Content-Length", "5")])
    whole = (head(100) + final).replace(b"\r\n", line_end) + chunks
    for cut in range(1, len(whole)):
        ours = await received([whole[:cut], whole[cut:]])
        assert (ours.failure, ours.status) == (None, 200)
        assert ours.body is not None
        assert ours.body.read() == ROBOTS


async def test_chunks_count_as_pieces_and_trailers_are_not_waited_for() -> None:
    begun, chunk, last = head(200, {"Transfer-Encoding": "chunked"}), b"1\r\na\r\n", b"0\r\nT: "
    ours = await received([begun, *[chunk] * (PIECES_LIMIT - 2), last])
    assert ours.failure is None
    ours = await received([begun, *[chunk] * (PIECES_LIMIT + 1), last])
    assert (ours.failure, ours.status) == (Cause.BAD_RESPONSE, 200)
    assert ours.detail == "the body has more pieces, or more framing, than a file needs"


async def test_other_tasks_run_after_each_full_buffer() -> None:
    ours = Exchange(b"", read_all)
    pipe = Pipe(ours)
    start = head(200)
    for data, paused in ((start, False), (b"a" * READ_BYTES, True)):
        ours.get_buffer(-1)[: len(data)] = data
        ours.buffer_updated(len(data))
        assert pipe.paused is paused
    await asyncio.sleep(0)
    assert not pipe.paused
    pipe.abort()
    await ours.closed.wait()


async def test_a_head_of_the_limit_is_read_and_a_longer_one_is_not() -> None:
    def sent(size: int) -> Iterable[bytes]:
        whole = head(200, {"X": "a" * (size - len(head(200, {"X": ""})))})
        assert len(whole) == size
        return (whole[at : at + 1000] for at in range(0, size, 1000))

    assert (await received(sent(HEAD_BYTES))).failure is None
    assert (await received(sent(HEAD_BYTES + 1))).failure is None  # its end arrives with the last read
    assert (await received(sent(HEAD_BYTES + 2000))).failure is Cause.BAD_RESPONSE


@pytest.mark.parametrize("more", [text(404, "gone") + b"garbage", head(103, {"Link": "</a>"}), head(200), b"\r\n"])
async def test_nothing_is_read_after_the_end(more: bytes) -> None:
    ours = await received([text(200, ROBOTS) + more, more])
    assert (ours.failure, ours.status) == (None, 200)
    assert ours.body is not None
    assert ours.body.read() == ROBOTS
    assert dict(ours.headers)[b"Content-Length"] == b"%d" % len(ROBOTS)


# Over TLS.


@pytest.mark.parametrize("aborted", [False, True], ids=["close_notify", "no close_notify"])
async def test_a_body_without_a_length_ends_with_its_tls_connection(aborted: bool) -> None:
    authority = Authority()

    async def answer(served: Served) -> None:
        await served.send(head(200) + ROBOTS)
        if aborted:
            served.abort()

    async with nothing_left(), serve(answer, tls=authority.server_context(SITE)) as origin:
        wire = Wire({PUBLIC: origin})
        client = authority.trusted_by(client_tls())
        fetched = await fetcher(Names({SITE: [PUBLIC]}), wire, tls=client).fetch(origin.named(SITE))
        await origin.left()
    assert fetched.access == Successful(200, ROBOTS)


async def test_http_1_1_is_the_protocol_that_is_offered_with_tls() -> None:
    authority = Authority()
    server = authority.server_context(SITE)
    server.set_alpn_protocols(["h2", "http/1.1"])
    chosen: list[str | None] = []

    async def answer(served: Served) -> None:
        chosen.append(served.protocol)
        await served.send(text(200, ROBOTS))

    async with serve(answer, tls=server) as origin:
        client = authority.trusted_by(client_tls())
        await fetcher(Names({SITE: [PUBLIC]}), Wire({PUBLIC: origin}), tls=client).fetch(origin.named(SITE))
    assert chosen == ["http/1.1"]
