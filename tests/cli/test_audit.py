"""`python -m app audit`: a log is decided by the versions of robots.txt that were held at its times."""

import json
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.cli.access_log import LINE_LIMIT
from tests.cli.command import run
from tests.cli.serving import service
from tests.faults.until import until, until_so
from tests.origins import LoopbackOrigin, serve, text

FIRST = "User-agent: *\nDisallow: /old\n"
SECOND = "User-agent: *\n\nDisallow: /new\n"

pytestmark = pytest.mark.usefixtures("store_client")


async def _two_versions(url: str, origin: LoopbackOrigin) -> list[dict[str, Any]]:
    """Let the service find two versions that began in different seconds; return them, the oldest first."""
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:

        async def versions() -> list[dict[str, Any]]:
            history = await client.get("/v1/robots/history", params={"url": origin.url})
            found: list[dict[str, Any]] = history.json()["versions"]
            return found[::-1]

        await client.get("/v1/allowed", params={"url": origin.url, "agent": "FooBot"})
        [first] = await until(versions, lambda found: len(found) == 1)
        began = datetime.fromisoformat(first["from"]).timestamp()
        await until_so(lambda: time.time() >= began + 1)
        refreshed = await client.post("/v1/robots/refresh", params={"url": origin.url})
        assert refreshed.status_code == 200, refreshed.text
        return await until(versions, lambda found: len(found) == 2)


def _has_lines(path: Path, count: int) -> bool:
    return path.exists() and path.read_bytes().count(b"\n") == count


def _log(*lines: dict[str, object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


async def test_lines_are_decided_by_the_version_of_their_time(store_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with serve(text(200, FIRST), text(200, SECOND)) as origin, service(store_url) as url:
        first, second = await _two_versions(url, origin)
        old, new = f"{origin.url}/old", f"{origin.url}/new"
        seconds = datetime.fromisoformat(second["from"]).timestamp()
        given = _log(
            {"url": old, "agent": "FooBot/1.0", "time": first["from"]},
            {"url": new, "agent": "FooBot", "time": first["from"]},
            {"url": old, "at": seconds},
            {"url": new, "at": seconds + 0.25},
            {"url": new, "agent": "FooBot", "time": "2001-01-01T00:00:00+01:00"},
        )
        log.write_bytes(given)
        arguments = ("--server", url, "--agent", "BarBot", "--concurrency", "2")
        ended = await run("audit", str(log), *arguments, "--json")
        readable = await run("audit", "-", *arguments, given=given)
    assert (ended.code, ended.err) == (1, "5 lines: 2 allowed, 2 that should not have been fetched, 1 unknown\n")
    found = {it["line"]: it for it in map(json.loads, ended.out.splitlines())}
    assert found == {
        1: {
            "line": 1,
            "url": old,
            "agent": "FooBot/1.0",
            "time": first["from"],
            "verdict": "disallow",
            "reason": "rule",
            "version": first["id"],
            "override": None,
            "rule": {"directive": "disallow", "pattern": "/old", "line": 2},
        },
        4: {
            "line": 4,
            "url": new,
            "agent": "BarBot",
            "time": second["from"],
            "verdict": "disallow",
            "reason": "rule",
            "version": second["id"],
            "override": None,
            "rule": {"directive": "disallow", "pattern": "/new", "line": 3},
        },
    }
    assert readable.code == 1
    expected = f"{second['from']} BarBot {new}: disallow (rule, line 3: disallow: /new), by version {second['id']}"
    assert f"line 4: {expected}" in readable.out.splitlines()


async def test_decision_log_of_the_service_is_read(store_url: str, tmp_path: Path) -> None:
    whole, hashed = tmp_path / "whole", tmp_path / "hashed"
    async with serve(text(200, FIRST)) as origin:
        for path, form in ((whole, "whole"), (hashed, "hashed")):
            async with (
                service(store_url, DECISION_LOG=str(path), DECISION_LOG_URL=form) as url,
                httpx2.AsyncClient(base_url=url, timeout=60) as client,
            ):
                for page in ("/old", "/new"):
                    await client.get("/v1/allowed", params={"url": origin.url + page, "agent": "FooBot"})
                await until_so(partial(_has_lines, path, 2))
                ended = await run("audit", str(path), "--server", url)
                counted = "1 allowed" if form == "whole" else "1 without a URL"
                assert (ended.code, ended.out) == (0, "")
                assert sorted(ended.err.strip().partition(": ")[2].split(", ")) == sorted(
                    [counted, "1 refused at that time"]
                )


async def test_bad_lines_are_named_and_the_rest_is_audited(store_url: str) -> None:
    async with serve(text(200, "User-agent: *\n")) as origin, service(store_url) as url:
        good = {"url": f"{origin.url}/", "agent": "FooBot", "time": 0}
        lines = [
            b"nonsense",
            b"[" * 100_000,
            b"",
            *(
                json.dumps({**good, **wrong}).encode()
                for wrong in (
                    {"time": "noon"},
                    {"time": float("nan")},
                    {"time": 1_790_000_000_000},
                    {"time": True},
                    {"agent": None},
                    {"url": "\ud800"},
                    {"url": "gopher://h/"},
                )
            ),
            b"x" * (2 * LINE_LIMIT),
            json.dumps(good).encode(),
        ]
        ended = await run("audit", "-", "--server", url, given=b"\n".join(lines))
    assert (ended.code, ended.out) == (3, "")
    *named, summary = ended.err.splitlines()
    assert summary == "11 lines: 1 unknown, 10 unreadable"
    texts = {int(line.split(":")[0].removeprefix("line ")): line for line in named}
    assert sorted(texts) == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    expected = {1: "'nonsense'", 4: "'noon'", 5: "nan", 6: "1790000000000", 7: "True", 8: "--agent", 10: "gopher"}
    assert [number for number, part in expected.items() if part not in texts[number]] == []


async def test_busy_service_is_asked_again() -> None:
    as_json = {"Content-Type": "application/json"}
    busy = text(503, "{}", {**as_json, "Retry-After": "1"})
    async with serve(busy, text(200, '{"verdict": "allow"}', as_json)) as server:
        given = _log({"url": "http://h/", "agent": "FooBot", "time": 1})
        ended = await run("audit", "-", "--server", server.url, given=given)
    assert (ended.code, ended.err, len(server.requests)) == (0, "1 lines: 1 allowed\n", 2)
    assert b"as_of=1970-01-01T00%3A00%3A01Z" in server.requests[0]


async def test_rejected_key_ends_the_audit() -> None:
    refusal = text(401, '{"detail": "Unknown API key."}', {"Content-Type": "application/problem+json"})
    async with serve(refusal) as server:
        given = _log(*[{"url": "http://h/", "agent": "FooBot", "time": 1}] * 200)
        ended = await run("audit", "-", "--server", server.url, given=given)
    assert ended.code == 3
    assert "Unknown API key." in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "arguments", [(), ("/nowhere",), ("/",), ("-", "--concurrency", "0"), ("-", "--server", "nowhere")]
)
async def test_bad_arguments_exit_with_3_and_an_error(arguments: tuple[str, ...]) -> None:
    ended = await run("audit", *arguments, given=b"")
    assert ended.code == 3
    assert ended.err
    assert "Traceback" not in ended.err
