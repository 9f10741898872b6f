"""REDIS_URL -> a client of the server, or servers, behind it, which finds a new master by itself.

What the three kinds of client of redis-py do differently ends here. A command is sent once: one that fails is for the
circuit breaker of its caller, and no client multiplies the load of a server in trouble. A call may be cancelled at any
moment, since its caller has a deadline of a tenth of a second: redis-py closes the connection that it was using. What
must not end with such a call is the look for the servers, which takes longer than that where one of them hangs.
"""

import asyncio
import random
import ssl
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, assert_never

from redis._parsers import AsyncCommandsParser
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode, ClusterPipeline
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool, SentinelManagedConnection
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import ClusterDownError, MaxConnectionsError, RedisClusterException, RedisError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from app.redis import url as redis_url
from app.redis.single_flight import SingleFlight
from app.redis.url import Address, Cluster, LocalSocket, Login, Sentinels, Server

CONNECTIONS = 16
"""How many connections a process has to one server at most, unless set otherwise: 500 processes take 8,000 of the
10,000 that a server admits by default (`maxclients`)."""

FEWEST_CONNECTIONS = 5

Client: TypeAlias = "Redis | ClusterClient"

_CONNECT_SECONDS = 1.0
_ANSWER_SECONDS = 2.0


def connect(url: str, connections: int = CONNECTIONS) -> Client:
    """A client for the store at `url`; nothing is sent yet. ValueError says what REDIS_URL should have been.

    Its calls raise RedisError or OSError, and leave the deadline to their caller. What every engine can do is commands
    of one key, alone or in pipelines, and publish; `subscriber` is for the other end. It is closed by its `aclose`.
    """
    target = redis_url.read(url)
    options = _options(target.login, target.tls, connections)
    match target.engine:
        case Server(address, database):
            return _single(address, db=database, **options)
        case LocalSocket(path, database):
            pool = ConnectionPool(connection_class=UnixDomainSocketConnection, path=path, db=database, **options)
            return Redis.from_pool(pool)
        case Sentinels(addresses, master, database, login):
            sentinels = _Sentinels(addresses, _options(login, target.tls, connections))
            kind = SentinelManagedConnection if target.tls is None else _MasterTlsConnection
            pool = _MasterPool(master, sentinels, connection_class=kind, db=database, **options)
            return Redis.from_pool(pool)
        case Cluster(addresses):
            return ClusterClient(addresses, target.tls, options)
        case _:
            assert_never(target.engine)


def open_connections(client: Client) -> int:
    """The connections to all servers that are open now, idle ones included; subscribers are not counted."""
    if isinstance(client, Redis):
        return _open_in(client.connection_pool)
    return sum(
        sum(connection.is_connected for connection in node._connections)
        for node in client.nodes_manager.nodes_cache.values()
    )


def _open_in(pool: ConnectionPool) -> int:
    return sum(connection.is_connected for connection in (*pool._available_connections, *pool._in_use_connections))


class Subscriber(Protocol):
    """A connection that hears what is published. On any error messages may have been lost, and a new one is taken."""

    async def subscribe(self, *channels: str) -> object:
        """Ask for the messages of the channels; raises RedisError or OSError, as do the others."""

    async def get_message(self, *, timeout: float) -> dict[str, object] | None:  # noqa: ASYNC109
        """The next message, or None if none came within `timeout` seconds."""

    def ping(self) -> Awaitable[object]:
        """Ask for a sign of life, which comes as a message."""

    async def aclose(self) -> object:
        """End the connection."""


def subscriber(client: Client) -> Subscriber:
    """A new subscriber, to be closed by its `aclose`; it connects when it subscribes."""
    return client.pubsub() if isinstance(client, Redis) else _AnyMaster(client)


ONLY, ANY = 0, -1
"""The shard of a server that is the only one, and what stands for a shard where the key, or the cluster, is unknown."""


def shard_of(client: Client, key: str | None) -> int:
    """The shard that has the key. It keeps its number when a replica takes over; ANY where that is not known."""
    return ONLY if isinstance(client, Redis) else client.shard_of(key)


def shards(client: Client) -> Sequence[int]:
    """All shards; ANY alone for a cluster that has not been reached."""
    return (ONLY,) if isinstance(client, Redis) else client.shards()


def shard_name(client: Client, shard: int) -> str:
    """What messages call the shard."""
    return "the store" if isinstance(client, Redis) or shard == ANY else f"the shard of the store from slot {shard}"


