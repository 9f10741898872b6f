"""A real Valkey for tests: one server per session, and per test a client of it whose server holds nothing."""

from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from app.cache.embedded import serve
from app.cache.engines import connect


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
