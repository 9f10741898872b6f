"""Where robots.txt files come from: the web, the cache in memory and in the store, and the history."""

import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from secrets import token_hex

from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Snapshot
from app.cache.invalidation import InvalidationListener
from app.cache.lease import MARGIN
from app.cache.origin_lists import OriginLists
from app.cache.redis_leases import RedisLeases
from app.cache.redis_origin_lists import RedisOriginLists
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.robots_cache import RobotsCache
from app.fetch.client import Fetcher
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.files.reloaded_file import ReloadedFile
from app.history.archive.archive import Archive
from app.history.archive.places import files_at
from app.history.archive.writer import ArchiveWriter
from app.history.redis_changes import RedisChanges
from app.history.redis_history import RedisHistory
from app.main.agents_file import OwnAgents
from app.main.fetching import counted_fetch, fetcher_from
from app.main.settings import Settings
from app.main.store import Store
from app.observability.fetch_log import FetchLog
from app.observability.metrics import Metrics
from app.store.connect import subscriber
from robots_core.origin import Origin
from robots_core.robots.judge import hides_rules


@dataclass(frozen=True, slots=True)
class Files:
    """The cache of files, and what it works with."""

    resolver: SystemResolver
    fetcher: Fetcher
    snapshots: RedisSnapshots
    cache: RobotsCache
    history: RedisHistory
    changes: RedisChanges
    listener: InvalidationListener
    lists: OriginLists
    health: FetchHealth
    archive: Archive | None
    archive_writer: ArchiveWriter | None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen for invalidations and write what waits for the store; at the end of the block, fetches end first."""
        async with AsyncExitStack() as stack:
            stack.callback(self.resolver.close)
            if self.archive_writer is not None:
                await stack.enter_async_context(self.archive_writer.writing())
            for part in (self.snapshots, self.history, self.fetcher, self.cache):
                stack.push_async_callback(part.aclose)
            for work in (self.listener.listening(), self.cache.delivering(), self.lists.flushing()):
                await stack.enter_async_context(work)
            yield


def make_files(
    settings: Settings,
    store: Store,
    metrics: Metrics,
    *,
    resolver: Resolver | None,
    agents: ReloadedFile[OwnAgents],
    ssl_context: ssl.SSLContext | None,
    on_answer: Callable[[Origin, float], None],
) -> Files:
    """The files; None for the system's resolver, and for its trust store.

    `on_answer` gets the seconds of each fetch that the origin answered.
    """
    system_resolver, clock = SystemResolver(), store.clocks.fleet
    fetcher = fetcher_from(settings, resolver or system_resolver, ssl_context or client_tls(), agents, clock)
    snapshots = RedisSnapshots(store.redis, instance=_instance_name(settings.workers), clock=store.clocks.server)
    changes = RedisChanges(store.redis, length=settings.changes_length, forbidden=settings.forbidden)
    history = RedisHistory(store.redis, clock, lost=metrics.history_lost.inc, changes=changes)
    lists, fetch_log = OriginLists(RedisOriginLists(store.redis), clock), FetchLog(time.monotonic)
    health = FetchHealth(metrics.fetches_contradicted.inc)
    archive = None if settings.archive is None else Archive(files_at(settings.archive))
    writer = (
        None
        if archive is None
        else ArchiveWriter(archive, process_name(), lost=metrics.archive_lost.inc, refused=metrics.request_overloaded)
    )

    def on_fetch(origin: Origin, snapshot: Snapshot, seconds: float, caller: str) -> None:
        lists.note_fetch(origin, snapshot, seconds)
        fetch_log.note(origin, snapshot, seconds)
        if writer is not None:
            writer.note(origin, snapshot, caller)
        if snapshot.failing is None:
            on_answer(origin, seconds)

    def on_ingested(origin: Origin, snapshot: Snapshot, kept: Snapshot | None) -> None:
        if writer is not None:
            writer.note_copy(origin, snapshot)
        if kept is None:
            history.note_past(origin, snapshot)
        else:
            lists.note_fetch(origin, kept, 0.0)

    cache = RobotsCache(
        snapshots,
        RedisLeases(store.redis, clock=store.clocks.server),
        counted_fetch(fetcher, metrics),
        clock,
        settings.memory_bytes // 2,
        lease=settings.fetch_timeout + MARGIN,
        min_refetch=settings.min_refetch_seconds,
        on_version_ended=history.note,
        on_fetch=on_fetch,
        on_ingested=on_ingested,
        room_for_copy=None if writer is None else writer.room_for_copy,
        on_taken=None if writer is None else writer.note_known,
        health=health,
        hides_rules=hides_rules,
    )
    listener = InvalidationListener(partial(subscriber, store.client), snapshots.name, cache.on_event, cache.on_gap)
    return Files(system_resolver, fetcher, snapshots, cache, history, changes, listener, lists, health, archive, writer)


def process_name() -> str:
    """What no other process is called, before or after; a file is named so."""
    return f"{socket.gethostname()}-{os.getpid()}-{token_hex(4)}"


def _instance_name(workers: int) -> str:
    """What the workers of one instance have in common: they share a network, and so its failures."""
    return f"{socket.gethostname()}/{os.getppid() if workers > 1 else os.getpid()}"
