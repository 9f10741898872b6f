"""Which place each process has in the fleet: agreed on in the store, for the time when that cannot be asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from app.background import periodically
from app.redis.guarded_client import GuardedClient, StoreDown

EVERY = 3.0
"""Seconds between two looks at the others: a process that has just come is known to all of them after as many."""

KEY: Final = "robots:pace:fleet"

# By the server's clock. A process that has not been seen for as long as five looks take has gone. The key has no
# expiry, so that a store which evicts by `volatile-*` keeps it: without it, each process would take itself for the only
# one for some seconds.
_SHOW_UP: Final = f"""
local held = redis.call('TYPE', KEYS[1]).ok
if held ~= 'none' and held ~= 'zset' then redis.call('DEL', KEYS[1]) end
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - {5 * EVERY:.0f})
redis.call('PERSIST', KEYS[1])
local names = redis.call('ZREVRANGE', KEYS[1], 0, 4095)
table.sort(names)
for place, name in ipairs(names) do
  if name == ARGV[1] then return {{place - 1, #names}} end
end
return {{0, 0}}
"""


class Rank(NamedTuple):
    """The `number` of a process, from 0, of so many."""

    number: int
    of: int


class FleetMembership:
    """The place of the process that is called `name`, as it was when the store was last asked; None before that."""

    def __init__(self, calls: GuardedClient, name: str) -> None:
        self._calls = calls
        self._name = name
        self.place: Rank | None = None

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """While the block lasts, show up among the others, and see who they are."""
        await self.show_up()
        async with periodically(self.show_up, EVERY):
            yield

    async def show_up(self) -> None:
        """Tell the others, and see who they are; without the store, what was seen last stays."""
        try:
            said = await self._calls.run(KEY, lambda: self._calls.client.eval(_SHOW_UP, 1, KEY, self._name))
        except StoreDown:
            return
        self.place = _read(said)


def _read(said: Any) -> Rank | None:
    match said:
        case [int(number), int(of)] if 0 <= number < of:
            return Rank(number, of)
        case _:
            return None
