"""RFC 9112 on the wire: trailers are bounded and are not header fields, and a request has one Host.

Each test runs against the protocol class that `serve` configures and against uvicorn's own h11 protocol: whichever of
the two serves, the rule holds. uvicorn's httptools protocol alone breaks all of them.
"""

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.cli.serve import configuration
from app.main.server.connection import HEAD_LIMIT
from app.main.settings import Settings
from tests.api.raw_client import Protocol, connect, serve_app, status
from tests.faults.until import until_so

SERVED = configuration(Settings()).http

CHUNKED = b"POST /page HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"

pytestmark = pytest.mark.parametrize("http", [SERVED, H11Protocol])


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the names of the header fields, once the body has come."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message["more_body"]
    text = b",".join(sorted(name for name, _ in scope["headers"]))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})


async def test_trailer_fields_are_not_header_fields_rfc9110(http: Protocol) -> None:
    async with serve_app(echo, http) as (address, _), connect(address) as caller:
        await caller.send(CHUNKED + b"X-API-Key: secret\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
        assert (await caller.answer()).endswith(b"\r\nhost,transfer-encoding")
        # The connection goes on: a trailer is ignored, and is not an error.
        await caller.send(b"GET /page HTTP/1.1\r\nHost: h\r\nX-Next: 1\r\n\r\n")
        assert (await caller.answer()).endswith(b"\r\nhost,x-next")


@pytest.mark.parametrize("unit", [b"X: a\r\n", b"a", b":\r\n"], ids=["short fields", "one field", "no names"])
async def test_trailers_without_end_are_refused(http: Protocol, unit: bytes) -> None:
    async with serve_app(echo, http) as (address, server), connect(address) as caller:
        await caller.send(CHUNKED + b"X: ")
        for _ in range(32):  # 2 MiB at most, then the server has to have closed
            await caller.send(unit * (HEAD_LIMIT // len(unit)))
        assert status(await caller.end()) in {0, 400, 431}  # 0: a reset may overtake the answer
        await until_so(lambda: not server.server_state.connections)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET /page HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        (b"GET /page HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nHost:\r\n\r\n", 200),
        (b"GET /page HTTP/1.0\r\n\r\n", 200),
        (b"GET /page\r\n\r\n", 400),
    ],
)
async def test_a_request_has_exactly_one_host_rfc9112(http: Protocol, head: bytes, expected: int) -> None:
    async with serve_app(echo, http) as (address, _), connect(address) as caller:
        await caller.send(head)
        assert status(await (caller.answer() if expected == 200 else caller.end())) == expected
