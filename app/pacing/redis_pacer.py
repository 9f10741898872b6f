"""Lanes in Redis or Valkey: one script a slot, by the store's own clock."""

import hashlib
import math
import zlib
from importlib.resources import files
from secrets import token_hex
from typing import Any, Final

from redis.exceptions import NoScriptError

from app.pacing.slots import BackOff, PaceKey, QueueState, QueueView, Reply, Slot, SlotRequest, wait_too_long
from app.redis.guarded_client import GuardedClient, StoreDown

MICROSECONDS = 1_000_000


BUCKETS = 4096
"""How many parts the places are divided into. Each has one slot of a cluster, and one record of what may not be
evicted; all processes on a store have to agree on them."""


class _Script:
    def __init__(self, name: str) -> None:
        self._text: Final = "".join(
            files(__package__).joinpath(part).read_text(encoding="utf-8") for part in ("state.lua", name)
        )
        self._sha: Final = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    async def run(self, calls: GuardedClient, lane: PaceKey, *arguments: str) -> Any:
        keys = keys_of(lane)
        arguments = (*_fields(lane), *arguments)

        # By its hash first; a server that does not know it (new, or flushed) is told the whole text, and keeps it.
        async def command() -> Any:
            try:
                return await calls.client.evalsha(self._sha, len(keys), *keys, *arguments)
            except NoScriptError:
                return await calls.client.eval(self._text, len(keys), *keys, *arguments)

        return await calls.run(keys[0], command)


_RESERVE, _OUTCOME = _Script("reserve.lua"), _Script("outcome.lua")


class RedisPacer:
    """Slots under `robots:{pace:…}:`, by bucket and place; every method raises StoreDown."""

    def __init__(self, calls: GuardedClient, back_off: BackOff | None = None) -> None:
        self._calls = calls
        self._back_off = back_off or BackOff()

    async def reserve(
        self, wish: SlotRequest, known: QueueState, *, hold: float, lost: float
    ) -> tuple[Reply, QueueView]:
        """The next free slot, and the lane as it is with it; `known` is the lane as the caller remembers it now.

        With `hold`, nothing is given away for so many seconds: others may still go by what they were given while the
        store was in trouble. Nor is it for `lost` seconds where the store turns out to know less than the caller does:
        others may know of still more, and are to have the time to say so.
        """
        lane, name = wish.lane, token_hex(8)
        spans = [text for span in wish.spans for text in (_micro(span.until), _micro(span.interval, up=True))]
        said = await _RESERVE.run(
            self._calls,
            lane,
            _micro(wish.max_wait),
            f"{wish.cost:.6f}",
            wish.caller,
            name,
            _micro(wish.not_before),
            _micro(hold),
            _micro(lost),
            _micro(max(0.0, known.ends - known.at)),
            str(known.count),
            _micro(wish.fetched_at),
            *spans,
        )
        given, now, go, over, length, ends, count, until, step = _numbers(said, 9)
        tail = QueueState(ends / MICROSECONDS, count, now / MICROSECONDS)
        seen = QueueView(tail, until / MICROSECONDS, step / MICROSECONDS)
        wait, interval = max(0.0, (go - now) / MICROSECONDS), length / MICROSECONDS
        if not given:
            return wait_too_long(wait, interval, wish.max_wait), seen
        return Slot(lane, f"{over}:{name}:{wish.caller}", go / MICROSECONDS, wait, interval), seen

    async def release(self, lane: PaceKey, name: str) -> bool:
        """Give a slot back that was not used; False where it is none, or was given back before."""
        return bool(_numbers(await _OUTCOME.run(self._calls, lane, "released", name), 3)[0])

    async def hold_back(self, lane: PaceKey, retry_after: float, reporter: str | None = None) -> float:
        """Have the whole fleet back off from the lane's origin: for how many seconds that now is.

        None as the `reporter` is an operator, whose word is enough.
        """
        own = self._back_off
        bounds = (min(retry_after, own.retry_after), own.first, own.last, own.retry_after, own.quiet, own.unconfirmed)
        arguments = (*map(_micro, bounds), reporter or "")
        _, now, until = _numbers(await _OUTCOME.run(self._calls, lane, "backoff", *arguments), 3)
        return max(0.0, (until - now) / MICROSECONDS)

    def shard_of(self, lane: PaceKey) -> int:
        """The shard of the store that has the lane."""
        return self._calls.shard_of(keys_of(lane)[0])

    async def ping(self, shard: int) -> None:
        """Raises StoreDown unless the shard can be used."""
        await self._calls.ping_shard(shard)


def _micro(seconds: float, *, up: bool = False) -> str:
    if math.isinf(seconds):
        return "0"
    return str(math.ceil(seconds * MICROSECONDS) if up else round(seconds * MICROSECONDS))


def _numbers(said: Any, count: int) -> list[int]:
    if not isinstance(said, list) or len(said) != count or not all(type(number) is int for number in said):
        raise StoreDown(f"the store answered a script with {said!r:.100}")
    return said


def keys_of(lane: PaceKey) -> tuple[str, ...]:
    """The keys of the lane, in the order of state.lua; the first two are those of its bucket."""
    # The braces put all keys of a bucket into one slot of a cluster.
    bucket = f"robots:{{pace:{zlib.crc32(lane.place.encode()) % BUCKETS}}}"
    place, own = (f"{bucket}:{field}" for field in _fields(lane))
    return f"{bucket}:kept", f"{bucket}:until", place, own, f"{own}:slots", f"{own}:callers", f"{own}:ahead"


def _fields(lane: PaceKey) -> tuple[str, str]:
    """What the place and the lane are called in their bucket. No place has a slash behind its authority."""
    return lane.place, f"{lane.place}/{lane.token or ''}"
