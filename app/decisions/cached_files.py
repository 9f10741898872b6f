"""Parsed robots.txt files from the cache, under the recheck model of the crawler that asks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import NamedTuple, assert_never

from app.cache.freshness import Freshness, Recheck, Snapshot, State, freshness, known_at
from app.cache.recheck import RFC9309_MODEL, Model, VisitBasedRecheck
from app.cache.result import CacheResult, Source, found
from app.cache.robots_cache import RobotsCache
from app.cache.visits import Visits
from app.decisions.evaluate import CachedFile, Question
from app.decisions.parsed_files import ParsedFile, ParsedFiles, is_short
from app.history.reader import ArchivedVersions, HistoryReader
from app.history.versions import History, Version, version_at
from app.loop.admission import HeldBytes, Refused, ignore, refusal
from app.loop.work_turns import WorkTurns
from robots_core.file import File
from robots_core.origin import Origin
from robots_core.robots.access import Fetched, Successful
from robots_core.robots.agents import Agent

Models = Callable[[str, str], Model]
"""The recheck model in force for a host, given the name of the crawler's own model."""

WAITING_FILE_BYTES = 64 * 1024 * 1024
"""Bytes of the long files that wait to be read for the first time."""

FREE_TURNS = 8
"""Turns of the event loop before a long file is read, in which none is: a request of another caller needs several."""

PAST_ORIGINS = 8
"""Origins whose histories are in memory at once: each may take 640 KiB, and a parsed file more."""

FoundFiles = dict[tuple[str, str | None, str, float | None], CachedFile]
"""Files found so far: by the key of the page's origin, the crawler's fetch profile and recheck model, and max_age."""


class NoVersion(Exception):
    """No version of an origin's file is known for an instant; `earliest` (Unix seconds) is when the first one began."""

    def __init__(self, origin: Origin, at: datetime, earliest: float | None) -> None:
        known = "none has been stored yet"
        if earliest is not None:
            known = f"the first known version is from {datetime.fromtimestamp(earliest, UTC):%Y-%m-%dT%H:%M:%SZ}"
        instant = f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(f"No version of {origin.robots_url} is known for {instant}; {known}.")
        self.earliest = earliest


