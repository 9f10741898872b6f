"""Work that takes long: done on the event loop in slices, one request at a time, charged for, ended with its client.

Long work is an iterator over the pieces of its answer, which does a little with each step. No thread runs it if that
can be helped: the core holds the interpreter's lock, and a thread that has it keeps the event loop from its work.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.api.auth import charge_afterwards, key_of
from app.api.problems import Problem
from app.store.ending import end

SLICE = 0.005
"""Seconds of work in one turn of the event loop; one step may take longer, as reading a file made to be slow does."""

SECONDS = 5.0
"""Seconds of the processor that one request may take; it then ends with what it has."""

SECONDS_PER_REQUEST = 0.1
"""What one request of a quota pays for; work that takes more is charged as more of them."""

ROOM = 16 * 1024 * 1024
"""Bytes of answer that one request may have."""

AT_ONCE, AT_ONCE_PER_CALLER = 32, 8
"""Requests with long work under way, in all and of one API key or address; one more is told 503."""

PIECE = 64 * 1024
"""Characters of answer that are sent at once."""


@dataclass(slots=True)
class Allowance:
    """What is left for one request: seconds of work, and bytes of answer, which the work itself takes off."""

    seconds: float = SECONDS
    room: int = ROOM

    def is_spent(self) -> bool:
        """Whether the work has to come to its end."""
        return self.seconds <= 0 or self.room <= 0


UNLIMITED = Allowance(inf, 2**63)
"""For who works for nobody else."""

SMALL_FILE = 8 * 1024
"""Bytes of the largest file that is small: nearly all robots.txt files are, and none keeps the loop for long."""

T = TypeVar("T")

Work = Callable[[Allowance], Iterator[str]]
"""Yields an answer piece by piece; an empty piece is a step that has brought nothing yet.

It raises Problem before its first piece that is not empty, and never after it.
"""


def separated(texts: Iterable[str]) -> Iterator[str]:
    """The texts with commas between them."""
    comma = ""
    for text in texts:
        yield comma + text
        comma = ","


class LongWork:
    """The turns of all requests with long work: one of them works in each turn of the event loop, for one slice."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        """`clock` counts the seconds that the event loop's thread was at work."""
        self.turn = asyncio.Lock()  # whoever waits longest has the next turn
        self.clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="long-work")
        self._under_way: Counter[str] = Counter()

    def answer(self, work: Work, media_type: str = "application/json") -> Response:
        """The response whose body the work yields."""
        return _Answer(self, work, media_type)

    async def in_thread(self, request: Request, work: Callable[[], T]) -> T:
        """What work comes to that cannot be cut into steps; raises what it raises, and ClientDisconnect.

        One such thread works at a time. Work that has begun goes on to its end, so it needs a bound of its own; work
        that is still waiting for the thread is dropped when its client leaves.
        """

        def timed() -> tuple[T, float]:
            begun = self.clock()
            return work(), self.clock() - begun

        with self.place(request.scope):
            working = asyncio.get_running_loop().run_in_executor(self._thread, timed)
            leaving = asyncio.create_task(_disconnected(request.receive))
            either: set[asyncio.Future[Any]] = {working, leaving}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end([leaving])
            if not working.done():
                working.cancel()
                raise ClientDisconnect
        result, seconds = working.result()
        charge_afterwards(request.scope, int(seconds / SECONDS_PER_REQUEST))
        return result

    async def about_file(self, request: Request, size: int, work: Callable[[], T]) -> T:
        """What work about a file of so many bytes comes to: at once for a small one, else as `in_thread`."""
        return work() if size <= SMALL_FILE else await self.in_thread(request, work)

    async def aclose(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def place(self, scope: Scope) -> Iterator[None]:
        """Hold one of the places for requests with long work; raises Problem (503) where none is free."""
        key = key_of(scope)
        caller = key.id if key is not None else scope["client"][0] if scope.get("client") else ""
        if self._under_way.total() >= AT_ONCE or self._under_way[caller] >= AT_ONCE_PER_CALLER:
            detail = "Too many requests that take long are under way; ask again in 1 s."
            raise Problem(503, "overloaded", detail, {"Retry-After": "1"})
        self._under_way[caller] += 1
        try:
            yield
        finally:
            self._under_way[caller] -= 1
            self._under_way += Counter()  # without those who have none left


class _Answer(Response):
    """Works and sends; answers 503 where too much work is under way, and stops when the client has gone."""

    def __init__(self, shared: LongWork, work: Work, media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._shared = shared
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._shared.place(scope):
            working = asyncio.create_task(self._send_all(scope, send))
            leaving = asyncio.create_task(_disconnected(receive))
            try:
                await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end([working, leaving])
            if not working.cancelled():
                working.result()

    async def _send_all(self, scope: Scope, send: Send) -> None:
        slices = _Slices(self._work, self._shared.clock)
        begun = False
        more = True
        paid = SECONDS_PER_REQUEST  # by the charge of the request itself
        while more:
            async with self._shared.turn:
                body, more = slices.next()
                await asyncio.sleep(0)  # everything else first, then who waits for its slice
            while slices.used > paid:
                charge_afterwards(scope, 1)
                paid += SECONDS_PER_REQUEST
            if not begun and (body or not more):
                begun = True
                await send(self._start(None if more else len(body)))
            if body or not more:
                await send({"type": "http.response.body", "body": body, "more_body": more})

    def _start(self, length: int | None) -> Message:
        if length is not None:
            self.headers["content-length"] = str(length)
        return {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}


@dataclass(slots=True)
class _Slices:
    """The work, cut."""

    work: Work
    clock: Callable[[], float]
    used: float = 0.0
    allowance: Allowance = field(default_factory=Allowance)
    steps: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = self.work(self.allowance)

    def next(self) -> tuple[bytes, bool]:
        """Work for a slice: what it brought, and whether there is more."""
        pieces: list[str] = []
        size = 0
        begun = now = self.clock()
        for piece in self.steps:
            pieces.append(piece)
            size += len(piece)
            before, now = now, self.clock()
            self.allowance.seconds -= now - before
            if now - begun > SLICE or size > PIECE:
                more = True
                break
        else:
            more = False
        self.used += self.clock() - begun
        return "".join(pieces).encode(), more


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
