"""Stream questions and answers as lines of JSON (application/x-ndjson), without a limit to their number.

The request is read while its answers are sent. Questions may be ahead of the answers that the client has read by at
most WINDOW, and by WINDOW_BYTES; beyond that, the service stops reading. A client that sends all its questions before
it reads an answer must stay within that window, or both sides wait for each other.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import datetime

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.agents.directory import AgentDirectory
from app.api.batch_items import NO_POLICY, ItemResult, after_waiting, answer_to, encode_item, question_of
from app.api.encoding import AnswerEncoder
from app.api.json_bodies import read_json
from app.api.middleware.auth import wait_and_charge
from app.api.problems import Problem
from app.background import cancel_and_wait
from app.decide import Decider
from app.error_values import as_value
from app.evaluate import Question
from app.origin import Origin
from app.purposes.policy import PurposePolicy
from app.yield_budget import YieldBudget

LINES = "application/x-ndjson"

WINDOW, WINDOW_BYTES = 1000, 4 * 1024 * 1024
"""Questions that are read ahead of the answers the client has read, and their bytes: as in the largest batch."""

LINE_LIMIT = 128 * 1024
"""Bytes of the longest line: the longest URL and agents, with every character escaped."""

PIECE = 64 * 1024
"""Bytes of answers to send in one piece."""

_LINE_TOO_LONG = f"The line is longer than {LINE_LIMIT} bytes and was skipped."


class Lines:
    """Splits bytes into lines. A line longer than LINE_LIMIT is skipped, and None stands for it."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skips = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that `data` completes, in order; None for each that is too long."""
        first, *others = data.split(b"\n")
        if not others:
            self._extend(first)
            return
        yield self._end(first)
        for line in others[:-1]:
            yield line if len(line) <= LINE_LIMIT else None
        self._extend(others[-1])

    def last(self) -> bytes | None:
        """The line after the last line break."""
        return self._end(b"")

    def _extend(self, data: bytes) -> None:
        self._skips = self._skips or len(self._rest) + len(data) > LINE_LIMIT
        if self._skips:
            self._rest.clear()
        else:
            self._rest += data

    def _end(self, data: bytes) -> bytes | None:
        self._extend(data)
        line = None if self._skips else bytes(self._rest)
        self._rest.clear()
        self._skips = False
        return line


class AnswerWindow:
    """The results of the lines, and the tasks that will have them, in order. `put` waits while it is full."""

    def __init__(self) -> None:
        self._entries: asyncio.Queue[tuple[ItemResult | asyncio.Task[ItemResult] | None, int]] = asyncio.Queue()
        self._bytes = 0
        self._room = asyncio.Event()

    async def put(self, entry: ItemResult | asyncio.Task[ItemResult] | None, size: int) -> None:
        """Add the result of a line of `size` bytes, or None for the end; then wait while the window is full."""
        self._entries.put_nowait((entry, size))
        self._bytes += size
        while self._entries.qsize() >= WINDOW or self._bytes >= WINDOW_BYTES:
            self._room.clear()
            await self._room.wait()

    def empty(self) -> bool:
        """Whether it is empty."""
        return self._entries.empty()

    async def get(self) -> ItemResult | asyncio.Task[ItemResult] | None:
        """Remove the next result; wait for one if there is none."""
        entry, size = await self._entries.get()
        self._bytes -= size
        self._room.set()
        return entry


class AnswerLines(Response):
    """Answers each line of a request's body with a line, in order; blank lines are ignored."""

    media_type = LINES

    def __init__(
        self,
        decider: Decider,
        encoder: AnswerEncoder,
        agents: Callable[[], AgentDirectory],
        now: Callable[[], datetime],
        policy: PurposePolicy = NO_POLICY,
    ) -> None:
        """`agents` gives the crawlers that are known now, which may change while the stream lasts. `now` is a clock."""
        self.status_code = 200
        self.background = None
        self.init_headers()
        self._decider = decider
        self._encoder = encoder
        self._agents = agents
        self._now = now
        self._policy = policy
        self._window = AnswerWindow()
        self._latest: dict[Origin, asyncio.Task[ItemResult]] = {}
        self._tasks: set[asyncio.Task[ItemResult]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run until every line is answered, or the client disconnects."""
        reading = asyncio.create_task(self._read(scope, receive))
        writing = asyncio.create_task(self._write(send))
        try:
            # Reading ends only when the client disconnects; then nothing reads the remaining answers.
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait([reading, writing, *self._tasks])
        for task in (reading, writing):
            if not task.cancelled():
                task.result()

    async def _read(self, scope: Scope, receive: Receive) -> None:
        lines = Lines()
        number = 0
        budget = YieldBudget()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            more = message.get("more_body", False)
            data = message.get("body", b"")
            for line in lines.feed(data):
                number += 1
                if number > 1:  # the request itself pays for the first
                    await wait_and_charge(scope, 1)
                await self._take(line, number)
                if budget.is_over():
                    await budget.next()
        await self._take(lines.last(), number + 1)
        await self._window.put(None, 0)
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _take(self, line: bytes | None, number: int) -> None:
        """Put the result of a line into the window."""
        if line is not None and not line.strip():
            return
        try:
            if line is None:
                raise Problem(413, "too-large", _LINE_TOO_LONG)
            question = question_of(read_json(line, "The line"), self._agents(), self._now, caller=self._policy)
        except Problem as problem:
            problem.extra["line"] = number
            await self._window.put(as_value(problem), 0)
            return
        before = self._latest.get(question.origin)
        answer = None if before else self._decider.decide_if_cached(question)
        if answer is not None:
            self._decider.count((answer,))
        await self._window.put(answer or self._start(question, before), len(line or b""))

    def _start(self, question: Question, before: asyncio.Task[ItemResult] | None) -> asyncio.Task[ItemResult]:
        """Start to decide a question whose file is not in memory, after the one `before` it about the same origin."""
        origin = question.origin
        task = asyncio.create_task(self._answer(question, before, time.monotonic()))
        self._latest[origin] = task
        self._tasks.add(task)

        def done(task: asyncio.Task[ItemResult]) -> None:
            self._tasks.discard(task)
            if self._latest.get(origin) is task:
                del self._latest[origin]

        task.add_done_callback(done)
        return task

    async def _answer(self, question: Question, before: asyncio.Task[ItemResult] | None, begun: float) -> ItemResult:
        if before is not None:
            await asyncio.wait([before])
        return await answer_to(self._decider, after_waiting(question, begun))

    async def _write(self, send: Send) -> None:
        parts: list[bytes] = []
        size = 0
        budget = YieldBudget()

        async def flush() -> None:
            nonlocal parts, size
            body = b"".join(parts)
            parts, size = [], 0
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": True})

        await self._send_start(send)
        while True:
            if size > PIECE or self._window.empty():
                await flush()
            entry = await self._window.get()
            if entry is None:
                break
            if isinstance(entry, asyncio.Task):
                if not entry.done():
                    await flush()
                    await asyncio.wait([entry])
                entry = entry.result()
            line = encode_item(entry, self._encoder)
            parts += (line, b"\n")
            size += len(line)
            if budget.is_over():
                await budget.next()
        await flush()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
