"""Queues of slots in Redis or Valkey: one script call per slot, by the store's own clock."""

import math
import time
import zlib
from collections.abc import Sequence
from secrets import token_hex
from typing import Any, Literal, NamedTuple

import msgspec

from app.pacing import law
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


class Knowledge(msgspec.Struct, kw_only=True):
    """What a process knows of the queue and of the clock, for every script. Instants and durations are microseconds."""

    pool: str
    """The pool's field in the record of its bucket."""
    queue: str
    """That of the queue."""
    latest: int
    """If this server's clock shows more, it was set forward since the process last heard of it; 0 if it never did."""
    unset: int
    """What it would show at least if it was not set."""
    steps: Sequence[tuple[int, int]]
    """The forward steps that the process has seen: the latest instant before, and by how much."""
    backoff: int
    """The time to the end of the pool's backoff, as the process remembers it, or 0."""


class SlotOutcome(msgspec.Struct):
    """What outcome.lua is asked. `known`: the process remembers a backoff."""

    what: Literal["released", "known", "backoff"]
    slot: str = ""
    """The slot that is released, as it is in the set."""
    retry_after: int = 0
    reporter: str = ""
    """Empty for an operator."""


class Ask(msgspec.Struct, kw_only=True):
    """What reserve.lua is asked. Instants and durations are in microseconds."""

    windows: Sequence[tuple[int, int]]
    """Each is `until` and `interval`; the last one never ends."""
    max_wait: int
    """Negative: the process only tells what it knows."""
    cost: float
    caller: str
    nonce: str
    closed_for: int
    """Give no slot for so long, or 0."""
    closed_if_behind: int
    """Give none for so long if slots were lost."""
    known_end: int
    """The time to the end of the queue, as this process remembers it, or 0."""
    known_count: int
    robots_fetched: int
    """When robots.txt was last fetched, or 0."""
    pages: int
    """How many pages were reported to the process since its last call."""
    mean: int
    """The mean of their times."""
    timed_out: bool
    succeeded: bool
    """Whether one was a 2xx."""
    factor: float
    """PACE_LATENCY."""
    longest_by_latency: int
    """The longest interval that latency sets."""
    cap: int
    """PACE_CAP."""
    budget: int
    """Documents a day, or 0."""


class Reply(NamedTuple):
    """What reserve.lua says, in microseconds. If nothing was reserved, the slot is the first that is free."""

    reserved: int
    now: int
    begin: int
    end: int
    interval: int
    queue_end: int
    given: int
    backoff_until: int
    clock_step: int
    """By how much the clock was found to be set back; negative: forward."""
    given_back: int
    """1 if the end of the backoff is from this process."""
    latency: int
    least: int
    """The least interval by latency and by refusals."""
    decided: int
    """Which of them decided; _BUDGET: the documents of the day are used up."""
    retry_after: int
    """The time to the caller's turn, or 0."""


