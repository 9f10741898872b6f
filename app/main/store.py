"""The store that processes share, as the settings describe it."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from app.main.settings import BadSetting, Settings
from app.observability.metrics import Metrics
from app.store import url as redis_url
from app.store.connect import connect_to
from app.store.eviction import EvictionPolicy
from app.store.guarded_client import GuardedClient, StoreDown
from app.store.store_clock import StoreClocks


class Store:
    """The client of the store, the calls through it, its clocks, what it would drop if full, and its files.

    It connects when it is first used.
    """

    def __init__(self, settings: Settings, metrics: Metrics, clocks: StoreClocks, timeout: float) -> None:
        """`timeout` is in seconds, for one call. Raises BadSetting."""
        if settings.redis_url is None:
            raise BadSetting("REDIS_URL is not set: set it, or run `python -m app`, which starts an embedded Valkey.")
        try:
            target = redis_url.read(settings.redis_url, settings.redis_password_file)
        except ValueError as error:
            raise BadSetting(str(error)) from None
        self.files = target.files
        self.clocks = clocks
        self.client = connect_to(target)
        self.redis = GuardedClient(
            self.client,
            monotonic=time.monotonic,
            timeout=timeout,
            failed=metrics.store_failed,
            answered=metrics.store_seconds.observe,
        )
        self.eviction = EvictionPolicy(self.redis, time.monotonic)

    async def probe(self) -> None:
        """Find out whether the store can be used, and what its time is; it is marked as degraded if it cannot."""
        with suppress(StoreDown):
            asked = time.monotonic()
            self.clocks.sync(await self.redis.ping(), asked)
        await self.eviction.read()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connect now, so that no caller has to wait for it, and close the connections at the end of the block."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.client.aclose)
            stack.push_async_callback(self.redis.aclose)
            await self.probe()
            yield
