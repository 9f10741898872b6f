"""The fetcher that the settings describe, and the fetch that the cache calls; for the service and for commands."""

import ssl
import time
from collections.abc import Callable

from app.cache.robots_cache import Fetch
from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import HostsShareAddress, Resolver
from app.fetch.profile import FetchProfile
from app.fetch.proxy import Tunnels, read_proxy
from app.fetch.sockets import connect
from app.files.reloaded_file import ReloadedFile
from app.main.agents_file import OwnAgents
from app.main.settings import Settings
from app.observability.metrics import Metrics
from robots_core.origin import Origin
from robots_core.robots.access import Busy, Fetched, Validators
from robots_core.robots.judge import recognise_challenge


def fetcher_from(
    settings: Settings,
    resolver: Resolver,
    ssl_context: ssl.SSLContext,
    agents: ReloadedFile[OwnAgents],
    clock: Callable[[], float] = time.time,
) -> Fetcher:
    """The fetcher that the settings describe, with the fetch profiles of the operator's own crawlers.

    `clock` (Unix seconds) reads dates of responses, and dates signatures.
    """
    proxy = settings.fetch_proxy
    return Fetcher(
        profile=FetchProfile(settings.user_agent),
        profiles=lambda: agents.value.profiles,
        guard=AddressGuard(settings.allow_addresses),
        ports=PortPolicy(every=True) if settings.allow_ports == "*" else PortPolicy(settings.allow_ports),
        resolver=resolver,
        ssl_context=ssl_context,
        connect=connect if proxy is None else Tunnels(read_proxy(proxy), resolver),
        timeout=settings.fetch_timeout,
        per_address=settings.fetches_per_address,
        now=clock,
    )


def counted_fetch(fetcher: Fetcher, metrics: Metrics) -> Fetch:
    """The fetch that the cache calls: it recognises challenge pages, and counts the outcome."""

    async def fetch(origin: Origin, validators: Validators, caller: str) -> Fetched:
        begun = time.monotonic()
        try:
            fetched = recognise_challenge(await fetcher.fetch(origin, validators, caller))
        except Busy as busy:
            metrics.fetch_refused("address" if isinstance(busy, HostsShareAddress) else "queue")
            raise
        metrics.fetched(fetched.access, time.monotonic() - begun)
        return fetched

    return fetch
