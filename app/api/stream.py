"""Questions and answers as lines of JSON (application/x-ndjson), as many as there are, as fast as they are read.

A request is read while its answers are sent. At most WINDOW questions, of WINDOW_OCTETS, are ahead of the answers that
the client has taken: when it does not read, nothing more is read from it, and TCP tells it so. A client that reads no
answer before it has sent every question must not have more of them than that, or both wait for each other.
"""

import asyncio
import time
from collections.abc import Iterator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.batch_items import Found, after_waiting, answer_to, encode_item, question_of
from app.api.encoding import AnswerEncoder
from app.api.json_bodies import read_json
from app.api.middleware.auth import wait_and_charge
from app.api.problems import Problem
from app.background import cancel_and_wait
from app.decide import Decider
from app.evaluate import Question
from app.origin import Origin
from app.yield_budget import YieldBudget

LINES = "application/x-ndjson"

WINDOW, WINDOW_OCTETS = 1000, 4 * 1024 * 1024
"""How far questions are read ahead of the answers that were taken: as much as a batch of one JSON object may hold."""

LINE_LIMIT = 128 * 1024
"""Octets of the longest line: the longest URL and agents, with every character escaped."""

ORIGINS_AT_ONCE = 64
"""So many origins that have to be asked, or looked up, a stream asks at once."""

PIECE = 64 * 1024
"""Bytes of answers that are sent at once, where they are ready."""

_LONG = f"The line is longer than {LINE_LIMIT} octets, and was not read."


class Lines:
    """Octets in, whole lines out; of one that is too long only that it was there, however long it goes on."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skips = False

    def feed(self, octets: bytes) -> Iterator[bytes | None]:
        """The lines that these octets end, in order; None for one longer than LINE_LIMIT."""
        first, *others = octets.split(b"\n")
        if not others:
            self._extend(first)
            return
        yield self._end(first)
        for line in others[:-1]:
            yield line if len(line) <= LINE_LIMIT else None
        self._extend(others[-1])

    def last(self) -> bytes | None:
        """What stands after the last line break."""
        return self._end(b"")

    def _extend(self, octets: bytes) -> None:
        self._skips = self._skips or len(self._rest) + len(octets) > LINE_LIMIT
        if self._skips:
            self._rest.clear()
        else:
            self._rest += octets

    def _end(self, octets: bytes) -> bytes | None:
        self._extend(octets)
        line = None if self._skips else bytes(self._rest)
        self._rest.clear()
        self._skips = False
        return line


class Window:
    """What was found for the lines, or is being looked for, in their order; whoever puts more in than fits waits."""

    def __init__(self) -> None:
        self._entries: asyncio.Queue[tuple[Found | asyncio.Task[Found] | None, int]] = asyncio.Queue()
        self._octets = 0
        self._room = asyncio.Event()

    async def put(self, entry: Found | asyncio.Task[Found] | None, octets: int) -> None:
        """Put in what a line of so many octets has come to, None for the end of all; wait while the window is full."""
        self._entries.put_nowait((entry, octets))
        self._octets += octets
        while self._entries.qsize() >= WINDOW or self._octets >= WINDOW_OCTETS:
            self._room.clear()
            await self._room.wait()

    def empty(self) -> bool:
        """Whether nothing is in it now."""
        return self._entries.empty()

    async def get(self) -> Found | asyncio.Task[Found] | None:
        """Take out the next."""
        entry, octets = await self._entries.get()
        self._octets -= octets
        self._room.set()
        return entry


class AnswerLines(Response):
    """Answers the lines of a request's body with a line each, in their order; blank lines are none."""

    media_type = LINES

    def __init__(self, decider: Decider, encoder: AnswerEncoder) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers()
        self._decider = decider
        self._encoder = encoder
        self._window = Window()
        self._asked: dict[Origin, asyncio.Task[Found]] = {}
        self._asking: set[asyncio.Task[Found]] = set()
        self._places = asyncio.Semaphore(ORIGINS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Until all is answered, or the client has gone."""
        reading = asyncio.create_task(self._read(scope, receive))
        writing = asyncio.create_task(self._write(send))
        try:
            # Reading ends when the client has gone, and by nothing else: then nobody needs the answers.
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait([reading, writing, *self._asking])
        for task in (reading, writing):
            if not task.cancelled():
                task.result()

    async def _read(self, scope: Scope, receive: Receive) -> None:
        lines = Lines()
        number = 0
        stretch = YieldBudget()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            more = message.get("more_body", False)
            octets = message.get("body", b"")
            for line in lines.feed(octets):
                number += 1
                if number > 1:  # the first is the request itself
                    await wait_and_charge(scope, 1)
                await self._take(line, number)
                if stretch.is_over():
                    await stretch.next()
        await self._take(lines.last(), number + 1)
        await self._window.put(None, 0)
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _take(self, line: bytes | None, number: int) -> None:
        """Put what comes of a line into the window."""
        if line is not None and not line.strip():
            return
        try:
            if line is None:
                raise Problem(413, "too-large", _LONG)
            question = question_of(read_json(line, "The line"))
        except Problem as problem:
            problem.extra["line"] = number
            await self._window.put(problem, 0)
            return
        asked = self._asked.get(question.target.origin)
        answer = None if asked else self._decider.decide_if_cached(question)
        if answer is not None:
            self._decider.count((answer,))
        await self._window.put(answer or self._ask(question, asked), len(line or b""))

    def _ask(self, question: Question, before: asyncio.Task[Found] | None) -> asyncio.Task[Found]:
        """Begin to ask a question that memory has no answer to; after the one `before` it about the same origin."""
        origin = question.target.origin
        task = asyncio.create_task(self._answer(question, before, time.monotonic()))
        self._asked[origin] = task
        self._asking.add(task)

        def done(task: asyncio.Task[Found]) -> None:
            self._asking.discard(task)
            if self._asked.get(origin) is task:
                del self._asked[origin]

        task.add_done_callback(done)
        return task

    async def _answer(self, question: Question, before: asyncio.Task[Found] | None, begun: float) -> Found:
        if before is not None:
            await asyncio.wait([before])
        async with self._places:
            return await answer_to(self._decider, after_waiting(question, begun))

    async def _write(self, send: Send) -> None:
        parts: list[bytes] = []
        size = 0
        stretch = YieldBudget()

        async def flush() -> None:
            nonlocal parts, size
            body = b"".join(parts)
            parts, size = [], 0
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": True})

        await self._begin(send)
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
            if stretch.is_over():
                await stretch.next()
        await flush()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
