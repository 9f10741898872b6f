"""The service: settings to objects to the application, in the order in which each needs the ones before it."""

import logging
import os
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from datetime import UTC, datetime

from fastapi import FastAPI

from app.api.encoding import AnswerEncoder
from app.api.long_work import LongWork
from app.api.middleware.access_log import AccessLog
from app.api.middleware.auth import KeyCheck
from app.api.middleware.body_limit import BodyLimit
from app.api.middleware.direct_route import DirectRoute
from app.api.middleware.http_caching import NoStoreByDefault
from app.api.middleware.same_origin import RefuseCrossSite
from app.api.routes import allowed, batch
from app.api.services import Services
from app.auth.keys import load_keys
from app.auth.quotas import Quotas
from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Snapshot
from app.cache.invalidation import InvalidationListener
from app.cache.lease import MARGIN
from app.cache.origin_lists import OriginLists
from app.cache.redis_origin_lists import RedisOriginLists
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.redis_visits import RedisVisits
from app.cache.robots_cache import RobotsCache
from app.cache.visits import Visits
from app.decide import Decider
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.history.reader import HistoryReader
from app.history.redis_history import RedisHistory
from app.main.application import application
from app.main.domain_table import domain_table, pace_bounds, recheck_models
from app.main.fetching import counted_fetch, fetcher_from
from app.observability import tracing
from app.observability.fetch_log import FetchLog
from app.observability.metrics import State
from app.origin import Origin
from app.overrides.redis_overrides import RedisOverrides
from app.overrides.replica import Overrides
from app.pacing.fleet_secret import FleetSecret
from app.pacing.local_pacer import LocalPacer
from app.pacing.membership import FleetMembership
from app.pacing.pacer import Pacer
from app.pacing.permits import Permits
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import Bounds
from app.redis.connect import Client, connect, open_connections, subscriber
from app.redis.eviction import EvictionPolicy
from app.redis.guarded_client import TIMEOUT, GuardedClient, StoreDown
from app.reread import Reread, on_sighup
from app.settings import BadSetting, Settings

WITHOUT_KEYS = (
    "API_KEYS_FILE is not set: anyone who can reach this service may use it, "
    "and callers on this machine may also use the operator routes"
)

_log = logging.getLogger(__name__)


