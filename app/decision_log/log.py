"""Write decisions to a sink in the background; what does not fit is counted, and no answer waits."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from app.background import BackgroundTask, Surviving, periodically
from app.decision_log.line import LineWriter
from app.decision_log.sinks import Sink, SinkFailed
from app.evaluate import Decision
from app.observability.logs import KEY_ID, REQUEST_ID

WAITING = 20_000
"""Lines that wait for the sink; further ones are lost."""

EVERY = 0.2
"""Seconds between two writes."""

CLOSING_TIME = 1.0
"""Seconds in which the lines that wait are written when the process stops."""

BATCH = 500
"""Lines of one write."""

_log = logging.getLogger(__name__)


class DecisionLog:
    """Logs a share of the decisions. `lost` is called with the number of lines that were not written."""

    def __init__(
        self,
        sink: Sink,
        writer: LineWriter,
        share: float,
        lost: Callable[[int], None],
        *,
        every: float = EVERY,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`share`: from 0 to 1; `every`: see EVERY."""
        self._sink = sink
        self._writer = writer
        self._share = share
        self._lost = lost
        self._every = every
        self._chance = chance
        self._waiting: deque[bytes] = deque()
        self._failing = False

    def note(self, decision: Decision) -> None:
        """Log the decision, if it is in the sample and there is room."""
        if self._share < 1 and self._chance() >= self._share:
            return
        if len(self._waiting) >= WAITING:
            self._lost(1)
            return
        # A line that cannot be written must not cost the caller the answer.
        with Surviving(BackgroundTask.DECISION_LOG) as survival:
            self._waiting.append(self._writer.write(decision, REQUEST_ID.get(), KEY_ID.get()))
        if survival.failed:
            self._lost(1)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """While the block lasts, write to the sink; at its end, write what still waits."""
        try:
            async with periodically(BackgroundTask.DECISION_LOG, self._write_all, self._every):
                yield
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_TIME):
                    await self._write_all()

    async def _write_all(self) -> None:
        while self._waiting:
            lines = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            with Surviving(BackgroundTask.DECISION_LOG) as survival:
                await self._write(lines)
            if survival.failed:
                self._lost(len(lines))

    async def _write(self, lines: Sequence[bytes]) -> None:
        try:
            await self._sink.write(lines)
        except SinkFailed as error:
            self._lost(len(lines))
            if not self._failing:
                _log.warning("The decision log cannot be written, and loses lines: %s", error)
            self._failing = True
        else:
            self._failing = False
