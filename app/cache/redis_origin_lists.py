"""The fleet's lists of origins in Redis or Valkey: a sorted set for each, all in one slot of a cluster."""

import math
from collections.abc import Sequence
from typing import Any, Final

from redis.exceptions import ResponseError

from app.cache.origin_lists import LISTED, Notes, Order
from app.redis.guarded_client import GuardedClient
from app.redis.script import Script
from robots_core.origin import Origin, read_key

LIST_EXPIRY = 7 * 86_400
"""Seconds after the last addition for which a list is kept."""

_SLOT = "robots:{origins}"  # what all keys begin with, so that one slot of a cluster has them
_ASKED_EXPIRY = 2 * 3600
_LONGEST_KEY = 300  # bytes of an origin's key; a host name has 253, and the name of a profile 32
_BATCH = 500  # members of one command, so that no command holds the server for long

_READ: Final = Script.load(__package__, "read_list.lua", LISTED=LISTED, LONGEST_KEY=_LONGEST_KEY)

_REMOVE: Final = Script.load(__package__, "remove.lua")
_CLEARED: Final = (Order.FAILING, Order.SLOW, Order.STALE)


class RedisOriginLists:
    """Sorted sets `robots:{origins}:ORDER` of origins' keys, LISTED in each; for ASKED, one for each hour.

    A value of another type is replaced, and a member that is not the key of an origin is ignored.
    """

    def __init__(self, redis: GuardedClient) -> None:
        self._redis = redis
        self._client = redis.client

    async def write(self, notes: Notes, now: float) -> None:
        """Write the notes into the lists; raises StoreDown."""
        # Of the origins that were fetched, hardly one is in a list. Their names are sent once for all lists, as a text:
        # packing them as arguments of three commands would hold up other tasks.
        listed = set[str]().union(*(notes.listed[order] for order in _CLEARED))
        for batch in _batches(sorted(notes.cleared - listed)):
            await _REMOVE.run(self._redis, [_key(order) for order in _CLEARED], "\n".join(batch))
        commands = _commands(notes, now)
        results = await self._redis.run(_SLOT, lambda: self._execute(commands)) if commands else ()
        wrong = {command[1] for command, result in zip(commands, results or (), strict=False) if _is_foreign(result)}
        for key in wrong:
            await self._redis.command(key, "DEL", key)

    async def read(self, order: Order, now: float) -> Sequence[tuple[Origin, float]]:
        """A list, the highest score first; raises StoreDown."""
        if order is not Order.ASKED:
            return await self._read(_key(order))
        total: dict[Origin, float] = {}
        for hour in (_hour(now), _hour(now) - 1):
            for origin, score in await self._read(_asked_key(hour)):
                total[origin] = total.get(origin, 0.0) + score
        return sorted(total.items(), key=lambda item: -item[1])[:LISTED]

    async def _execute(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        results: list[Any] = await pipeline.execute(raise_on_error=False)
        for result in results:
            if isinstance(result, Exception) and not _is_foreign(result):
                raise result
        return results

    async def _read(self, key: str) -> Sequence[tuple[Origin, float]]:
        reply = await _READ.run(self._redis, [key])
        values = reply if isinstance(reply, list) else []
        read = ((_origin(name), _score(score)) for name, score in zip(values[::2], values[1::2], strict=False))
        return [(origin, score) for origin, score in read if origin is not None and score is not None]


def _commands(notes: Notes, now: float) -> list[tuple[Any, ...]]:
    commands: list[tuple[Any, ...]] = []
    listed = set[str]().union(*(notes.listed[order] for order in _CLEARED))
    for order in _CLEARED:
        cleared = sorted((notes.cleared & listed) - notes.listed[order].keys())
        commands += [("ZREM", _key(order), *batch) for batch in _batches(cleared)]
    for order, scores in notes.listed.items():
        if not scores:
            continue
        asked = order is Order.ASKED
        key = _asked_key(_hour(now)) if asked else _key(order)
        if asked:
            commands += [("ZINCRBY", key, count, name) for name, count in scores.items()]
        else:
            pairs = [part for name, score in scores.items() for part in (score, name)]
            commands += [("ZADD", key, *batch) for batch in _batches(pairs)]
        commands.append(("ZREMRANGEBYRANK", key, 0, -LISTED - 1))
        commands.append(("EXPIRE", key, _ASKED_EXPIRY if asked else LIST_EXPIRY))
    if notes.listed[Order.BACKOFF]:
        commands.append(("ZREMRANGEBYSCORE", _key(Order.BACKOFF), "-inf", f"({now}"))
    return commands


def _batches(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[start : start + 2 * _BATCH] for start in range(0, len(values), 2 * _BATCH)]


def _key(order: Order) -> str:
    return f"{_SLOT}:{order}"


def _asked_key(hour: int) -> str:
    return f"{_key(Order.ASKED)}:{hour}"


def _hour(now: float) -> int:
    return int(now // 3600)


def _is_foreign(result: object) -> bool:
    return isinstance(result, ResponseError) and str(result).startswith("WRONGTYPE")


def _origin(name: object) -> Origin | None:
    return read_key(name.decode()) if isinstance(name, bytes) and name.isascii() else None


def _score(text: object) -> float | None:
    try:
        score = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return score if math.isfinite(score) else None
