"""Snapshots in Redis or Valkey: every call is short, and a store that fails is left alone for a while."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from app.cache.codec import ENCODED_LIMIT, decode, encode
from app.cache.freshness import Snapshot
from app.cache.robots_cache import StoreDown
from app.origin import Origin

REST = 1.0
"""Seconds for which a store that failed is left alone."""

TURNS = 32
"""How many calls are under way at once; it stays below the connections that a client's pool opens."""

T = TypeVar("T")

_EXPECTED = "redis://host:port/db, rediss://host:port/db or unix:///path/to/socket"


def connect(url: str) -> Redis:
    """A client for the store at `url`; nothing is sent yet. ValueError says what REDIS_URL should have been."""
    # The URL may hold a password, and redis-py's own messages may quote any part of it: neither is repeated.
    problem = f"REDIS_URL cannot be read; expected {_EXPECTED}, with special characters of a password %-encoded"
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(problem) from None
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise ValueError(f"REDIS_URL has the scheme {parts.scheme[:32]!r}; expected {_EXPECTED}")
    if not (parts.path if parts.scheme == "unix" else parts.hostname):
        raise ValueError(problem)
    try:
        # The caller's own deadline ends a call sooner; these are for the client's other uses. No retries: a dead
        # pooled connection is noticed and replaced before a command is sent, and any other failure is for the breaker.
        client = Redis.from_url(url, socket_timeout=5.0, socket_connect_timeout=2.0, retry=Retry(NoBackoff(), 0))
        # Options in the URL's query are first looked at when a connection is made.
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError, RedisError):
        raise ValueError(problem) from None
    return client


class RedisStore:
    """Snapshots under `robots:{scheme://host:port}`; whatever else is found under such a key is a miss.

    A call takes at most `timeout` seconds once its turn has come. After one that fails or is late, all are refused for
    REST seconds of `monotonic`; then one goes ahead, and the others once it has succeeded.
    """

    def __init__(self, client: Redis, *, monotonic: Callable[[], float], timeout: float = 0.1) -> None:
        self._client = client
        self._monotonic = monotonic
        self._timeout = timeout
        self._turns = asyncio.Semaphore(TURNS)
        self._rests_until: float | None = None
        self._degraded = False

    @property
    def degraded(self) -> bool:
        """Whether the last call that was tried failed."""
        return self._degraded

    async def get(self, origin: Origin) -> Snapshot | None:
        """What is kept of the origin, or None; raises StoreDown."""
        # GETRANGE, not GET: no more is read than could be ours, whatever is there.
        data = await self._call(lambda: self._client.getrange(_key(origin), 0, ENCODED_LIMIT))
        return decode(data) if isinstance(data, bytes) else None

    async def put(self, origin: Origin, snapshot: Snapshot, keep_seconds: float) -> None:
        """Keep the snapshot for so long, in place of anything that is there; raises StoreDown."""
        data = encode(snapshot)
        await self._call(lambda: self._client.set(_key(origin), data, ex=max(1, math.ceil(keep_seconds))))

    async def ping(self) -> None:
        """Raises StoreDown unless the store answers."""
        await self._call(self._client.ping)

    async def _call(self, command: Callable[[], Awaitable[T]]) -> T | None:
        # Waiting for a turn is outside the deadline: a thousand calls at once are no sign of a slow store. It is
        # bounded all the same, since once a call has failed those behind it are refused.
        async with self._turns:
            self._begin()
            try:
                async with asyncio.timeout(self._timeout):
                    result = await command()
            except ResponseError as error:
                if str(error).startswith("WRONGTYPE"):
                    result = None
                else:
                    # It answered, and in time: a store that is full, say, and refuses to write is still to be read.
                    self._degraded, self._rests_until = True, None
                    raise StoreDown(f"the store refused: {error}") from error
            except (RedisError, OSError, EOFError) as error:
                self._degraded, self._rests_until = True, self._monotonic() + REST
                raise StoreDown(f"the store did not answer within {self._timeout} s: {error!r}") from error
            self._degraded, self._rests_until = False, None
            return result

    def _begin(self) -> None:
        if self._rests_until is None:
            return
        now = self._monotonic()
        if now < self._rests_until:
            raise StoreDown("the store failed a moment ago, and is left alone")
        # This call goes ahead, and the rest lasts for the others until it has succeeded.
        self._rests_until = now + REST


def _key(origin: Origin) -> str:
    # The braces put all keys of an origin into one slot of a cluster; no host holds a brace.
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    return f"robots:{{{origin.scheme}://{host}:{origin.port}}}"
