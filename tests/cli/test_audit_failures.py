"""`python -m app audit` while the service is busy, down or strange, the reader leaves, or the user interrupts."""

import asyncio
import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli.access_log import Defaults
from app.cli.auditor import REQUEST_LINES, Auditor, Finding
from app.cli.client import ServiceClient, ServiceNotReached
from app.cli.patient_client import REQUEST_ATTEMPTS, PatientClient
from tests.cli.command import ROOT, command, run
from tests.origins import Exchange, Handler, Reply, serve, text

JSON = {"Content-Type": "application/json"}
DISALLOW = {"verdict": "disallow", "reason": "rule", "rule": None, "version": "0123456789abcdef"}
BUSY = {"problem": {"status": 503, "type": "urn:x:store-down", "detail": "The store is unavailable."}}


def log(count: int) -> bytes:
    lines = ({"url": f"http://h/{number}", "agent": "A", "time": number} for number in numbers(count))
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def numbers(count: int) -> range:
    return range(1, count + 1)


def answering(
    answer: Callable[[int], dict[str, Any]], reply: Callable[[int], Reply | None] = lambda _: None
) -> Handler:
    """A service that answers each item by the number in its URL; `reply` may reply otherwise by that of the first."""

    async def handle(exchange: Exchange) -> None:
        [length] = [line for line in exchange.head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        body = json.loads(await exchange.receive(int(length.partition(b":")[2])))
        asked = [int(item["url"].rpartition("/")[2]) for item in body["items"]]
        other = reply(asked[0])
        if other is None:
            await exchange.send(text(200, json.dumps({"answers": list(map(answer, asked))}), JSON))
        elif isinstance(other, bytes):
            await exchange.send(other)
        else:
            await other(exchange)

    return handle


async def test_busy_service_is_asked_again() -> None:
    busy = text(503, "{}", {**JSON, "Retry-After": "1"})
    async with serve(busy, busy, answering(lambda _: {"verdict": "allow"})) as server:
        ended = await run("audit", "-", "--server", server.url, given=log(1))
    assert (ended.code, ended.err, len(server.requests)) == (0, "1 line: 1 allowed\n", 3)


async def test_only_lines_without_an_answer_are_asked_again() -> None:
    asked: Counter[int] = Counter()

    def answer(number: int) -> dict[str, Any]:
        asked[number] += 1
        return BUSY if number in {2, 3} and asked[number] < number else DISALLOW

    async with serve(answering(answer)) as server:
        ended = await run("audit", "-", "--server", server.url, given=log(4))
    assert (ended.code, ended.err) == (1, "4 lines: 4 that should not have been fetched\n")
    assert asked == {1: 1, 2: 2, 3: 3, 4: 1}
    assert [line.partition(":")[0] for line in ended.out.splitlines()] == [f"line {n}" for n in numbers(4)]


async def test_service_that_stays_busy_ends_the_audit_after_the_lines_before() -> None:
    busy = text(429, "{}", {**JSON, "Retry-After": "0"})
    handler = answering(lambda _: DISALLOW, lambda first: busy if first > 1 else None)
    async with serve(handler) as server:
        ended = await run("audit", "-", "--server", server.url, "--concurrency", "1", given=log(REQUEST_LINES + 1))
    assert ended.code == 3
    count = ended.out.count("\n")
    assert ended.err.splitlines() == [
        f"{count} lines: {count} that should not have been fetched",
        f"python -m app: {server.url} stays busy. The audit ended before line {count + 1}.",
    ]
    assert len(server.requests) == 1 + REQUEST_ATTEMPTS


async def test_service_that_is_down_is_named() -> None:
    ended = await run("audit", "-", "--server", "http://127.0.0.1:1", given=log(3))
    assert (ended.code, ended.out) == (3, "")
    assert "http://127.0.0.1:1 does not respond: " in ended.err
    assert ended.err.endswith("The audit ended before line 1.\n")
    assert "Traceback" not in ended.err


async def reset(exchange: Exchange) -> None:
    exchange.reset()


async def test_service_that_restarts_is_asked_again_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.cli.patient_client.RETRY_DELAYS", (0.0, 0.0))
    alive = text(200, "{}", JSON)
    async with serve(reset) as server, ServiceClient(server.url) as service:
        with pytest.raises(ServiceNotReached):
            await PatientClient(service).get("/", {})
        assert len(server.requests) == 1
    async with serve(alive, reset, alive, reset) as server, ServiceClient(server.url) as service:
        client = PatientClient(service)
        for _ in range(2):
            assert await client.get("/", {}) is not None
        assert len(server.requests) == 3
        with pytest.raises(ServiceNotReached):
            await client.get("/", {})
        assert len(server.requests) == 6


async def test_request_is_not_given_up_while_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.patient_client.RETRY_DELAYS", (0.0,))
    busy, alive = text(429, "{}", {**JSON, "Retry-After": "0"}), text(200, "{}", JSON)
    refused = 0

    async def unlucky(exchange: Exchange) -> None:
        nonlocal refused
        if exchange.path == "/lucky":
            await exchange.send(alive)
        else:
            refused += 1
            await exchange.send(busy if refused <= 3 * REQUEST_ATTEMPTS else alive)

    async with serve(unlucky) as server, ServiceClient(server.url, connections=2) as service:
        client = PatientClient(service)
        waiting = asyncio.create_task(client.get("/unlucky", {}))
        while not waiting.done():
            assert await client.get("/lucky", {}) is not None
        found = waiting.result()
    assert found is not None
    assert refused == 3 * REQUEST_ATTEMPTS + 1


async def test_rejected_key_ends_the_audit() -> None:
    refusal = text(401, '{"detail": "Unknown API key."}', {"Content-Type": "application/problem+json"})
    async with serve(answering(lambda _: DISALLOW, lambda _: refusal)) as server:
        ended = await run("audit", "-", "--server", server.url, given=log(200))
    assert ended.code == 3
    assert "Unknown API key. The audit ended before line 1." in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"answers": 5}',
        '{"answers": []}',
        '{"answers": [5]}',
        '{"answers": [{"verdict": 5}]}',
        '{"answers": [{"problem": {}}]}',
        '{"answers": [{"problem": 5, "verdict": "allow"}]}',
    ],
)
async def test_answer_of_another_service_is_an_error(body: str) -> None:
    async with serve(answering(lambda _: DISALLOW, lambda _: text(200, body, JSON))) as server:
        ended = await run("audit", "-", "--server", server.url, given=log(1))
    assert (ended.code, ended.out) == (3, "")
    assert "is it this service?" in ended.err
    assert "Traceback" not in ended.err