class CachedFiles:
    """The files of a RobotsCache, each parsed once, in at most `memory_bytes`; and those of the past, by `history`."""

    def __init__(
        self,
        cache: RobotsCache,
        history: HistoryReader,
        models: Models,
        visits: Visits,
        memory_bytes: int,
        refused: Refused = ignore,
    ) -> None:
        """`refused` is called with "files" for each file that is not read because too many wait."""
        self._cache = cache
        self._history = history
        self._parsed = ParsedFiles(memory_bytes)
        self._models = models
        self._visits = visits
        self._turns = WorkTurns()
        self._waiting = HeldBytes(
            WAITING_FILE_BYTES, refusal("files", refused, "Too many large files wait to be read", 5)
        )
        self._waits: set[tuple[Origin, str]] = set()
        self._past_slots = asyncio.Semaphore(PAST_ORIGINS)

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes of parsed files in memory, and the number of their origins."""
        return self._parsed.usage

    def has(self, origin: Origin) -> bool:
        """Whether memory has anything about the origin."""
        return self._cache.has(origin)

    async def get(
        self,
        origin: Origin,
        *,
        visitor: Agent | None = None,
        dialect: str = "",
        max_age: float | None = None,
        wait: float = 10.0,
        caller: str = "",
    ) -> CachedFile:
        """The origin's file, fetched if needed. Raises Busy when the fetch queue is full, or too many files are new.

        `visitor` is the crawler that is about to visit the origin; None counts no visit. The caller reads the file
        under `dialect`, before it awaits anything else. `caller`: see RobotsCache.get().
        """
        recheck = await self._recheck(origin, visitor)
        cached = await self._cache.get(origin, recheck, max_age=max_age, wait=wait, caller=caller)
        return await self._file(origin, cached, dialect)

    def get_if_fresh(self, question: Question, now: float, memo: FoundFiles | None = None) -> CachedFile | None:
        """The file for a question at `now` (Unix seconds), which is the present, if memory has a fresh one.

        None also if it is not quick to read. On None the caller calls get().

        A caller with many questions passes a `memo`, which saves looking up an origin again. It needs another one
        whenever other tasks have run.
        """
        visitor, max_age = question.agent, question.max_age
        key = question.target.origin.key, visitor.profile, visitor.recheck, max_age
        if memo is not None:
            file = memo.get(key)
            if file is not None:
                return file
        origin = question.origin
        snapshot = self._cache.get_trusted(origin, now)
        if snapshot is None:
            return None
        model = self._models(origin.host, visitor.recheck)
        if isinstance(model, VisitBasedRecheck):
            # Count the visit only if this call answers: get() counts it otherwise. Each visit counts, so nothing is
            # kept for the next one.
            visits = self._visits.with_one_more(origin)
            if visits is None:
                return None
            file = self._fresh(question, origin, snapshot, model.recheck(visits), now)
            if file is None:
                return None
            self._visits.count(origin)
            return file._replace(shared=None)
        file = self._fresh(question, origin, snapshot, model, now)
        # What is quick to read under one dialect may be slow under another, if the file is long.
        if memo is not None and file is not None and is_short(snapshot):
            memo[key] = file
        return file

    async def found(
        self, origin: Origin, *, fetch: bool, max_age: float | None = None, wait: float = 10.0, caller: str = ""
    ) -> CacheResult:
        """What is known of the origin, unparsed; no visit is counted.

        Without `fetch`, it is what memory and store have, which raises StoreDown; nothing in memory changes. With it,
        see get().
        """
        recheck = await self._recheck(origin, None)
        if not fetch:
            return await self._cache.look_up(origin, recheck)
        return await self._cache.get(origin, recheck, max_age=max_age, wait=wait, caller=caller)

    @asynccontextmanager
    async def past(self, origin: Origin) -> AsyncIterator["PastFiles"]:
        """Within the block, the origin's file as it was at any instant; nothing is fetched. Raises StoreDown.

        Others wait while there are PAST_ORIGINS such blocks.
        """
        async with self._past_slots:
            yield PastFiles(origin, await self._history.read(origin), self._history.archived(origin))

    async def refresh(self, origin: Origin, caller: str) -> CachedFile:
        """Fetch the file now, whatever the cache has. Raises Busy when the fetch queue is full."""
        recheck = await self._recheck(origin, None)
        return await self._file(origin, await self._cache.refresh(origin, recheck, caller), "")

    async def ingest(self, origin: Origin, fetched: Fetched, at: float, sender: str) -> tuple[CachedFile, bool]:
        """Take what a caller fetched at `at` (Unix seconds): see RobotsCache.ingest(). Raises Busy as get() does."""
        recheck = await self._recheck(origin, None)
        cached, in_use = await self._cache.ingest(origin, fetched, at, recheck, sender)
        return await self._file(origin, cached, ""), in_use

    async def purge(self, origin: Origin) -> None:
        """Remove the origin's file from the cache of the whole fleet. Raises StoreDown."""
        await self._cache.purge(origin)

    async def _file(self, origin: Origin, cached: CacheResult, dialect: str) -> CachedFile:
        snapshot = cached.snapshot
        if snapshot is None:
            return CachedFile(cached, None)
        if is_short(snapshot) or self._parsed.find(origin, snapshot, dialect) is not None:
            parsed = self._parsed.get(origin, snapshot)
        else:
            parsed = await self._read_in_turn(origin, snapshot, dialect)
        if parsed.read is not None:
            parsed.read.add(dialect)
        return CachedFile(cached, parsed.robots, parsed.revision, parsed.version)

    async def _read_in_turn(self, origin: Origin, snapshot: Snapshot, dialect: str) -> ParsedFile:
        """Parse a long file, which takes up to some hundred milliseconds: one at a time, whoever asks."""
        access, key = snapshot.access, (origin, dialect)
        size = len(access.body) if isinstance(access, Successful) else 0
        # What waits for the same file holds it once.
        with nullcontext() if key in self._waits else self._waits_for(key, size):
            async with self._turns.turn():
                for _ in range(FREE_TURNS):
                    await asyncio.sleep(0)
                return self._parsed.get(origin, snapshot)

    @contextmanager
    def _waits_for(self, key: tuple[Origin, str], size: int) -> Iterator[None]:
        with self._waiting.holding(size):
            self._waits.add(key)
            try:
                yield
            finally:
                self._waits.discard(key)

    def _fresh(
        self, question: Question, origin: Origin, snapshot: Snapshot, recheck: Recheck, now: float
    ) -> CachedFile | None:
        """The file of `snapshot` if it is fresh; the same object while its age in whole seconds is the same."""
        parsed = self._parsed.find(origin, snapshot, question.dialect.name)
        if parsed is None:
            if not is_short(snapshot):
                return None
            parsed = self._parsed.get(origin, snapshot)
        latest = parsed.latest
        previous = latest.cached.freshness if latest is not None and parsed.recheck is recheck else None
        if previous is None or snapshot.failing is not None or not snapshot.fetched_at <= now < previous.recheck_at:
            fresh = freshness(snapshot, recheck, origin.key, now)
            if fresh.state is not State.FRESH:
                return None
        elif int(now - snapshot.fetched_at) == int(previous.age):
            fresh = previous
        else:
            fresh = Freshness(previous.recheck_at, State.FRESH, now - snapshot.fetched_at, stale=False)
        if self._cache.is_too_old(snapshot, question.max_age, now):
            return None
        if latest is None or fresh is not previous:
            result = found(snapshot, fresh, Source.MEMORY)
            latest = CachedFile(result, parsed.robots, parsed.revision, parsed.version, parsed.shared)
            parsed.latest, parsed.recheck = latest, recheck
        return latest

    async def _recheck(self, origin: Origin, visitor: Agent | None) -> Recheck:
        model = self._models(origin.host, RFC9309_MODEL if visitor is None else visitor.recheck)
        match model:
            case Recheck():
                return model
            case VisitBasedRecheck():
                # Visits are counted for this model only; a fleet that rechecks by RFC 9309 writes none.
                visits = self._visits.per_day(origin) if visitor is None else self._visits.visit(origin)
                return model.recheck(await visits)
            case unknown:
                assert_never(unknown)


