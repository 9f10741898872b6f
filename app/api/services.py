"""What the routes need of the rest of the service: one typed object, which the composition root makes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request

from app.api.encoding import AnswerEncoder
from app.api.long_work import LongWork
from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Snapshot
from app.cache.origin_lists import OriginLists
from app.decide import Decider, Models
from app.observability.metrics import Metrics
from app.origin import Origin
from app.overrides.replica import Overrides
from app.pacing.permits import Permits
from app.redis.eviction import EvictionPolicy
from app.redis.guarded_client import GuardedClient


class Phase(StrEnum):
    """Where the application is in its life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(slots=True)
class Lifecycle:
    """The phase, which the lifespan of the application sets."""

    phase: Phase = Phase.STARTING


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that routes use. `snapshot_of` is the snapshot that the fleet has of an origin."""

    decider: Decider
    encoder: AnswerEncoder
    store: GuardedClient
    fetch_health: FetchHealth
    eviction: EvictionPolicy
    metrics: Metrics
    models: Models
    forbidden: bool
    overrides: Overrides
    permits: Permits
    origin_lists: OriginLists
    snapshot_of: Callable[[Origin], Awaitable[Snapshot | None]]
    long_work: LongWork
    now: Callable[[], datetime]
    lifecycle: Lifecycle = field(default_factory=Lifecycle)


def services_of(request: Request) -> Services:
    """The services of the application that got the request, for routes that FastAPI does not call."""
    services: Services = request.app.state.services
    return services


async def _services(request: Request) -> Services:
    return services_of(request)  # async, or FastAPI would call it in a thread


ServicesDep = Annotated[Services, Depends(_services)]
