"""The composition root: settings -> parts -> the application."""

import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime

from fastapi import FastAPI

from app import __version__
from app.api import openapi, problems
from app.api.encoding import Renderer
from app.api.long_work import LongWork
from app.api.middleware.access_log import AccessLog
from app.api.middleware.auth import KeyCheck
from app.api.middleware.body_limit import BodyLimit
from app.api.middleware.fast_path import FastPath
from app.api.middleware.http_caching import NoStoreByDefault
from app.api.middleware.same_origin import RefuseCrossSite
from app.api.quotas import Quotas
from app.api.routes import allowed, batch, history, indexing, ops, origins, overrides, pages, permits
from app.api.routes import robots_file as held_file
from app.api.routes import test_file as trial
from app.auth.keys import load_keys
from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Snapshot
from app.cache.invalidation import InvalidationListener
from app.cache.lease import MARGIN
from app.cache.origin_lists import OriginLists
from app.cache.recheck_file import load as load_table
from app.cache.redis_origin_lists import RedisOriginLists
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.redis_visits import RedisVisits
from app.cache.robots_cache import RobotsCache
from app.cache.visits import Visits
from app.decide import Decider
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.history.redis_history import RedisHistory
from app.observability import tracing
from app.observability.fetch_log import FetchLog
from app.observability.metrics import State
from app.origin import Origin
from app.overrides.redis_overrides import RedisOverrides
from app.overrides.replica import Overrides
from app.pacing.addresses import Addresses
from app.pacing.fleet_secret import FleetSecret
from app.pacing.local_pacer import LocalPacer
from app.pacing.membership import FleetMembership
from app.pacing.pacer import Pacer
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import Bounds
from app.parts import bounds_of, connected, fetcher_of, fetching, instance_name, models_of, reread
from app.redis.connect import open_connections, subscriber
from app.redis.eviction import EvictionPolicy
from app.redis.guarded_client import TIMEOUT, GuardedClient, StoreDown
from app.reread import on_sighup
from app.settings import Settings

WITHOUT_KEYS = (
    "API_KEYS_FILE is not set: whoever reaches this service may ask it, "
    "and callers on this machine may also use the routes of operators"
)

