"""The composition root: makes the parts of the service, each from those before it, and the application of them."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI

from app.api.answers.answer_caching import AnswerCaching
from app.api.answers.answer_tags import FileTags
from app.api.answers.encoding import AnswerEncoder
from app.api.change_polls import ChangePolls
from app.api.long_work import LongWork
from app.api.services import Services
from app.api.sites.reader import SiteReader
from app.auth.quotas import Quotas
from app.fetch.network import Resolver
from app.files.reloaded_file import ReloadedFile, on_change, on_sighup
from app.identity.publication import PublishedKeys
from app.loop.helpers import Helpers
from app.loop.work_turns import WorkTurns
from app.main.application import application
from app.main.decisions import Decisions
from app.main.files import Files
from app.main.middleware import add_middleware
from app.main.operator_files import OperatorFiles, operators_of
from app.main.pacing import Pacing
from app.main.settings import Settings
from app.main.store import Store
from app.observability import tracing
from app.observability.background_failures import BackgroundFailures
from app.observability.metrics import ServiceState
from app.store.connect import open_connections
from app.store.guarded_client import STORE_TIMEOUT
from app.store.store_clock import StoreClock, StoreClocks
from robots_core.agents.directory import AgentDirectory

WITHOUT_KEYS = "API_KEYS_FILE is not set: anyone who can reach this service may ask it."
"""A line of the log."""

WITHOUT_CONTACT = (
    "USER_AGENT=%s has no address: sites that mind its fetches can only block them. Put a URL or a mail address into "
    "it, such as ExampleBot/1.0 (+https://www.example.com/bot)."
)

WITHOUT_PROXY = (
    "%s is set and FETCH_PROXY is not, so fetches use no proxy. If a proxy is the only way to the internet, set "
    "FETCH_PROXY=http://proxy.example:3128 with its name and port."
)

_log = logging.getLogger(__name__)


def create(
    settings: Settings | None = None,
    *,
    clock: Callable[[], float] = time.time,
    steady: Callable[[], float] = time.monotonic,
    store_clock: Callable[[], float] | None = None,
    store_timeout: float = STORE_TIMEOUT,
    resolver: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    spans: tracing.Spans | None = None,
    during: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> FastAPI:
    """Create the service. `during` returns a context that it runs in.

    Tests replace the clocks (Unix seconds; `steady` is one that is never set), `store_timeout` (seconds for a call to
    the store), the resolver, the TLS context and the spans. Raises BadSetting.
    """
    settings = settings or Settings.read()
    spans = spans or tracing.spans_from_environment()
    operators = OperatorFiles(settings)
    read: list[ReloadedFile[Any]] = [operators.table, operators.agents, operators.keys, operators.overrides]
    # Every part reports to the metrics. They read the state of the parts only when they are scraped.
    metrics = tracing.metrics_for(lambda: _state(store, files, decisions, published, files_to_watch), spans)

    # One clock decides: the store's, as far ahead of this process's as it was when last read.
    clocks = StoreClocks(clock, time.monotonic, fleet=StoreClock(clock, steady), server=store_clock)
    store, now = Store(settings, metrics, clocks, store_timeout), clocks.fleet
    files_to_watch = [file for file in (*read, *store.files) if file.paths]
    files = Files(
        settings,
        operators,
        store,
        metrics,
        resolver=resolver,
        ssl_context=ssl_context,
        on_answer=lambda origin, seconds: pacing.pacer.note_fetch(operators.pool_of(origin), seconds),
    )
    published = PublishedKeys(
        lambda: {authority: identity.signing for authority, identity in operators.agents.value.identities.items()},
        files.fetcher.get,
    )
    turns = WorkTurns(refused=metrics.request_overloaded)
    decisions = Decisions(settings, operators, store, files, metrics, is_late=turns.is_late)
    pacing = Pacing(settings, operators, store, files, decisions, metrics)
    quotas = Quotas(store.redis, time.monotonic, metrics.quota_exceeded)
    helpers = Helpers(called=metrics.helper_called, refused=metrics.request_overloaded)
    stopping = asyncio.Event()
    change_polls = ChangePolls(files.changes, stopping, refused=metrics.request_overloaded)

    async def start(stack: AsyncExitStack) -> None:
        """Start the parts; at the end they are stopped in reverse."""
        for context in (
            BackgroundFailures(metrics.background_failed, time.monotonic).noted(),
            tracing.flushing(spans),
            on_sighup(*files_to_watch),
            on_change(settings.watch_seconds, *files_to_watch) if settings.watch_seconds else nullcontext(),
            store.running(),
            metrics.updating(store.probe, note_lag=turns.note_lag),
            files.running(),
            decisions.running(),
            pacing.running(),
            quotas.running(),
            published.checking(),
        ):
            await stack.enter_async_context(context)
        stack.push_async_callback(helpers.aclose)
        stack.push_async_callback(change_polls.aclose)
        if settings.api_keys_file is None:
            _log.info("%s %s", WITHOUT_KEYS, operators_of(settings))
        if not any(mark in settings.user_agent for mark in ("://", "@")):
            _log.warning(WITHOUT_CONTACT, settings.user_agent)
        if proxies := settings.unused_proxies:
            _log.warning(WITHOUT_PROXY, ", ".join(proxies))
        await stack.enter_async_context(during())

    def known() -> AgentDirectory:
        return operators.agents.value.directory

    sites = SiteReader(
        pacing.permits, files.fetcher.read, known, now, settings.user_agent, refused=metrics.request_overloaded
    )
    services = Services(
        decider=decisions.decider,
        history=decisions.history,
        encoder=AnswerEncoder(settings.memory_bytes // 8),
        caching=AnswerCaching(settings.answer_seconds, FileTags(known)),
        store=store.redis,
        fetch_health=files.health,
        eviction=store.eviction,
        metrics=metrics,
        models=operators.model,
        agents=known,
        profiles=lambda: operators.agents.value.profiles,
        identities=lambda: operators.agents.value.identities,
        forbidden=settings.forbidden,
        policy=settings.purpose_policy,
        overrides=decisions.overrides,
        permits=pacing.permits,
        pool_of=operators.pool_of,
        edge=decisions.edge,
        origin_lists=files.lists,
        change_polls=change_polls,
        snapshot_of=files.cache.facts,
        turns=turns,
        long_work=LongWork(turns, helpers),
        sites=sites,
        now=lambda: datetime.fromtimestamp(now(), UTC),
        stopping=stopping,
        store_required=settings.require_store_at_start,
    )
    app = application(start, services)
    add_middleware(app, settings, lambda: operators.keys.value, quotas, metrics)
    if spans is not None:  # the last, since its spans have all of a request
        app.add_middleware(tracing.TracedRequests, spans=spans)
    return app


def _state(
    store: Store, files: Files, decisions: Decisions, published: PublishedKeys, read: Sequence[ReloadedFile[Any]]
) -> ServiceState:
    return ServiceState(
        store_degraded=store.redis.degraded,
        pubsub_connected=files.listener.connected,
        fetches_in_flight=files.fetcher.queue.in_flight,
        fetches_queued=files.fetcher.queue.waiting,
        memory={"snapshots": files.cache.usage, "files": decisions.decider.files.usage},
        overrides=decisions.overrides.counts,
        overrides_loaded=decisions.overrides.loaded and not decisions.overrides.lost,
        overrides_changes=decisions.overrides.changes,
        files_refused=sum(file.refused for file in read),
        store_connections=open_connections(store.client),
        fetches_failing=files.health.failing,
        store_clock_offset_seconds=store.clocks.offset,
        store_may_evict=store.eviction.risk is not None,
        archive_lag_seconds=0.0 if files.archive_writer is None else files.archive_writer.lag,
        signing_keys_unpublished=published.missing,
    )
