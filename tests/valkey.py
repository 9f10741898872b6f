"""A real Valkey for tests: one server per session, and a client per test, which flushes it."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from redis.asyncio import Redis

from app.store.connect import connect
from app.store.embedded import serve


@pytest.fixture(scope="session")
def store_url() -> Iterator[str]:
    """The URL of the session's Valkey; use `store_client`, too, to flush it."""
    with serve(None) as url:
        yield url


@pytest.fixture
async def store_client(store_url: str) -> AsyncIterator[Redis]:
    """A client of the session's Valkey, flushed before the test."""
    client = connect(store_url)
    assert isinstance(client, Redis)
    await client.flushall()
    yield client
    await client.aclose()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Suspend a server while the block lasts."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def process_of(client: Redis) -> int:
    """The process id of the client's server."""
    return int((await client.info("server"))["process_id"])
