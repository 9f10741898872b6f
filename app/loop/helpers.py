"""Helper processes, from the side of the service: a few, for its callers in turn, each for one call at a time."""

import asyncio
import pickle
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from app.loop.admission import Admission, Refused, ignore, refusal
from app.loop.background import BackgroundTask
from app.loop.helper_process import ANSWER, CALL, REPLY_LIMIT, CallOutcome
from app.loop.single_flight import SingleFlight
from robots_core.robots.access import Busy

HELPERS: Final = 2
"""Helpers at once, so that one slow file does not keep all others waiting."""

WAITING: Final = 32
"""Calls that wait for a helper."""

HELPER_WAIT: Final = 10.0
"""Seconds that a call waits for a helper, or up to half of it less; then it is refused."""

CPU_SECONDS: Final = 5
"""CPU seconds that a call may take."""

MEMORY: Final = 384 * 1024 * 1024
"""Bytes of address space of a helper, of which the worst known work takes 226 MB."""

ANSWERED: Final = 60.0
"""Seconds in which a helper answers, on a machine that has hardly any time for it."""

UNANSWERED: Final = "unanswered"
"""What became of a call that got no answer, beside the names of CallOutcome."""

_PROCESS: Final = str(Path(__file__).with_name("helper_process.py"))


class HelperFailed(Busy):
    """No helper could be started, or it ended before it answered."""

    def __init__(self, why: str) -> None:
        super().__init__(1, why)


class TooMuchWork(Busy):
    """The work takes more than a helper may use, as the text says."""

    def __init__(self, limit: str) -> None:
        self.limit = f"This takes more than {limit}"
        super().__init__(60, self.limit)


class WorkRaised(Exception):
    """The work raised an exception, which is a bug. The text is its traceback."""


class _Reply(NamedTuple):
    outcome: CallOutcome
    seconds: float
    content: bytes


class _Helper:
    """A helper process that may take so many CPU seconds for a call."""

    def __init__(self, process: Process, seconds: int) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("a helper is reached by its standard input and output")
        self._process = process
        self._calls = process.stdin
        self._answers = process.stdout
        self._seconds = seconds
        self._numbers = count()

    @classmethod
    async def start(cls, seconds: int) -> "_Helper":
        """Start a process. Raises HelperFailed."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", _PROCESS, str(seconds), str(MEMORY), *sys.path),
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,  # which Ctrl-C in a terminal does not reach
                limit=REPLY_LIMIT,  # so that the end of a process that is killed while it answers is seen
            )
        except OSError as error:
            why = "No helper process can be started: there are no file descriptors, processes or memory left for it"
            raise HelperFailed(f"{why} ({error})") from None
        return cls(process, seconds)

    def lives(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def call(self, call: bytes) -> _Reply:
        """Its answer. If there is none, it is ended. Raises HelperFailed and TooMuchWork."""
        answered = False
        try:
            async with asyncio.timeout(ANSWERED):
                try:
                    answer = await self._exchange(call)
                except (OSError, EOFError):
                    raise self._ended(await self._process.wait()) from None
            answered = True
            return answer
        except TimeoutError:
            raise HelperFailed(f"A helper process did not answer within {ANSWERED:.0f} s") from None
        finally:
            if not answered:
                await self.end()

    def _ended(self, status: int) -> Busy:
        if status == -signal.SIGXCPU:
            return TooMuchWork(f"{self._seconds} s of CPU time")
        return HelperFailed(f"A helper process ended with status {status}")

    async def _exchange(self, call: bytes) -> _Reply:
        number = next(self._numbers)
        self._calls.writelines((CALL.pack(number, len(call)), call))
        await self._calls.drain()
        answered, outcome, seconds, size = ANSWER.unpack(await self._answers.readexactly(ANSWER.size))
        if answered != number or size > REPLY_LIMIT:
            raise HelperFailed("A helper process gave the answer to another call")
        return _Reply(CallOutcome(outcome), seconds, await self._answers.readexactly(size))

    async def end(self) -> None:
        """Kill it."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Helpers:
    """Does work in helper processes, which start when they are needed."""

    def __init__(
        self,
        helpers: int = HELPERS,
        *,
        seconds: int = CPU_SECONDS,
        called: Callable[[str, float], None] = lambda _outcome, _seconds: None,
        refused: Refused = ignore,
    ) -> None:
        """`called` is called with the outcome and the CPU seconds of each call.

        `refused` is called with "helpers" for each call that gets no helper in time.
        """
        self._slots = Admission(helpers, WAITING, refusal("helpers", refused))
        self._seconds = seconds
        self._called = called
        self._idle: list[_Helper] = []
        self._all: set[_Helper] = set()
        self._preparing: SingleFlight[str, bytes] = SingleFlight(BackgroundTask.HELPERS, expected=Busy)

    def prepare(self, work: Callable[[], bytes]) -> None:
        """Start a helper if none runs, and have it do `work`: to import what a call needs that is likely to come."""
        if not any(helper.lives() for helper in self._all):
            self._preparing.start("", lambda: self.run("", work))

    async def run(
        self,
        caller: str,
        work: Callable[..., bytes],
        *arguments: object,
        spent: Callable[[float], None] = lambda _seconds: None,
    ) -> bytes:
        """The result of `work`, a function of a module, which the helper imports.

        The arguments are copied, so give it bytes rather than a parsed file. `caller` says for whom: an API key, or an
        address. `spent` is called with the CPU seconds that the call took, whatever became of it.

        Raises Overloaded, HelperFailed, TooMuchWork and WorkRaised. A call that is cancelled ends its helper.
        """
        call = pickle.dumps((work, arguments), pickle.HIGHEST_PROTOCOL)
        loop = asyncio.get_running_loop()
        # Calls that came together are not refused together: so many answers would take a long turn.
        slot = await self._slots.acquire(caller, loop.time() + HELPER_WAIT * random.uniform(0.5, 1.0))  # noqa: S311
        begun, seconds, outcome = loop.time(), None, UNANSWERED
        try:
            helper = await self._helper()
            answer = await helper.call(call)
            outcome, seconds = answer.outcome.name.lower(), answer.seconds
            self._idle.append(helper)
        finally:
            slot.close()
            taken = min(loop.time() - begun, self._seconds) if seconds is None else seconds
            self._called(outcome, taken)
            spent(taken)
        return _content(answer)

    async def aclose(self) -> None:
        """End all helpers."""
        await self._preparing.aclose()
        for helper in self._all:
            await helper.end()

    async def _helper(self) -> _Helper:
        """One that is idle, or a new one. Raises HelperFailed."""
        preparing = self._preparing.under_way("")
        if not self._idle and preparing not in (None, asyncio.current_task()):
            await asyncio.wait([preparing])  # sooner than another can start
        while self._idle:
            helper = self._idle.pop()
            if helper.lives():
                return helper
        self._all = {helper for helper in self._all if helper.lives()}
        helper = await _Helper.start(self._seconds)
        self._all.add(helper)
        return helper


def _content(answer: _Reply) -> bytes:
    match answer.outcome:
        case CallOutcome.DONE:
            return answer.content
        case CallOutcome.NO_MEMORY:
            raise TooMuchWork("the memory of a helper process")
        case CallOutcome.NO_ROOM:
            raise TooMuchWork(f"{REPLY_LIMIT} bytes of answer")
        case CallOutcome.RAISED:
            raise WorkRaised(answer.content.decode())
