"""The fetcher, as the settings ask for it and as the cache calls it; for the service and for standalone commands."""

import ssl
import time
from collections.abc import Awaitable, Callable

from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import Resolver
from app.observability.metrics import Metrics
from app.origin import Origin
from app.robots.access import Busy, Fetched, Validators
from app.robots.judge import recognise_challenge
from app.settings import Settings


def fetcher_from(settings: Settings, resolver: Resolver, ssl_context: ssl.SSLContext) -> Fetcher:
    """The fetcher that the settings describe."""
    return Fetcher(
        user_agent=settings.user_agent,
        guard=AddressGuard(settings.allow_addresses),
        ports=PortPolicy(every=True) if settings.allow_ports == "*" else PortPolicy(settings.allow_ports),
        resolver=resolver,
        ssl_context=ssl_context,
        timeout=settings.fetch_timeout,
    )


def counted_fetch(fetcher: Fetcher, metrics: Metrics) -> Callable[[Origin, Validators], Awaitable[Fetched]]:
    """The fetch that the cache calls: challenge pages are told from files, and metrics count the outcome."""

    async def fetch(origin: Origin, validators: Validators) -> Fetched:
        begun = time.monotonic()
        try:
            fetched = recognise_challenge(await fetcher.fetch(origin, validators))
        except Busy:
            metrics.fetch_overloaded()
            raise
        metrics.fetched(fetched.access, time.monotonic() - begun)
        return fetched

    return fetch
