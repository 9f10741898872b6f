"""What a process knows of the pacing in one shard of the store: its clock, whether it fails, and what it is owed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from app.pacing.local_pacer import HORIZON, LANES
from app.pacing.slots import PaceKey, SlotRequest
from app.redis.guarded_client import COOLDOWN

PATIENCE = COOLDOWN + 0.1
"""Seconds after which a shard that failed is tried once more, before this process paces alone."""

SLACK = 0.5
"""Seconds by which others may have lengthened a queue since this process last saw it."""

RECOVERY_PERIOD = HORIZON + PATIENCE + SLACK
"""Seconds after a shard is back before slots are given again. Until then, others may use those that they gave alone,
and every process tells the store of its own."""


class Owed(NamedTuple):
    """A slot that was given without the store: when the fleet's pace has made up for it, by the store's clock."""

    wish: SlotRequest
    ends: float


@dataclass(slots=True)
class ShardState:
    """Instants are of this process's monotonic clock, in seconds.

    `ahead` is what to add to it for the shard's clock, None before the first answer. `failing_since` is when the calls
    began to fail, None while they do not; `alone` is whether this process has given them up and paces alone since.
    """

    ahead: float | None = None
    failing_since: float | None = None
    alone: bool = False
    recovered_at: float = float("-inf")
    owed: dict[PaceKey, Owed] = field(default_factory=dict)
    owed_back_offs: dict[PaceKey, tuple[float, str | None]] = field(default_factory=dict)  # until, by the shard's clock

    def recover(self, at: float) -> bool:
        """Note that the store answered. Whether this process paced alone until now."""
        was_alone, self.alone, self.failing_since = self.alone, False, None
        if was_alone:
            self.recovered_at = at
        return was_alone

    def hold(self, now: float) -> float:
        """Seconds for which a queue is to stay closed now: RECOVERY_PERIOD once this process no longer paces alone."""
        return RECOVERY_PERIOD if self.alone else max(0.0, self.recovered_at + RECOVERY_PERIOD - now)

    def owe(self, slot: Owed) -> None:
        """Remember a slot to tell the store of; beyond LANES, the oldest is forgotten."""
        self.owed.pop(slot.wish.lane, None)
        if len(self.owed) >= LANES:
            del self.owed[next(iter(self.owed))]
        self.owed[slot.wish.lane] = slot

    def owe_back_off(self, lane: PaceKey, until: float, reporter: str | None) -> None:
        """Remember a back-off to tell the store of; beyond LANES, the oldest is forgotten."""
        if len(self.owed_back_offs) >= LANES:
            del self.owed_back_offs[next(iter(self.owed_back_offs))]
        self.owed_back_offs[lane] = until, reporter

    def take_owed(self) -> Iterator[Owed]:
        """What the store is owed, each removed before it is given."""
        while self.owed:
            yield self.owed.pop(next(iter(self.owed)))
