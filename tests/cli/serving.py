"""The service on loopback, in a process of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.forked import ForkedService


@asynccontextmanager
async def service(store_url: str, **others: str) -> AsyncIterator[str]:
    """Yield the URL of a service on this store that may fetch from loopback; `others` are more settings."""
    one = await asyncio.to_thread(ForkedService, store_url, **others)
    try:
        yield await asyncio.to_thread(one.listen)
    finally:
        one.kill()
