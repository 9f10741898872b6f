"""The fleet's lists of origins in Redis or Valkey: a sorted set for each, all in one slot of a cluster."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from app.cache.origin_lists import LISTED, Notes, Order
from app.store.guarded_client import GuardedClient
from app.store.script import Script
from robots_core.origin import Origin, read_key

LIST_EXPIRY = 7 * 86_400
"""Seconds after the last addition for which a list is kept."""

_SLOT = "robots:{origins}"  # what all keys begin with, so that one slot of a cluster has them
_ASKED_EXPIRY = 2 * 3600
_LONGEST_KEY = 300  # bytes of an origin's key; a host name has 253, and the name of a profile 32
_BATCH = 500  # origins of one call, so that none holds the server for long

_READ: Final = Script.load(__package__, "read_list.lua", LISTED=LISTED, LONGEST_KEY=_LONGEST_KEY)
_NOTE: Final = Script.load(__package__, "note_list.lua", LISTED=LISTED)
_REMOVE: Final = Script.load(__package__, "remove.lua")
_CLEARED: Final = (Order.FAILING, Order.SLOW, Order.STALE)


class RedisOriginLists:
    """Sorted sets `robots:{origins}:ORDER` of origins' keys, LISTED in each; for ASKED, one for each hour.

    A value of another type is replaced, and a member that is not the key of an origin is ignored.
    """

    def __init__(self, redis: GuardedClient) -> None:
        self._redis = redis

    async def write(self, notes: Notes, now: float) -> None:
        """Write the notes into the lists; raises StoreDown."""
        for order in _CLEARED:
            for batch in _batches(sorted(notes.cleared - notes.listed[order].keys())):
                await _REMOVE.run(self._redis, [_key(order)], batch)
        for order, scores in notes.listed.items():
            asked = order is Order.ASKED
            key = _asked_key(_hour(now)) if asked else _key(order)
            how = ("sum" if asked else "", str(_ASKED_EXPIRY if asked else LIST_EXPIRY))
            least = str(now) if order is Order.BACKOFF else ""
            for batch in _batches([f"{score} {name}" for name, score in scores.items()]):
                await _NOTE.run(self._redis, [key], batch, *how, least)

    async def read(self, order: Order, now: float) -> Sequence[tuple[Origin, float]]:
        """A list, the highest score first; raises StoreDown."""
        if order is not Order.ASKED:
            return await self._read(_key(order))
        total: dict[Origin, float] = {}
        for hour in (_hour(now), _hour(now) - 1):
            for origin, score in await self._read(_asked_key(hour)):
                total[origin] = total.get(origin, 0.0) + score
        return sorted(total.items(), key=lambda item: -item[1])[:LISTED]

    async def _read(self, key: str) -> Sequence[tuple[Origin, float]]:
        reply = await _READ.run(self._redis, [key])
        values = reply if isinstance(reply, list) else []
        read = ((_origin(name), _score(score)) for name, score in zip(values[::2], values[1::2], strict=False))
        return [(origin, score) for origin, score in read if origin is not None and score is not None]


def _batches(lines: Sequence[str]) -> Iterator[str]:
    """The lines as texts of at most _BATCH."""
    return ("\n".join(lines[start : start + _BATCH]) for start in range(0, len(lines), _BATCH))


def _key(order: Order) -> str:
    return f"{_SLOT}:{order}"


def _asked_key(hour: int) -> str:
    return f"{_key(Order.ASKED)}:{hour}"


def _hour(now: float) -> int:
    return int(now // 3600)


def _origin(name: object) -> Origin | None:
    return read_key(name.decode()) if isinstance(name, bytes) and name.isascii() else None


def _score(text: object) -> float | None:
    try:
        score = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return score if math.isfinite(score) else None
