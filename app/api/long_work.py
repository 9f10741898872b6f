"""Work that takes long: done on the event loop in slices, one request at a time, charged for, ended with its client.

Long work is an iterator over the pieces of its answer, which does a little with each step. Only the warnings about a
file, which have no steps, run in a thread: one file at a time, since a thread takes the interpreter's lock from the
event loop for 5 ms at a time.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.api.disconnect import while_connected
from app.api.middleware.auth import charge_afterwards, key_of
from app.api.problems import Problem

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
"""For a process that serves one user: the command line."""

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
    """Shares the event loop among requests with long work: each turn of the loop runs one slice of one of them."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        """`clock` counts the seconds that the event loop's thread was at work."""
        self.turn = asyncio.Lock()  # first come, first served
        self.clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="long-work")
        self._under_way: Counter[str] = Counter()

    def answer(self, work: Work, media_type: str = "application/json") -> Response:
        """The response whose body the work yields."""
        return _Answer(self, work, media_type)

    async def in_thread(self, request: Request, work: Callable[[], T]) -> T:
        """Run work that has no steps in the one thread, and charge for it; raises what it raises, and ClientDisconnect.

        Work that has begun goes on to its end, so it needs a bound of its own. Work that still waits for the thread is
        dropped when its client leaves.
        """

        def timed() -> tuple[T, float]:
            begun = self.clock()
            return work(), self.clock() - begun

        async def run() -> tuple[T, float]:
            return await asyncio.get_running_loop().run_in_executor(self._thread, timed)

        with self.place(request.scope):
            result, seconds = await while_connected(request.receive, run())
        charge_afterwards(request.scope, int(seconds / SECONDS_PER_REQUEST))
        return result

    async def about_file(self, request: Request, size: int, work: Callable[[], T]) -> T:
        """Run work about a file of `size` bytes: at once if it is small, else as `in_thread` does."""
        return work() if size <= SMALL_FILE else await self.in_thread(request, work)

    async def aclose(self) -> None:
        """End the thread."""
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
            self._under_way += Counter()  # drop callers whose count is 0


class _Answer(Response):
    """Works and sends; answers 503 where too much work is under way, and stops when the client has gone."""

    def __init__(self, shared: LongWork, work: Work, media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._shared = shared
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._shared.place(scope), suppress(ClientDisconnect):
            await while_connected(receive, self._send_all(scope, send))

    async def _send_all(self, scope: Scope, send: Send) -> None:
        slices = _Slices(self._work, self._shared.clock)
        begun = False
        more = True
        paid = SECONDS_PER_REQUEST  # by the charge of the request itself
        while more:
            async with self._shared.turn:
                body, more = slices.next()
                await asyncio.sleep(0)  # run everything else before the next slice
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
