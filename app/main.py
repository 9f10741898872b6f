"""The composition root: settings -> parts -> the application."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from fastapi import FastAPI

from app import __version__
from app.api import decisions, openapi, ops, problems
from app.api.limits import BodyLimit
from app.cache.freshness import Recheck
from app.cache.robots_cache import RobotsCache
from app.cache.store import RedisStore, connect
from app.decide import Decider
from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import Resolver, SystemResolver, client_tls
from app.origin import Origin
from app.robots.access import Fetched, Validators
from app.robots.dialect import recognise_challenge
from app.settings import BadSetting, Settings


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
    store = RedisStore(client, monotonic=time.monotonic)
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
        return recognise_challenge(await fetcher.fetch(origin, validators))

    cache = RobotsCache(store, fetch, clock, settings.memory_bytes // 2)
    decider = Decider(
        cache,
        clock,
        memory_bytes=settings.memory_bytes // 2,
        recheck=Recheck(),
        forbidden=settings.forbidden == "deny",
    )

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await cache.aclose()
        await fetcher.aclose()
        await client.aclose()
        system.close()

    app = FastAPI(
        title="robots.txt decisions",
        version=__version__,
        summary="Tells a fleet of crawlers what each robots.txt on the web permits.",
        lifespan=lifespan,
    )
    app.state.decider = decider
    app.state.store = store
    app.state.now = lambda: datetime.fromtimestamp(clock(), UTC)
    app.include_router(decisions.router)
    app.include_router(ops.router)
    app.add_middleware(BodyLimit)
    problems.install(app)
    openapi.install(app)
    return app
