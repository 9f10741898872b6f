"""Stream questions and answers as lines of JSON (application/x-ndjson), without a limit to their number.

The request is read while its answers are sent. Questions may be ahead of the answers that the client has read by at
most a window of lines, and by WINDOW_BYTES; beyond that, the service stops reading. A client that sends all its
questions before it reads an answer must stay within that window, or both sides wait for each other.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.api.caller import Caller, caller_of
from app.api.item_results import encode_result, holding
from app.api.json_bodies import read_json
from app.api.middleware.answer_room import HeldAnswers, held_answers
from app.api.problems import Problem, problem_of
from app.api.questions import unread
from app.decisions.answer_all import OriginTasks, Q, R, Take
from app.loop.background import as_value, cancel_and_wait
from app.loop.work_turns import YieldBudget

LINES = "application/x-ndjson"

WINDOW, WINDOW_BYTES = 1000, 4 * 1024 * 1024
"""Questions that are read ahead of the answers the client has read, by default, and their bytes: as in the largest
batch."""

QUESTION_LINE_LIMIT = 128 * 1024
"""Bytes of the longest line: the longest URL and agents, with every character escaped."""

KEY_SECONDS = 1.0
"""Seconds after which a stream whose API key has been revoked is found, if no line arrives."""

STREAM_PIECE = 64 * 1024
"""Bytes of answers to send in one piece."""

_LINE_TOO_LONG = f"The line is longer than {QUESTION_LINE_LIMIT} bytes and was skipped."


def has_lines(scope: Scope) -> bool:
    """Whether the request's body is a stream of lines."""
    content_type: bytes = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return content_type.partition(b";")[0].strip().lower() == LINES.encode()


class JsonLines(JSONResponse):
    """The response class of a route for the OpenAPI document: each line has its response model."""

    media_type = LINES


