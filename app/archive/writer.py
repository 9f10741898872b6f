"""Write what fetches find to the archive, in the background; no answer waits for it."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple

from app.archive.archive import SEEN_EVERY, Archive
from app.archive.span import LONGEST_LINE, ArchiveSpan, span_of
from app.cache.byte_lru import BoundedDict
from app.cache.freshness import Snapshot
from app.loop.background import BackgroundTask, Surviving, in_daemon_thread, periodically
from robots_core.origin import Origin

WAITING_ARCHIVE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of versions that wait while the archive is full or slow; further ones are lost, counted and named."""

ARCHIVE_EVERY: Final = 1.0
"""Seconds between two writes, and before one that failed is tried again."""

ARCHIVE_CLOSING_TIME: Final = 1.0
"""Seconds in which the versions that wait are written when the process stops."""

SPANS_PER_WRITE: Final = 200
KNOWN_ORIGINS: Final = 50_000
"""Origins whose last version is remembered, so that it is not written again at each fetch."""

_OVERHEAD: Final = 2048  # bytes of a span and its objects, besides its line and the body

_log = logging.getLogger(__name__)


class _Pending(NamedTuple):
    span: ArchiveSpan
    body: bytes | None
    size: int
    since: float


class ArchiveWriter:
    """Notes what fetches found. `lost` is called for each version that is not written; `monotonic` is in seconds."""

    def __init__(
        self,
        archive: Archive,
        process: str,
        *,
        lost: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
        waiting_bytes: int = WAITING_ARCHIVE_BYTES,
        every: float = ARCHIVE_EVERY,
    ) -> None:
        """`process` names this process among all that write to the archive; the rest: see the constants."""
        self._archive = archive
        self._process = process
        self._lost = lost
        self._monotonic = monotonic
        self._room = waiting_bytes
        self._every = every
        self._waiting: deque[_Pending] = deque()
        self._known: BoundedDict[str, tuple[str, int]] = BoundedDict(KNOWN_ORIGINS)
        self._writing = asyncio.Lock()
        self._failing = False
        self._at_once = SPANS_PER_WRITE

    @property
    def lag(self) -> float:
        """Seconds for which the oldest version that is not written yet has waited."""
        return self._monotonic() - self._waiting[0].since if self._waiting else 0.0

    def note(self, origin: Origin, snapshot: Snapshot) -> None:
        """Write what a fetch found, unless it is known and was noted within SEEN_EVERY."""
        with Surviving(BackgroundTask.ARCHIVE, origin.key):
            self._note(origin, snapshot)

    def _note(self, origin: Origin, snapshot: Snapshot) -> None:
        if snapshot.failing is not None and snapshot.fetched_at < snapshot.failing.last_at:
            return  # the fetch failed, and the copy is as old as before
        span, body = span_of(origin, snapshot)
        known = self._known.get(span.origin)
        if known is not None and known[0] == span.digest:
            if 0 <= span.last_seen - known[1] < SEEN_EVERY:
                return
            body = None  # it is written already, or before this
        length = len(span.line())
        if length > LONGEST_LINE:
            self._lose(span, f"its line would have {length} bytes, more than the {LONGEST_LINE} that are read")
            return
        size = _OVERHEAD + length + len(body or b"")
        if size > self._room:
            self._lose(span, "it takes versions too slowly, or not at all")
            return
        self._room -= size
        self._waiting.append(_Pending(span, body, size, self._monotonic()))
        self._known[span.origin] = span.digest, span.last_seen

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """While the block lasts, write what is noted; at its end, what waits, for at most ARCHIVE_CLOSING_TIME."""
        async with periodically(BackgroundTask.ARCHIVE, self._write_all, self._every):
            try:
                yield
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(ARCHIVE_CLOSING_TIME):
                        await self._write_all()
        for pending in self._waiting:
            self._lose(pending.span, "the process ends")

    async def _write_all(self) -> None:
        async with self._writing:
            while self._waiting:
                batch = [self._waiting[at] for at in range(min(self._at_once, len(self._waiting)))]
                with Surviving(BackgroundTask.ARCHIVE, batch[0].span.origin) as survival:
                    try:
                        await self._write(batch)
                    except OSError as error:  # it is tried again
                        self._fail(str(error))
                        return
                self._failing = False
                if survival.failed and len(batch) > 1:
                    self._at_once = 1  # so that one version that always fails costs no other
                    continue
                self._at_once = SPANS_PER_WRITE
                for pending in batch:
                    self._waiting.popleft()
                    self._room += pending.size
                    if survival.failed:
                        self._lose(pending.span, "an unexpected error")

    async def _write(self, batch: Sequence[_Pending]) -> None:
        day = f"{datetime.fromtimestamp(batch[-1].span.last_seen, UTC):%Y-%m-%d}"
        found = [(it.span, it.body) for it in batch]
        await in_daemon_thread("archive", lambda: self._archive.write(found, self._process, day))

    def _lose(self, span: ArchiveSpan, why: str) -> None:
        self._lost()
        self._known.pop(span.origin, None)  # the next fetch notes it again
        _log.warning("The archive lacks the version %s of %s: %s", span.id, span.origin, why)

    def _fail(self, reason: str) -> None:
        if not self._failing:
            _log.warning("The archive cannot be written; versions wait: %s", reason)
        self._failing = True
