"""Where robots.txt files come from: the web, the cache in memory and in the store, and the history."""

import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from secrets import token_hex

from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Snapshot
from app.cache.invalidation import InvalidationListener
from app.cache.lease import MARGIN
from app.cache.origin_lists import OriginLists, RedisOriginLists
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.robots_cache import RobotsCache
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.history.archive.archive import Archive
from app.history.archive.places import files_at
from app.history.archive.writer import ArchiveWriter
from app.history.redis_changes import RedisChanges
from app.history.redis_history import RedisHistory
from app.main.fetching import counted_fetch, fetcher_from
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from app.main.store import Store
from app.observability.fetch_log import FetchLog
from app.observability.metrics import Metrics
from app.store.connect import subscriber
from robots_core.origin import Origin
from robots_core.robots.judge import hides_rules


class Files:
    """The cache of files, and what it works with."""

    def __init__(
        self,
        settings: Settings,
        operators: OperatorFiles,
        store: Store,
        metrics: Metrics,
        *,
        resolver: Resolver | None,
        ssl_context: ssl.SSLContext | None,
        on_answer: Callable[[Origin, float], None],
    ) -> None:
        """`resolver` and `ssl_context` are None for those of the system.

        `on_answer` gets the seconds of each fetch that the origin answered.
        """
        clock, server_clock = store.clocks.fleet, store.clocks.server
        self._on_answer = on_answer
        self._resolver = SystemResolver()
        self._fetch_log = FetchLog(time.monotonic)
        self.fetcher = fetcher_from(
            settings, resolver or self._resolver, ssl_context or client_tls(), operators.agents, clock
        )
        self.snapshots = RedisSnapshots(store.redis, instance=_instance_name(settings.workers), clock=server_clock)
        self.changes = RedisChanges(store.redis, length=settings.changes_length, forbidden=settings.forbidden)
        self.history = RedisHistory(store.redis, clock, lost=metrics.history_lost.inc, changes=self.changes)
        self.lists = OriginLists(RedisOriginLists(store.redis), clock)
        self.health = FetchHealth(metrics.fetches_contradicted.inc)
        self.archive: Archive | None = None
        self.archive_writer: ArchiveWriter | None = None
        if settings.archive is not None:
            self.archive, lost = Archive(files_at(settings.archive)), metrics.archive_lost.inc
            self.archive_writer = ArchiveWriter(
                self.archive, process_name(), lost=lost, refused=metrics.request_overloaded
            )
        self.cache = RobotsCache(
            self.snapshots,
            counted_fetch(self.fetcher, metrics),
            clock,
            settings.memory_bytes // 2,
            lease=settings.fetch_timeout + MARGIN,
            min_refetch=settings.min_refetch_seconds,
            on_version_ended=self.history.note,
            on_fetch=self._note_fetch,
            on_ingested=self._note_ingested,
            room_for_copy=None if self.archive_writer is None else self.archive_writer.room_for_copy,
            on_taken=None if self.archive_writer is None else self.archive_writer.note_known,
            health=self.health,
            hides_rules=hides_rules,
        )
        self.listener = InvalidationListener(
            partial(subscriber, store.client), self.snapshots.name, self.cache.on_event, self.cache.on_gap
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen for invalidations and write what waits for the store; at the end of the block, fetches end first."""
        async with AsyncExitStack() as stack:
            stack.callback(self._resolver.close)
            if self.archive_writer is not None:
                await stack.enter_async_context(self.archive_writer.writing())
            for part in (self.snapshots, self.history, self.fetcher, self.cache):
                stack.push_async_callback(part.aclose)
            for work in (self.listener.listening(), self.cache.delivering(), self.lists.flushing()):
                await stack.enter_async_context(work)
            yield

    def _note_fetch(self, origin: Origin, snapshot: Snapshot, seconds: float, caller: str) -> None:
        self.lists.note_fetch(origin, snapshot, seconds)
        self._fetch_log.note(origin, snapshot, seconds)
        if self.archive_writer is not None:
            self.archive_writer.note(origin, snapshot, caller)
        if snapshot.failing is None:
            self._on_answer(origin, seconds)

    def _note_ingested(self, origin: Origin, snapshot: Snapshot, kept: Snapshot | None) -> None:
        if self.archive_writer is not None:
            self.archive_writer.note_copy(origin, snapshot)
        if kept is None:
            self.history.note_past(origin, snapshot)
        else:
            self.lists.note_fetch(origin, kept, 0.0)


def process_name() -> str:
    """What no other process is called, before or after; a file is named so."""
    return f"{socket.gethostname()}-{os.getpid()}-{token_hex(4)}"


def _instance_name(workers: int) -> str:
    """What the workers of one instance have in common: they share a network, and so its failures."""
    return f"{socket.gethostname()}/{os.getppid() if workers > 1 else os.getpid()}"
