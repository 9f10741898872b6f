"""The composition root: settings -> parts -> the application."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime

from fastapi import FastAPI

from app import __version__
from app.api import allowed, files, indexing, openapi, ops, pages, problems, trial
from app.api.journal import Journal
from app.api.limits import BodyLimit
from app.cache.lease import MARGIN
from app.cache.news import News
from app.cache.recheck import DomainTable, Model, model
from app.cache.recheck_file import RecheckFile
from app.cache.robots_cache import RobotsCache
from app.cache.snapshot_store import RedisStore
from app.cache.visit_store import RedisVisits
from app.cache.visits import Visits
from app.decide import Decider
from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.metrics import Metrics, State
from app.origin import Origin
from app.robots.access import Busy, Fetched, Validators
from app.robots.dialect import recognise_challenge
from app.settings import BadSetting, Settings
from app.store.calls import Calls, StoreDown
from app.store.engines import connect, subscriber


def create(
    settings: Settings | None = None,
    *,
    clock: Callable[[], float] = time.time,
    resolver: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> FastAPI:
    """The service; clock (Unix seconds), resolver and TLS context are what tests put in the place of the world's."""
    settings = settings or Settings.read()
    if settings.redis_url is None:
        raise BadSetting("REDIS_URL is not set: set it, or start with `python -m app`, which brings its own server.")
    try:
        client = connect(settings.redis_url)
    except ValueError as error:
        raise BadSetting(str(error)) from None

    def state() -> State:
        return State(
            store_degraded=calls.degraded,
            news_heard=news.up,
            fetches_under_way=fetcher.under_way,
            fetches_waiting=fetcher.waiting,
            memory={"snapshots": cache.usage, "files": decider.usage},
        )

    metrics = Metrics(state)
    calls = Calls(client, monotonic=time.monotonic, failed=metrics.store_failed)
    store = RedisStore(calls)
    system = SystemResolver()
    fetcher = Fetcher(
        user_agent=settings.user_agent,
        guard=AddressGuard(settings.allow_addresses),
        ports=PortPolicy(every=True) if settings.allow_ports == "*" else PortPolicy(settings.allow_ports),
        resolver=resolver or system,
        ssl_context=ssl_context or client_tls(),
        timeout=settings.fetch_timeout,
    )

    async def fetch(origin: Origin, validators: Validators) -> Fetched:
        begun = time.monotonic()
        try:
            fetched = recognise_challenge(await fetcher.fetch(origin, validators))
        except Busy:
            metrics.fetch_refused()
            raise
        metrics.fetched(fetched.access, time.monotonic() - begun)
        return fetched

    cache = RobotsCache(store, fetch, clock, settings.memory_bytes // 2, lease=settings.fetch_timeout + MARGIN)
    news = News(lambda: subscriber(client), store.name, cache.hear, cache.missed)
    visits = Visits(RedisVisits(calls, clock=clock), clock)
    table = None if settings.recheck_file is None else RecheckFile(settings.recheck_file)

    def models(host: str, own: str) -> Model:
        return model(DomainTable({}) if table is None else table.table, host, own, settings.recheck_model)

    decider = Decider(
        cache,
        clock,
        memory_bytes=settings.memory_bytes // 2,
        models=models,
        visits=visits,
        forbidden=settings.forbidden == "deny",
        metrics=metrics,
        monotonic=time.monotonic,
    )

    async def probe() -> None:
        with suppress(StoreDown):
            await calls.ping()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(system.close)
            for part in (client, calls, fetcher, cache):
                stack.push_async_callback(part.aclose)
            await stack.enter_async_context(news)
            await stack.enter_async_context(visits.written_back())
            if table is not None:
                await stack.enter_async_context(table.reloaded_on_sighup())
            await stack.enter_async_context(metrics.kept_up(probe))
            await probe()  # the store is connected to before the first caller has to wait for it
            app.state.phase = ops.Phase.RUNNING
            yield
            app.state.phase = ops.Phase.STOPPING

    app = FastAPI(
        title="robots.txt decisions",
        version=__version__,
        summary="Tells a fleet of crawlers what each robots.txt on the web permits.",
        lifespan=lifespan,
    )
    app.state.decider = decider
    app.state.store = calls
    app.state.metrics = metrics
    app.state.phase = ops.Phase.STARTING
    app.state.now = lambda: datetime.fromtimestamp(clock(), UTC)
    for routes in (allowed, trial, files, indexing, ops, pages):
        app.include_router(routes.router)
    app.add_middleware(BodyLimit)
    app.add_middleware(Journal, metrics=metrics, monotonic=time.monotonic, access_log=settings.access_log)
    problems.install(app)
    openapi.install(app)
    return app
