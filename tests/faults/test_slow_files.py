"""Slow files and paths in a service with one event loop: others are answered in between.

Callers ask slow questions continuously while one requests /healthz. The bound is the number of slow answers before each
answer of /healthz, so a queue that a few callers can fill would exceed it. `tests/bench/hostile.py` measures the cost
of one question.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import pytest
from redis.asyncio import Redis

from robots_core.origin import URL_LIMIT
from tests.api.raw_client import connect, serve_app, status
from tests.api.service import Service, running
from tests.bench.adversaries import Adversary, adversaries
from tests.faults.loopback import Web, web
from tests.origins import text

CALLERS, QUESTIONS = 4, 4
"""Callers with slow questions, and questions of each."""

BETWEEN = 3 * CALLERS
"""Slow answers between two of /healthz, at most: each caller asks again at once, and may come first twice."""

SLOW = (
    "the same, and a segment that is absent",
    "both forms of a query, each a suffix of the next",
    "v2: 30 globs of sets",
    "draft1996: 16 agents of 2,048 at once, halves everywhere",
    "rfc9309: 18,000 groups",
    "as many as fit of Content-Usage:{}",
)
"""A row for each slow step: parsing, selecting, compiling, matching, terms."""


@pytest.fixture(scope="module")
def rows() -> dict[str, Adversary]:
    return {it.name: it for it in adversaries() if it.name in SLOW}


def question(row: Adversary, origin: str) -> bytes:
    agents = [("agent", name) for name in row.agents[0].split(",")]
    query = urlencode([("url", (origin + row.path)[:URL_LIMIT]), *agents, ("dialect", row.dialect), ("wait", "60")])
    return f"GET /v1/allowed?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@asynccontextmanager
async def serving(store_url: str, row: Adversary) -> AsyncIterator[tuple[Service, Web, tuple[str, int]]]:
    """A listening service, and origins with the file of this row."""
    async with (
        web(text(200, row.body)) as origins,
        running(store_url, fetch_timeout=100.0) as service,
        serve_app(service.app) as (address, _),
    ):
        yield service, origins, address


async def answered_between(
    address: tuple[str, int], questions: Callable[[int], Sequence[bytes]]
) -> tuple[list[int], list[bytes]]:
    """The number of slow answers before each one of /healthz, and in all."""
    counts, answers = [0], list[bytes]()
    asking = CALLERS

    async def ask(number: int) -> None:
        nonlocal asking
        async with connect(address) as caller:
            for each in questions(number):
                await caller.send(each)
                answers.append(await caller.answer())
                counts[-1] += 1
        asking -= 1

    async def watch() -> None:
        async with connect(address) as caller:
            while asking:
                await caller.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert status(await caller.answer()) == 200
                counts.append(0)

    await asyncio.gather(watch(), *map(ask, range(CALLERS)))
    return counts, answers


@pytest.mark.parametrize("name", SLOW)
async def test_slow_decision_yields_to_others(
    name: str, rows: dict[str, Adversary], store_url: str, store_client: Redis
) -> None:
    async with serving(store_url, rows[name]) as (_, origins, address):
        origin = origins.new()
        counts, answers = await answered_between(address, lambda _: [question(rows[name], origin)] * QUESTIONS)
    assert {status(answer) for answer in answers} == {200}
    assert len(answers) == CALLERS * QUESTIONS
    assert max(counts) <= BETWEEN


@pytest.mark.parametrize("name", SLOW)
async def test_slow_parse_yields_to_others(
    name: str, rows: dict[str, Adversary], store_url: str, store_client: Redis
) -> None:
    async with serving(store_url, rows[name]) as (_, origins, address):
        questions = [[question(rows[name], origins.new()) for _ in range(QUESTIONS)] for _ in range(CALLERS)]
        counts, answers = await answered_between(address, questions.__getitem__)
    assert {status(answer) for answer in answers} == {200}
    assert len(origins.requests) == CALLERS * QUESTIONS
    assert max(counts) <= BETWEEN
