"""Write what fetches find and callers send to the archive, in the background; no answer to a question waits for it."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from itertools import count, islice, takewhile
from typing import Final, NamedTuple

from app.cache.byte_lru import BoundedDict
from app.cache.freshness import Snapshot
from app.history.archive.archive import SEEN_EVERY, Archive
from app.history.archive.span import LONGEST_LINE, ArchiveSpan, span_of
from app.loop.admission import Admission, Refused, ignore, refusal
from app.loop.background import BackgroundTask, Surviving, cancel_and_wait, in_daemon_thread, periodically
from robots_core.content import digest
from robots_core.origin import Origin

WAITING_ARCHIVE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of versions that wait while the archive is full or slow; further ones are lost, counted and named.

They are shared by the callers whose questions led to them. What callers send has as much room of its own, and waits.
"""

COPIES_WAITING: Final = 64
COPY_WAIT: Final = 5.0
"""Copies of callers that wait for room, and the seconds; then they are refused."""

ARCHIVE_EVERY: Final = 1.0
"""Seconds between two writes, and before one that failed is tried again."""

ARCHIVE_CLOSING_TIME: Final = 1.0
"""Seconds in which the versions that wait are written when the process stops."""

SPANS_PER_WRITE: Final = 200
KNOWN_ORIGINS: Final = 50_000
"""Origins whose last version is remembered, so that it is not written again at each fetch."""

KNOWN_LOST: Final = 50_000
"""Versions that are remembered as lost, so that the lines of the decision log that name them say so."""

_OVERHEAD: Final = 2048  # bytes of a span and its objects, besides its line and the body

_TOO_SLOW: Final = "it takes versions too slowly, or not at all"

_log = logging.getLogger(__name__)


class _Pending(NamedTuple):
    """A version that waits, with its number in their order.

    `caller`: for whom. `is_known`: another process found it, and may have written it.
    """

    span: ArchiveSpan
    body: bytes | None
    size: int
    since: float
    number: int
    caller: str
    is_copy: bool
    is_known: bool


