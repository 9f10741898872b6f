"""Long work of requests: on the event loop if it is short, else in a helper process, charged to quotas."""

from collections.abc import Callable

from fastapi import Request

from app.api.caller import caller_of
from app.api.disconnect import while_connected
from app.loop.helpers import Helpers
from app.loop.work_turns import WorkTurns

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