def _single(address: Address, **options: Any) -> Redis:
    kind = _TlsConnection if "tls" in options else Connection
    return Redis.from_pool(ConnectionPool(connection_class=kind, host=address.host, port=address.port, **options))


def _options(login: Login, tls: ssl.SSLContext | None, connections: int) -> dict[str, Any]:
    options = {
        "username": login.username,
        "password": login.password,
        "socket_connect_timeout": _CONNECT_SECONDS,
        "socket_timeout": _ANSWER_SECONDS,
        # In a pool of a single server, a dead connection is noticed and replaced before a command is sent. Nothing
        # else is tried again: SET NX sent twice would report failure to a caller that has just succeeded.
        "retry": Retry(NoBackoff(), 0),
        # Beside these, a subscriber has one, and the search for the nodes of a cluster.
        "max_connections": connections - 2,
        # Under protocol 3 redis-py listens for maintenance notifications, and for their sake takes a connection out of
        # the pool that has unread data, or whose server has closed it.
        "protocol": 2,
    }
    return options if tls is None else {**options, "tls": tls}


class _TlsConnection(SSLConnection):
    """Uses one context for all: redis-py's own would read the system's certificates anew for every connection."""

    def __init__(self, *, tls: ssl.SSLContext, **options: Any) -> None:
        super().__init__(**options)
        self.ssl_context.context = tls


class _MasterTlsConnection(SentinelManagedConnection, _TlsConnection):
    pass


class _Sentinels(Sentinel):
    """Sentinels, whose answer is waited for by all who need it together.

    They are asked in turn. If the first of them hangs, a caller gives up before the second is asked: were the search
    given up with it, every caller's search would begin, and end, at the one that hangs.
    """

    def __init__(self, addresses: tuple[Address, ...], options: dict[str, Any]) -> None:
        super().__init__([], sentinel_kwargs={})  # type: ignore[no-untyped-call]
        self.sentinels = [_single(address, **options) for address in addresses]
        self._searches: SingleFlight[str, tuple[str, int]] = SingleFlight(expected=RedisError)

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        return await self._searches.do(service_name, lambda: self._ask_in_turn(service_name))

    async def _ask_in_turn(self, service_name: str) -> tuple[str, int]:
        host, port = await super().discover_master(service_name)
        return host, port

    async def aclose(self) -> None:
        await self._searches.aclose()
        await super().aclose()


class _MasterPool(SentinelConnectionPool):
    """Connections to the master; its sentinels are its own, and closed with it.

    redis-py asks the sentinels for a new master when it opens a connection. The idle ones to a master that hangs stay
    in the pool meanwhile, and each would fail a call of its own. So the sentinels are also asked, in the background,
    when a connection comes back broken: if there is a new master, redis-py closes all idle connections to the old one.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._searches: SingleFlight[None, object] = SingleFlight(expected=(RedisError, OSError))

    async def release(self, connection: AbstractConnection) -> None:
        if not connection.is_connected:
            self._searches.start(None, self.get_master_address)
        await super().release(connection)

    async def aclose(self) -> None:
        await self._searches.aclose()
        await super().aclose()
        await self.sentinel_manager.aclose()


class _FirstKey(AsyncCommandsParser):
    """Where the key of a command is: first. The server's table of commands would be asked of a node that may hang."""

    async def initialize(self, node: ClusterNode | None = None) -> None:
        pass

    async def get_keys(self, *args: Any) -> tuple[Any, ...]:
        return args[1:2]


