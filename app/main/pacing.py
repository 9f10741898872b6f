"""How permits are given: by the fleet's queues in the store, or by this process's own share while it is down."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from app.main.decisions import Decisions
from app.main.files import Files
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from app.main.store import Store
from app.observability.metrics import Metrics
from app.pacing.fleet_secret import FleetSecret
from app.pacing.local_pacer import LocalPacer
from app.pacing.membership import FleetMembership
from app.pacing.pacer import Pacer
from app.pacing.permits import Permits
from app.pacing.redis_pacer import RedisPacer


class Pacing:
    """The permits, and what they need of the fleet: its members and the secret that permits are signed with."""

    def __init__(
        self,
        settings: Settings,
        operators: OperatorFiles,
        store: Store,
        files: Files,
        decisions: Decisions,
        metrics: Metrics,
    ) -> None:
        instances, secret = settings.pace_instances, settings.permit_secret
        self.pacer = Pacer(
            RedisPacer(store.redis, clocks=store.clocks, latency_factor=settings.pace_latency),
            LocalPacer(None if instances is None else instances * settings.workers, lambda: self._membership.ranks),
            store.clocks,
            clock_stepped=metrics.store_clock_steps.inc,
            backoff_given_back=metrics.backoffs_given_back.inc,
        )
        # Numbers are in the order of names: a process that joins is the last and changes the number of no other.
        name = f"{time.time():.0f}-{files.snapshots.name}"
        self._membership = FleetMembership(store.redis, name, self.pacer.on_loss)
        self._secret = FleetSecret(store.redis, None if secret is None else secret.get_secret_value())
        self.permits = Permits(
            decisions.decider,
            self.pacer,
            operators.pool_of,
            operators.bounds,
            self._secret,
            metrics,
            decisions.edge,
            lambda key, seconds: files.lists.note_backoff(key, store.clocks.fleet() + seconds),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take part in the fleet while the block lasts."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.pacer.aclose)
            await stack.enter_async_context(self._membership.running())
            await stack.enter_async_context(self._secret.running())
            yield
