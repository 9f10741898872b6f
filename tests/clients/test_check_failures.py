"""`robots-decisions check` while the service is busy, down or strange."""

import json
from collections import Counter
from pathlib import Path

import pytest
from robots_decisions.cli.batches import BATCH_LINES

from tests.clients.commands import ALLOW, DISALLOW, LINES, answering, asked_in, busy, log, numbered, run
from tests.origins import Exchange, serve, text

AGENT = ("--agent", "ExampleBot")
PENDING = {"verdict": "defer", "allowed": False, "reason": "pending"}


@pytest.mark.parametrize("first", [busy(), busy(0.6), PENDING])
async def test_only_lines_without_an_answer_are_asked_again(first: dict[str, object]) -> None:
    asked: Counter[int] = Counter()

    def answer(number: int) -> dict[str, object]:
        asked[number] += 1
        return first if number in {2, 3} and asked[number] < number else DISALLOW

    async with serve(answering(answer)) as server:
        ended = await run("check", "-", *AGENT, "--server", server.url, given=numbered(4))
    assert (ended.code, ended.err) == (1, "4 lines: 4 disallow (4 rule)\n")
    assert asked == {1: 1, 2: 2, 3: 3, 4: 1}
    assert sorted(row["line"] for row in ended.rows()) == [1, 2, 3, 4]


async def test_service_that_stays_busy_ends_the_command_after_the_lines_before(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    handler = answering(lambda number: DISALLOW if number <= BATCH_LINES else busy())
    async with serve(handler) as server:
        arguments = ("check", "-", "--log", "--server", server.url, "--state", state)
        ended = await run(*arguments, given=log(3 * BATCH_LINES))
    assert ended.code == 3
    assert [row["line"] for row in ended.rows()] == list(range(1, BATCH_LINES + 1))
    assert ended.err.splitlines() == [
        f"{BATCH_LINES} lines: {BATCH_LINES} disallow ({BATCH_LINES} rule)",
        f"Not finished. Run the same command with --state {state} to resume.",
        "robots-decisions: The service stays busy.",
    ]


async def test_page_whose_file_stays_pending_is_deferred() -> None:
    async with serve(answering(lambda _: PENDING)) as server:
        ended = await run("check", "-", *AGENT, "--server", server.url, given=numbered(1))
        origins = await run("check", "-", "--origins-only", "--server", server.url, given=numbered(1))
    assert (ended.code, ended.err) == (2, "1 line: 1 defer (1 pending)\n")
    assert (origins.code, origins.err) == (3, "1 origin: 1 unanswered\n")


async def test_page_waits_for_its_site_no_longer_than_said(tmp_path: Path) -> None:
    asked: list[float | None] = []

    async def handle(exchange: Exchange) -> None:
        items = await asked_in(exchange)
        asked.extend(item["wait"] for item in items)
        answers = [PENDING if item["url"].endswith("/2") else DISALLOW for item in items]
        await exchange.send(text(200, "".join(json.dumps(answer) + "\n" for answer in answers), LINES))

    listed, state = tmp_path / "list", tmp_path / "state"
    listed.write_text("http://one/1\nhttp://two/2\n")
    arguments = ("check", str(listed), *AGENT, "--state", str(state), "--output", str(tmp_path / "out"))
    async with serve(handle) as server:
        ended = await run(*arguments, "--server", server.url, "--wait", "0.5")
        longer = await run(*arguments, "--server", server.url, "--wait", "5")
        origins = await run("check", str(listed), "--origins-only", "--server", server.url, "--wait", "0")
        never = await run("check", "-", *AGENT, "--wait", "never")
        past = await run("check", "-", "--log", "--wait", "1")
    assert (ended.code, ended.err) == (1, "2 lines: 1 defer (1 pending), 1 disallow (1 rule)\n")
    assert (longer.code, longer.err) == (ended.code, ended.err)
    assert asked == [0, 0, 0.5, 0, 0, 0]
    assert (origins.code, origins.err) == (3, "2 origins: 2 unanswered\n")
    assert (never.code, "is not a number of seconds" in never.err) == (3, True)
    assert (past.code, "--wait is for lists" in past.err) == (3, True)


async def test_service_that_is_down_is_named() -> None:
    arguments = ("check", "-", "--log", "--server", "http://127.0.0.1:1")
    ended, empty = await run(*arguments, given=log(3)), await run(*arguments)
    assert (ended.code, ended.out) == (3, "")
    assert "cannot be reached" in ended.err
    assert (empty.code, empty.err) == (0, "0 lines\n")


async def test_service_that_restarts_or_is_busy_is_asked_again_for_what_is_left() -> None:
    lines = "".join(json.dumps(ALLOW) + "\n" for _ in range(3))
    whole = text(200, lines, LINES)
    busy_now = text(503, "{}", {"Content-Type": "application/problem+json", "Retry-After": "0"})

    async def reset(exchange: Exchange) -> None:
        exchange.reset()

    async def half(exchange: Exchange) -> None:
        head, _, body = whole.partition(b"\r\n\r\n")
        await exchange.send(head + b"\r\n\r\n" + body[: 2 * len(body) // 3 + 5])

    rest = text(200, json.dumps(ALLOW) + "\n", LINES)
    async with serve(busy_now, half, reset, busy_now, rest) as server:
        ended = await run("check", "-", "--log", "--server", server.url, "--all", given=log(3))
    assert (ended.code, ended.err) == (0, "3 lines: 3 allow (3 no_match)\n")
    assert [row["line"] for row in ended.rows()] == [1, 2, 3]
    assert len(server.requests) == 5


@pytest.mark.parametrize("status", [401, 403])
async def test_rejected_key_ends_the_command(status: int) -> None:
    refusal = text(status, '{"detail": "Unknown API key."}', {"Content-Type": "application/problem+json"})
    async with serve(answering(lambda _: ALLOW, lambda _: refusal)) as server:
        ended = await run("check", "-", "--log", "--server", server.url, given=log(200), ROBOTS_API_KEY="abc")
        malformed = await run("check", "-", "--log", "--server", server.url, given=log(1), ROBOTS_API_KEY="a b")
    assert (ended.code, malformed.code) == (3, 3)
    assert f" {status}" in ended.err
    assert ended.err.endswith("Set ROBOTS_API_KEY to an API key of the service.\n")
    assert b"\r\nauthorization: bearer abc\r\n" in server.requests[0].lower()
    assert "Traceback" not in ended.err + malformed.err


@pytest.mark.parametrize("body", ["[]\n", '{"verdict": 5}\n', '{"verdict": "allow"}\n'])
async def test_answer_of_another_service_is_an_error(body: str) -> None:
    async with serve(answering(lambda _: ALLOW, lambda _: text(200, body, LINES))) as server:
        ended = await run("check", "-", *AGENT, "--server", server.url, given=numbered(1))
    assert (ended.code, ended.out) == (3, "")
    assert "Traceback" not in ended.err
