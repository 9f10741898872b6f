"""Slots for short work that is for requests: those that wait take turns, however much work each has."""

import asyncio
from collections import OrderedDict, deque

from app.loop.request import REQUEST_ID


class RequestShares:
    """Admits `limit` pieces of work at once.

    A piece for one request waits for one piece of each other request. Work for no request counts as that of one.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._lines: OrderedDict[str | None, deque[asyncio.Future[None]]] = OrderedDict()  # by request, the next first

    async def __aenter__(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(REQUEST_ID.get(), deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was admitted before it was cancelled
                self._admit_next()
            raise

    async def __aexit__(self, *_exception: object) -> None:
        self._admit_next()

    def _admit_next(self) -> None:
        while self._lines:
            request, line = self._lines.popitem(last=False)
            turn = line.popleft()
            if line:
                self._lines[request] = line  # behind the others
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._free += 1
