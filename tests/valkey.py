"""A real Valkey for tests: one server per session, and per test a client of it whose server holds nothing."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from redis.asyncio import Redis

from app.redis.connect import Client, connect
from app.redis.embedded import serve


@pytest.fixture(scope="session")
def store_url() -> Iterator[str]:
    """The URL of the session's Valkey, for what connects by itself; ask for `store_client` too to find it empty."""
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
    """A server that hangs for the length of the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def process_of(client: Client) -> int:
    """The process of the server that a client talks to."""
    return int((await client.info("server"))["process_id"])
