"""What tests of the cache may ask for, beside a store: a bad line to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.faults.proxy import Proxy, proxy


@pytest.fixture
async def between(store_url: str, store_client: Redis, tmp_path: Path) -> AsyncIterator[Proxy]:
    """The way to the test's empty store."""
    async with proxy(store_url, tmp_path) as one:
        yield one
