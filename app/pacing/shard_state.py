"""A process's view of one shard of the store: its clock, whether it fails, and what must still be reported to it."""

from typing import NamedTuple

from app.cache.byte_lru import BoundedDict
from app.pacing.local_pacer import HORIZON
from app.pacing.slots import PaceKey, SlotRequest
from app.store.guarded_client import COOLDOWN
from app.store.store_clock import ShardClock

PROBE_INTERVAL = COOLDOWN + 0.1
"""Seconds between two probes of a failed shard. After the first that fails, this process gives slots by itself."""

SLACK = 0.5
"""Seconds by which other processes may have lengthened a queue since this process last saw it."""

RECOVERY_PERIOD = HORIZON + PROBE_INTERVAL + SLACK
"""Seconds after a shard is back before it gives slots again. Until then, callers may still use slots that processes
gave by themselves, and every process reports its own to the shard."""


class UnreportedSlot(NamedTuple):
    """A slot that was given without the store, and when it ends, by the steady clock."""

    request: SlotRequest
    ends: float


class ShardState:
    """The state of one shard. `failing_since` is by the steady clock, None while calls succeed.

    `local` says that this process has given the shard up for now and gives slots by itself. `unreported_backoffs` are
    keys of pools with a backoff that the shard may not know.
    """

    def __init__(self, shard: int, clock: ShardClock) -> None:
        """`clock` is the shard's clock."""
        self.shard = shard
        self.clock = clock
        self.failing_since: float | None = None
        self.local = False
        self.unreported_slots: BoundedDict[PaceKey, UnreportedSlot] = BoundedDict()
        self.unreported_backoffs: BoundedDict[PaceKey, None] = BoundedDict()
        self._recovered_at = float("-inf")

    def recover(self) -> bool:
        """Note that the shard answered. Return whether this process gave slots by itself until now."""
        was_local, self.local, self.failing_since = self.local, False, None
        if was_local:
            self._recovered_at = self.clock.steady()
        return was_local

    def closed_for(self) -> float:
        """Seconds for which the shard's queues must give no slots: what is left of the recovery period."""
        if self.local:
            return RECOVERY_PERIOD
        return max(0.0, self._recovered_at + RECOVERY_PERIOD - self.clock.steady())
