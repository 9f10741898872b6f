"""`robots-decisions check --log`: a log is decided by the versions of robots.txt that were held at its times."""

import gzip
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from robots_decisions.cli.access_log import LOGGED_LINE_LIMIT

from tests.clients.commands import run
from tests.clients.serving import service
from tests.clients.site import new_address
from tests.faults.until import until, until_so
from tests.operator_token import TOKEN_HEADER
from tests.origins import Exchange, LoopbackOrigin, serve, text

FIRST = "User-agent: *\nDisallow: /old\n"
SECOND = "User-agent: *\n\nDisallow: /new\n"
PAGES = ("/old", "/new")

AGENTS = '[agents.AcmeBot]\nprofile = "acme"\n[profiles.acme]\nuser_agent = "AcmeBot/2.0"\n'


class Audited(NamedTuple):
    """A service, and its decision log."""

    url: str
    log: Path

    def decisions(self, origin: LoopbackOrigin) -> bytes:
        """The lines of the decision log about an origin."""
        lines = self.log.read_bytes().splitlines(keepends=True) if self.log.exists() else []
        return b"".join(line for line in lines if origin.url.encode() in line)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audited")
    log, agents = folder / "decisions", folder / "agents.toml"
    agents.write_text(AGENTS)
    with service(DECISION_LOG=str(log), AGENTS_FILE=str(agents)) as url:
        yield Audited(url, log)


async def history(url: str, origin: LoopbackOrigin, **others: str) -> list[dict[str, Any]]:
    """The versions of an origin's file, the oldest first."""
    async with httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client:
        found = await client.get("/v1/robots/history", params={"url": origin.url, **others})
        versions: list[dict[str, Any]] = found.json()["versions"]
        return versions[::-1]


async def known(url: str, origin: LoopbackOrigin, agent: str = "FooBot", **others: str) -> dict[str, Any]:
    """Let the service fetch an origin's file; return its version."""
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        await client.get("/v1/allowed", params={"url": origin.url, "agent": agent})
    [version] = await until(lambda: history(url, origin, **others), lambda found: len(found) == 1)
    return version


async def _two_versions(url: str, origin: LoopbackOrigin) -> list[dict[str, Any]]:
    """Let the service find two versions that began in different seconds; return them, the oldest first."""
    began = datetime.fromisoformat((await known(url, origin))["from"]).timestamp()
    await until_so(lambda: time.time() >= began + 1)
    async with httpx2.AsyncClient(base_url=url, timeout=60, headers=TOKEN_HEADER) as client:
        refreshed = await client.post("/v1/robots/refresh", params={"url": origin.url})
        assert refreshed.status_code == 200, refreshed.text
    return await until(lambda: history(url, origin), lambda found: len(found) == 2)


