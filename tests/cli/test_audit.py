"""`python -m app audit`: a log is decided by the versions of robots.txt that were held at its times."""

import gzip
import hashlib
import json
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.cli.access_log import LOGGED_LINE_LIMIT
from tests.cli.command import run
from tests.cli.serving import service
from tests.faults.until import until, until_so
from tests.operator_token import TOKEN_HEADER
from tests.origins import Exchange, LoopbackOrigin, serve, text

FIRST = "User-agent: *\nDisallow: /old\n"
SECOND = "User-agent: *\n\nDisallow: /new\n"
PAGES = ("/old", "/new")

pytestmark = pytest.mark.usefixtures("store_client")


async def _two_versions(url: str, origin: LoopbackOrigin) -> list[dict[str, Any]]:
    """Let the service find two versions that began in different seconds; return them, the oldest first."""
    async with httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client:

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


def _log(*lines: Mapping[str, object]) -> bytes:
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
    assert [json.loads(line) for line in ended.out.splitlines()] == [
        {
            "line": 1,
            "url": old,
            "agent": "FooBot/1.0",
            "time": first["from"],
            "verdict": "disallow",
            "reason": "rule",
            "version": first["id"],
            "override": None,
            "rule": {"directive": "disallow", "pattern": "/old", "line": 2, "text": "Disallow: /old"},
        },
        {
            "line": 4,
            "url": new,
            "agent": "BarBot",
            "time": second["from"],
            "verdict": "disallow",
            "reason": "rule",
            "version": second["id"],
            "override": None,
            "rule": {"directive": "disallow", "pattern": "/new", "line": 3, "text": "Disallow: /new"},
        },
    ]
    assert readable.code == 1
    expected = f"{second['from']} BarBot {new}: disallow (rule, line 3: disallow: /new), by version {second['id']}"
    assert f"line 4: {expected}" in readable.out.splitlines()


async def test_decision_log_of_the_service_is_read(store_url: str, tmp_path: Path) -> None:
    whole, hashed = tmp_path / "whole", tmp_path / "hashed"
    async with serve(text(200, FIRST)) as origin:
        for path, form in ((whole, "whole"), (hashed, "hashed")):
            async with (
                service(store_url, DECISION_LOG=str(path), DECISION_LOG_URL=form) as url,
                httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client,
            ):
                for page in ("/old", "/new"):
                    await client.get("/v1/allowed", params={"url": origin.url + page, "agent": "FooBot"})
                await until_so(partial(_has_lines, path, 2))
                ended = await run("audit", str(path), "--server", url)
                code, counted = (0, "1 allowed") if form == "whole" else (2, "1 without a URL")
                assert (ended.code, ended.out) == (code, "")
                assert sorted(ended.err.strip().partition(": ")[2].split(", ")) == sorted(
                    [counted, "1 refused at that time"]
                )


