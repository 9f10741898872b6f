"""Work that runs beside a block of code and ends with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

CANCEL_AGAIN = 0.1
"""Seconds after which a task that has not ended is cancelled once more."""


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks and wait until all have ended, whatever their results.

    Cancelling once is not enough: `asyncio.wait_for`, through which the Redis client sends, drops a cancellation that
    comes at the moment its work is done (Python before 3.12), and the task goes on as if it had not been cancelled.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN)


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` while the block lasts; if it failed before that, its exception is raised at the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        await cancel_and_wait([task])
        if not task.cancelled():
            task.result()


def periodically(
    work: Callable[[], Awaitable[object]], every: float, *, ignoring: type[Exception] | tuple[type[Exception], ...] = ()
) -> AbstractAsyncContextManager[None]:
    """Call `work` every `every` seconds while the block lasts, starting with a pause; ignore errors in `ignoring`."""
    return background(_repeat(work, every, ignoring))


async def _repeat(
    work: Callable[[], Awaitable[object]], every: float, ignoring: type[Exception] | tuple[type[Exception], ...]
) -> None:
    while True:
        await asyncio.sleep(every)
        try:
            await work()
        except ignoring:
            continue
