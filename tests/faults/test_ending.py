"""The service stops at any moment: requests are answered, counts are kept, no process or file stays."""

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from app.loop import helper_process as helper
from app.store.embedded import serve as serve_valkey
from tests.faults.loopback import Visit, web
from tests.faults.process import process
from tests.faults.until import until
from tests.origins import text

CLOSED = text(200, "User-agent: *\nDisallow: /private/\n")
HELPER = Path(helper.__file__)
PATIENCE = httpx.Timeout(60.0)


class Gate:
    """An origin that answers when the test lets it."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.requested = asyncio.Event()

    async def __call__(self, visit: Visit) -> None:
        self.requested.set()
        await self.open.wait()
        await visit.send(CLOSED)


def question(origin: str, agent: str = "ExampleBot") -> dict[str, str]:
    return {"url": f"{origin}/private/page", "agent": agent, "wait": "60"}


def left_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def refused(url: str) -> bool:
    """Whether nothing listens there."""
    host, port = url.removeprefix("http://").split(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it was closed while this connection waited to be accepted
        return False
    writer.transport.abort()
    return False


async def closed_to_new(url: str) -> None:
    async def look() -> bool:
        return await refused(url)

    await until(look, bool)


async def test_shutdown_answers_open_requests_and_accepts_no_new_ones(tmp_path: Path) -> None:
    workers = 2  # more than one: their listening socket is shared
    gate = Gate()
    async with web(gate) as origins, httpx.AsyncClient(timeout=PATIENCE) as client:
        with process(WORKERS=str(workers), TMPDIR=str(tmp_path), FETCH_TIMEOUT="60") as service:
            url = service.wait_ready(workers)
            answer = asyncio.create_task(client.get(f"{url}/v1/allowed", params=question(origins.new())))
            await gate.requested.wait()
            service.send_signal()
            await closed_to_new(url)
            service.send_signal()  # a second signal changes nothing
            assert not answer.done()
            gate.open.set()
            assert (await answer).json()["verdict"] == "disallow"
            await asyncio.to_thread(service.ended)
            assert service.output.count("Finished server process") == workers
            assert "Traceback" not in service.output
        assert left_in(tmp_path) == []


async def test_shutdown_writes_counts_back(store_url: str, store_client: Redis) -> None:
    async with web(CLOSED) as origins, httpx.AsyncClient(timeout=PATIENCE) as client:
        with process(REDIS_URL=store_url) as service:
            origin = origins.new()
            for _ in range(3):
                await client.get(f"{service.wait_ready()}/v1/allowed", params=question(origin, "SeznamBot"))
            assert await store_client.get(f"robots:{{{origin}}}:visits") is None
            service.send_signal()
            await asyncio.to_thread(service.ended)
            visits: Any = await store_client.get(f"robots:{{{origin}}}:visits")
            assert visits.split()[:2] == [b"V1", b"3"] or visits.startswith(b"V1 2.99")


async def test_an_unfinished_request_does_not_delay_shutdown(store_url: str, store_client: Redis) -> None:
    lines = b"POST /v1/allowed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    with process(REDIS_URL=store_url) as service:
        host, port = service.wait_ready().removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as stream, socket.create_connection((host, int(port))) as half:
            stream.sendall(lines + b"Transfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n")
            half.sendall(b"GET /v1/allowed HTTP/1.1\r\n")
            stream.settimeout(60)
            assert stream.recv(100).startswith(b"HTTP/1.1 200")
            service.send_signal()
            await asyncio.to_thread(service.ended)
        assert "Traceback" not in service.output


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("sink", ["pipe", "fifo"])
async def test_nothing_that_waits_keeps_it(
    sink: str, workers: int, store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    """Neither a decision log that is not read, nor a helper, nor requests that wait for changes: these are answered."""
    faulty = text(200, "Dissallow: /\n" * 10_000)
    reader, writer = os.pipe()
    os.mkfifo(fifo := tmp_path / "fifo")
    path = str(fifo) if sink == "fifo" else "stdout"

    async def looks() -> int:
        stats: Any = await store_client.info("commandstats")
        return int(stats.get("cmdstat_xrevrange", {}).get("calls", 0))

    # A client that gives up after half of the wait for changes.
    async with web(faulty) as origins, httpx.AsyncClient(timeout=30.0) as client:
        with process(writer, REDIS_URL=store_url, WORKERS=str(workers), DECISION_LOG=path) as service:
            url, origin = service.wait_ready(workers), origins.new()
            response = await client.get(f"{url}/v1/robots", params={"url": origin}, timeout=PATIENCE)
            assert len(response.json()["warnings"]) > 100
            items = [{"url": f"{origin}/{'a' * 3000}{number}", "agent": "ExampleBot"} for number in range(200)]
            for _ in range(4):
                response = await client.post(f"{url}/v1/allowed", json={"items": items}, timeout=PATIENCE)
                assert response.status_code == 200
            before = await looks()
            polls = [asyncio.create_task(client.get(f"{url}/v1/changes", params={"wait": 60})) for _ in range(5)]
            await until(looks, lambda now: now > before)
            service.send_signal()
            assert any(str(HELPER) in one.cmdline() for one in service.below)
            for answer in await asyncio.gather(*polls):
                assert (answer.status_code, answer.text) == (200, "")
            await asyncio.to_thread(service.ended)
            assert "Traceback" not in service.output
            assert "Fatal Python error" not in service.output
    os.close(reader)
    os.close(writer)


async def test_workers_end_with_their_parent_and_finish_what_was_asked() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(visit: Visit) -> None:
        asked.set()
        await answer.wait()
        await visit.send(text(200, "User-agent: *\nDisallow: /\n"))

    async with web(slow) as origins, httpx.AsyncClient(timeout=PATIENCE) as client:
        with process(WORKERS="2") as service:
            url = service.wait_ready(2)
            question = {"url": origins.new(), "agent": "ExampleBot", "wait": "60"}
            decision = asyncio.create_task(client.get(f"{url}/v1/allowed", params=question))
            await asked.wait()
            service.send_signal(signal.SIGKILL)
            await asyncio.to_thread(service.wait_for, "this worker stops", 2)
            await until(lambda: refused(url), bool)
            answer.set()
            assert (await decision).json()["verdict"] == "disallow"
            assert await asyncio.to_thread(service.ended) == -signal.SIGKILL
            assert "Traceback" not in service.output


@pytest.mark.parametrize(
    ("workers", "moment"), [(1, ""), (1, "Waiting for application startup"), (2, "Started server process")]
)
async def test_start_can_be_interrupted_at_any_moment(workers: int, moment: str, tmp_path: Path) -> None:
    with process(WORKERS=str(workers), TMPDIR=str(tmp_path)) as service:
        if moment:
            service.wait_for(moment)
        service.send_signal()
        await asyncio.to_thread(service.ended)
        assert "Traceback" not in service.output
    assert left_in(tmp_path) == []


async def test_service_starts_without_a_store_and_uses_it_later(tmp_path: Path) -> None:
    path = tmp_path / "later.sock"
    async with web(CLOSED) as origins, httpx.AsyncClient(timeout=PATIENCE) as client:
        with process(REDIS_URL=f"unix://{path}") as service:
            url = service.wait_ready()

            async def store() -> str:
                response = await client.get(f"{url}/readyz")
                assert response.status_code == 200
                return str(response.json()["store"])

            assert await store() == "degraded"
            origin = origins.new()
            answer = (await client.get(f"{url}/v1/allowed", params=question(origin))).json()
            assert (answer["verdict"], answer["robots"]["source"]) == ("disallow", "fetched")
            with serve_valkey(None) as valkey:
                path.symlink_to(valkey.removeprefix("unix://"))
                await until(store, lambda state: state == "ok")
                other = origins.new()
                await client.get(f"{url}/v1/allowed", params=question(other))
                held = Redis.from_url(valkey)
                assert await held.exists(f"robots:{{{other}}}") == 1
                await held.aclose()
            # Without a store again: counts are lost, but the service stops.
            service.send_signal()
            await asyncio.to_thread(service.ended)
            assert "Finished server process" in service.output
