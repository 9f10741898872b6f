"""A Decider for one command, with an empty cache and without a store."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from app.agents_file import OwnAgents
from app.cache.freshness import Snapshot
from app.cache.invalidation import Event
from app.cache.lease import Taken
from app.cache.ordering import Purged
from app.cache.robots_cache import RobotsCache
from app.cache.snapshot_store import Put
from app.cache.visits import Tally, Visits
from app.cached_files import CachedFiles
from app.decide import Decider, Models
from app.fetch.network import SystemResolver, client_tls
from app.history.reader import HistoryReader
from app.main.fetching import counted_fetch, fetcher_from
from app.main.operator_files import domain_table, recheck_models
from app.observability.metrics import Metrics, ServiceState
from app.redis.store_clock import StoreClock
from app.reread import Reread
from app.settings import Settings
from robots_core.origin import Origin


class NullStore:
    """A store that is always empty and grants every lease."""

    async def get(self, _origin: Origin) -> Snapshot | Purged | None:
        return None

    async def put(self, _origin: Origin, snapshot: Snapshot, _keep_seconds: float, _lease: str = "") -> Put:
        return Put(snapshot, None)

    async def purge(self, _origin: Origin, _keep_seconds: float, _at: float | None = None) -> None: ...

    async def now(self, _origin: Origin) -> float:
        return time.time()

    async def suspect(self, _origin: Origin, _seconds: float) -> bool:
        return False

    async def publish(self, _event: Event, _origin: Origin) -> None: ...

    async def take(self, _origin: Origin, _token: str, _seconds: float, *, by_force: bool = False) -> Taken:  # noqa: ARG002 - as LeaseStore has it
        return Taken(time.time(), None)

    async def renew(self, _origin: Origin, _token: str, _seconds: float) -> None: ...

    async def release(self, _origin: Origin, _token: str) -> None: ...


class NullVisits:
    """Visit counts that are always empty."""

    async def read(self, _origin: Origin) -> Tally | None:
        return None

    async def add(self, tallies: Mapping[Origin, Tally]) -> Mapping[Origin, Tally | None]:
        return tallies


@asynccontextmanager
async def standalone(settings: Settings, agents: Reread[OwnAgents]) -> AsyncIterator[Decider]:
    """Yield a Decider with an empty cache, which fetches as the settings and the file of agents say."""
    resolver = SystemResolver()
    fetcher = fetcher_from(settings, resolver, client_tls(), agents)

    metrics = Metrics(lambda: ServiceState(False, False, fetcher.queue.in_flight, fetcher.queue.waiting, {}))
    store = NullStore()
    clock = StoreClock(time.time, time.monotonic)
    cache = RobotsCache(store, store, counted_fetch(fetcher, metrics), clock, settings.memory_bytes // 2)
    history, visits = HistoryReader(cache, None, clock), Visits(NullVisits(), clock)
    files = CachedFiles(cache, history, own_models(settings), visits, clock, settings.memory_bytes // 2)
    decider = Decider(files, clock, forbidden=settings.forbidden, metrics=metrics, monotonic=time.monotonic)
    async with AsyncExitStack() as stack:
        stack.callback(resolver.close)
        stack.push_async_callback(fetcher.aclose)
        stack.push_async_callback(cache.aclose)
        yield decider


def own_models(settings: Settings) -> Models:
    """The recheck models of the settings and of the table that they name."""
    return recheck_models(settings, domain_table(settings))
