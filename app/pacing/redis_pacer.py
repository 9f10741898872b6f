"""Queues of slots in Redis or Valkey: one script call per slot, by the store's own clock."""

import math
import time
import zlib
from collections.abc import Sequence
from secrets import token_hex
from typing import Any, NamedTuple

from app.pacing.law import (
    AHEAD_FOR,
    AHEAD_SLOTS,
    CALL_TAKES,
    FAR_SLOTS,
    GRACE_SLOTS,
    LONGEST_RETRY,
    MAX_ACTIVE,
    MAX_OWN,
    MAX_SLOTS,
    MISSED_SLOTS,
    NEAR_SLOTS,
    SECOND,
    TURN_GRACE,
)
from app.pacing.page_times import NO_PAGES, PageReports
from app.pacing.schedule import Bound, window_at
from app.pacing.slots import (
    BACKOFF_RESET_AFTER,
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    MAX_CONFIRMED,
    MAX_UNCONFIRMED,
    PaceKey,
    QueueState,
    QueueView,
    Slot,
    SlotRequest,
    SlotResult,
    WaitTooLong,
)
from app.store.guarded_client import GuardedClient, UnexpectedReply
from app.store.script import Script
from app.store.store_clock import StoreClocks

BUCKETS = 4096
"""How many buckets pools are divided into. Each bucket has one hash slot of a cluster, and one record of what must not
be evicted. All processes on a store have to use the same number."""


class StateArguments(NamedTuple):
    """What every script is given first: state.lua reads it. A script gets the number of each argument as ARG_...

    Times are in microseconds.
    """

    pool: str
    """The pool's field in the record of its bucket."""
    queue: str
    """That of the queue."""
    latest: str
    """If this server's clock shows more, it was set forward since the process last heard of it; 0 if it never did."""
    unset: str
    """What it would show at least if it was not set."""
    steps: str
    """The forward steps that the process has seen: `<latest instant before> <by>`, ..."""
    backoff: str
    """The time to the end of the pool's backoff, as the process remembers it, or 0."""


class OutcomeArguments(NamedTuple):
    """What outcome.lua is given after those. Times are in microseconds."""

    what: str
    """`released`, `known` (the process remembers a backoff) or `backoff`."""
    slot: str = ""
    """The slot that is released, as it is in the set."""
    retry_after: str = ""
    """Retry-After or 0."""
    first_step: str = ""
    longest_step: str = ""
    max_retry_after: str = ""
    reset_after: str = ""
    max_unconfirmed: str = ""
    """The longest backoff on the word of one reporter."""
    reporter: str = ""
    """Empty for an operator."""


class ReserveArguments(NamedTuple):
    """What reserve.lua is given after those of state.lua, in this order, and then the windows.

    Times are in microseconds. Each window is `until` (an instant) and `interval`; the last one never ends.
    """

    max_wait: str
    """Negative: only ask."""
    cost: str
    """In documents."""
    caller: str
    """`<key id>/<name>`, without API keys `<name>`."""
    nonce: str
    closed_for: str
    """Give no slot for so long, or 0."""
    closed_if_behind: str
    """Give none for so long if slots were lost."""
    known_end: str
    """The time to the end of the queue, as this process remembers it, or 0."""
    known_count: str
    robots_fetched: str
    """When robots.txt was last fetched, or 0."""
    pages: str
    """How many pages were reported to the process since its last call."""
    mean: str
    """The mean of their times."""
    timed_out: str
    """1 if one timed out."""
    succeeded: str
    """1 if one was a 2xx."""
    factor: str
    """PACE_LATENCY."""
    longest_by_latency: str
    """The longest interval that latency sets."""
    cap: str
    """PACE_CAP."""
    budget: str
    """Documents a day, or 0."""


def _numbers(*names: str) -> dict[str, int]:
    return {f"ARG_{name.upper()}": number for number, name in enumerate((*StateArguments._fields, *names), 1)}


_OF_RESERVE, _OF_OUTCOME = _numbers(*ReserveArguments._fields, "windows"), _numbers(*OutcomeArguments._fields)

