"""Long work of requests: on the event loop if it is short, else in a helper process, until the client leaves."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from app.api.caller import caller_of
from app.loop.background import cancel_and_wait
from app.loop.helpers import Helpers
from app.loop.work_turns import WorkTurns

T = TypeVar("T")

SMALL_FILE = 8 * 1024
"""Bytes of the largest file whose work runs on the event loop; nearly all robots.txt files are smaller."""


class LongWork:
    """Runs the long work of requests."""

    def __init__(self, turns: WorkTurns, helpers: Helpers) -> None:
        self._turns = turns
        self._helpers = helpers

    def prepare(self, work: Callable[[], bytes]) -> None:
        """See `Helpers.prepare`."""
        self._helpers.prepare(work)

    async def run(self, request: Request, size: int, work: Callable[..., bytes], *arguments: object) -> bytes:
        """The result of `work` about `size` bytes: on the event loop if they are few, else by a helper process.

        As `Helpers.run`, which it may call. Raises ClientDisconnect, too.
        """
        if size <= SMALL_FILE:
            await self._turns.first()
            return work(*arguments)
        caller = caller_of(request.scope)
        done = self._helpers.run(caller.id, work, *arguments, spent=caller.spent)
        return await while_connected(request.receive, done)


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run the work; cancel it and raise ClientDisconnect if the client leaves. The body must have been received."""
    working = asyncio.create_task(work)
    tasks: list[asyncio.Task[Any]] = [working]
    try:
        for _ in range(2):  # work that waits for nothing but its first turn is done then, and needs no watching
            await asyncio.sleep(0)
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