class PastFile(NamedTuple):
    """A version of a file, parsed. `is_new`: nothing has been evaluated by it yet."""

    file: CachedFile
    is_new: bool


class PastFiles:
    """The versions of one origin's file. Only the last one that was asked for stays parsed: files may be large."""

    def __init__(self, origin: Origin, history: History, archived: ArchivedVersions) -> None:
        """`archived` has versions that are not in the history."""
        self._origin = origin
        self._history = history
        self._archived = archived
        self._latest: tuple[Version, CachedFile | None] | None = None

    async def get(self, at: datetime) -> PastFile:
        """The version that was in use at the instant `at`. Raises NoVersion, and StoreDown for the archive."""
        version = await self.version(at)
        is_new = self._latest is None or self._latest[0] is not version
        if is_new:
            # In a thread, since versions are stored compressed.
            self._latest = version, await asyncio.to_thread(_read, version)
        file = None if self._latest is None else self._latest[1]
        if file is None or file.cached.snapshot is None:
            raise self.no_version(at)
        known = known_at(file.cached.snapshot, at.timestamp())
        if known is not file.cached.snapshot:  # it has no file
            file = file._replace(cached=found(known, None, Source.HISTORY))
        return PastFile(file, is_new)

    async def version(self, at: datetime) -> Version:
        """The version that was in use at an instant, unread. Raises NoVersion, and StoreDown for the archive."""
        version = version_at(self._history, at.timestamp()) or await self._archived.at(at.timestamp())
        if version is None:
            raise self.no_version(at)
        return version

    def no_version(self, at: datetime) -> NoVersion:
        """The exception for an instant without a version that can be read."""
        return NoVersion(self._origin, at, self._history[0].first_seen if self._history else None)


def _read(version: Version) -> CachedFile | None:
    """Unpack and parse a version; None if its stored bytes are invalid."""
    snapshot = version.read()
    if snapshot is None:
        return None
    file = File(snapshot.access)
    return CachedFile(found(snapshot, None, Source.HISTORY), file.robots, version=file.version)
