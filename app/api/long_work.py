"""Long work on the event loop: in slices, one request at a time, charged to quotas, cancelled with its client.

Long work is an iterator over the pieces of its answer that does a little work in each step. Work without steps runs in
one thread: threads hold the interpreter's lock for 5 ms at a time, and with more of them the event loop would starve.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.api.admission import Admission
from app.api.disconnect import while_connected
from app.api.middleware.auth import caller_of, charge_on_credit
from app.helper.helpers import Helpers
from app.work_turns import WorkTurns

SLICE = 0.005
"""Seconds of work before the event loop runs other tasks; a single step may take longer."""

SECONDS = 5.0
"""CPU seconds that one request may take; then the answer ends with what it has."""

SECONDS_PER_REQUEST = 0.1
"""CPU seconds that one request of a quota pays for; longer work is charged as several requests."""

ROOM = 16 * 1024 * 1024
"""Bytes of the longest answer."""

AT_ONCE, AT_ONCE_PER_CALLER = 32, 8
"""Requests with long work at the same time, in all and per API key or address; further ones are answered 503."""

PIECE = 64 * 1024
"""Characters of an answer to send in one piece."""


@dataclass(slots=True)
class Allowance:
    """The remaining budget of a request: CPU seconds, and bytes of answer, which the work itself subtracts."""

    seconds: float = SECONDS
    room: int = ROOM

    def is_spent(self) -> bool:
        """Whether the work has to stop."""
        return self.seconds <= 0 or self.room <= 0

    def spend(self, size: int) -> bool:
        """Subtract bytes of answer; whether the work has to stop then."""
        self.room -= size
        return self.is_spent()


UNLIMITED = Allowance(inf, 2**63)
"""For the command line, which serves one user."""

SMALL_FILE = 8 * 1024
"""Bytes of the largest file whose work runs on the event loop; nearly all robots.txt files are smaller."""

T = TypeVar("T")

Work = Callable[[Allowance], Iterator[str]]
"""Yields an answer piece by piece; an empty piece ends a step without output.

It may raise Problem before its first non-empty piece, but not after it.
"""


def separated(texts: Iterable[str]) -> Iterator[str]:
    """The texts with commas between them."""
    comma = ""
    for text in texts:
        yield comma + text
        comma = ","


class LongWork:
    """Runs the long work of requests: in turns of the event loop, or in the thread."""

    def __init__(
        self,
        turns: WorkTurns,
        helpers: Helpers,
        clock: Callable[[], float] = time.thread_time,
        *,
        refused: Callable[[str], None] = lambda _reason: None,
    ) -> None:
        """`clock` gives the CPU seconds of the event loop's thread.

        `refused` is called with "long_work" for each request that is refused because there are too many.
        """
        self.turns = turns
        self._helpers = helpers
        self.clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="long-work")
        self.admission = Admission(
            AT_ONCE, AT_ONCE_PER_CALLER, "Too many long requests are running", 1, refused=lambda: refused("long_work")
        )

    def answer(self, work: Work, media_type: str = "application/json") -> Response:
        """The response whose body the work yields."""
        return _Answer(self, work, media_type)

    async def in_thread(self, request: Request, work: Callable[[], T]) -> T:
        """Run work without steps in the thread and charge for it. Raises what it raises, and ClientDisconnect.

        Work that has started cannot be cancelled, so it needs a bound of its own. Work that waits for the thread is
        dropped when its client leaves.
        """

        def timed() -> tuple[T, float]:
            begun = self.clock()
            return work(), self.clock() - begun

        async def run() -> tuple[T, float]:
            return await asyncio.get_running_loop().run_in_executor(self._thread, timed)

        with self.admission.admit(request.scope):
            result, seconds = await while_connected(request.receive, run())
        charge_on_credit(request.scope, int(seconds / SECONDS_PER_REQUEST))
        return result

    async def about_file(self, request: Request, size: int, work: Callable[[], T]) -> T:
        """Run work on a file of `size` bytes: on the event loop if the file is small, else in the thread.

        Raises Busy if the event loop has too much to do.
        """
        if size > SMALL_FILE:
            return await self.in_thread(request, work)
        await self.turns.first()
        return work()

    async def run(self, request: Request, size: int, work: Callable[..., bytes], *arguments: object) -> bytes:
        """The result of `work` about `size` bytes: on the event loop if they are few, else by a helper process.

        As `Helpers.run`, which it may call. Raises Problem and ClientDisconnect, too.
        """
        if size <= SMALL_FILE:
            await self.turns.first()
            return work(*arguments)
        scope = request.scope

        def charge(seconds: float) -> None:
            charge_on_credit(scope, int(seconds / SECONDS_PER_REQUEST))

        with self.admission.admit(scope):
            done = self._helpers.run(caller_of(scope), work, *arguments, spent=charge)
            return await while_connected(request.receive, done)

    async def aclose(self) -> None:
        """Stop the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class _Answer(Response):
    """Sends the work's pieces as they come; 503 if too much work is running, cancelled when the client leaves."""

    def __init__(self, shared: LongWork, work: Work, media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._shared = shared
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._shared.admission.admit(scope), suppress(ClientDisconnect):
            await while_connected(receive, self._send_all(scope, send))

    async def _send_all(self, scope: Scope, send: Send) -> None:
        slices = _Slices(self._work, self._shared.clock)
        begun = False
        more = True
        paid = SECONDS_PER_REQUEST  # the request itself has been charged
        while more:
            async with self._shared.turns.turn():
                body, more = slices.next()
            while slices.used > paid:
                charge_on_credit(scope, 1)
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
    """The work of one request, in slices."""

    work: Work
    clock: Callable[[], float]
    used: float = 0.0
    allowance: Allowance = field(default_factory=Allowance)
    steps: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = self.work(self.allowance)

    def next(self) -> tuple[bytes, bool]:
        """Run one slice: its output, and whether more follows."""
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