_CONSTANTS = {name: value for name, value in vars(law).items() if name.isupper()} | {
    "FIRST_BACKOFF": round(FIRST_BACKOFF * law.SECOND),
    "LONGEST_BACKOFF": round(LONGEST_BACKOFF * law.SECOND),
    "RESET_AFTER": round(BACKOFF_RESET_AFTER * law.SECOND),
    "MAX_CONFIRMED": round(MAX_CONFIRMED * law.SECOND),
    "MAX_UNCONFIRMED": round(MAX_UNCONFIRMED * law.SECOND),
}
_RESERVE = Script.load(__package__, "state.lua", "pace.lua", "reserve.lua", **_CONSTANTS)
_OUTCOME = Script.load(__package__, "state.lua", "pace.lua", "outcome.lua", **_CONSTANTS)

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
        ask = Ask(
            windows=[(_micro(window.until), math.ceil(window.interval * law.SECOND)) for window in request.windows],
            max_wait=_micro(request.max_wait),
            cost=request.cost,
            caller=request.caller,
            nonce=name,
            closed_for=_micro(closed_for),
            closed_if_behind=_micro(closed_if_behind),
            known_end=_micro(max(0.0, known.ends - known.seen_at)),
            known_count=known.given,
            robots_fetched=_micro(request.fetched_at),
            pages=pages.pages,
            mean=_micro(pages.mean),
            timed_out=pages.timed_out,
            succeeded=pages.succeeded,
            factor=self._latency_factor,
            longest_by_latency=_micro(LONGEST_BY_LATENCY),
            cap=_micro(request.cap),
            budget=request.budget,
        )
        length = len(Reply._fields)
        reply = Reply(*await self._run(_RESERVE, key, backoff, ask, length=length, key_id=request.key_id))
        queue = QueueState(reply.queue_end / law.SECOND, reply.given, reply.now / law.SECOND)
        least, by = reply.least / law.SECOND, _BOUNDS[reply.decided % len(_BOUNDS)]
        view = QueueView(
            queue,
            reply.backoff_until / law.SECOND,
            reply.clock_step / law.SECOND,
            bool(reply.given_back),
            reply.latency / law.SECOND,
            least,
            by,
        )
        go_at, wait = reply.begin / law.SECOND, max(0.0, (reply.begin - reply.now) / law.SECOND)
        interval, own = reply.interval / law.SECOND, window_at(request.windows, go_at)
        bound = by if least > own.interval + 1 / law.SECOND else own.bound
        if reply.reserved:
            return Slot(key, f"{reply.end}:{name}:{request.caller}", go_at, wait, interval, bound), view
        bound = "budget" if reply.decided == _BUDGET else bound
        return WaitTooLong(wait, reply.retry_after / law.SECOND, interval, bound), view

    async def release(self, key: PaceKey, name: str) -> bool:
        """Free a slot that was not used; False if there is none of that name. Raises StoreDown."""
        return bool(await self._report(key, 0.0, SlotOutcome("released", slot=name)))

    async def give_back(self, key: PaceKey, backoff: float) -> bool:
        """Tell the store that a backoff from the key's pool has so many seconds left. Raises StoreDown.

        Returns whether the store did not know it.
        """
        return bool(await self._report(key, backoff, SlotOutcome("known")))

    async def back_off(
        self, key: PaceKey, retry_after: float, reporter: str | None = None, known: float = 0.0
    ) -> float:
        """Make the whole fleet back off from the key's pool; return for how many seconds from now. Raises StoreDown.

        An operator (None as the `reporter`) needs no second reporter to confirm a long backoff. `known` is how many
        seconds are left of a backoff that this process remembers.
        """
        outcome = SlotOutcome("backoff", retry_after=_micro(min(retry_after, MAX_CONFIRMED)), reporter=reporter or "")
        return await self._report(key, known, outcome) / law.SECOND

    def shard_of(self, key: PaceKey) -> int:
        """The shard that holds the key's queue."""
        return self._store.shard_of(_bucket(key))

    async def ping(self, shard: int) -> None:
        """Check that the shard answers. Raises StoreDown."""
        clock = self._clocks.of(shard)
        asked = clock.steady()
        clock.sync_reply(await self._store.ping_shard(shard), asked)

    async def _report(self, key: PaceKey, backoff: float, outcome: SlotOutcome) -> int:
        return (await self._run(_OUTCOME, key, backoff, outcome, length=2))[0]

    async def _run(
        self, script: Script, key: PaceKey, backoff: float, ask: Ask | SlotOutcome, *, length: int, key_id: str = ""
    ) -> Sequence[int]:
        """Run a script, with what all of them need to know, and note the time in its reply."""
        keys = keys_of(key, key_id)
        clock = self._clocks.of(self._store.shard_of(keys[0]))
        asked, (pool, queue) = 0.0, _fields(key)

        def first() -> Sequence[bytes]:
            nonlocal asked
            asked = clock.steady()
            knowledge = Knowledge(
                pool=pool,
                queue=queue,
                latest=_micro(clock.latest()),
                unset=_micro(clock()),
                steps=[(_micro(step.before), _micro(step.by)) for step in clock.steps],
                backoff=_micro(min(backoff, MAX_CONFIRMED + LONGEST_BACKOFF)),
            )
            return [msgspec.json.encode(knowledge)]

        reply = _integers(await script.run(self._store, keys, msgspec.json.encode(ask), first=first), length)
        clock.sync_reply(reply[1] / law.SECOND, asked)
        return reply


def _micro(seconds: float) -> int:
    return 0 if math.isinf(seconds) else round(seconds * law.SECOND)


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
    own = f"/{key_id}" if key_id else ""
    sets = ("slots", f"asking{own}", f"turns{own}", "active", "line")
    return f"{bucket}:kept", f"{bucket}:until", pool, queue, *(f"{queue}:{name}" for name in sets)


def _fields(key: PaceKey) -> tuple[str, str]:
    """The fields of the pool and of the queue in their bucket. They differ, since no pool has a path."""
    return key.pool, f"{key.pool}/{key.agent}"
