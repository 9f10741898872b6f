"""Write decisions to a sink in the background; what does not fit is counted, and no answer waits."""

import asyncio
import logging
import random
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from app.decision_log.chain import Chain, Mark, last_of_each
from app.decision_log.line import LineWriter
from app.decision_log.sinks import Sink, SinkFailed
from app.decisions.evaluate import Decision
from app.history.archive.writer import ArchiveWriter
from app.loop.background import BackgroundTask, Surviving, periodically
from app.loop.request import KEY_ID, REQUEST_ID

WAITING_LINE_BYTES = 16 * 1024 * 1024
"""Bytes of the lines that wait for the sink, those of a write in progress included; further lines are lost."""

WRITE_EVERY = 0.2
"""Seconds between two writes."""

LOG_CLOSING_TIME = 1.0
"""Seconds in which the lines that wait are written when the process stops."""

LINES_PER_WRITE = 500
"""Lines of one write."""

ARCHIVE_WAIT = 2.0
"""Seconds that lines wait for the archive to write the versions that they name; then those that it lacks say so.

So what a line of a killed process names is in the archive, unless the line says that it was not.
"""

ARCHIVE_CLOSING_WAIT = LOG_CLOSING_TIME / 2
"""The same when the process stops."""

_UNARCHIVED = b',"archived":false}'

_log = logging.getLogger(__name__)


class _WaitingLine(NamedTuple):
    """A line that waits, and the version that it names: the key of its origin, and its id."""

    text: bytes
    version: tuple[str, str] | None

    @property
    def size(self) -> int:
        return sys.getsizeof(self.text)


class DecisionLog:
    """Logs a share of the decisions, and all those by which a request may be signed.

    `lost` is called with the number of lines that were not written, `unarchived` with that of lines that name a version
    which the archive lacks.
    """

    def __init__(
        self,
        sink: Sink,
        writer: LineWriter,
        share: float,
        lost: Callable[[int], None],
        chain: Chain,
        *,
        archive: ArchiveWriter | None = None,
        unarchived: Callable[[int], None] = lambda _lines: None,
    ) -> None:
        """`share`: from 0 to 1; `chain` links the lines."""
        self._sink = sink
        self._writer = writer
        self._share = share
        self._lost = lost
        self._archive = archive
        self._unarchived = unarchived
        self._chain = chain
        self._waiting: deque[_WaitingLine] = deque()
        self._bytes = 0
        self._writing = asyncio.Lock()
        self._failing = False
        self._ending = False

    def note(self, decision: Decision) -> None:
        """Log the decision, if it is in the sample and there is room."""
        share = self._share
        if share < 1 and decision.question.nonce is None and random.random() >= share:  # noqa: S311 - no secret
            return
        # A line that cannot be written must not cost the caller the answer.
        with Surviving(BackgroundTask.DECISION_LOG) as survival:
            line = _WaitingLine(self._writer.write(decision, REQUEST_ID.get(), KEY_ID.get()), self._version(decision))
        if survival.failed:
            self._lost(1)
        elif self._bytes + line.size > WAITING_LINE_BYTES:
            self._lost(1)
            self._fail("it takes lines too slowly, or not at all")
        else:
            self._waiting.append(line)
            self._bytes += line.size

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """While the block lasts, write to the sink; at its end, write what waits, for at most LOG_CLOSING_TIME."""
        async with periodically(BackgroundTask.DECISION_LOG, self._write_all, WRITE_EVERY):
            try:
                yield
            finally:
                self._ending = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOG_CLOSING_TIME):
                        await self._write_all()
                        await self._write_mark("end")
        if self._waiting:
            self._lost(len(self._waiting))
            _log.warning("The decision log loses the %d lines that still wait at the end", len(self._waiting))

    async def _write_all(self) -> None:
        if self._waiting and self._chain.is_to_begin:
            await self._write_mark("begin")
        async with self._writing:
            left = len(self._waiting)  # further ones may name versions that are noted meanwhile
            if left and self._archive is not None:
                await self._archive.flush(ARCHIVE_CLOSING_WAIT if self._ending else ARCHIVE_WAIT)
            while left:
                lines = [self._waiting.popleft() for _ in range(min(LINES_PER_WRITE, left))]
                left -= len(lines)
                written = 0
                try:
                    written = await self._write(self._chain.link(self._texts(lines)))
                finally:
                    self._bytes -= sum(line.size for line in lines)
                    if written < len(lines):
                        self._lost(len(lines) - written)
        if self._chain.checkpoint_is_due:
            await self._write_mark("checkpoint")

    def _version(self, decision: Decision) -> tuple[str, str] | None:
        if self._archive is None or decision.version is None:
            return None
        return decision.question.origin.key, decision.version

    def _texts(self, lines: Sequence[_WaitingLine]) -> list[bytes]:
        """The lines; those that name a version which the archive lacks say so."""
        archive = self._archive
        if archive is None:
            return [line.text for line in lines]
        lacking = [line.version is not None and archive.lacks(*line.version) for line in lines]
        self._unarchived(sum(lacking))
        pairs = zip(lines, lacking, strict=True)
        return [line.text[:-1] + _UNARCHIVED if lacks else line.text for line, lacks in pairs]

    async def _write_mark(self, kind: Mark) -> None:
        async with self._writing:
            if self._chain.number or kind == "begin":
                await self._write([self._chain.mark(kind, last_of_each(await self._sink.newest()))])

    async def _write(self, linked: Sequence[bytes]) -> int:
        """Write the lines that were linked last; return how many were written, after which the chain goes on."""
        written = 0
        try:
            with Surviving(BackgroundTask.DECISION_LOG):
                try:
                    await self._sink.write(linked)
                    written, self._failing = len(linked), False
                except SinkFailed as error:
                    written = len(linked) - error.lost
                    self._fail(str(error))
        finally:
            if written < len(linked):
                self._chain.unlink(linked, written)
        return written

    def _fail(self, reason: str) -> None:
        if not self._failing:
            _log.warning("The decision log cannot be written, and loses lines: %s", reason)
        self._failing = True
