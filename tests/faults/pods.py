"""Services of one fleet, each with a clock of its own, in the process of the test."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx

from app.fetch.network import Resolver
from app.main.service import create
from tests.api.service import Service, settings_on
from tests.operator_token import TOKEN_HEADER
from tests.origins import NO_TLS, Names
from tests.patient_service import STORE_TIMEOUT


@asynccontextmanager
async def pod(
    store_url: str,
    names: Mapping[str, Sequence[str]] | None = None,
    ahead: float = 0.0,
    resolver: Resolver | None = None,
) -> AsyncIterator[Service]:
    """A service whose clock is ahead by some seconds."""
    known = Names(names or {})
    settings = settings_on(store_url, fetch_timeout=60.0)  # no fetch times out while a test delays it

    def clock() -> float:
        return time.time() + ahead

    app = create(settings, clock=clock, store_timeout=STORE_TIMEOUT, resolver=resolver or known, ssl_context=NO_TLS)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=TOKEN_HEADER) as client,
    ):
        yield Service(app, client, known)
