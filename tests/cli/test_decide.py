"""`python -m app decide`: the verdict as an exit code, without a service and without Redis."""

import json

import pytest

from app.observability.logs import printable
from tests.cli.command import run
from tests.origins import serve, text

ROBOTS = "User-agent: *\nDisallow: /private/  # not for robots\nCrawl-delay: 5\n"


@pytest.mark.parametrize(("path", "code", "verdict"), [("/private/x", 1, "disallow"), ("/x", 0, "allow")])
async def test_the_exit_code_is_the_verdict(path: str, code: int, verdict: str) -> None:
    async with serve(text(200, ROBOTS)) as origin:
        ended = await run("decide", f"{origin.url}{path}", "--agent", "ExampleBot/1.0")
    assert ended.code == code, ended.err
    assert ended.out.startswith(f"{verdict:<9} {origin.url}{path}\n")
    assert "one document every 5 s (crawl-delay, line 3)" in ended.out
    assert ("line 2: disallow: /private/" in ended.out) is (code == 1)
    assert len(origin.requests) == 1


async def test_failed_fetch_is_deferred_with_retry_at() -> None:
    async with serve(text(503)) as origin:
        ended = await run("decide", f"{origin.url}/", "--agent", "ExampleBot", "--json")
    assert ended.code == 2
    answer = json.loads(ended.out)
    assert (answer["verdict"], answer["robots"]["cause"]) == ("defer", "server_error")
    assert answer["retry_at"] is not None


async def test_private_address_is_blocked_by_default() -> None:
    async with serve(text(200)) as origin:
        ended = await run("decide", f"{origin.url}/", "--agent", "ExampleBot", settings={})
    assert (ended.code, origin.requests) == (1, [])
    assert "blocked_address" in ended.out


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("http://h/",),
        ("gopher://h/", "--agent", "A"),
        ("http://h/", "--agent", "()"),
        ("http://h/", "--agent", "A", "--at", "noon"),
        ("http://h/", "--agent", "A", "--dialect", "latin"),
        ("http://h/", "gopher://h/", "--agent", "A"),
        ("http://h/", "--agent", "A", "--fallback", "()"),
    ],
)
async def test_bad_arguments_exit_with_3_and_an_error(arguments: tuple[str, ...]) -> None:
    ended = await run("decide", *arguments)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err
    assert "Traceback" not in ended.err


async def test_bad_setting_exits_with_3_and_is_named() -> None:
    ended = await run("decide", "http://h/", "--agent", "A", settings={"FETCH_TIMEOUT": "soon"})
    assert ended.code == 3
    assert "FETCH_TIMEOUT" in ended.err


async def test_file_text_cannot_control_the_terminal() -> None:
    async with serve(text(200, b"User-agent: *\nDisallow: /[2J\xe2\x80\xae/\n")) as origin:
        ended = await run("decide", f"{origin.url}/[2J%E2%80%AE/", "--agent", "A", "--explain")
    assert ended.code == 1
    assert "\u202e" not in ended.out
    assert r"/[2J\u202e/" in ended.out
    assert printable("\x1b[2J\n\ud800é") == r"\x1b[2J\n\ud800é"


async def test_explain_lists_matching_rules_and_rates_of_the_day() -> None:
    robots = "User-agent: *\nAllow: /a\nDisallow: /\nRequest-rate: 1/20 0800-1200\n"
    async with serve(text(200, robots)) as origin:
        ended = await run("decide", f"{origin.url}/a", "--agent", "A", "--explain", "--at", "2026-11-21T12:00:00Z")
    assert "no limit, until 2026-11-22T08:00:00Z, then one document every 20 s\n" in ended.out
    assert "matched   line 2: allow: /a (2 bytes)\nmatched   line 3: disallow: / (1 bytes)\n" in ended.out
    assert "08:00-12:00 one document every 20 s (request-rate, line 4)\n12:00-24:00 no limit\n" in ended.out