class ArchiveWriter:
    """Notes what fetches found and callers sent."""

    def __init__(self, archive: Archive, process: str, *, lost: Callable[[], None], refused: Refused = ignore) -> None:
        """`process` names this process among all that write to the archive.

        `lost` is called for each version that is not written, and `refused` with "archive" for each copy that finds no
        room.
        """
        self._archive = archive
        self._process = process
        self._lost = lost
        self._room = self._copies_room = WAITING_ARCHIVE_BYTES
        self._waiting: dict[int, _Pending] = {}  # by number, in that order
        self._known: BoundedDict[str, tuple[str, int]] = BoundedDict(KNOWN_ORIGINS)
        self._bytes: Counter[str] = Counter()  # of what waits, by caller
        self._unwritten: Counter[tuple[str, str]] = Counter()  # what waits, by origin and id
        self._lost_versions: BoundedDict[tuple[str, str], None] = BoundedDict(KNOWN_LOST)
        self._busy = refusal("archive", refused, f"The archive is behind: {_TOO_SLOW}", math.ceil(COPY_WAIT))
        self._copy_turns = Admission(1, COPIES_WAITING, self._busy)
        self._numbers = count(1)
        self._tried = asyncio.Event()  # set after each write
        self._writing = asyncio.Lock()
        self._under_way = 0  # the number of the last one that is being written
        self._flushing: asyncio.Task[None] | None = None
        self._failing = self._hanging = False
        self._at_once = SPANS_PER_WRITE

    @property
    def lag(self) -> float:
        """Seconds for which the oldest version that is not written yet has waited."""
        oldest = next(iter(self._waiting.values()), None)
        return 0.0 if oldest is None else time.monotonic() - oldest.since

    def lacks(self, origin: str, version: str) -> bool:
        """Whether the version with this id of the origin with this key waits to be written, or is lost."""
        return (origin, version) in self._unwritten or (origin, version) in self._lost_versions

    def note(self, origin: Origin, snapshot: Snapshot, caller: str = "") -> None:
        """Write what a fetch for this caller found, unless it is known and was noted within SEEN_EVERY."""
        if snapshot.failing is not None and snapshot.fetched_at < snapshot.failing.last_at:
            return  # the fetch failed, and the copy is as old as before
        with Surviving(BackgroundTask.ARCHIVE, origin.key):
            self._note(origin, snapshot, caller)

    def note_known(self, origin: Origin, snapshot: Snapshot) -> None:
        """Write what another process found, unless the archive has it: that process may have been killed before."""
        known = self._known.get(origin.key)
        with Surviving(BackgroundTask.ARCHIVE, origin.key):
            if known is None or known[0] != digest(snapshot.access).hex():
                self._note(origin, snapshot.without_failing() or snapshot, "", is_known=True)

    def note_copy(self, origin: Origin, snapshot: Snapshot) -> None:
        """Write what a caller sent, within the room that it has; see note."""
        with Surviving(BackgroundTask.ARCHIVE, origin.key):
            self._note(origin, snapshot, "", is_copy=True)

    @asynccontextmanager
    async def room_for_copy(self, sender: str, size: int) -> AsyncIterator[None]:
        """Within the block there is room for a file of so many bytes that a caller sent.

        Callers wait in turns for COPY_WAIT seconds at most. Raises Overloaded.
        """
        deadline, size = asyncio.get_running_loop().time() + COPY_WAIT, size + _OVERHEAD
        turn = await self._copy_turns.acquire(sender, deadline)
        try:
            async with asyncio.timeout_at(deadline):
                if self._copies_room < size:
                    self._flush()
                await self._tried_until(lambda: self._copies_room >= size)
        except TimeoutError:
            raise self._busy() from None
        finally:
            turn.close()
        self._copies_room -= size
        try:
            yield
        finally:
            self._copies_room += size

    async def flush(self, seconds: float) -> None:
        """Write what waits now, for so many seconds at most, and not at all while the archive fails or hangs."""
        if not self._waiting or self._failing or self._hanging:
            return
        last = next(reversed(self._waiting))
        self._flush()
        try:
            async with asyncio.timeout(seconds):
                await self._tried_until(lambda: self._failing or next(iter(self._waiting), math.inf) > last)
        except TimeoutError:
            self._hanging = True

    async def _tried_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._tried.clear()
            await self._tried.wait()

    def _flush(self) -> None:
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._write_all(), name=BackgroundTask.ARCHIVE)

    def _note(
        self, origin: Origin, snapshot: Snapshot, caller: str, *, is_copy: bool = False, is_known: bool = False
    ) -> None:
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
        pending = _Pending(span, body, size, time.monotonic(), next(self._numbers), caller, is_copy, is_known)
        if not is_copy and not self._make_room(pending):
            self._lose(span, _TOO_SLOW)
            return
        self._waiting[pending.number] = pending
        self._count(pending, 1)
        self._known[span.origin] = span.digest, span.last_seen

    def _remove(self, pending: _Pending) -> None:
        del self._waiting[pending.number]
        self._count(pending, -1)

    def _count(self, pending: _Pending, sign: int) -> None:
        """Count a version that waits, or with -1 one that does no longer."""
        version = pending.span.origin, pending.span.id
        self._unwritten[version] += sign
        if self._unwritten[version] <= 0:
            del self._unwritten[version]
        if pending.is_copy:
            self._copies_room -= sign * pending.size
            return
        self._room -= sign * pending.size
        self._bytes[pending.caller] += sign * pending.size
        if self._bytes[pending.caller] <= 0:
            del self._bytes[pending.caller]

    def _make_room(self, pending: _Pending) -> bool:
        """Whether there is room; if not, the last versions of the caller with most are lost, if it has more."""
        while pending.size > self._room:
            most, held = max(self._bytes.items(), key=lambda it: it[1], default=("", 0))
            if most == pending.caller or held <= self._bytes[pending.caller] + pending.size:
                return False
            # Some 7,000 fit into 16 MiB, and to search them takes 0.3 ms at worst, so that no line is kept for each
            # caller.
            movable = takewhile(lambda it: it.number > self._under_way, reversed(self._waiting.values()))
            displaced = next((it for it in movable if not it.is_copy and it.caller == most), None)
            if displaced is None:
                return False
            self._remove(displaced)
            self._lose(displaced.span, _TOO_SLOW)
        return True

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """While the block lasts, write what is noted; at its end, what waits, for at most ARCHIVE_CLOSING_TIME."""
        async with periodically(BackgroundTask.ARCHIVE, self._write_all, ARCHIVE_EVERY):
            try:
                yield
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(ARCHIVE_CLOSING_TIME):
                        await self._write_all()
                if self._flushing is not None:
                    await cancel_and_wait([self._flushing])
        for pending in self._waiting.values():
            self._lose(pending.span, "the process ends")

    async def _write_all(self) -> None:
        async with self._writing:
            while self._waiting:
                batch = list(islice(self._waiting.values(), self._at_once))
                self._under_way = batch[-1].number
                with Surviving(BackgroundTask.ARCHIVE, batch[0].span.origin) as survival:
                    try:
                        await self._write(batch)
                    except OSError as error:  # it is tried again
                        self._fail(str(error))
                        return
                    finally:
                        self._under_way = 0
                        self._tried.set()
                self._failing = self._hanging = False
                if survival.failed and len(batch) > 1:
                    self._at_once = 1  # so that one version that always fails costs no other
                    continue
                self._at_once = SPANS_PER_WRITE
                for pending in batch:
                    self._remove(pending)
                    if survival.failed:
                        self._lose(pending.span, "an unexpected error")
                    else:
                        self._lost_versions.pop((pending.span.origin, pending.span.id), None)

    async def _write(self, batch: Sequence[_Pending]) -> None:
        day = f"{datetime.fromtimestamp(batch[-1].span.last_seen, UTC):%Y-%m-%d}"

        def write() -> None:
            found = [(it.span, it.body) for it in batch if not it.is_known or self._archive.lacks(it.span)]
            if found:
                self._archive.write(found, self._process, day)

        await in_daemon_thread("archive", write)

    def _lose(self, span: ArchiveSpan, why: str) -> None:
        self._lost()
        self._lost_versions[span.origin, span.id] = None
        self._known.pop(span.origin, None)  # the next fetch notes it again
        _log.warning("The archive lacks the version %s of %s: %s", span.id, span.origin, why)

    def _fail(self, reason: str) -> None:
        if not self._failing:
            _log.warning("The archive cannot be written; versions wait: %s", reason)
        self._failing = True
