"""The types that all parts of pacing share: a slot request, its result, and the state of a queue of slots."""

from typing import NamedTuple, TypeAlias

from app.pacing.schedule import Bound, PaceWindow
from robots_core.robots.agents import agent_key

NAMED = "pool:"
"""The beginning of a pool that the domain table names. No host and no origin begins so."""


class PaceKey(NamedTuple):
    """A queue of slots: the agents of one product token in one pool (`pools.py`)."""

    pool: str
    agent: str

    @classmethod
    def of(cls, pool: str, token: str) -> "PaceKey":
        """The key of a product token in a pool."""
        return cls(pool, agent_key(token))

    @property
    def name(self) -> str | None:
        """The name of the pool in the domain table; None if it has none there."""
        return self.pool.removeprefix(NAMED) if self.pool.startswith(NAMED) else None


class SlotRequest(NamedTuple):
    """A request for the next slot. `cost` is in documents, `max_wait` in seconds.

    `windows` is the pace. Slots are shared fairly between values of `caller`, or where that is `<key id>/<name>`, first
    between API keys and then between the callers of a key. `fetched_at` (Unix seconds, 0 for never) is the last fetch
    of robots.txt, which counts as a document. `origin` is the key of the page's origin, and `cap` the longest interval
    that the operator lets the time of pages and refusals set. `budget` is how many documents a day the pool may have, 0
    for any number.
    """

    key: PaceKey
    windows: tuple[PaceWindow, ...]
    caller: str
    cost: float = 1.0
    max_wait: float = 0.0
    fetched_at: float = 0.0
    origin: str = ""
    cap: float = 86_400.0
    budget: int = 0

    @property
    def key_id(self) -> str:
        """The id of the caller's API key; empty without API keys."""
        return self.caller.rpartition("/")[0]


class Slot(NamedTuple):
    """A reserved slot. It begins at `go_at` (Unix seconds by the store's clock), in `wait` seconds.

    `name` identifies it in its queue. `interval` is the seconds between documents at that time, and `bound` what
    decided that.
    """

    key: PaceKey
    name: str
    go_at: float
    wait: float
    interval: float
    bound: Bound = "floor"


class WaitTooLong(NamedTuple):
    """Nothing was reserved: the next free slot is in `wait` seconds, and the caller's turn in `retry_after`."""

    wait: float
    retry_after: float
    interval: float
    bound: Bound = "floor"


SlotResult: TypeAlias = Slot | WaitTooLong


FIRST_BACKOFF, LONGEST_BACKOFF, BACKOFF_RESET_AFTER = 10.0, 3600.0, 600.0
"""Seconds for which the fleet leaves a pool alone after a 429 or 503.

They double from the first to the longest, and start again once the pool was quiet for so long.
"""

MAX_CONFIRMED, MAX_UNCONFIRMED = 86_400.0, 600.0
"""Seconds of the longest backoff that a Retry-After may ask for, and of one that a single reporter has asked for.

A longer one takes a second reporter, or an operator.
"""


def backoff_alone(retry_after: float, *, confirmed: bool) -> float:
    """Seconds of a backoff that begins without the store; `confirmed`: an operator asked for it.

    Without the store there is no history, so every backoff counts as the first of its run.
    """
    return min(max(retry_after, FIRST_BACKOFF), MAX_CONFIRMED if confirmed else MAX_UNCONFIRMED)


class QueueState(NamedTuple):
    """A queue as seen at `seen_at`: when its last slot ends, and how many slots it has ever given.

    Both instants are in seconds of one clock: the store's (Unix) as the store says them, and a steady one as a process
    remembers them, since the store's may be set. So only their difference is told to the store.
    """

    ends: float = 0.0
    given: int = 0
    seen_at: float = 0.0


class QueueView(NamedTuple):
    """What the store says about a queue. `backoff_until` is Unix seconds by the store's clock, or 0.

    `clock_step` is by how many seconds the store's clock was found to be set back (negative: forward); the queue was
    moved by as much. `given_back`: the store did not have the end of the backoff that this process remembers.
    `latency` is the mean time of a page in seconds, 0 if none was reported. It and refusals set the interval `least`,
    by `bound`.
    """

    queue: QueueState
    backoff_until: float = 0.0
    clock_step: float = 0.0
    given_back: bool = False
    latency: float = 0.0
    least: float = 0.0
    bound: Bound = "latency"
