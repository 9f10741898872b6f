"""The clock of the store, by which all processes date and order what they learn, as one process knows it.

The store's clock may be wrong, but it is the same for all. It may be set, and another server may take over. So what a
process remembers for itself, it remembers by a clock that is never set: `steady`, such as time.monotonic.
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

STEP = 1.0
"""Seconds by which a clock has to be off to count as set: a call may wait for nearly as long in a busy process."""

OFF = 10.0
"""Seconds by which the clocks of a process and of the store may differ before it is logged, as in RobotsClockOffset."""

_log = logging.getLogger(__name__)

MAX_STEPS = 4
"""How many forward steps of a clock are remembered, the last ones."""


class ForwardStep(NamedTuple):
    """A clock was set forward `by` seconds at most. Until then, it had shown `before` (Unix seconds) at most."""

    before: float
    by: float


class StoreClock:
    """The clock of a server (Unix seconds). Until the server has said its time, it is this process's own.

    `first_step` is by how many seconds the server's was ahead of this process's when it was read for the first time.
    """

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        """`clock` is this process's, in Unix seconds; `steady` is one that is never set."""
        self.first_step = 0.0
        self._clock = clock
        self._steady = steady
        self._ahead: float | None = None  # of `steady`; less than it is by the time that the reply took

    def __call__(self) -> float:
        return self.at(self._steady())

    def steady(self) -> float:
        """The present instant of the clock that is never set."""
        return self._steady()

    @property
    def known(self) -> bool:
        """Whether the server has said its time."""
        return self._ahead is not None

    @property
    def offset(self) -> float:
        """Seconds by which the server's clock is ahead of this process's, as far as known."""
        return self() - self._clock()

    def at(self, steady: float) -> float:
        """The server's time at an instant of the steady clock."""
        return steady + (self._clock() - self._steady() if self._ahead is None else self._ahead)

    def sync(self, now: float) -> None:
        """Note that the server says that it is `now`."""
        if self._ahead is None:
            self.first_step = now - self._clock()
        self._ahead = now - self._steady()


class ShardClock(StoreClock):
    """The clock of a shard's server, which tells the forward steps that were found in `steps`.

    They are forgotten when the clock is set back, because then the same times come again.
    """

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        """As for StoreClock."""
        super().__init__(clock, steady)
        self.steps: tuple[ForwardStep, ...] = ()
        self._at_most = 0.0  # as `_ahead`, but more than it is by the time that the request took

    def latest(self) -> float:
        """If the server says a later time now, its clock was set forward; 0 if it has not said its time yet."""
        return 0.0 if self._ahead is None else self._steady() + self._at_most + STEP

    def sync_reply(self, now: float, asked: float) -> None:
        """Note that the server says that it is `now`, in reply to what was sent after `asked`, by the steady clock."""
        if self._ahead is not None:
            if now > self.latest():
                step = ForwardStep(asked + self._at_most + STEP, now - asked - self._ahead)
                self.steps = (*self.steps, step)[-MAX_STEPS:]
            elif now < asked + self._ahead - STEP:
                self.steps = ()
        self.sync(now)
        self._at_most = now - asked


class StoreClocks:
    """The clocks of the store's servers, by shard, and `fleet`, by which this process dates and judges what it learns.

    There is one server, unless the store is a cluster; then `fleet` is the clock of the server that was read last.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        steady: Callable[[], float],
        *,
        fleet: StoreClock | None = None,
        server: Callable[[], float] | None = None,
    ) -> None:
        """As for StoreClock; tests replace `fleet`, and by `server` the time that it is set to."""
        self.fleet = fleet or StoreClock(clock, steady)
        self.server = server
        self._clock = clock
        self._steady = steady
        self._shards: dict[int, ShardClock] = {}
        self._is_off = False

    @property
    def offset(self) -> float:
        """Seconds by which the server that is farthest from this process's clock is ahead of it; 0 if none is known."""
        return max((clock.offset for clock in self._shards.values() if clock.known), key=abs, default=0.0)

    def sync(self, times: Mapping[int, float], asked: float) -> None:
        """Note what the servers said, by shard, in reply to what was sent after `asked`, by the steady clock."""
        for shard, now in times.items():
            self.of(shard).sync_reply(now, asked)
            self.fleet.sync(now if self.server is None else self.server())
        self._log_offset()

    def _log_offset(self) -> None:
        """Log when the clocks begin to differ, and when they agree again."""
        offset, was_off = self.offset, self._is_off
        self._is_off = abs(offset) > OFF
        if self._is_off and not was_off:
            side = "ahead of" if offset > 0 else "behind"
            _log.warning("The store's clock is %.0f s %s that of this process. Set the wrong one.", abs(offset), side)
        elif was_off and not self._is_off:
            _log.warning("The clocks of the store and of this process agree again, to %.0f s", OFF)

    def of(self, shard: int) -> ShardClock:
        """The clock of the shard's server."""
        clock = self._shards.get(shard)
        if clock is None:
            clock = self._shards[shard] = ShardClock(self._clock, self._steady)
        return clock


def server_time(reply: object, clock: Callable[[], float] | None = None) -> float | None:
    """What TIME replied, in Unix seconds, or by `clock` if that is given; None for anything else."""
    match reply:
        case [bytes(seconds), bytes(micros)] if seconds.isdigit() and micros.isdigit() and len(seconds) < 12:
            return int(seconds) + int(micros[:6]) / 1e6 if clock is None else clock()
        case _:
            return None