class Lines:
    """Splits bytes into lines. A line longer than QUESTION_LINE_LIMIT is skipped, and None stands for it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """The lines that `data` completes, in order; None for each that is too long."""
        *lines, beginning = (self._rest + data).split(b"\n")
        self._rest = beginning[: QUESTION_LINE_LIMIT + 1]  # one byte more says that it is too long
        return map(_bounded, lines)

    def last(self) -> bytes | None:
        """The line after the last line break."""
        return _bounded(self._rest)


def _bounded(line: bytes) -> bytes | None:
    return line if len(line) <= QUESTION_LINE_LIMIT else None


class AnswerWindow:
    """The answers of the lines, in the order of the lines; `room` waits while there are `lines`, or WINDOW_BYTES."""

    def __init__(self, lines: int = WINDOW) -> None:
        self._lines = lines
        self._sizes: deque[int] = deque()  # of the lines from the next one on
        self._answers: dict[int, bytes] = {}
        self._next = 0
        self._bytes = 0
        self._ended = False
        self._ready = asyncio.Event()
        self._room = asyncio.Event()

    def add(self, size: int) -> int:
        """Add a line of `size` bytes, whose answer is to come; its number."""
        self._sizes.append(size)
        self._bytes += size
        return self._next + len(self._sizes) - 1

    def put(self, number: int, answer: bytes) -> None:
        """Add the answer of the line with this number."""
        self._answers[number] = answer
        if number == self._next:
            self._ready.set()

    def end(self) -> None:
        """Note that the last line was added."""
        self._ended = True
        self._ready.set()

    async def room(self) -> None:
        """Wait while the window is full."""
        while len(self._sizes) >= self._lines or self._bytes >= WINDOW_BYTES:
            self._room.clear()
            await self._room.wait()

    def is_ready(self) -> bool:
        """Whether the next answer is there."""
        return self._next in self._answers

    async def get(self) -> bytes | None:
        """Remove the next answer, waiting for it; None at the end."""
        while not self.is_ready():
            if self._ended and not self._sizes:
                return None
            self._ready.clear()
            await self._ready.wait()
        answer = self._answers.pop(self._next)
        self._next += 1
        self._bytes -= self._sizes.popleft()
        self._room.set()
        return answer


class AnswerLines(Response, Generic[Q, R]):
    """Answers each line of a request's body with a line, in order; blank lines are ignored."""

    media_type = LINES

    def __init__(
        self,
        answering: Callable[[Take[R]], OriginTasks[Q, R]],
        read: Callable[[object], Q],
        encode: Callable[[R], bytes],
        budget: YieldBudget,
        window: int = WINDOW,
    ) -> None:
        """`read` makes a question of the JSON of a line, and raises if it cannot; `encode` makes a line of an answer.

        `answering` answers the questions, which all share the `budget`. At most `window` of them are read ahead.
        """
        self.status_code = 200
        self.background = None
        self.init_headers()
        self._answering = answering
        self._read_question = read
        self._encode = encode
        self._window = AnswerWindow(window)
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run until every line is answered, or the client disconnects."""
        held = held_answers(scope)
        encode = holding(self._encode, held)

        def put(position: int, result: R | Exception) -> None:
            line = encode_result(result, encode)
            if isinstance(result, Exception):
                held.add(line)
            self._window.put(position, line)

        answering = self._answering(put)
        reading = asyncio.create_task(self._read_while_valid(caller_of(scope), receive, answering, put))
        writing = asyncio.create_task(self._write(send, held))
        try:
            # Reading ends only when the client disconnects; then nothing reads the remaining answers.
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait([reading, writing])
            await answering.aclose()
        for task in (reading, writing):
            if not task.cancelled():
                task.result()

    async def _read_while_valid(
        self, caller: Caller, receive: Receive, answering: OriginTasks[Q, R], put: Take[R]
    ) -> None:
        """Read until the client disconnects. If its API key is revoked, a problem takes the next answer's place."""
        reading = asyncio.create_task(self._read(caller, receive, answering, put))
        try:
            while not (await asyncio.wait({reading}, timeout=KEY_SECONDS))[0]:
                caller.refuse_revoked()
            if not reading.result():
                return
        except Problem as problem:
            await cancel_and_wait([reading])
            put(self._window.add(0), as_value(problem))
        finally:
            await cancel_and_wait([reading])
        self._window.end()
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _read(self, caller: Caller, receive: Receive, answering: OriginTasks[Q, R], put: Take[R]) -> bool:
        """Ask the questions of the lines until the body ends; False if the client disconnects before.

        Raises Problem (401) if the API key has been revoked.
        """
        lines = Lines()
        number = 0
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            more = message.get("more_body", False)
            data = message.get("body", b"")
            for line in lines.feed(data):
                number += 1
                caller.refuse_revoked()
                if number > 1:  # the request itself pays for the first
                    await caller.wait_and_charge(1)
                await self._ask(line, number, answering, put)
                if self._budget.is_over():
                    await self._budget.next()
        await self._ask(lines.last(), number + 1, answering, put)
        return True

    async def _ask(self, line: bytes | None, number: int, answering: OriginTasks[Q, R], put: Take[R]) -> None:
        """Ask the question of a line; then wait while the window is full."""
        if line is not None and not line.strip():
            return
        position = self._window.add(len(line or b""))
        try:
            if line is None:
                raise Problem("too-large", _LINE_TOO_LONG)
            question = self._read_question(read_json(line, "The line"))
        except Exception as error:  # noqa: BLE001 - one that is not expected is logged, and fails this line alone
            problem = problem_of(unread(error))
            problem.extra["line"] = number
            put(position, problem)
        else:
            answering.ask(position, question, time.monotonic())
            answering.count()
        await self._window.room()

    async def _write(self, send: Send, held: HeldAnswers) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        piece = bytearray()
        while True:
            if piece and (len(piece) > STREAM_PIECE or not self._window.is_ready()):
                await send({"type": "http.response.body", "body": bytes(piece), "more_body": True})
                piece.clear()
            answer = await self._window.get()
            if answer is None:
                break
            piece += answer + b"\n"
            held.release(answer)
            if self._budget.is_over():
                await self._budget.next()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
