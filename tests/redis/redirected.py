"""Commands on connections of redis-py's pool, as those are sent that a cluster redirects."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.redis.guarded_client import GuardedClient

T = TypeVar("T")


async def on_own_connection(redis: GuardedClient, key: str, command: Callable[[], Awaitable[T]]) -> T | None:
    """Run a command of redis-py on the shard of a key. Raises StoreDown."""
    return await redis._breaker(redis.shard_of(key)).run(command)
