"""Ctrl-C: the first ends the work in order, the second ends the process."""

import asyncio
import signal
from collections.abc import Awaitable


async def until_interrupted(working: Awaitable[None]) -> bool:
    """Await the work, or end it at Ctrl-C; return whether it was interrupted. A second Ctrl-C ends the process."""
    task = asyncio.ensure_future(working)
    loop = asyncio.get_running_loop()
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        signal.signal(signal.SIGINT, before)
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        await task
    except asyncio.CancelledError:
        if not interrupted:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    return interrupted