_RESERVE = Script.load(
    __package__,
    "state.lua",
    "pace.lua",
    "reserve.lua",
    CALL_TAKES=CALL_TAKES,
    AHEAD_FOR=AHEAD_FOR,
    AHEAD_SLOTS=AHEAD_SLOTS,
    FAR_SLOTS=FAR_SLOTS,
    NEAR_SLOTS=NEAR_SLOTS,
    TURN_GRACE=TURN_GRACE,
    GRACE_SLOTS=GRACE_SLOTS,
    MISSED_SLOTS=MISSED_SLOTS,
    MAX_SLOTS=MAX_SLOTS,
    MAX_ACTIVE=MAX_ACTIVE,
    MAX_OWN=MAX_OWN,
    LONGEST_RETRY=LONGEST_RETRY,
    **_OF_RESERVE,
)
_OUTCOME = Script.load(__package__, "state.lua", "pace.lua", "outcome.lua", **_OF_OUTCOME)

_BUDGET = 3

_BOUNDS: tuple[Bound, ...] = ("latency", "latency", "backoff")
"""What decided the least interval, by the number that the script gives it; 0 is nothing."""

LATENCY_FACTOR, LONGEST_BY_LATENCY = 1.2, 30.0
"""An interval is at least so many times the mean time of a page, but that sets none longer than so many seconds."""


class RedisPacer:
    """The fleet's queues of slots, under `robots:{pace:<bucket>}:`. Every call is bounded in time."""

    def __init__(
        self,
        store: GuardedClient,
        clocks: StoreClocks | None = None,
        latency_factor: float = LATENCY_FACTOR,
    ) -> None:
        """`clocks` are those of the store's servers, which every reply sets. `latency_factor` is PACE_LATENCY."""
        self._latency_factor = latency_factor
        self._store = store
        self._clocks = clocks or StoreClocks(time.time, time.monotonic)

    async def reserve(
        self,
        request: SlotRequest,
        known: QueueState,
        backoff: float = 0.0,
        *,
        closed_for: float,
        closed_if_behind: float,
        pages: PageReports = NO_PAGES,
    ) -> tuple[SlotResult, QueueView]:
        """Reserve the next free slot; return the result and the queue after it. Raises StoreDown.

        `known` is the queue as this process remembers it, and `backoff` how many seconds are left of the pool's
        backoff; if the store knows less of that, it takes the process's word. No slot begins within `closed_for`
        seconds: after a failure of the store, callers may still use slots that were given without it. Nor does one
        within `closed_if_behind` seconds if the store knows less of the queue than `known`: other processes may know
        more, and need time to say. `pages` is what the process was told of the queue's pages since its last call.
        """
        key, name = request.key, token_hex(8)
        windows = [
            text for window in request.windows for text in (_micro(window.until), _micro(window.interval, up=True))
        ]
        reply = await self._run(
            _RESERVE,
            key,
            backoff,
            *ReserveArguments(
                max_wait=_micro(request.max_wait),
                cost=f"{request.cost:.6f}",
                caller=request.caller,
                nonce=name,
                closed_for=_micro(closed_for),
                closed_if_behind=_micro(closed_if_behind),
                known_end=_micro(max(0.0, known.ends - known.seen_at)),
                known_count=str(known.given),
                robots_fetched=_micro(request.fetched_at),
                pages=str(pages.pages),
                mean=_micro(pages.mean),
                timed_out="1" if pages.timed_out else "0",
                succeeded="1" if pages.succeeded else "0",
                factor=f"{self._latency_factor:.6f}",
                longest_by_latency=_micro(LONGEST_BY_LATENCY),
                cap=_micro(request.cap),
                budget=str(request.budget),
            ),
            *windows,
            key_id=request.key_id,
            length=14,
        )
        reserved, now, go, end, length, queue_end, count, backoff_until, step, given_back, *learned = reply
        latency, least = learned[0] / SECOND, learned[1] / SECOND
        queue = QueueState(queue_end / SECOND, count, now / SECOND)
        by = _BOUNDS[learned[2] % len(_BOUNDS)]
        view = QueueView(queue, backoff_until / SECOND, step / SECOND, bool(given_back), latency, least, by)
        wait, interval, go_at = max(0.0, (go - now) / SECOND), length / SECOND, go / SECOND
        own = window_at(request.windows, go_at)
        bound = by if least > own.interval + 1 / SECOND else own.bound
        if not reserved:
            bound = "budget" if learned[2] == _BUDGET else bound
            return WaitTooLong(wait, learned[3] / SECOND, interval, bound), view
        return Slot(key, f"{end}:{name}:{request.caller}", go_at, wait, interval, bound), view

    async def release(self, key: PaceKey, name: str) -> bool:
        """Free a slot that was not used; False if there is none of that name. Raises StoreDown."""
        return bool(await self._report(key, 0.0, OutcomeArguments("released", slot=name)))

    async def give_back(self, key: PaceKey, backoff: float) -> bool:
        """Tell the store that a backoff from the key's pool has so many seconds left. Raises StoreDown.

        Returns whether the store did not know it.
        """
        return bool(await self._report(key, backoff, OutcomeArguments("known")))

    async def back_off(
        self, key: PaceKey, retry_after: float, reporter: str | None = None, known: float = 0.0
    ) -> float:
        """Make the whole fleet back off from the key's pool; return for how many seconds from now. Raises StoreDown.

        An operator (None as the `reporter`) needs no second reporter to confirm a long backoff. `known` is how many
        seconds are left of a backoff that this process remembers.
        """
        outcome = OutcomeArguments(
            "backoff",
            retry_after=_micro(min(retry_after, MAX_CONFIRMED)),
            first_step=_micro(FIRST_BACKOFF),
            longest_step=_micro(LONGEST_BACKOFF),
            max_retry_after=_micro(MAX_CONFIRMED),
            reset_after=_micro(BACKOFF_RESET_AFTER),
            max_unconfirmed=_micro(MAX_UNCONFIRMED),
            reporter=reporter or "",
        )
        return await self._report(key, known, outcome) / SECOND

    def shard_of(self, key: PaceKey) -> int:
        """The shard that holds the key's queue."""
        return self._store.shard_of(_bucket(key))

    async def ping(self, shard: int) -> None:
        """Check that the shard answers. Raises StoreDown."""
        clock = self._clocks.of(shard)
        asked = clock.steady()
        clock.sync_reply(await self._store.ping_shard(shard), asked)

    async def _report(self, key: PaceKey, backoff: float, outcome: OutcomeArguments) -> int:
        return (await self._run(_OUTCOME, key, backoff, *outcome, length=2))[0]

    async def _run(
        self, script: Script, key: PaceKey, backoff: float, *arguments: str, length: int, key_id: str = ""
    ) -> Sequence[int]:
        """Run a script, with what all of them need to know, and note the time in its reply."""
        keys = keys_of(key, key_id)
        clock = self._clocks.of(self._store.shard_of(keys[0]))
        asked, seconds = 0.0, min(backoff, MAX_CONFIRMED + LONGEST_BACKOFF)

        def first() -> Sequence[str]:
            nonlocal asked
            asked = clock.steady()
            steps = " ".join(_micro(number) for step in clock.steps for number in step)
            return StateArguments(*_fields(key), _micro(clock.latest()), _micro(clock()), steps, _micro(seconds))

        reply = _integers(await script.run(self._store, keys, *arguments, first=first), length)
        clock.sync_reply(reply[1] / SECOND, asked)
        return reply


