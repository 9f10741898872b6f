"""Connect to the servers that REDIS_URL names; a client finds a new master by itself.

This module hides the differences between the three kinds of client of redis-py. A command is sent once: failures are
for the circuit breaker, and no client multiplies the load of a server in trouble. A call may be cancelled at any time,
since callers have a deadline of a tenth of a second; redis-py then closes the connection in use. The search for servers
must outlive such a call, because it takes longer if one of them hangs.

What replaces behaviour of redis-py links a report upstream. "Not reported": redis-py 8.1.0 does so, by its code, and we
found no report.
"""

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, assert_never, cast

from redis._parsers import AsyncCommandsParser
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import ClusterDownError, MaxConnectionsError, RedisClusterException, RedisError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from app.background import BackgroundTask
from app.redis import url as redis_url
from app.redis.connections import MasterConnection, MasterTlsConnection, SocketConnection, TcpConnection, TlsConnection
from app.redis.password_file import FileCredentials
from app.redis.single_flight import SingleFlight
from app.redis.url import Address, Cluster, LocalSocket, Login, RedisTarget, Sentinels, Server
from app.reread import Reread

CONNECTIONS = 16
"""How many connections a process has to one server, unless set otherwise: 500 processes take 8,000 of the 10,000 that
a server accepts by default (`maxclients`)."""

FEWEST_CONNECTIONS = 5

Client: TypeAlias = "Redis | ClusterClient"

_SEARCHES: Final = BackgroundTask.STORE_SEARCHES
_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 2.0


def connect(url: str, connections: int = CONNECTIONS) -> Client:
    """A client for the store at `url`, which connects when it is first used. Raises ValueError for an invalid URL.

    Its calls raise RedisError or OSError and have no deadline. Every engine supports commands with one key, and
    publish; to receive messages, see `subscriber`. Close it with `aclose`.
    """
    return connect_to(redis_url.read(url), connections)


def connect_to(target: RedisTarget, connections: int) -> Client:
    """A client as of `connect`. A connection that it opens uses the password and certificates that its files have."""
    options = _options(target.login, target.tls, connections)
    if target.password is not None:
        credentials = FileCredentials(target.login.username, target.password)
        options |= {"username": None, "password": None, "credential_provider": credentials}
    match target.engine:
        case Server(address, database):
            return _single(address, db=database, **options)
        case LocalSocket(path, database):
            pool = ConnectionPool(connection_class=SocketConnection, path=path, db=database, **options)
            return Redis.from_pool(pool)
        case Sentinels(addresses, master, database, login):
            sentinels = _Sentinels(addresses, _options(login, target.tls, connections))
            kind = MasterConnection if target.tls is None else MasterTlsConnection
            pool = _MasterPool(master, sentinels, connection_class=kind, db=database, **options)
            return Redis.from_pool(pool)
        case Cluster(addresses):
            return ClusterClient(addresses, target.tls, options)
        case _:
            assert_never(target.engine)


def open_connections(client: Client) -> int:
    """The number of open connections to all servers, including idle ones but not those of subscribers."""
    if isinstance(client, Redis):
        return _open_in(client.connection_pool)
    return sum(
        sum(connection.is_connected for connection in node._connections)
        for node in client.nodes_manager.nodes_cache.values()
    )


def _open_in(pool: ConnectionPool) -> int:
    return sum(connection.is_connected for connection in (*pool._available_connections, *pool._in_use_connections))


@dataclass(frozen=True, slots=True)
class Borrowed:
    """An open connection of which all replies were read. `give_back` closes it and gives it back to its pool.

    `follows_master`: it was opened to the master that sentinels named, which may have become a replica.
    """

    transport: asyncio.Transport
    follows_master: bool
    give_back: Callable[[], Awaitable[None]]

    @classmethod
    def of(cls, connection: AbstractConnection, release: Callable[[AbstractConnection], Awaitable[None]]) -> "Borrowed":
        """A connection that `release` gives back to its pool. Raises NoConnection if it has ended meanwhile."""

        async def give_back() -> None:
            await connection.disconnect(nowait=True)
            await release(connection)

        # A protocol that takes its place would never learn of an end that redis-py has already seen.
        if connection._writer is None or connection._writer.transport.is_closing():
            raise NoConnection("the connection was closed as soon as it was open")
        transport = cast("asyncio.Transport", connection._writer.transport)
        return cls(transport, isinstance(connection, SentinelManagedConnection), give_back)


