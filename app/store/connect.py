"""Connect to the servers that REDIS_URL names; a client finds a new master by itself.

This module hides the differences between the three kinds of client. redis-py opens the connections: it knows TLS, the
password and the sentinels. What it sends itself is sent once: failures are for the circuit breaker, and no client
multiplies the load of a server in trouble. A call may be cancelled at any time, since callers have a deadline of a
tenth of a second. The search for servers must outlive such a call, because it takes longer if one of them hangs.

What replaces behaviour of redis-py links a report upstream. "Not reported": redis-py 8.1.0 does so, by its code, and we
found no report.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, assert_never, cast

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError

from app.files.reloaded_file import ReloadedFile
from app.loop.background import BackgroundTask
from app.loop.single_flight import SingleFlight
from app.store import url as redis_url
from app.store.cluster import ANY, ClusterClient, open_in
from app.store.password_file import FileCredentials
from app.store.replies import BoundedParser
from app.store.url import Address, Cluster, LocalSocket, Login, RedisTarget, Sentinels, Server

Client: TypeAlias = Redis | ClusterClient

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 2.0

_DRIVER = DriverInfo()
"""What connections tell the store of redis-py. Each would otherwise read the version from the files of the package."""


def connect(url: str) -> Client:
    """A client for the store at `url`, which connects when it is first used. Raises ValueError for an invalid URL.

    GuardedClient sends commands, and `subscriber` receives messages. Close it with `aclose`.
    """
    return connect_to(redis_url.read(url))


def connect_to(target: RedisTarget) -> Client:
    """A client as of `connect`. A connection that it opens uses the password and certificates that its files have."""
    options = _options(target.login, target.tls)
    if target.password is not None:
        credentials = FileCredentials(target.login.username, target.password)
        options |= {"username": None, "password": None, "credential_provider": credentials}
    match target.engine:
        case Server(address, database):
            return _single(address, db=database, **options)
        case LocalSocket(path, database):
            pool = ConnectionPool(connection_class=UnixDomainSocketConnection, path=path, db=database, **options)
            return Redis.from_pool(pool)
        case Sentinels(addresses, master, database, login):
            sentinels = _Sentinels(addresses, _options(login, target.tls))
            kind = SentinelManagedConnection if target.tls is None else _MasterTlsConnection
            pool = _MasterPool(master, sentinels, connection_class=kind, db=database, **options)  # type: ignore[no-untyped-call]
            return Redis.from_pool(pool)
        case Cluster(addresses):
            return ClusterClient(addresses, lambda address: _single(address, **options))
        case _:
            assert_never(target.engine)


def open_connections(client: Client) -> int:
    """The number of open connections to all servers, including idle ones and those of subscribers."""
    nodes = [client] if isinstance(client, Redis) else client.nodes
    return sum(open_in(node.connection_pool) for node in nodes)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """An open connection of which all replies were read. `give_back` closes it and gives it back to its pool."""

    transport: asyncio.Transport
    give_back: Callable[[], Awaitable[None]]


async def borrow(client: Client, server: Address | None) -> Borrowed:
    """Open a connection to a server of a cluster, to any if that is None, or to the only one.

    Raises RedisError or OSError.
    """
    pool = (await _server(client, server)).connection_pool
    connection: AbstractConnection = await pool.get_connection()  # type: ignore[no-untyped-call]
    # A protocol that takes its place would never learn of an end that redis-py has already seen.
    if connection._writer is None or connection._writer.transport.is_closing():
        await pool.release(connection)
        raise NoConnection("the connection was closed as soon as it was open")

    async def give_back() -> None:
        await connection.disconnect(nowait=True)
        await pool.release(connection)

    transport = cast("asyncio.Transport", connection._writer.transport)
    return Borrowed(transport, give_back)


async def subscriber(client: Client) -> PubSub:
    """A new subscriber of published messages: the nodes of a cluster forward them to each other.

    It connects when it subscribes. After an error, messages may be lost: use a new one. Close it with `aclose`.
    """
    return (await _server(client, None)).pubsub()


async def _server(client: Client, server: Address | None) -> Redis:
    return client if isinstance(client, Redis) else await client.node(server)


def server_of(client: Client, key: str | None) -> Address | None:
    """The server of a cluster that has the key; None if that is unknown, and for any other engine."""
    return None if isinstance(client, Redis) else client.server_of(key)


def note_moved(client: Client, key: str | None, server: Address) -> None:
    """Note that a server has redirected a command with this key to another."""
    if isinstance(client, ClusterClient):
        client.note_moved(key, server)


def note_failed_connection(client: Client) -> None:
    """Note that the connection to a server has failed, or that none could be opened."""
    if isinstance(client, ClusterClient):
        client.search_again()


ONLY = 0
"""The shard of a single server."""


def shard_of(client: Client, key: str | None) -> int:
    """The shard that has the key, ANY if that is unknown. A shard keeps its number when a replica takes over."""
    return ONLY if isinstance(client, Redis) else client.shard_of(key)


def shards(client: Client) -> Sequence[int]:
    """All shards; only ANY for a cluster that has not been reached."""
    return (ONLY,) if isinstance(client, Redis) else client.shards


def shard_name(client: Client, shard: int) -> str:
    """The name of the shard in messages."""
    if isinstance(client, Redis):
        path = client.connection_pool.connection_kwargs.get("path")
        return "the store" if path is None else f"the store at {path}"
    return "the store" if shard == ANY else f"the shard of the store from slot {shard}"


def _single(address: Address, **options: Any) -> Redis:
    kind = _TlsConnection if "tls" in options else Connection
    return Redis.from_pool(ConnectionPool(connection_class=kind, host=address.host, port=address.port, **options))


def _options(login: Login, tls: ReloadedFile[ssl.SSLContext] | None) -> dict[str, Any]:
    options = {
        "username": login.username,
        "password": login.password,
        "socket_connect_timeout": _CONNECT_SECONDS,
        "socket_timeout": _ANSWER_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "driver_info": _DRIVER,
        # With protocol 3, redis-py listens for maintenance notifications, and therefore hands out connections that have
        # unread data or that the server has closed (https://github.com/redis/redis-py/issues/4252).
        "protocol": 2,
        "parser_class": BoundedParser,
    }
    return options if tls is None else {**options, "tls": tls}


class _Sentinels(Sentinel):
    """Sentinels, with one search for the master at a time, shared by all callers.

    Sentinels are asked one after the other. If the first one hangs, a caller gives up before the second is asked. If
    the search ended with its caller, every search would begin, and end, at the one that hangs. Not reported.
    """

    def __init__(self, addresses: tuple[Address, ...], options: dict[str, Any]) -> None:
        super().__init__([], sentinel_kwargs={})  # type: ignore[no-untyped-call]
        self.sentinels = [_single(address, **options) for address in addresses]
        self._searches: SingleFlight[str, tuple[str, int]] = SingleFlight(
            BackgroundTask.STORE_SEARCHES, expected=RedisError
        )

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        return await self._searches.do(service_name, partial(super().discover_master, service_name))

    async def aclose(self) -> None:
        await self._searches.aclose()
        await super().aclose()


class _MasterPool(SentinelConnectionPool):
    """Connections to the master; closes its sentinels, too (https://github.com/redis/redis-py/issues/3201)."""

    async def aclose(self) -> None:
        await super().aclose()
        await self.sentinel_manager.aclose()


class _TlsConnection(SSLConnection):
    """Shares one TLS context: that of redis-py would read the system's certificates for every connection.

    https://github.com/redis/redis-py/issues/3599 asks for this.
    """

    def __init__(self, *, tls: ReloadedFile[ssl.SSLContext], **options: Any) -> None:
        super().__init__(**options)
        self._tls = tls

    async def _connect(self) -> None:
        self.ssl_context.context = await self._tls.current()
        await super()._connect()  # type: ignore[no-untyped-call]


class _MasterTlsConnection(SentinelManagedConnection, _TlsConnection):
    """The same to the master that sentinels name."""