class ClusterClient(RedisCluster):
    """A cluster, whose nodes are looked for again, behind the callers, after every call that failed or gave up.

    redis-py does so after a connection that failed, but not after a call that was cancelled: a master that hangs, or
    whose machine is gone, would be asked for ever.
    """

    COMMAND_FLAGS = {  # noqa: RUF012 - its place in redis-py
        **RedisCluster.COMMAND_FLAGS,
        "PUBLISH": RedisCluster.RANDOM,
    }

    def __init__(self, addresses: tuple[Address, ...], tls: ssl.SSLContext | None, options: dict[str, Any]) -> None:
        common = {name: value for name, value in options.items() if name != "tls"}
        first = addresses[0]
        # After a MOVED the slot is moved in our map; redis-py would close all connections at every fifth.
        super().__init__(host=first.host, port=first.port, reinitialize_steps=0, **common)
        self._given = addresses
        self._searches: SingleFlight[None, None] = SingleFlight(expected=RedisError)
        self._mapped: dict[int, list[ClusterNode]] | None = None
        self._lowest: dict[str, int] = {}
        self.commands_parser = _FirstKey()
        if tls is not None:
            self.connection_kwargs.update(connection_class=_TlsConnection, tls=tls)
        self.nodes_manager.startup_nodes.clear()  # `_search` puts them there, with these options

    async def initialize(self, *_: object, **__: object) -> "ClusterClient":
        if self._initialize:
            # Who has a map goes by it meanwhile: the search may meet a node that hangs, and the others are well.
            search = self._searches.start(None, self._search)
            if not self.nodes_manager.slots_cache:
                await asyncio.wait([search])
                search.result()
        return self

    def shard_of(self, key: str | None) -> int:
        """The lowest slot of the master that has the key; ANY where that is not known.

        Unlike the master's name, it stays the same when a replica takes over.
        """
        nodes = None if key is None else self.nodes_manager.slots_cache.get(key_slot(key.encode()))
        if not nodes:
            return ANY
        if nodes[0].name not in self._lowest_slots():
            self._mapped = None  # a redirection has changed the map
        return self._lowest_slots().get(nodes[0].name, ANY)

    def shards(self) -> Sequence[int]:
        """The lowest slot of every master; ANY alone where none is known."""
        return tuple(self._lowest_slots().values()) or (ANY,)

    def _lowest_slots(self) -> dict[str, int]:
        slots = self.nodes_manager.slots_cache
        if self._mapped is not slots:
            self._mapped = slots
            self._lowest = {nodes[0].name: slot for slot, nodes in sorted(slots.items(), reverse=True) if nodes}
        return self._lowest

    async def _search(self) -> None:
        # redis-py forgets the nodes of the URL for those that the cluster names: where all of these are gone, the
        # names in the URL may lead to new ones.
        known = self.nodes_manager.startup_nodes
        for address in self._given:
            node = ClusterNode(address.host, address.port, **self.connection_kwargs)
            known.setdefault(node.name, node)
        try:
            # Not `super().initialize`, which closes the connections to all nodes where this fails.
            await self.nodes_manager.initialize()
        except RedisClusterException as error:
            raise NoConnection(str(error)) from error
        self._initialize = False

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        with self.failures_noticed():
            return await super().execute_command(*args, **options)

    def pipeline(self, transaction: Any | None = None, shard_hint: Any | None = None) -> "_Pipeline":  # noqa: ARG002
        return _Pipeline(self, transaction)  # type: ignore[abstract]

    async def aclose(self) -> None:
        await self._searches.aclose()
        self._initialize = True
        await self.nodes_manager.aclose()
        await self.nodes_manager.aclose("startup_nodes")

    def search_again(self) -> None:
        """Look for the nodes before the next command."""
        self._initialize = True

    @contextmanager
    def failures_noticed(self) -> Iterator[None]:
        """Notice every failure of the block that says that the map of the nodes may be out of date."""
        try:
            yield
        except MaxConnectionsError:
            raise  # the pool is at its bound, which says nothing about the nodes
        except (asyncio.CancelledError, NoConnection, NoAnswer):
            self.search_again()
            raise
        except (RedisClusterException, ClusterDownError, AttributeError, LookupError) as error:
            # No node can take the command now. The last two are what redis-py meets where a node names another that
            # is not on the map, or the map has a hole.
            self.search_again()
            raise NoConnection(f"the cluster cannot take the command now: {error!r}") from error


class _Pipeline(ClusterPipeline):
    """Commands for several nodes at once, whose failures the client notices as it does its own."""

    def __init__(self, client: ClusterClient, transaction: Any | None) -> None:
        super().__init__(client, transaction)
        self._client = client

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> "_Pipeline":
        # redis-py blocks it here, since one node may have the script and another not: a NoScriptError in the results
        # says so, as it does where there is one node.
        self.execute_command("EVALSHA", sha, numkeys, *keys_and_args)
        return self

    async def execute(self, raise_on_error: bool = True, allow_redirections: bool = True) -> list[Any]:
        with self._client.failures_noticed():
            results = await super().execute(raise_on_error, allow_redirections)
        if any(isinstance(result, (NoConnection, NoAnswer, ClusterDownError)) for result in results):
            self._client.search_again()
        return results


class _AnyMaster:
    """Hears through one of the masters: the nodes of a cluster pass every message on to each other."""

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
            raise NoConnection("nothing has been subscribed to yet")
        return self._connection
