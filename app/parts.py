"""Parts that take more than a line to make: for the service, and for commands that decide by themselves."""

import os
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from app.cache.recheck import DomainTable, model
from app.decide import Models
from app.fetch.client import Fetcher
from app.fetch.guard import AddressGuard, PortPolicy
from app.fetch.network import Resolver
from app.observability.metrics import Metrics
from app.origin import Origin
from app.pacing.schedule import Bounds, bounds
from app.redis.connect import Client, connect
from app.reread import Reread
from app.robots.access import Busy, Fetched, Validators
from app.robots.judge import recognise_challenge
from app.settings import BadSetting, Settings

T = TypeVar("T")


def connected(url: str | None, connections: int) -> Client:
    """A client of the store at REDIS_URL, which connects when it is first needed; raises BadSetting."""
    if url is None:
        raise BadSetting("REDIS_URL is not set: set it, or start with `python -m app`, which brings its own server.")
    try:
        return connect(url, connections)
    except ValueError as error:
        raise BadSetting(str(error)) from None


def instance_name(workers: int) -> str:
    """What the workers of one service have in common, and no other service: they share a way to the network."""
    return f"{socket.gethostname()}/{os.getppid() if workers > 1 else os.getpid()}"


def reread(name: str, path: Path | None, load: Callable[[Path], T]) -> Reread[T] | None:
    """The file that the setting `name` names, where it names one."""
    return None if path is None else Reread(name, path, load)


def fetcher_of(settings: Settings, resolver: Resolver, ssl_context: ssl.SSLContext) -> Fetcher:
    """The fetcher that the settings ask for."""
    return Fetcher(
        user_agent=settings.user_agent,
        guard=AddressGuard(settings.allow_addresses),
        ports=PortPolicy(every=True) if settings.allow_ports == "*" else PortPolicy(settings.allow_ports),
        resolver=resolver,
        ssl_context=ssl_context,
        timeout=settings.fetch_timeout,
    )


def fetching(fetcher: Fetcher, metrics: Metrics) -> Callable[[Origin, Validators], Awaitable[Fetched]]:
    """A fetch as the cache asks for one: counted, and a page that asks for proof of being human told from a file."""

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


def models_of(settings: Settings, table: Reread[DomainTable] | None) -> Models:
    """The recheck model in force for a host and a crawler, as the table says now and the settings say without it."""
    empty = DomainTable({})
    return lambda host, own: model(empty if table is None else table.value, host, own, settings.recheck_model)


def bounds_of(own: Bounds, table: Reread[DomainTable] | None) -> Callable[[str], Bounds]:
    """The bounds of a host's pace, as the table says now, and the service's `own` where it says nothing."""
    return lambda host: own if table is None else bounds(own, table.value.pace(host))
