"""Tasks told to end, until they have."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

AGAIN = 0.1
"""Seconds after which a task that has not ended is told once more."""


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks, and come back when all have ended, whatever they end with.

    Once is not enough: `asyncio.wait_for`, through which the Redis client sends, drops a cancellation that comes at
    the moment its work is done (Python before 3.12), and the task then goes on as if nothing had been said.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN)


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do this work while the block lasts; raises, at its end, what ended the work before its time."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await cancel_and_wait([task])
        if not task.cancelled():
            task.result()
