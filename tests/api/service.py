"""The application with a clock, host names and certificates from the test."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from app.fetch.network import Resolver
from app.main.service import create
from app.main.settings import Settings
from app.observability.tracing import Spans
from tests.exposition import samples
from tests.operator_token import TOKEN_FILE, TOKEN_HEADER
from tests.origins import NO_TLS, Names
from tests.patient_service import STORE_TIMEOUT

START = datetime(2026, 11, 21, 18, 30, tzinfo=UTC).timestamp()


class GivenSettings(Settings):
    """Settings from their arguments alone: to read the environment takes as long as the rest of a start."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


class Service:
    """A client of a running application, and the application's clock, in Unix seconds."""

    def __init__(self, app: FastAPI, client: httpx.AsyncClient, names: Names) -> None:
        self.app = app
        self.client = client
        self.names = names
        self.now = START

    async def allowed(self, url: str, agent: str = "ExampleBot", **parameters: object) -> dict[str, Any]:
        """The JSON of a decision; the request must succeed."""
        query = {"url": url, "agent": agent, **{name: str(value) for name, value in parameters.items()}}
        response = await self.client.get("/v1/allowed", params=query)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


def settings_on(store_url: str, **others: Any) -> Settings:
    """Settings of a service on that store, which may fetch from loopback, from any port."""
    values: dict[str, Any] = {
        "redis_url": store_url,
        "allow_addresses": (ip_network("127.0.0.0/8"),),
        "allow_ports": "*",
        "fetch_timeout": 5.0,
        "operator_token_file": TOKEN_FILE,
        **others,
    }
    return GivenSettings(**values)


@asynccontextmanager
async def running(
    store_url: str,
    names: Mapping[str, Sequence[str]] | None = None,
    tls: ssl.SSLContext = NO_TLS,
    spans: Spans | None = None,
    resolver: Resolver | None = None,
    store_timeout: float = STORE_TIMEOUT,
    **settings: Any,
) -> AsyncIterator[Service]:
    """The application on that store. It may fetch from loopback, and resolves only `names`, or uses `resolver`.

    Without API keys, the client is the operator.

    Calls to the store have a long timeout, for busy machines; a test of a store that hangs sets `store_timeout`.
    """
    known = Names(names or {})
    asked = resolver or known
    chosen = settings_on(store_url, **settings)

    service: Service | None = None

    def clock() -> float:
        return START if service is None else service.now

    app = create(
        chosen,
        clock=clock,
        steady=clock,
        store_clock=clock,
        store_timeout=store_timeout,
        resolver=asked,
        ssl_context=tls,
        spans=spans,
    )
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    headers = TOKEN_HEADER if chosen.api_keys_file is None else None
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client,
    ):
        service = Service(app, client, known)
        yield service


@asynccontextmanager
async def listening(service: Service) -> AsyncIterator[tuple[str, int]]:
    """The address of the application behind the production server."""
    config = uvicorn.Config(service.app, lifespan="off", log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            await serving


async def counted(service: Service, name: str, **labels: str) -> float:
    response = await service.client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return samples(response.text).get((name, frozenset(labels.items())), 0.0)


def slug(response: httpx.Response) -> str:
    assert response.headers["content-type"] == "application/problem+json"
    return str(response.json()["type"]).rpartition(":")[2]
