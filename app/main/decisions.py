"""How questions are decided: the files, the recheck models and the operators' overrides."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from app.cache.visits import RedisVisits, Visits
from app.decision_log.chain import Chain
from app.decision_log.line import LineWriter
from app.decision_log.log import DecisionLog
from app.decision_log.sinks import FileSink, Sink, StreamSink
from app.decisions.cached_files import CachedFiles
from app.decisions.decider import Decider
from app.decisions.steps import Overriding, Pipeline, edge_facts, purposes
from app.edge.redis_edge import RedisEdge
from app.edge.replica import EdgeFacts
from app.history.archive.reader import ArchiveReader
from app.history.reader import HistoryReader
from app.main.files import Files, process_name
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from app.main.store import Store
from app.observability.metrics import Metrics
from app.overrides.redis_overrides import RedisOverrides
from app.overrides.replica import Overrides


class Decisions:
    """The Decider, and the history, overrides and edge facts that it reads."""

    def __init__(
        self,
        settings: Settings,
        operators: OperatorFiles,
        store: Store,
        files: Files,
        metrics: Metrics,
        *,
        is_late: Callable[[], bool],
    ) -> None:
        """`is_late`: whether this process has so much to do that it should begin no new work."""
        clock = store.clocks.fleet
        self._visits = Visits(RedisVisits(store.redis, clock=clock), clock)
        self._log = _decision_log(settings, store, files, metrics)
        self.overrides = Overrides(RedisOverrides(store.redis), clock, lambda: operators.overrides.value)
        self.edge = EdgeFacts(RedisEdge(store.redis, store.clocks.server), clock)
        archive = None if files.archive is None else ArchiveReader(files.archive)
        self.history = HistoryReader(files.cache, files.history, clock, archive)
        half, refused = settings.memory_bytes // 2, metrics.request_overloaded
        overriding = Overriding(lambda: self.overrides.table, metrics, settings.memory_bytes // 8)
        judging = purposes(metrics)

        self.decider = Decider(
            CachedFiles(files.cache, self.history, operators.model, self._visits, half, refused),
            # In this order: a purpose is judged by the file that an override brings.
            now=Pipeline([overriding.step, judging, edge_facts(self.edge.table)], forbidden=settings.forbidden),
            past=Pipeline([judging], forbidden=settings.forbidden),
            overridden=overriding.decides,
            has_overrides=overriding.has_any,
            asked=files.lists.note_asked,
            log=None if self._log is None else self._log.note,
            metrics=metrics,
            clock=clock,
            monotonic=time.monotonic,
            is_late=is_late,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write visits and the log, and follow overrides and edge facts, which are read before the block begins."""
        logging = nullcontext() if self._log is None else self._log.writing()
        async with self._visits.writing_back(), self.overrides.syncing(), self.edge.syncing(), logging:
            yield


def _decision_log(settings: Settings, store: Store, files: Files, metrics: Metrics) -> DecisionLog | None:
    name = settings.decision_log
    if name is None or settings.decision_log_share == 0:
        return None
    sink: Sink = StreamSink(store.redis) if name == "redis" else FileSink(None if name == "stdout" else Path(name))
    writer = LineWriter(settings.decision_log_url, forbidden=settings.forbidden)
    chain = Chain(process_name(), time.time, _signing(settings.decision_log_key_file))
    return DecisionLog(
        sink,
        writer,
        settings.decision_log_share,
        metrics.decision_log_lost.inc,
        chain,
        archive=files.archive_writer,
        unarchived=metrics.decision_log_unarchived.inc,
    )


def _signing(path: Path | None) -> Callable[[bytes], bytes] | None:
    if path is None:
        return None
    from app.decision_log.signing import load_key

    return load_key(path).sign