def _micro(seconds: float, *, up: bool = False) -> str:
    if math.isinf(seconds):
        return "0"
    return str(math.ceil(seconds * SECOND) if up else round(seconds * SECOND))


def _integers(reply: Any, count: int) -> list[int]:
    if not isinstance(reply, list) or len(reply) != count or not all(type(number) is int for number in reply):
        raise UnexpectedReply(reply)
    return reply


def _bucket(key: PaceKey) -> str:
    # The braces put all keys of a bucket into one hash slot of a cluster.
    return f"robots:{{pace:{zlib.crc32(key.pool.encode()) % BUCKETS}}}"


def keys_of(key: PaceKey, key_id: str = "") -> tuple[str, ...]:
    """The Redis keys of a queue, in the order of state.lua; the first two are those of its bucket.

    `key_id` is that of the API key whose callers are meant.
    """
    bucket = _bucket(key)
    pool, queue = (f"{bucket}:{field}" for field in _fields(key))
    callers = f"{queue}:asking/{key_id}" if key_id else f"{queue}:asking"
    return (
        f"{bucket}:kept",
        f"{bucket}:until",
        pool,
        queue,
        f"{queue}:slots",
        callers,
        f"{queue}:turns/{key_id}" if key_id else f"{queue}:turns",
        f"{queue}:active",
        f"{queue}:line",
    )


def _fields(key: PaceKey) -> tuple[str, str]:
    """The fields of the pool and of the queue in their bucket. They differ, since no pool has a path."""
    return key.pool, f"{key.pool}/{key.agent}"