def _log(*lines: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


async def test_lines_are_decided_by_the_version_of_their_time(audited: Audited, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with serve(text(200, FIRST), text(200, SECOND), host=new_address()) as origin:
        url = audited.url
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
        arguments = ("--log", "--server", url, "--agent", "BarBot", "--concurrency", "2")
        ended = await run("check", str(log), *arguments)
        every = await run("check", "-", *arguments, "--all", given=given)
    assert ended.code == 1
    assert ended.err == "5 lines: 2 allow (2 no_match), 2 disallow (2 rule), 1 unknown\n"
    assert ended.rows() == [
        {
            "line": 1,
            "url": old,
            "agent": "FooBot/1.0",
            "time": first["from"],
            "verdict": "disallow",
            "reason": "rule",
            "rule": "disallow: /old",
            "rule_line": 2,
            "version": first["id"],
            "override": None,
            "interval": None,
            "early": None,
            "detail": None,
        },
        {
            "line": 4,
            "url": new,
            "agent": "BarBot",
            "time": second["from"],
            "verdict": "disallow",
            "reason": "rule",
            "rule": "disallow: /new",
            "rule_line": 3,
            "version": second["id"],
            "override": None,
            "interval": None,
            "early": None,
            "detail": None,
        },
    ]
    assert every.code == 1
    assert [(row["line"], row["verdict"], row["reason"]) for row in every.rows()] == [
        (5, None, "unknown"),
        (1, "disallow", "rule"),
        (2, "allow", "no_match"),
        (3, "allow", "no_match"),
        (4, "disallow", "rule"),
    ]


async def test_decision_log_of_the_service_is_read(audited: Audited) -> None:
    async with (
        serve(text(200, FIRST), host=new_address()) as origin,
        httpx2.AsyncClient(base_url=audited.url, timeout=60, headers=TOKEN_HEADER) as client,
    ):
        for page in PAGES:
            await client.get("/v1/allowed", params={"url": origin.url + page, "agent": "FooBot"})
        await until_so(lambda: audited.decisions(origin).count(b"\n") == 2)
        arguments = ("check", "-", "--log", "--server", audited.url)
        ended = await run(*arguments, given=audited.decisions(origin))
        assert (ended.code, ended.out, ended.err) == (0, "", "2 lines: 1 allow (1 no_match), 1 refused\n")
        override = {"scope": origin.url, "action": "allow", "reason": "agreed with the owner"}
        assert (await client.put("/v1/overrides/agreed", json=override)).status_code in {200, 201}

        async def verdict() -> str:
            answer = await client.get("/v1/allowed", params={"url": f"{origin.url}/old", "agent": "FooBot"})
            return str(answer.json()["verdict"])

        assert await until(verdict, lambda found: found == "allow") == "allow"
        await until_so(lambda: b"agreed" in audited.decisions(origin))
        [decision] = [line for line in audited.decisions(origin).splitlines() if b"agreed" in line]
        overridden = await run(*arguments, given=decision)
        await client.delete("/v1/overrides/agreed")
    assert (overridden.code, overridden.err) == (1, "1 line: 1 disallow (1 rule)\n")
    [found] = overridden.rows()
    assert (found["verdict"], found["override"]) == ("disallow", "agreed")


async def test_crawler_is_audited_by_the_history_of_its_fetch_profile(audited: Audited) -> None:
    async def by_user_agent(exchange: Exchange) -> None:
        await exchange.send(text(200, SECOND if b"AcmeBot/2.0" in exchange.head else FIRST))

    async with serve(by_user_agent, host=new_address()) as origin:
        begun = {
            agent: (await known(audited.url, origin, agent, profile=profile))["from"]
            for agent, profile in (("AcmeBot", "acme"), ("FooBot", "default"))
        }
        given = _log(
            *({"url": origin.url + page, "agent": agent, "time": begun[agent]} for agent in begun for page in PAGES)
        )
        ended = await run("check", "-", "--log", "--server", audited.url, given=given)
    expected = [("AcmeBot", "/new", SECOND), ("FooBot", "/old", FIRST)]
    assert sorted((it["agent"], it["url"].removeprefix(origin.url), it["version"]) for it in ended.rows()) == [
        (agent, page, hashlib.sha256(file.encode()).hexdigest()[:16]) for agent, page, file in expected
    ]


async def test_pages_of_a_time_before_the_history_are_unknown(audited: Audited) -> None:
    async with serve(text(200, "User-agent: *\n"), host=new_address()) as origin:
        await known(audited.url, origin)
        given = _log({"url": f"{origin.url}/", "agent": "FooBot", "time": "2001-01-01T00:00:00Z"})
        ended = await run("check", "-", "--log", "--server", audited.url, given=given)
    assert (ended.code, ended.out, ended.err) == (2, "", "1 line: 1 unknown\n")


async def test_log_of_a_proxy_is_read(audited: Audited, tmp_path: Path) -> None:
    log = tmp_path / "access.log.gz"
    async with serve(text(200, FIRST), host=new_address()) as origin:
        began = datetime.fromisoformat((await known(audited.url, origin))["from"])
        stamp = began.astimezone(timezone(timedelta(hours=-7))).strftime("%d/%b/%Y:%H:%M:%S %z")
        lines = [
            f'10.0.0.7 - - [{stamp}] "GET {origin.url}{page} HTTP/1.1" 200 7 "-" "FooBot/1.0 (+https://foo.example)"'
            for page in PAGES
        ]
        log.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
        ended = await run("check", str(log), "--log", "--server", audited.url)
    assert (ended.code, ended.err) == (1, "2 lines: 1 allow (1 no_match), 1 disallow (1 rule)\n")
    at = began.strftime("%Y-%m-%dT%H:%M:%SZ")
    [row] = ended.rows()
    agent = "FooBot/1.0 (+https://foo.example)"
    assert [row[name] for name in ("line", "time", "agent", "url")] == [1, at, agent, f"{origin.url}/old"]


async def test_bad_lines_are_named_and_the_rest_is_audited(audited: Audited) -> None:
    async with serve(text(200, "User-agent: *\n"), host=new_address()) as origin:
        url = audited.url
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
        ended = await run("check", "-", "--log", "--server", url, given=b"\n".join(lines))
    assert (ended.code, ended.out) == (3, "")
    *named, summary = ended.err.splitlines()
    assert summary == "11 lines: 1 unknown, 10 unreadable"
    texts = {int(line.split(":")[0].removeprefix("line ")): line for line in named}
    assert sorted(texts) == [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    expected = {1: "'nonsense'", 4: "'noon'", 5: "nan", 6: "1790000000000", 7: "True", 8: "--agent", 10: "gopher"}
    assert [number for number, part in expected.items() if part not in texts[number]] == []


async def test_fetches_faster_than_the_rate_of_their_time_are_found(audited: Audited) -> None:
    file = "User-agent: SlowBot\nCrawl-delay: 10\n\nUser-agent: *\nAllow: /\n"
    async with serve(text(200, file), host=new_address()) as origin:
        url = audited.url
        began = datetime.fromisoformat((await known(url, origin))["from"]).timestamp()
        await until_so(lambda: time.time() >= began + 3)
        seconds = [0, 0.5, 2, 2.5]
        fetches = [
            {"url": f"{origin.url}/{agent}/{at}", "agent": f"{agent}/1.0", "at": began + at}
            for at in seconds
            for agent in ("SlowBot", "OtherBot")
        ]
        robots = {"url": f"{origin.url}/robots.txt", "agent": "SlowBot", "at": began + 1}
        arguments = ("check", "-", "--log", "--server", url)
        ended = await run(*arguments, given=_log(*reversed(fetches), robots))
        tolerant = await run(*arguments, "--tolerance", "9", given=_log(*fetches))
        disallowed = await run(*arguments, "--only", "disallow", given=_log(*fetches))
    early = [("SlowBot/1.0", 10.0, 9.5), ("SlowBot/1.0", 10.0, 8.0), ("SlowBot/1.0", 10.0, 7.5)]
    assert [(row["agent"], row["interval"], row["early"]) for row in ended.rows()] == early
    assert {row["verdict"] for row in ended.rows()} == {"allow"}
    assert (ended.code, ended.err) == (1, "9 lines: 9 allow (1 implicit, 8 rule); 3 too early\n")
    assert [row["early"] for row in tolerant.rows()] == [9.5, 17.5]
    assert (disallowed.code, disallowed.out) == (1, "")
