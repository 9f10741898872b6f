"""The calls of a process to the store, with a circuit breaker for each shard: a failing one affects no other."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeAlias, TypeVar

from redis.exceptions import AskError, ClusterDownError, MovedError, NoPermissionError, TryAgainError
from redis.exceptions import ConnectionError as NoConnection

from app.store import connect
from app.store.circuit_breaker import COOLDOWN as COOLDOWN
from app.store.circuit_breaker import CircuitBreaker, Failure, StoreDown, Trouble, UnexpectedReply
from app.store.commands import PROBE, PROBED
from app.store.shared_connection import SharedConnection, Word
from app.store.store_clock import server_time
from app.store.url import Address

__all__ = ["COOLDOWN", "Failure", "GuardedClient", "StoreDown", "Trouble", "UnexpectedReply"]

STORE_TIMEOUT = 0.1
"""Seconds that a call to the store may take."""

REDIRECTIONS = 5
"""How often a command is sent on when a cluster redirects it, or asks to try again."""

TRY_AGAIN_SECONDS = 0.02
"""Seconds until a command with several keys is sent again, some of which have moved to another server."""

_PROBE = "robots:probe"

T = TypeVar("T")

Send: TypeAlias = Callable[..., Awaitable[Any]]
"""Sends a command and returns its reply."""


class GuardedClient:
    """All calls to the store go through one instance, so that all callers notice when it fails.

    A shard fails as a whole: it is a master of a cluster, or the only server. Its circuit breaker bounds the calls to
    it. `timeout` is in seconds, for one command. `failed` is called for every failed call, `answered` with the seconds
    that every answer took. All commands to a server share one connection.
    """

    def __init__(
        self,
        client: connect.Client,
        *,
        monotonic: Callable[[], float],
        timeout: float = STORE_TIMEOUT,
        failed: Callable[[Failure], None] = lambda _kind: None,
        answered: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self.client = client
        self._new_breaker = partial(
            CircuitBreaker, timeout=timeout, monotonic=monotonic, failed=failed, answered=answered
        )
        self._breakers: dict[int, CircuitBreaker] = {}
        self._timeout = timeout
        self._connections: dict[Address | None, SharedConnection] = {}
        self._probes: dict[int, str] = {}

    @property
    def shards(self) -> Sequence[int]:
        """All shards; only ANY for a cluster that has not been reached."""
        return connect.shards(self.client)

    @property
    def degraded(self) -> bool:
        """Whether any shard is degraded."""
        return any(self._breaker(shard).degraded for shard in self.shards)

    @property
    def trouble(self) -> Trouble | None:
        """What is wrong with the shard that has been degraded for the longest time; None if none is."""
        found = (self._breaker(shard).trouble for shard in self.shards)
        return max(filter(None, found), key=lambda trouble: trouble.seconds, default=None)

    async def command(self, key: str | None, *command: Word) -> Any:
        """Run one command on the shard of `key`, on any if that is None; its reply as the server sends it.

        The reply is None if the key holds a value of another type than the command expects. Raises StoreDown.
        """
        return await self.with_calls(key, lambda send: send(*command))

    async def with_calls(self, key: str | None, work: Callable[[Send], Awaitable[T]]) -> T | None:
        """As `command`, for work that calls `send` for each command; it may be begun once more if nothing was run."""
        return await self._breaker(self.shard_of(key)).call(partial(self._at_server, key, work))

    def shard_of(self, key: str | None) -> int:
        """The shard that has the key; it keeps its number when a replica takes over."""
        return connect.shard_of(self.client, key)

    async def ping(self) -> dict[int, float]:
        """Probe every shard; the time there (Unix seconds), by shard.

        Raises StoreDown unless all of them do what the service needs.
        """
        # PING is not enough: a full server, a replica, and one whose ACL denies commands all answer it.
        every = self.shards
        results = await asyncio.gather(*map(self.ping_shard, every), return_exceptions=True)
        failure = next((result for result in results if isinstance(result, BaseException)), None)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure, results  # or this frame is in a cycle with an exception, which refers to it
        return {shard: time for shard, time in zip(every, results, strict=True) if isinstance(time, float)}

    async def ping_shard(self, shard: int) -> float:
        """Probe this shard; its time (Unix seconds). Raises StoreDown unless it does what the service needs."""

        async def probe(send: Send) -> object:
            refused, time = await send("EVAL", PROBE, 1, self._probe_key(shard), *PROBED)
            if refused:
                names = ", ".join(PROBED[example.decode()] for example in refused)
                raise NoPermissionError(f"its user may not run {names}")
            return time

        reply = await self.on_shard(shard, probe)
        self._breaker(shard).note_probe()
        now = server_time(reply)
        if now is None:
            raise UnexpectedReply(reply)
        return now

    async def on_shard(self, shard: int, work: Callable[[Send], Awaitable[T]]) -> T | None:
        """As `with_calls`, for a shard."""
        return await self.with_calls(self._probe_key(shard), work)

    async def aclose(self) -> None:
        """End the calls under way; the caller closes the client."""
        for connection in self._connections.values():
            await connection.aclose()

    async def _at_server(self, key: str | None, work: Callable[[Send], Awaitable[T]]) -> T:
        """Do the work at the server that has the key. A command that a server redirects has not been run."""
        server, asking = connect.server_of(self.client, key), False
        for _ in range(REDIRECTIONS + 1):
            connection = self._connection_to(server)
            try:
                return await work(connection.call_asking if asking else connection.call)
            except TryAgainError:
                await asyncio.sleep(TRY_AGAIN_SECONDS)
            except ClusterDownError as error:
                connect.note_failed_connection(self.client)
                raise NoConnection(f"the cluster cannot run the command now: {error}") from error
            except AskError as error:
                server, asking = Address(error.host, error.port), not isinstance(error, MovedError)
                if not asking:
                    connect.note_moved(self.client, key, server)
        raise NoConnection(
            f"it redirected a command {REDIRECTIONS} times; if it is a cluster, set REDIS_URL to redis+cluster://host:port"
        )

    def _connection_to(self, server: Address | None) -> SharedConnection:
        """The connection to that server; None: to any server of a cluster, or to the only one."""
        connection = self._connections.get(server)
        if connection is None:
            # Servers that have left a cluster are forgotten.
            self._connections = {name: it for name, it in self._connections.items() if it.is_connected}
            connection = SharedConnection(
                partial(connect.borrow, self.client, server),
                self._timeout,
                partial(connect.note_failed_connection, self.client),
            )
            self._connections[server] = connection
        return connection

    def _breaker(self, shard: int) -> CircuitBreaker:
        breaker = self._breakers.get(shard)
        if breaker is None:
            breaker = self._breakers[shard] = self._new_breaker(connect.shard_name(self.client, shard))
        return breaker

    def _probe_key(self, shard: int) -> str:
        key = self._probes.get(shard, _PROBE)
        if self.shard_of(key) != shard and shard in self.shards:
            key = next(key for n in count() if self.shard_of(key := f"{_PROBE}:{n}") == shard)
            self._probes[shard] = key
        return key
