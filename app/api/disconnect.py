"""Cancel the work for a request when its client disconnects."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from app.loop.background import cancel_and_wait

T = TypeVar("T")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run the work; cancel it and raise ClientDisconnect if the client leaves. The body must have been received."""
    working = asyncio.create_task(work)
    tasks: list[asyncio.Task[Any]] = [working]
    try:
        await asyncio.sleep(0)  # work that waits for nothing is done now, and needs no watching
        if not working.done():
            tasks.append(asyncio.create_task(_disconnected(receive)))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ClientDisconnect
    finally:
        await cancel_and_wait(tasks)
    try:
        return working.result()
    finally:
        del working, tasks  # or this frame is in a cycle with an exception, which refers to it


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