async def test_override_that_decided_is_named_beside_what_the_file_said(store_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with (
        serve(text(200, FIRST)) as origin,
        service(store_url, DECISION_LOG=str(log)) as url,
        httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client,
    ):
        override = {"scope": origin.url, "action": "allow", "reason": "agreed with the owner"}
        assert (await client.put("/v1/overrides/agreed", json=override)).status_code in {200, 201}

        async def verdict() -> str:
            answer = await client.get("/v1/allowed", params={"url": f"{origin.url}/old", "agent": "FooBot"})
            return str(answer.json()["verdict"])

        assert await until(verdict, lambda found: found == "allow") == "allow"
        await until_so(lambda: _has_lines(log, 1))
        arguments = ("audit", str(log), "--server", url)
        ended, readable = await run(*arguments, "--json"), await run(*arguments)
    assert (ended.code, ended.err) == (1, "1 line: 1 that should not have been fetched\n")
    found = json.loads(ended.out)
    assert (found["verdict"], found["override"]) == ("disallow", "agreed")
    assert readable.out.endswith(f", by version {found['version']}; override agreed decided then\n")


async def test_crawler_is_audited_by_the_history_of_its_fetch_profile(store_url: str, tmp_path: Path) -> None:
    async def by_user_agent(exchange: Exchange) -> None:
        await exchange.send(text(200, SECOND if b"AcmeBot/2.0" in exchange.head else FIRST))

    agents = tmp_path / "agents.toml"
    agents.write_text('[agents.AcmeBot]\nprofile = "acme"\n[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n')
    async with (
        serve(by_user_agent) as origin,
        service(store_url, AGENTS_FILE=str(agents)) as url,
        httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client,
    ):
        begun: dict[str, str] = {}
        for agent, profile in (("AcmeBot", "acme"), ("FooBot", "default")):
            await client.get("/v1/allowed", params={"url": origin.url, "agent": agent})
            history = await client.get("/v1/robots/history", params={"url": origin.url, "profile": profile})
            [version] = history.json()["versions"]
            begun[agent] = version["from"]
        given = _log(
            *({"url": origin.url + page, "agent": agent, "time": begun[agent]} for agent in begun for page in PAGES)
        )
        ended = await run("audit", "-", "--server", url, "--json", given=given)
    found = [json.loads(line) for line in ended.out.splitlines()]
    expected = [("AcmeBot", "/new", SECOND), ("FooBot", "/old", FIRST)]
    assert [(it["agent"], it["url"].removeprefix(origin.url), it["version"]) for it in found] == [
        (agent, page, hashlib.sha256(file.encode()).hexdigest()[:16]) for agent, page, file in expected
    ]


async def test_pages_of_a_time_before_the_history_are_unknown(store_url: str) -> None:
    async with serve(text(200, "User-agent: *\n")) as origin, service(store_url) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client:
            await client.get("/v1/allowed", params={"url": origin.url, "agent": "FooBot"})
        given = _log({"url": f"{origin.url}/", "agent": "FooBot", "time": "2001-01-01T00:00:00Z"})
        ended = await run("audit", "-", "--server", url, given=given)
    assert (ended.code, ended.out, ended.err) == (2, "", "1 line: 1 unknown\n")


@pytest.mark.parametrize("compressed", [False, True])
async def test_log_of_a_proxy_is_read(store_url: str, tmp_path: Path, compressed: bool) -> None:
    log = tmp_path / "access.log"
    async with serve(text(200, FIRST)) as origin, service(store_url) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client:
            await client.get("/v1/allowed", params={"url": origin.url, "agent": "FooBot"})
            history = await client.get("/v1/robots/history", params={"url": origin.url})
        began = datetime.fromisoformat(history.json()["versions"][0]["from"])
        stamp = began.astimezone(timezone(timedelta(hours=-7))).strftime("%d/%b/%Y:%H:%M:%S %z")
        lines = [
            f'10.0.0.7 - - [{stamp}] "GET {origin.url}{page} HTTP/1.1" 200 7 "-" "FooBot/1.0 (+https://foo.example)"'
            for page in PAGES
        ]
        written = "".join(f"{line}\n" for line in lines).encode()
        log.write_bytes(gzip.compress(written) if compressed else written)
        ended = await run("audit", str(log), "--server", url)
    assert (ended.code, ended.err) == (1, "2 lines: 1 allowed, 1 that should not have been fetched\n")
    at = began.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert ended.out.startswith(f"line 1: {at} FooBot/1.0 (+https://foo.example) {origin.url}/old: disallow (rule, ")


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
            b"x" * (2 * LOGGED_LINE_LIMIT),
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


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "the following arguments are required: LOG"),
        (("/nowhere",), "Cannot read /nowhere: "),
        (("/",), "Cannot read /: "),
        (("-", "--concurrency", "33"), "'33' is not a number from 1 to 32"),
        (("-", "--concurrency", "many"), "'many' is not a number from 1 to 32"),
        (("-", "--server", "nowhere"), "nowhere"),
        (("-", "--origin", "example.com"), "--origin: "),
    ],
)
async def test_bad_arguments_exit_with_3_and_an_error(arguments: tuple[str, ...], error: str) -> None:
    ended = await run("audit", *arguments, given=b"")
    assert ended.code == 3
    assert error in ended.err
    assert "Traceback" not in ended.err
