"""A reply of a shape that no command has is a failed call: no answer is a 500, no background task fails."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hiredis import Reader

from app.store.commands import PROBE
from tests.api.service import running
from tests.origins import serve, text

ORDERS = ("failing", "slow", "stale", "backoff", "asked", "refused")
SETUP = {b"CLIENT", b"SELECT", b"PING", b"INFO"}
SHAPES = {
    "missing": b"$-1\r\n",
    "missing list": b"*-1\r\n",
    "zero": b":0\r\n",
    "one": b":1\r\n",
    "negative": b":-1\r\n",
    "largest": b":9223372036854775807\r\n",
    "text": b"+x\r\n",
    "empty string": b"$0\r\n\r\n",
    "string": b"$3\r\n\xff\x00a\r\n",
    "empty list": b"*0\r\n",
    "a list of nothing": b"*1\r\n$-1\r\n",
    "two of nothing": b"*2\r\n$-1\r\n$-1\r\n",
    "a pair": b"*2\r\n:1\r\n$5\r\nhello\r\n",
    "three numbers": b"*3\r\n:1\r\n:2\r\n:3\r\n",
    "three of the largest": b"*3\r\n" + b":9223372036854775807\r\n" * 3,
    "three kinds": b"*3\r\n:1\r\n$1\r\nx\r\n*0\r\n",
    "four numbers": b"*4\r\n" + b":1\r\n" * 4,
    "four strings": b"*4\r\n$1\r\n1\r\n$3\r\nnan\r\n$3\r\ninf\r\n$2\r\n-1\r\n",
    "five, the last a list of numbers": b"*5\r\n:1\r\n$3\r\n1-1\r\n$3\r\n2-1\r\n:0\r\n*2\r\n:1\r\n:2\r\n",
    "five, the last a list of lists": b"*5\r\n:1\r\n$3\r\n1-1\r\n$3\r\n2-1\r\n:0\r\n*1\r\n*3\r\n+a\r\n+b\r\n+c\r\n",
    "lists in lists": b"*1\r\n" * 8 + b":1\r\n",
    "an error in a list": b"*3\r\n-ERR a\r\n:1\r\n:2\r\n",
    "many": b"*2000\r\n" + b":1\r\n" * 2000,
}


@asynccontextmanager
async def answering(shape: bytes) -> AsyncIterator[str]:
    """The URL of a server that answers probes as it should, and every other command with `shape`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commands = Reader()
        while data := await reader.read(65_536):
            commands.feed(data)
            while command := commands.gets():
                writer.write(_reply(command, shape))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def _reply(command: list[bytes], shape: bytes) -> bytes:
    if command[0] == b"EVAL" and command[1] == PROBE.encode():
        return b"*2\r\n*0\r\n*2\r\n$%d\r\n%d\r\n$1\r\n0\r\n" % (len(str(int(time.time()))), time.time())
    if command[0] == b"SUBSCRIBE":
        return b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n" % (len(command[1]), command[1])
    return b"+OK\r\n" if command[0] in SETUP else shape


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_a_reply_of_another_shape_is_a_failed_call(shape: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with serve(text(200)) as origin, answering(shape) as url, running(url) as service:
        page = f"{origin.named('127.0.0.1').key}/"
        named = {"url": page, "agent": "ExampleBot", "wait": 0}
        override = {"scope": "www.example.com", "action": "deny", "reason": "a test"}
        copy = {"observed_at": "2026-11-20T00:00:00Z", "status": 200, "robots": "User-agent: *\nDisallow: /\n"}
        asked_for = {**named, "max_wait": 60}
        await service.client.get("/v1/allowed", params={"url": page, "agent": "ExampleBot", "wait": 1})
        given = [(await service.client.post("/v1/permits", json=asked_for)).json()["permit"] for _ in range(2)]
        permits = [permit for permit in given if permit is not None]  # there may be none, where a fetch needs a lease
        asked: list[tuple[str, str, dict[str, Any], object]] = [
            ("GET", "/v1/allowed", named, None),
            ("GET", "/v1/allowed", {**named, "as_of": "2026-11-20T00:00:00Z"}, None),
            ("GET", "/v1/robots", {"url": page, "wait": 0}, None),
            ("GET", "/v1/robots/history", {"url": page}, None),
            ("GET", "/v1/robots/diff", {"url": page}, None),
            ("PUT", "/v1/robots", {"url": page}, copy),
            ("POST", "/v1/robots/refresh", {"url": page}, None),
            ("DELETE", "/v1/robots", {"url": page}, None),
            ("GET", "/v1/changes", {}, None),
            ("GET", "/v1/changes", {"after": "1-1"}, None),
            ("POST", "/v1/permits", {}, asked_for),
            ("POST", "/v1/permits/batch", {}, {"items": [asked_for, asked_for]}),
            *(("POST", f"/v1/permits/{it}/outcome", {}, {"status": 429, "retry_after": 60}) for it in permits[:1]),
            (
                "POST",
                "/v1/permits/outcomes",
                {},
                {"items": [{"permit": it, "released": True} for it in [*permits, "x"]]},
            ),
            ("GET", "/v1/allowed", {**named, "agent": "SeznamBot"}, None),
            ("POST", "/v1/allowed", {}, {"items": [named]}),
            ("GET", "/v1/overrides", {}, None),
            ("GET", "/v1/overrides/audit", {}, None),
            ("GET", "/v1/overrides/a", {}, None),
            ("PUT", "/v1/overrides/a", {}, override),
            ("DELETE", "/v1/overrides/a", {}, None),
            *(("GET", "/v1/origins", {"order": order}, None) for order in ORDERS),
            ("GET", "/readyz", {}, None),
            ("GET", "/metrics", {}, None),
        ]
        for method, path, query, body in asked:
            answer = await service.client.request(method, path, params=query, json=body)
            assert answer.status_code in {*range(200, 300), 404, 503}, (method, path, answer.text)
    assert [record.getMessage() for record in caplog.records] == []
