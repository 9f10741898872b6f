"""After SIGHUP, every worker refuses a revoked API key, even if its replacement is delayed."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import httpx
from redis.asyncio import Redis

from app.auth.keys import new_key
from app.store.embedded import serve as serve_valkey
from tests.faults.process import process
from tests.faults.until import until
from tests.valkey import process_of, stopped

REQUESTS = 20


async def test_sighup_revokes_a_key_while_the_store_hangs(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    (kept, kept_lines), (revoked, revoked_lines) = new_key("kept"), new_key("revoked")
    file.write_text(kept_lines + revoked_lines)
    with serve_valkey(None) as url:
        client = Redis.from_url(url)
        pid = await process_of(client)
        await client.aclose()
        with process(WORKERS="2", REDIS_URL=url, API_KEYS_FILE=str(file)) as service:
            service.wait_ready(workers=2)

            async def answered(key: str) -> set[int]:
                """The statuses from all workers; each request has its own connection."""
                async with httpx.AsyncClient(timeout=60) as caller:
                    query = {"url": "http://127.0.0.1:1/robots.txt", "agent": "ExampleBot", "wait": "0"}
                    headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
                    requests = (
                        caller.get(f"{service.url}/v1/allowed", params=query, headers=headers) for _ in range(REQUESTS)
                    )
                    return {response.status_code for response in await asyncio.gather(*requests)}

            assert await answered(revoked) == {200}
            with stopped(pid):
                file.write_text(kept_lines)
                service.send_signal(signal.SIGHUP)
                await until(lambda: answered(revoked), lambda statuses: statuses == {401})
                assert await answered(kept) == {200}


class Stream:
    """A stream of questions, whose body never ends; httpx would read no answer before it does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, url: str, key: str) -> "Stream":
        parts = httpx.URL(url)
        one = cls(*await asyncio.open_connection(parts.host, parts.port))
        fields = f"Host: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/x-ndjson\r\n"
        one._writer.write(f"POST /v1/allowed HTTP/1.1\r\n{fields}Transfer-Encoding: chunked\r\n\r\n".encode())
        assert (await one._reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        return one

    def send(self, line: bytes) -> None:
        self._writer.write(b"%x\r\n%s\r\n" % (len(line), line))

    async def answer(self) -> dict[str, Any]:
        """The next answer, which is a chunk of its own."""
        size = int(await self._reader.readline(), 16)
        chunk = await self._reader.readexactly(size + 2)
        answer: dict[str, Any] = json.loads(chunk)
        return answer

    async def ended(self) -> bool:
        """Whether the answers end next, and then the connection."""
        rest = await self._reader.read()
        self.close()
        return rest == b"0\r\n\r\n"

    def close(self) -> None:
        self._writer.transport.abort()


async def test_sighup_ends_what_a_revoked_key_has_open(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    (kept, kept_lines), (revoked, revoked_lines) = new_key("kept"), new_key("revoked")
    file.write_text(kept_lines + revoked_lines)
    line = json.dumps({"url": "http://127.0.0.1:1/", "agent": "ExampleBot", "wait": 0}).encode() + b"\n"
    with process(API_KEYS_FILE=str(file)) as service:
        service.wait_ready()

        async def polled(client: httpx.AsyncClient, key: str, wait: int) -> int:
            headers = {"Authorization": f"Bearer {key}"}
            return (await client.get("/v1/changes", params={"wait": wait}, headers=headers)).status_code

        async with httpx.AsyncClient(base_url=service.url, timeout=30) as client, asyncio.timeout(60):
            idle, busy, going = [await Stream.open(service.url, key) for key in (revoked, revoked, kept)]
            for stream in (idle, busy, going):
                stream.send(line)
                assert (await stream.answer())["verdict"] == "defer"
            polls = [asyncio.create_task(polled(client, key, wait)) for key, wait in ((revoked, 60), (kept, 5))]
            file.write_text(kept_lines)
            service.send_signal(signal.SIGHUP)
            await asyncio.to_thread(service.wait_for, "reloaded API_KEYS_FILE")
            for stream in (busy, going):
                stream.send(line)
            for stream in (idle, busy):
                problem = (await stream.answer())["problem"]
                assert (problem["status"], problem["type"].rpartition(":")[2]) == (401, "unknown-key")
                assert await stream.ended()
            assert (await going.answer())["verdict"] == "defer"
            assert [await poll for poll in polls] == [401, 200]
            going.close()