def server_of(client: Client, key: str | None) -> str | None:
    """The name of the server that has the key, which may be any for None; None if that is not known now."""
    return _ONLY_SERVER if isinstance(client, Redis) else client.server_of(key)


async def borrow(client: Client, server: str) -> Borrowed:
    """Open a connection to a server, or take one that is open. Raises RedisError or OSError."""
    if isinstance(client, Redis):
        pool = client.connection_pool
        connection: AbstractConnection = await pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            return Borrowed.of(connection, pool.release)
        except NoConnection:
            await pool.release(connection)
            raise
    return await client.borrow(server)


def note_failed_connection(client: Client) -> None:
    """Note that the connection to a server has failed, or that none could be opened."""
    if not isinstance(client, Redis):
        client.search_again()


class Subscriber(Protocol):
    """A connection that receives published messages. After an error, messages may be lost: use a new one."""

    async def subscribe(self, *channels: str) -> object:
        """Subscribe to the channels. All methods raise RedisError or OSError."""

    async def get_message(self, *, timeout: float) -> dict[str, object] | None:  # noqa: ASYNC109
        """The next message, or None if none came within `timeout` seconds."""

    def ping(self) -> Awaitable[object]:
        """Ping the server, which answers with a message."""

    async def aclose(self) -> object:
        """Close the connection."""


def subscriber(client: Client) -> Subscriber:
    """A new subscriber, which connects when it subscribes. Close it with `aclose`."""
    return client.pubsub() if isinstance(client, Redis) else _AnyMaster(client)


_ONLY_SERVER: Final = ""

ONLY, ANY = 0, -1
"""The shard of a single server, and the one that stands for any if the key or the cluster is unknown."""


def shard_of(client: Client, key: str | None) -> int:
    """The shard that has the key, ANY if that is unknown. A shard keeps its number when a replica takes over."""
    return ONLY if isinstance(client, Redis) else client.shard_of(key)


def shards(client: Client) -> Sequence[int]:
    """All shards; only ANY for a cluster that has not been reached."""
    return (ONLY,) if isinstance(client, Redis) else client.shards()


def shard_name(client: Client, shard: int) -> str:
    """The name of the shard in messages."""
    if isinstance(client, Redis):
        path = client.connection_pool.connection_kwargs.get("path")
        return "the store" if path is None else f"the store at {path}"
    return "the store" if shard == ANY else f"the shard of the store from slot {shard}"


def _single(address: Address, **options: Any) -> Redis:
    kind = TlsConnection if "tls" in options else TcpConnection
    return Redis.from_pool(ConnectionPool(connection_class=kind, host=address.host, port=address.port, **options))