async def test_interrupt_prints_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(log(2 * REQUEST_LINES))

    async def stall(exchange: Exchange) -> None:
        await exchange.stall()

    handler = answering(lambda _: DISALLOW, lambda first: stall if first > 1 else None)
    async with (
        serve(handler) as server,
        command("audit", str(path), "--server", server.url, "--concurrency", "1") as auditing,
    ):
        await server.wait_for_requests(2)
        auditing.interrupt()
        ended = await auditing.ended()
    assert ended.code == 130
    count = ended.out.count("\n")
    assert count > 1
    assert ended.err == f"{count} lines: {count} that should not have been fetched\n"


async def test_closed_pipe_ends_the_audit_quietly(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(log(20 * REQUEST_LINES))
    async with serve(answering(lambda _: DISALLOW)) as server:
        words = [sys.executable, "-m", "app", "audit", str(path), "--server", server.url]
        script = f"{shlex.join(words)} | head -1; exit ${{PIPESTATUS[0]}}"
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", script, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
    assert (process.returncode, err) == (3, b"")
    assert out.startswith(b"line 1: ")
    assert out.count(b"\n") == 1


async def test_answer_that_is_too_long_is_asked_for_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.client.ANSWER_LIMIT", 500)
    found: list[Finding] = []
    async with serve(answering(lambda _: DISALLOW)) as server, ServiceClient(server.url) as service:
        auditor = Auditor(
            service, concurrency=2, defaults=Defaults(), found=found.append, bad=lambda *_: None, done=lambda _: None
        )

        async def blocks() -> Any:
            yield list(enumerate(log(20).splitlines(), 1))

        await auditor.run(blocks())
    assert [it.number for it in found] == list(numbers(20))
    assert len(server.requests) > 5