def create(
    settings: Settings | None = None,
    *,
    clock: Callable[[], float] = time.time,
    store_clock: Callable[[], float] | None = None,
    store_timeout: float = TIMEOUT,
    resolver: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
    spans: tracing.Spans | None = None,
    during: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> FastAPI:
    """Make the service; `during` makes a context that it runs in.

    Tests replace the clocks (Unix seconds), `store_timeout` (seconds for a call to the store), the resolver, the TLS
    context and the spans. Raises BadSetting.
    """
    settings = settings or Settings.read()
    client = _connect(settings.redis_url, settings.redis_connections)
    spans = spans or tracing.spans_sent()
    table = domain_table(settings)
    keys_file = settings.api_keys_file
    keys = None if keys_file is None else Reread("API_KEYS_FILE", keys_file, load_keys)
    models, forbidden, memory = (
        recheck_models(settings, table),
        settings.on_forbidden == "deny",
        settings.memory_bytes // 2,
    )

    def state() -> State:
        held = {"snapshots": cache.usage, "files": decider.usage}
        return State(
            redis.degraded,
            listener.connected,
            fetcher.under_way,
            fetcher.waiting,
            held,
            decided.known and not decided.lost,
            open_connections(client),
            health.failing,
        )

    metrics = tracing.metrics_of(state, spans)
    redis = GuardedClient(
        client,
        monotonic=time.monotonic,
        timeout=store_timeout,
        connections=settings.redis_connections,
        failed=metrics.store_failed,
        answered=metrics.store_answered,
    )
    eviction = EvictionPolicy(redis)
    quotas = Quotas(redis, time.monotonic, metrics.quota_exceeded)

    # What is known of files: from the web, kept here and in the store, and what other processes tell of it.
    system = SystemResolver()
    fetcher = fetcher_from(settings, resolver or system, ssl_context or client_tls())
    store = RedisSnapshots(redis, instance=_instance_name(settings.workers), clock=store_clock)
    versions = RedisHistory(redis, clock, lost=metrics.history_lost)
    lease = settings.fetch_timeout + MARGIN
    lists, fetch_log = OriginLists(RedisOriginLists(redis), clock), FetchLog(time.monotonic)

    def on_fetch(origin: Origin, snapshot: Snapshot, seconds: float) -> None:
        lists.note_fetch(origin, snapshot, seconds)
        fetch_log.note(origin, snapshot, seconds)

    health = FetchHealth(metrics.contradicted)
    cache = RobotsCache(
        store,
        counted_fetch(fetcher, metrics),
        clock,
        memory,
        lease=lease,
        on_version_ended=versions.note,
        on_fetch=on_fetch,
        health=health,
    )
    listener = InvalidationListener(lambda: subscriber(client), store.name, cache.on_event, cache.on_gap)

    # What becomes of a question: a decision, and its text.
    visits = Visits(RedisVisits(redis, clock=clock), clock)
    decided = Overrides(RedisOverrides(redis), clock)
    decider = Decider(
        cache,
        clock,
        history=HistoryReader(cache, versions, clock),
        memory_bytes=memory,
        models=models,
        visits=visits,
        forbidden=forbidden,
        metrics=metrics,
        monotonic=time.monotonic,
        overrides=decided,
        asked=lists.note_asked,
    )
    encoder, long_work = AnswerEncoder(settings.memory_bytes // 16), LongWork()

    # Permits.
    membership = FleetMembership(redis, store.name)
    instances = settings.pace_instances
    local_pacer = LocalPacer(None if instances is None else instances * settings.workers, lambda: membership.rank)
    pacer = Pacer(RedisPacer(redis), local_pacer, clock, time.monotonic, clock_stepped=metrics.store_clock_stepped)
    secret = FleetSecret(redis, None if settings.permit_secret is None else settings.permit_secret.get_secret_value())
    bounds = pace_bounds(Bounds(settings.pace_floor, settings.pace_cap), table)

    def on_backoff(key: str, seconds: float) -> None:
        lists.note_backoff(key, clock() + seconds)

    permits = Permits(decider, pacer, bounds, secret, metrics, on_backoff)

    async def probe() -> None:
        with suppress(StoreDown):
            await redis.ping()
        await eviction.read()

    async def start(stack: AsyncExitStack) -> None:
        stack.callback(system.close)
        await stack.enter_async_context(tracing.ended(spans))
        for part in (client, redis, versions, fetcher, cache, pacer, long_work):
            stack.push_async_callback(part.aclose)
        rereading = on_sighup(*(file for file in (table, keys) if file is not None))
        for block in (
            listener,
            cache.delivering(),
            visits.writing_back(),
            rereading,
            quotas.running(),
            metrics.updating(probe),
            lists.flushing(),
        ):
            await stack.enter_async_context(block)
        if keys is None:
            _log.info(WITHOUT_KEYS)
        await probe()  # the store is connected to before the first caller has to wait for it
        await stack.enter_async_context(decided.syncing())
        await stack.enter_async_context(membership.running())
        await stack.enter_async_context(secret.running())
        await stack.enter_async_context(during())

    services = Services(
        decider=decider,
        encoder=encoder,
        store=redis,
        fetch_health=health,
        eviction=eviction,
        metrics=metrics,
        models=models,
        forbidden=forbidden,
        overrides=decided,
        permits=permits,
        origin_lists=lists,
        snapshot_of=cache.facts,
        long_work=long_work,
        now=lambda: datetime.fromtimestamp(clock(), UTC),
    )
    app = application(start, services)
    # Each wraps those before it: a request passes the last one first.
    app.add_middleware(NoStoreByDefault)
    hot = {
        "GET": (allowed.handle, allowed.router.routes[0]),
        "POST": (batch.batch, batch.router.routes[0]),
    }
    app.add_middleware(DirectRoute, path=allowed.PATH, handlers=hot)
    app.add_middleware(BodyLimit, streamed=batch.streams)
    if keys is None:
        app.add_middleware(RefuseCrossSite)
    else:
        app.add_middleware(KeyCheck, keys=lambda: keys.value, quotas=quotas, metrics=metrics)
    app.add_middleware(AccessLog, metrics=metrics, monotonic=time.monotonic, access_log=settings.access_log)
    tracing.follow_requests(app, spans)
    return app


def _connect(url: str | None, connections: int) -> Client:
    """A client of the store, which connects when it is first used; raises BadSetting."""
    if url is None:
        raise BadSetting("REDIS_URL is not set: set it, or run `python -m app`, which starts an embedded Valkey.")
    try:
        return connect(url, connections)
    except ValueError as error:
        raise BadSetting(str(error)) from None


def _instance_name(workers: int) -> str:
    """What the workers of one instance have in common: they share a network, and so its failures."""
    return f"{socket.gethostname()}/{os.getppid() if workers > 1 else os.getpid()}"
