"""Questions are answered by a task for each origin, which lets other work run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

import pytest

from app.decisions.answer_all import OriginTasks
from app.loop import work_turns
from app.loop.work_turns import WorkTurns, YieldBudget
from robots_core.origin import Origin


class Asked(NamedTuple):
    origin: Origin
    page: int
    as_of: datetime | None = None
    max_age: float | None = None
    wait: float = 0.0


@asynccontextmanager
async def _no_past(_origin: Origin) -> AsyncIterator[Callable[[Asked], Awaitable[int]]]:
    raise AssertionError("no question is about the past")
    yield


async def test_only_further_questions_of_an_origin_wait_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_turns, "BUDGET", -1.0)  # it is always over
    turns = WorkTurns()
    answered: list[int | Exception] = []

    async def answer(question: Asked) -> int:
        return question.page

    tasks = OriginTasks(answer, _no_past, lambda _, page: answered.append(page), YieldBudget(turns))
    async with turns.turn():  # of other work
        for number in range(100):
            origin = Origin("http", f"h{number % 50}.example", 80)
            tasks.ask(number, Asked(origin, number // 50), 0.0)
        for _ in range(5):
            await asyncio.sleep(0)
        assert answered == [0] * 50
    await tasks.wait()
    assert answered == [0] * 50 + [1] * 50
