"""The objects that routes use, in one typed container that the composition root fills."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from fastapi import Request

from app.api.answers.answer_caching import AnswerCaching
from app.api.answers.encoding import AnswerEncoder
from app.api.change_polls import ChangePolls
from app.api.long_work import LongWork
from app.api.sites.reader import SiteReader
from app.cache.fetch_health import FetchHealth
from app.cache.freshness import Snapshot
from app.cache.origin_lists import OriginLists
from app.decisions.cached_files import Models
from app.decisions.decider import Decider
from app.edge.replica import EdgeFacts
from app.fetch.profile import FetchProfile
from app.history.reader import HistoryReader
from app.loop.work_turns import WorkTurns
from app.observability.metrics import Metrics
from app.overrides.replica import Overrides
from app.pacing.permits import Permits
from app.store.eviction import EvictionPolicy
from app.store.guarded_client import GuardedClient
from robots_core.agents.directory import AgentDirectory
from robots_core.origin import Origin
from robots_core.purposes.policy import PurposePolicy

if TYPE_CHECKING:  # of the extra `signatures`
    from app.identity.directory import Identity


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that routes use.

    `agents` gives the crawlers that are known now, `profiles` the fetch profiles, `identities` what sites
    may get of them, by host, `snapshot_of` the fleet's snapshot of an origin, and `pool_of` its pool. `policy` is that
    of callers whose API key has none. `stopping` is set when the server stops: what waits ends, so that the server need
    not wait for it. `store_required`: not ready until the overrides have been read from the store once.
    """

    decider: Decider
    history: HistoryReader
    encoder: AnswerEncoder
    caching: AnswerCaching
    store: GuardedClient
    fetch_health: FetchHealth
    eviction: EvictionPolicy
    metrics: Metrics
    models: Models
    agents: Callable[[], AgentDirectory]
    profiles: Callable[[], Mapping[str, FetchProfile]]
    identities: Callable[[], Mapping[str, "Identity"]]
    forbidden: bool
    policy: PurposePolicy
    overrides: Overrides
    permits: Permits
    pool_of: Callable[[Origin], str]
    edge: EdgeFacts
    origin_lists: OriginLists
    change_polls: ChangePolls
    snapshot_of: Callable[[Origin], Awaitable[Snapshot | None]]
    turns: WorkTurns
    long_work: LongWork
    sites: SiteReader
    now: Callable[[], datetime]
    stopping: asyncio.Event
    store_required: bool


def services_of(request: Request) -> Services:
    """The services of the request's application."""
    services: Services = request.scope["app"].state["services"]  # by attributes, it takes four times as long
    return services
