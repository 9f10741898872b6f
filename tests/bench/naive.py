"""A naive service with FastAPI, aiohttp, redis-py and protego, which `make bench NAME=crawl` compares with.

It fetches a file once, keeps it for a day and answers from it. Only the time of a fetch is bounded, no address is
refused, and two callers that ask about a new origin at once both fetch it. `python -m tests.bench.naive PORT`, where
REDIS_URL names the store.
"""

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import uvicorn
from aiohttp.abc import AbstractResolver, ResolveResult
from fastapi import FastAPI
from pydantic import BaseModel
from redis.asyncio import Redis

DAY = 86_400


class Loopback(AbstractResolver):
    """Every name is this machine's, so that the time of a resolver counts for no contestant."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": family, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        pass


class Answer(BaseModel):
    """What a crawler needs to know of a page."""

    url: str
    allowed: bool
    crawl_delay: float | None


def application(store_url: str) -> FastAPI:
    """The service; its store is at `store_url`."""
    parse: Any = import_module("protego").Protego.parse
    clients: dict[str, Any] = {}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(resolver=Loopback(), use_dns_cache=False)
        async with aiohttp.ClientSession(connector=connector) as http, Redis.from_url(store_url) as store:
            clients.update(http=http, store=store)
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/v1/allowed")
    async def allowed(url: str, agent: str) -> Answer:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        content: bytes | None = await clients["store"].get(f"naive:{origin}")
        if content is None:
            timeout = aiohttp.ClientTimeout(total=10)
            async with clients["http"].get(f"{origin}/robots.txt", timeout=timeout) as response:
                content = await response.read() if response.status == 200 else b""
            await clients["store"].set(f"naive:{origin}", content, ex=DAY)
        file = parse(content.decode(errors="replace"))
        return Answer(url=url, allowed=file.can_fetch(url, agent), crawl_delay=file.crawl_delay(agent))

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(os.environ["REDIS_URL"]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=False,
        log_level="warning",
    )
