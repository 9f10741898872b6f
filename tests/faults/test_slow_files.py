"""Files and paths made to be slow, asked of a service with one event loop: others are answered in between.

Callers ask slow questions without a pause while one asks for /healthz. The bound counts answers: how many slow ones
come before /healthz has its own. A queue that a few callers can fill shows in it; what one question costs is measured
by `tests/bench/budget.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import pytest
from redis.asyncio import Redis

from app.origin import URL_LIMIT
from tests.api.listening import calling, listening, status
from tests.api.service import Service, running
from tests.bench.adversaries import Adversary, adversaries
from tests.faults.loopback import Web, web
from tests.origins import text

CALLERS, QUESTIONS = 4, 4
"""Callers who ask slow questions, and how many each of them asks."""

BETWEEN = 3 * CALLERS
"""So many slow answers may come between two of /healthz: callers ask again at once, and each may be before it twice."""

SLOW = (
    "the same, and a segment that is absent",
    "both forms of a query, each a suffix of the next",
    "v2: 30 globs of sets",
    "draft1996: 16 agents of 2,048 at once, halves everywhere",
    "rfc9309: 18,000 groups",
    "as many as fit of Content-Usage:{}",
)
"""A row for each step that may be slow: reading, selecting, compiling, matching, terms."""


@pytest.fixture(scope="module")
def rows() -> dict[str, Adversary]:
    return {it.name: it for it in adversaries() if it.name in SLOW}


def question(row: Adversary, origin: str) -> bytes:
    agents = [("agent", name) for name in row.agents[0].split(",")]
    query = urlencode([("url", (origin + row.path)[:URL_LIMIT]), *agents, ("dialect", row.dialect), ("wait", "60")])
    return f"GET /v1/allowed?{query} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


@asynccontextmanager
async def serving(store_url: str, row: Adversary) -> AsyncIterator[tuple[Service, Web, tuple[str, int]]]:
    """A service that listens, and origins that all have the file of this row."""
    async with (
        web(text(200, row.body)) as origins,
        running(store_url, fetch_timeout=100.0) as service,
        listening(service.app) as (address, _),
    ):
        yield service, origins, address


async def answered_between(
    address: tuple[str, int], questions: Callable[[int], Sequence[bytes]]
) -> tuple[list[int], list[bytes]]:
    """How many slow answers came before each one of /healthz, and all of them."""
    counts, answers = [0], list[bytes]()
    asking = CALLERS

    async def ask(number: int) -> None:
        nonlocal asking
        async with calling(address) as caller:
            for each in questions(number):
                await caller.send(each)
                answers.append(await caller.answer())
                counts[-1] += 1
        asking -= 1

    async def watch() -> None:
        async with calling(address) as caller:
            while asking:
                await caller.send(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
                assert status(await caller.answer()) == 200
                counts.append(0)

    await asyncio.gather(watch(), *map(ask, range(CALLERS)))
    return counts, answers


@pytest.mark.parametrize("name", SLOW)
async def test_a_slow_decision_lets_others_in_between(
    name: str, rows: dict[str, Adversary], store_url: str, store_client: Redis
) -> None:
    async with serving(store_url, rows[name]) as (_, origins, address):
        origin = origins.new()
        counts, answers = await answered_between(address, lambda _: [question(rows[name], origin)] * QUESTIONS)
    assert {status(answer) for answer in answers} == {200}
    assert len(answers) == CALLERS * QUESTIONS
    assert max(counts) <= BETWEEN


@pytest.mark.parametrize("name", SLOW)
async def test_a_slow_first_read_lets_others_in_between(
    name: str, rows: dict[str, Adversary], store_url: str, store_client: Redis
) -> None:
    async with serving(store_url, rows[name]) as (_, origins, address):
        asked = [[question(rows[name], origins.new()) for _ in range(QUESTIONS)] for _ in range(CALLERS)]
        counts, answers = await answered_between(address, asked.__getitem__)
    assert {status(answer) for answer in answers} == {200}
    assert len(origins.asked) == CALLERS * QUESTIONS
    assert max(counts) <= BETWEEN
