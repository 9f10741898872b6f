"""Waiting for what has to come, and comes with no event that a test could wait for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which it has not come, on a machine however busy."""


async def until(question: Callable[[], Awaitable[T]], enough: Callable[[T], bool]) -> T:
    """Ask again and again until the answer will do, and give that."""
    async with asyncio.timeout(PATIENCE):
        while not enough(answer := await question()):  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.02)
    return answer


async def until_so(condition: Callable[[], bool]) -> None:
    """Look again and again until it is so."""

    async def look() -> bool:
        return condition()

    await until(look, bool)