def _options(login: Login, tls: Reread[ssl.SSLContext] | None, connections: int) -> dict[str, Any]:
    options = {
        "username": login.username,
        "password": login.password,
        "socket_connect_timeout": _CONNECT_SECONDS,
        "socket_timeout": _ANSWER_SECONDS,
        # A connection opens itself again before a command is sent. Nothing is retried that may have been sent: SET NX
        # sent twice would report failure to a caller that has just succeeded.
        "retry": Retry(NoBackoff(), 0),
        # The search for the nodes of a cluster has another one.
        "max_connections": connections - 1,
        # With protocol 3, redis-py listens for maintenance notifications, and therefore hands out connections that have
        # unread data or that the server has closed (https://github.com/redis/redis-py/issues/4252).
        "protocol": 2,
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
        self._searches: SingleFlight[str, tuple[str, int]] = SingleFlight(_SEARCHES, expected=RedisError)

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        return await self._searches.do(service_name, lambda: self._ask_in_turn(service_name))

    async def _ask_in_turn(self, service_name: str) -> tuple[str, int]:
        host, port = await super().discover_master(service_name)
        return host, port

    async def aclose(self) -> None:
        await self._searches.aclose()
        await super().aclose()


class _MasterPool(SentinelConnectionPool):
    """Connections to the master; closes its sentinels, too (https://github.com/redis/redis-py/issues/3201).

    redis-py asks the sentinels for a new master when it opens a connection. Idle connections to a master that hangs
    stay in the pool, and each would fail a call. So the sentinels are also asked, in the background, when a connection
    is returned broken: if there is a new master, redis-py closes all idle connections to the old one
    (https://github.com/redis/redis-py/issues/1034, closed as stale).
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._searches: SingleFlight[None, object] = SingleFlight(_SEARCHES, expected=(RedisError, OSError))

    async def release(self, connection: AbstractConnection) -> None:
        if not connection.is_connected:
            self._searches.start(None, self.get_master_address)
        await super().release(connection)

    async def aclose(self) -> None:
        await self._searches.aclose()
        await super().aclose()
        await self.sentinel_manager.aclose()


class _FirstKey(AsyncCommandsParser):
    """Takes the first argument of a command for its key.

    redis-py would ask a node, which may hang, for a table. Not reported.
    """

    async def get_keys(self, *args: Any) -> tuple[Any, ...]:
        return args[1:2]


class ClusterClient(RedisCluster):
    """A cluster, which searches for its nodes again, in the background, after calls that failed or were cancelled.

    redis-py does so after a failed connection, but not after a cancelled call, so it would ask a master that hangs, or
    whose machine is gone, for ever. Not reported.
    """

    COMMAND_FLAGS = {  # noqa: RUF012 - as in redis-py
        **RedisCluster.COMMAND_FLAGS,
        "PUBLISH": RedisCluster.RANDOM,  # any node forwards it; redis-py chooses one by the channel, which may be down
    }

    def __init__(
        self, addresses: tuple[Address, ...], tls: Reread[ssl.SSLContext] | None, options: dict[str, Any]
    ) -> None:
        common = {name: value for name, value in options.items() if name != "tls"}
        first = addresses[0]
        # A MOVED updates the map of slots; by default redis-py would close all connections at every fifth one, and ask
        # the outdated node again (https://github.com/redis/redis-py/pull/4322).
        super().__init__(host=first.host, port=first.port, reinitialize_steps=0, **common)
        self._given = addresses
        self._searches: SingleFlight[None, None] = SingleFlight(_SEARCHES, expected=RedisError)
        self._mapped: dict[int, list[ClusterNode]] | None = None
        self._lowest: dict[str, int] = {}
        self.commands_parser = _FirstKey()
        if tls is None:
            self.connection_kwargs.update(connection_class=TcpConnection)
        else:
            self.connection_kwargs.update(connection_class=TlsConnection, tls=tls)
        self.nodes_manager.startup_nodes.clear()  # `_search` puts them there, with these options

    async def initialize(self, *_: object, **__: object) -> "ClusterClient":
        if self._initialize:
            # Callers use the map that there is meanwhile: the search may meet a node that hangs, while others are well.
            search = self._searches.start(None, self._search)
            if not self.nodes_manager.slots_cache:
                await asyncio.wait([search])
                search.result()
        return self

    def server_of(self, key: str | None) -> str | None:
        """The name of the master that has the key; None if that is unknown. Begins a search that is due."""
        if self._initialize:
            self._searches.start(None, self._search)
        nodes = None if key is None else self.nodes_manager.slots_cache.get(key_slot(key.encode()))
        return nodes[0].name if nodes else None

    async def borrow(self, server: str) -> Borrowed:
        """Open a connection to the node of that name, or take one that is open. Raises RedisError or OSError."""
        node = self.nodes_manager.nodes_cache.get(server)
        if node is None:
            raise NoConnection(f"{server} is no longer a node of the cluster")
        connection = node.acquire_connection()

        async def release(_: AbstractConnection) -> None:
            node.release(connection)

        try:
            await node.disconnect_if_needed(connection)
            await connection.connect()  # type: ignore[no-untyped-call]
            return Borrowed.of(connection, release)
        except BaseException:
            node.release(connection)
            raise

    def shard_of(self, key: str | None) -> int:
        """The lowest slot of the master that has the key; ANY if that is unknown.

        Unlike the master's name, it stays the same when a replica takes over.
        """
        nodes = None if key is None else self.nodes_manager.slots_cache.get(key_slot(key.encode()))
        if not nodes:
            return ANY
        if nodes[0].name not in self._lowest_slots():
            self._mapped = None  # a redirection has changed the map
        return self._lowest_slots().get(nodes[0].name, ANY)

    def shards(self) -> Sequence[int]:
        """The lowest slot of every master; only ANY if none is known."""
        return tuple(self._lowest_slots().values()) or (ANY,)

    def _lowest_slots(self) -> dict[str, int]:
        slots = self.nodes_manager.slots_cache
        if self._mapped is not slots:
            self._mapped = slots
            self._lowest = {nodes[0].name: slot for slot, nodes in sorted(slots.items(), reverse=True) if nodes}
        return self._lowest

    async def _search(self) -> None:
        # redis-py replaces the nodes of the URL by those that the cluster names, and drops those that fail. If all of
        # these are gone, the names in the URL may resolve to new ones
        # (https://github.com/redis/redis-py/issues/3693).
        known = self.nodes_manager.startup_nodes
        for address in self._given:
            node = ClusterNode(address.host, address.port, **self.connection_kwargs)
            known.setdefault(node.name, node)
        try:
            # Not `super().initialize`, which closes the connections to all nodes on failure. Not reported.
            await self.nodes_manager.initialize()
        except RedisClusterException as error:
            raise NoConnection(str(error)) from error
        self._initialize = False

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        with self.failures_noticed():
            return await super().execute_command(*args, **options)

    async def aclose(self) -> None:
        await self._searches.aclose()
        self._initialize = True
        await self.nodes_manager.aclose()
        await self.nodes_manager.aclose("startup_nodes")

    def search_again(self) -> None:
        """Search for the nodes before the next command."""
        self._initialize = True

    @contextmanager
    def failures_noticed(self) -> Iterator[None]:
        """Search again if the block fails in a way that suggests an outdated map of the nodes."""
        try:
            yield
        except MaxConnectionsError:
            raise  # the pool is exhausted, which says nothing about the nodes
        except (asyncio.CancelledError, NoConnection, NoAnswer):
            self.search_again()
            raise
        except (RedisClusterException, ClusterDownError, AttributeError, LookupError) as error:
            # No node can take the command now. redis-py raises the last two if a node refers to one that is not on the
            # map, or if the map has a gap (https://github.com/redis/redis-py/issues/4296).
            self.search_again()
            raise NoConnection(f"the cluster cannot run the command now: {error!r}") from error


class _AnyMaster:
    """Subscribes at one of the masters; the nodes of a cluster forward every message to each other."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._connection: PubSub | None = None

    async def subscribe(self, *channels: str) -> None:
        with self._cluster.failures_noticed():
            await self._cluster.initialize()
            if self._connection is None:
                self._connection = self._cluster.pubsub(node=random.choice(self._cluster.get_primaries()))  # noqa: S311
            await self._connection.subscribe(*channels)

    async def get_message(self, *, timeout: float) -> dict[str, object] | None:  # noqa: ASYNC109
        message: dict[str, object] | None = await self._subscribed().get_message(timeout=timeout)
        return message

    async def ping(self) -> object:
        return await self._subscribed().ping()

    async def aclose(self) -> None:
        if self._connection is not None:
            await self._connection.aclose()  # type: ignore[no-untyped-call]

    def _subscribed(self) -> PubSub:
        if self._connection is None:
            raise NoConnection("subscribe first")
        return self._connection
