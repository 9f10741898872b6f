"""Polling, for conditions without an event to wait for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which a wait fails, even on a busy machine."""


async def until(question: Callable[[], Awaitable[T]], enough: Callable[[T], bool]) -> T:
    """Repeat the question until the answer is good enough, and return it."""
    async with asyncio.timeout(PATIENCE):
        while not enough(answer := await question()):  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.02)
    return answer


async def until_so(condition: Callable[[], bool]) -> None:
    """Poll until the condition holds."""

    async def look() -> bool:
        return condition()

    await until(look, bool)
