"""`POST /v1/allowed` as a stream: answers while questions arrive, and reading stops while answers are unread."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.api.middleware.body_limit import REQUEST_BODY_LIMIT
from app.api.stream import QUESTION_LINE_LIMIT, WINDOW, Lines
from tests.api.service import Service, listening, running
from tests.faults.until import until_so
from tests.origins import Exchange, serve, text

pytestmark = pytest.mark.usefixtures("store_client")

RULES = "User-agent: *\nDisallow: /private/\n"
HEAD = (
    b"POST /v1/allowed HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
)


class Stream:
    """A request that sends lines, and reads answers, one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = b""

    async def send(self, *lines: bytes) -> None:
        body = b"".join(lines)
        self._writer.write(b"%x\r\n%s\r\n" % (len(body), body))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def head(self) -> bytes:
        return await self._reader.readuntil(b"\r\n\r\n")

    async def answer(self) -> dict[str, Any] | None:
        """The next line; None at the end."""
        while b"\n" not in self._rest:
            size = int(await self._reader.readline(), 16)
            chunk = await self._reader.readexactly(size + 2)
            if size == 0:
                assert self._rest == b""
                return None
            self._rest += chunk[:-2]
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def leave(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def streaming(address: tuple[str, int]) -> AsyncIterator[Stream]:
    """A client with a small receive buffer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, address)
    reader, writer = await asyncio.open_connection(sock=raw, limit=32_768)
    writer.write(HEAD)
    try:
        yield Stream(reader, writer)
    finally:
        writer.transport.abort()


def line(url: str, agent: str = "ExampleBot", **members: object) -> bytes:
    return json.dumps({"url": url, "agent": agent, **members}).encode() + b"\n"


async def decisions(service: Service) -> int:
    counted = (await service.client.get("/metrics")).text.splitlines()
    return sum(int(float(row.split()[-1])) for row in counted if row.startswith("robots_decisions_total{"))


async def posted(service: Service, body: bytes | Iterable[bytes]) -> list[dict[str, Any]]:
    content = body if isinstance(body, bytes) else b"".join(body)
    headers = {"Content-Type": "application/x-ndjson; charset=utf-8"}
    response = await service.client.post("/v1/allowed", content=content, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/x-ndjson")
    return [json.loads(answer) for answer in response.text.splitlines()]


async def test_every_line_is_answered_in_order(store_url: str) -> None:
    async with serve(text(200, RULES)) as one, serve(text(404)) as other, running(store_url) as service:
        urls = [f"{origin.url}/private/{number}" for number in range(600) for origin in (one, other)]
        answers = await posted(service, map(line, urls))
        assert [answer["url"] for answer in answers] == urls
        assert [answer["allowed"] for answer in answers] == [False, True] * 600
        assert (len(one.requests), len(other.requests)) == (1, 1)
        for url, answer in zip(urls[:2], await posted(service, map(line, urls[:2])), strict=True):
            expected = await service.allowed(url)
            assert expected == answer


async def test_a_bad_line_is_a_problem_that_names_it(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        good = line(f"{origin.url}/private/")
        long = b'{"url": "' + b"a" * QUESTION_LINE_LIMIT + b'"}\n'
        parts = [
            b"{\n",
            b"\n",
            good,
            b" \t\r\n",
            long,
            b'"x"\n',
            good[:-1] + b"\r\n",
            line("ftp://h/"),
            b"\xff\n",
            good,
        ]
        answers = await posted(service, b"".join(parts)[:-1])
        expected = [
            (it["problem"]["status"], it["problem"]["line"]) if "problem" in it else it["verdict"] for it in answers
        ]
        assert expected == [(422, 1), "disallow", (413, 5), (422, 6), "disallow", (422, 8), (422, 9), "disallow"]
        assert (answers[5]["problem"]["parameter"], answers[5]["problem"]["value"]) == ("url", "ftp://h/")
        assert await posted(service, b"") == await posted(service, b"\n\n") == []


async def test_stream_has_no_limit_of_lines_or_bytes(store_url: str) -> None:
    async with serve(text(200, RULES)) as origin, running(store_url) as service:
        lines = [
            line(f"{origin.url}/private/{number}/" + "a" * 8000) for number in range(REQUEST_BODY_LIMIT // 8000 + 100)
        ]
        assert sum(map(len, lines)) > REQUEST_BODY_LIMIT
        assert len(await posted(service, lines)) == len(lines)


async def test_only_streams_are_unlimited(store_url: str) -> None:
    async with running(store_url) as service:
        headers = {"Content-Type": "application/x-ndjson"}
        for path in ("/v1/test", "/v1/indexing"):
            response = await service.client.post(path, content=b"a" * (REQUEST_BODY_LIMIT + 1), headers=headers)
            assert response.status_code == 413


async def test_answers_come_while_questions_are_still_sent(store_url: str) -> None:
    async with (
        serve(text(200, RULES)) as origin,
        running(store_url) as service,
        listening(service) as address,
        streaming(address) as stream,
    ):
        question = line(f"{origin.url}/private/")
        await stream.send(question[:10])
        await stream.send(question[10:], question)
        assert b"200 OK" in await stream.head()
        for _ in range(3):
            answer = await stream.answer()
            assert answer is not None
            assert answer["verdict"] == "disallow"
            await stream.send(question)
        await stream.end()
        assert [(await stream.answer()) is None for _ in range(3)] == [False, False, True]


async def test_stream_stops_reading_while_answers_are_unread(store_url: str) -> None:
    count, at_once, long = 20_000, 100, "?" + "a" * 500
    async with serve(text(200, RULES)) as origin, running(store_url) as service, listening(service) as address:
        await service.allowed(f"{origin.url}/")
        async with streaming(address) as stream:

            async def send() -> None:
                for number in range(0, count, at_once):
                    await stream.send(*(line(f"{origin.url}/{number + more}{long}") for more in range(at_once)))
                await stream.end()

            sending = asyncio.create_task(send())
            # Nothing signals that reading has stopped, so wait until the count has not changed for a while.
            seen, still = 0, 0
            while still < 10:
                await asyncio.sleep(0.02)
                now = await decisions(service)
                seen, still = now, still + 1 if now == seen else 0
            assert WINDOW < seen < count
            assert not sending.done()
            await stream.head()
            for number in range(count):
                answer = await stream.answer()
                assert answer is not None
                assert answer["url"] == f"{origin.url}/{number}{long}"
            assert await stream.answer() is None
            await sending


async def test_a_stream_caller_may_send_a_thousand_questions_before_reading(store_url: str) -> None:
    async with (
        serve(text(200, RULES)) as origin,
        running(store_url) as service,
        listening(service) as address,
        streaming(address) as stream,
    ):
        for number in range(WINDOW):
            await stream.send(line(f"{origin.url}/private/{number}?" + "a" * 4000))
        await stream.end()
        await stream.head()
        for number in range(WINDOW):
            answer = await stream.answer()
            assert answer is not None
            assert f"/private/{number}?" in answer["url"]
        assert await stream.answer() is None


async def stall(exchange: Exchange) -> None:
    await exchange.stall()


async def test_disconnect_cancels_the_work_of_a_stream(store_url: str) -> None:
    async with serve(stall) as dead, running(store_url) as service, listening(service) as address:
        async with streaming(address) as stream:
            await stream.send(*(line(f"{dead.url}/{number}", wait=60) for number in range(50)))
            await dead.wait_for_requests(1)
            stream.leave()
        await until_so(lambda: not any("AnswerLines" in repr(task.get_coro()) for task in asyncio.all_tasks()))
        assert await decisions(service) == 0


async def test_slow_origin_delays_later_answers_but_not_fetches(store_url: str) -> None:
    async with (
        serve(stall) as dead,
        serve(text(200, RULES)) as alive,
        running(store_url, fetch_timeout=0.5) as service,
        listening(service) as address,
        streaming(address) as stream,
    ):
        await stream.send(line(f"{dead.url}/", wait=60), line(f"{alive.url}/private/"))
        await alive.wait_for_requests(1)
        await dead.wait_for_requests(1)
        await stream.end()
        await stream.head()
        first, second = await stream.answer(), await stream.answer()
        assert first is not None
        assert second is not None
        assert (first["robots"]["cause"], second["verdict"]) == ("timeout", "disallow")


@pytest.mark.parametrize("size", [1, 2, 3, 7, QUESTION_LINE_LIMIT, 10 * QUESTION_LINE_LIMIT])
def test_lines_do_not_depend_on_chunks(size: int) -> None:
    long = b"a" * QUESTION_LINE_LIMIT
    body = b"\n".join([b"one", b"", b"two", long, b"three", b"last"]) if size < 10 else b"x\n" + long + b"a\n\n" + long
    body = body.replace(long, b"b" * 50) if size < 10 else body
    lines = Lines()
    found = [it for at in range(0, len(body), size) for it in lines.feed(body[at : at + size])] + [lines.last()]
    assert found == [it if len(it) <= QUESTION_LINE_LIMIT else None for it in body.split(b"\n")]