ROUTES = (allowed, batch, trial, held_file, history, indexing, permits, overrides, origins, ops, pages)

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
    """The service, which runs within the context that `during` makes.

    The other arguments but the settings are what tests put in place of the world's (clocks: Unix seconds;
    `store_timeout`: seconds for a call to the store).
    """
    settings = settings or Settings.read()
    client = connected(settings.redis_url, settings.redis_connections)
    spans = spans or tracing.spans_sent()
    table = reread("RECHECK_FILE", settings.recheck_file, load_table)
    keys = reread("API_KEYS_FILE", settings.api_keys_file, load_keys)
    models, forbidden, memory = models_of(settings, table), settings.on_forbidden == "deny", settings.memory_bytes // 2

    def state() -> State:
        held = {"snapshots": cache.usage, "files": decider.usage}
        return State(
            calls.degraded,
            news.up,
            fetcher.under_way,
            fetcher.waiting,
            held,
            decided.known and not decided.lost,
            open_connections(client),
            health.failing,
        )

    metrics = tracing.metrics_of(state, spans)
    calls = GuardedClient(
        client,
        monotonic=time.monotonic,
        timeout=store_timeout,
        connections=settings.redis_connections,
        failed=metrics.store_failed,
        answered=metrics.store_answered,
    )
    eviction = EvictionPolicy(calls)
    quotas = Quotas(calls, time.monotonic, metrics.quota_exceeded)

    # What is known of files: from the web, kept here and in the store, and what other processes tell of it.
    system = SystemResolver()
    fetcher = fetcher_of(settings, resolver or system, ssl_context or client_tls())
    store = RedisSnapshots(calls, instance=instance_name(settings.workers), clock=store_clock)
    versions = RedisHistory(calls, clock, lost=metrics.history_lost)
    lease = settings.fetch_timeout + MARGIN
    lists, fetch_log = OriginLists(RedisOriginLists(calls), clock), FetchLog(time.monotonic)

    def on_fetch(origin: Origin, snapshot: Snapshot, seconds: float) -> None:
        lists.note_fetch(origin, snapshot, seconds)
        fetch_log.note(origin, snapshot, seconds)

    health = FetchHealth(metrics.contradicted)
    cache = RobotsCache(
        store,
        fetching(fetcher, metrics),
        clock,
        memory,
        lease=lease,
        history=versions,
        on_fetch=on_fetch,
        health=health,
    )
    news = InvalidationListener(lambda: subscriber(client), store.name, cache.hear, cache.missed)

    # What becomes of a question: a decision, and its text.
    visits = Visits(RedisVisits(calls, clock=clock), clock)
    decided = Overrides(RedisOverrides(calls), clock)
    decider = Decider(
        cache,
        clock,
        memory_bytes=memory,
        models=models,
        visits=visits,
        forbidden=forbidden,
        metrics=metrics,
        monotonic=time.monotonic,
        overrides=decided,
        asked=lists.note_asked,
    )
    renderer, long_work = Renderer(settings.memory_bytes // 16), LongWork()

    # Turns.
    places = FleetMembership(calls, store.name)
    instances = settings.pace_instances
    alone = LocalPacer(None if instances is None else instances * settings.workers, lambda: places.place)
    pacer = Pacer(RedisPacer(calls), alone, clock, time.monotonic, clock_stepped=metrics.store_clock_stepped)
    addresses = Addresses(resolver or system, time.monotonic)
    shared = addresses if settings.pace_by_address else None
    secret = FleetSecret(calls, None if settings.permit_secret is None else settings.permit_secret.get_secret_value())
    own_bounds = Bounds(settings.pace_floor, settings.pace_cap)
    pacing = permits.Pacing(pacer, bounds_of(own_bounds, table), own_bounds, shared, secret, metrics)

    async def probe() -> None:
        with suppress(StoreDown):
            await calls.ping()
        await eviction.read()

    async def begin(stack: AsyncExitStack) -> None:
        stack.callback(system.close)
        await stack.enter_async_context(tracing.ended(spans))
        for part in (client, calls, versions, fetcher, cache, pacer, addresses, long_work):
            stack.push_async_callback(part.aclose)
        rereading = on_sighup(*(file for file in (table, keys) if file is not None))
        for block in (
            news,
            cache.delivering(),
            visits.written_back(),
            rereading,
            quotas.settled(),
            metrics.updating(probe),
            lists.flushed(),
        ):
            await stack.enter_async_context(block)
        if keys is None:
            _log.info(WITHOUT_KEYS)
        await probe()  # the store is connected to before the first caller has to wait for it
        await stack.enter_async_context(decided.followed())
        await stack.enter_async_context(places.kept())
        await stack.enter_async_context(secret.kept())
        await stack.enter_async_context(during())

    app = _application(
        begin,
        decider=decider,
        renderer=renderer,
        store=calls,
        fetch_health=health,
        eviction=eviction,
        metrics=metrics,
        models=models,
        forbidden=forbidden,
        overrides=decided,
        pacing=pacing,
        fleet_origins=origins.FleetOrigins(lists, cache.facts),
        long_work=long_work,
        now=lambda: datetime.fromtimestamp(clock(), UTC),
    )
    # What a request passes on its way to the routes, the last of these first.
    app.add_middleware(NoStoreByDefault)
    app.add_middleware(FastPath, decider=decider, renderer=renderer)
    app.add_middleware(BodyLimit, spares=batch.streams)
    if keys is None:
        app.add_middleware(RefuseCrossSite)
    else:
        app.add_middleware(KeyCheck, keys=lambda: keys.value, quotas=quotas, metrics=metrics)
    app.add_middleware(AccessLog, metrics=metrics, monotonic=time.monotonic, access_log=settings.access_log)
    tracing.follow_requests(app, spans)
    return app


def _application(begin: Callable[[AsyncExitStack], Awaitable[None]], **parts: object) -> FastAPI:
    """The routes, with the parts that they ask for in `app.state`; `begin` begins what is to end with the application.

    It ends in the reverse order.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await begin(stack)
            app.state.phase = ops.Phase.RUNNING
            yield
            app.state.phase = ops.Phase.STOPPING

    app = FastAPI(
        title="robots.txt decisions",
        version=__version__,
        summary="Tells a fleet of crawlers what each robots.txt on the web permits.",
        lifespan=lifespan,
        generate_unique_id_function=openapi.operation_id,
        docs_url=None,  # pages serves it, from here
        redoc_url=None,
        redirect_slashes=False,  # it reads query strings as UTF-8, which nobody has promised
    )
    app.state.phase = ops.Phase.STARTING
    for name, part in parts.items():
        setattr(app.state, name, part)
    for routes in ROUTES:
        app.include_router(routes.router)
    problems.install(app)
    openapi.install(app)
    return app
