"""What is asked of a pace, and what it answers: the words that all of its parts share."""

import hashlib
from dataclasses import dataclass
from typing import TypeAlias

from app.origin import Origin
from app.pacing.schedule import PaceWindow

LONGEST_TOKEN = 64
"""Characters of a product token that stand in a lane as they are; of a longer one, its hash does."""


@dataclass(frozen=True, slots=True)
class PaceKey:
    """Who takes turns: the agents of one product token at one origin, or, with `token` None, all at one address."""

    place: str
    token: str | None

    @classmethod
    def of(cls, origin: Origin, token: str) -> "PaceKey":
        """An agent's lane at an origin."""
        name = token.lower()
        if len(name) > LONGEST_TOKEN:
            name = hashlib.sha256(name.encode()).hexdigest()
        return cls(origin.key, name)


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """A slot that is asked for: `cost` in documents, `max_wait` in seconds; `caller` is who shares fairly with others.

    `spans` is the pace; `fetched_at` (Unix seconds, 0 for never) is the last visit for robots.txt, which is charged to
    it; `not_before` (Unix seconds of the store's clock) is the earliest instant that will do.
    """

    lane: PaceKey
    spans: tuple[PaceWindow, ...]
    caller: str
    cost: float = 1.0
    max_wait: float = 0.0
    fetched_at: float = 0.0
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Slot:
    """A reserved turn: go at `go_at` (Unix seconds, the store's clock), in `wait` seconds; it is kept by its `name`."""

    lane: PaceKey
    name: str
    go_at: float
    wait: float
    interval: float


@dataclass(frozen=True, slots=True)
class WaitTooLong:
    """Nothing was reserved: the next free slot is `wait` seconds away; ask again in `retry_after` seconds."""

    wait: float
    retry_after: float
    interval: float


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long an origin is left alone that asks for it, in seconds: doubling from `first` to `last`.

    `unconfirmed` is the most on the word of one reporter: a longer back-off takes a second reporter, or an operator.
    """

    first: float = 10.0
    last: float = 3600.0
    retry_after: float = 86_400.0
    unconfirmed: float = 600.0
    quiet: float = 600.0


Reply: TypeAlias = Slot | WaitTooLong


@dataclass(frozen=True, slots=True)
class QueueState:
    """How a lane was seen: where it ends, how many slots it ever gave, and `at` what time.

    Both instants are Unix seconds of the store's clock. That may be set back: what counts is how far they are apart.
    """

    ends: float = 0.0
    count: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueView:
    """A lane, and until when the fleet backs off from its place (Unix seconds of the store's clock), or 0.

    `step` is by how many seconds the store's clock was found to have been set back, and the lane was moved.
    """

    tail: QueueState
    backs_off_until: float = 0.0
    step: float = 0.0


def wait_too_long(wait: float, interval: float, max_wait: float) -> WaitTooLong:
    """A wait that is longer than `max_wait`.

    Others who were refused come again too, and the slot is one of them only's: so nobody is called back at once, even
    where his wait is nearly short enough.
    """
    return WaitTooLong(wait, max(wait - max_wait, min(wait, interval), max_wait / 10), interval)
