"""How permits are given: by the fleet's queues in the store, or by this process's own share while it is down."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.main.decisions import Decisions
from app.main.files import Files
from app.main.settings import Settings
from app.main.store import Store
from app.observability.metrics import Metrics
from app.pacing.fleet_secret import FleetSecret
from app.pacing.local_pacer import LocalPacer
from app.pacing.membership import FleetMembership
from app.pacing.pacer import Pacer
from app.pacing.permits import Permits
from app.pacing.redis_pacer import RedisPacer
from app.pacing.schedule import Bounds
from robots_core.origin import Origin


@dataclass(frozen=True, slots=True)
class Pacing:
    """The permits, and what they need of the fleet: its members and the secret that permits are signed with."""

    permits: Permits
    pacer: Pacer
    membership: FleetMembership
    secret: FleetSecret

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take part in the fleet while the block lasts."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.pacer.aclose)
            await stack.enter_async_context(self.membership.running())
            await stack.enter_async_context(self.secret.running())
            yield


def make_pacing(
    settings: Settings,
    store: Store,
    files: Files,
    decisions: Decisions,
    pool_of: Callable[[Origin], str],
    bounds: Callable[[str, str], Bounds],
    metrics: Metrics,
) -> Pacing:
    """The pacing of a fleet; `bounds` are the operator's, by host and agent; `pool_of` gives an origin's pool."""
    instances, secret = settings.pace_instances, settings.permit_secret
    local_pacer = LocalPacer(None if instances is None else instances * settings.workers, lambda: membership.ranks)
    pacer = Pacer(
        RedisPacer(store.redis, clocks=store.clocks, latency_factor=settings.pace_latency),
        local_pacer,
        store.clocks,
        clock_stepped=metrics.store_clock_steps.inc,
        backoff_given_back=metrics.backoffs_given_back.inc,
    )
    # Numbers are in the order of names: a process that joins is the last and changes the number of no other.
    membership = FleetMembership(store.redis, f"{time.time():.0f}-{files.snapshots.name}", pacer.on_loss)
    fleet_secret = FleetSecret(store.redis, None if secret is None else secret.get_secret_value())

    def on_backoff(key: str, seconds: float) -> None:
        files.lists.note_backoff(key, store.clocks.fleet() + seconds)

    permits = Permits(decisions.decider, pacer, pool_of, bounds, fleet_secret, metrics, decisions.edge, on_backoff)
    return Pacing(permits, pacer, membership, fleet_secret)
