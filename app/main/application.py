"""The FastAPI application: its routes and its lifespan."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from app import __version__
from app.api import problems
from app.api.routes import (
    agents,
    allowed,
    batch,
    bundle,
    changes,
    check,
    history,
    identity,
    indexing,
    ops,
    origins,
    overrides,
    pages,
    permits,
    robots_file,
    sitemaps,
    trials,
)
from app.api.services import Services
from app.main.server.connection import STOPPING

ROUTES = (
    allowed,
    check,
    batch,
    trials,
    agents,
    robots_file,
    sitemaps,
    history,
    bundle,
    changes,
    indexing,
    permits,
    overrides,
    origins,
    ops,
    identity,
    pages,
)


def application(start: Callable[[AsyncExitStack], Awaitable[None]], services: Services) -> FastAPI:
    """Create the application from its routes and their services.

    `start` enters on the stack everything that runs while the application does; it ends in reverse order.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[Mapping[str, object]]:
        async with AsyncExitStack() as stack:
            await start(stack)
            yield {STOPPING: services.stopping}  # the state of the server's connections

    app = FastAPI(
        title="robots.txt decisions",
        version=__version__,
        summary="Tells a fleet of crawlers what each robots.txt on the web permits.",
        lifespan=lifespan,
        routes=[route for routes in ROUTES for route in routes.router.routes],
        # app.observability has them. FastAPI's spans have the query, which is private to the caller.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        openapi_url=None,  # served by routes.pages, as `make generate` wrote it
        docs_url=None,  # served by routes.pages, without a CDN
        redoc_url=None,
        redirect_slashes=False,  # the redirect decodes the query string as UTF-8, which it need not be
    )
    app.state.services = services
    problems.install(app)
    return app
