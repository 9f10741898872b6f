"""A cluster: its nodes, and which of its masters has a key.

redis-py has a client for clusters, with a pool of connections and a map of slots of its own. A process shares one
connection to each server between all its commands, and follows redirections on these; it needs the map alone.
"""

import random
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from redis.asyncio import ConnectionPool, Redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import ConnectionError as NoConnection

from app.loop.background import BackgroundTask
from app.loop.single_flight import SingleFlight
from app.store.failures import FAILURES
from app.store.url import Address

ANY: Final = -1
"""The shard that stands for any if the key or the cluster is unknown."""


class ClusterClient:
    """The nodes of a cluster, and the map of its slots, as one of the nodes said it last.

    The map is read again, in the background, after a connection has failed. A read may take longer than a caller waits:
    nodes are asked one after the other, and one may hang.
    """

    def __init__(self, addresses: tuple[Address, ...], connect: Callable[[Address], Redis]) -> None:
        """`addresses` are those of the URL; `connect` makes the client of a node."""
        self.shards: Sequence[int] = (ANY,)
        """The lowest slot of every master; only ANY if the cluster has not been reached."""
        self._given = addresses
        self._connect = connect
        self._nodes: dict[Address, Redis] = {}
        self._members: set[Address] = set()
        self._masters: dict[int, Address] = {}  # by slot
        self._lowest: dict[int, int] = {}  # the lowest slot of its master, by slot
        self._outdated = True
        self._searches: SingleFlight[None, None] = SingleFlight(BackgroundTask.STORE_SEARCHES, expected=NoConnection)

    @property
    def nodes(self) -> Collection[Redis]:
        """The nodes that are or were connected to."""
        return self._nodes.values()

    async def node(self, address: Address | None) -> Redis:
        """The node at that address, or any master. Raises NoConnection if there is none."""
        if address is None:
            if not self._masters:
                await self._searches.do(None, self._search)
            address = random.choice([*self._masters.values()])  # noqa: S311 - not a secret
        return self._node(address)

    def server_of(self, key: str | None) -> Address | None:
        """The master that has the key; None if that is unknown. Begins a search that is due."""
        if self._outdated:
            self._searches.start(None, self._search)
        return None if key is None else self._masters.get(key_slot(key.encode()))

    def shard_of(self, key: str | None) -> int:
        """The lowest slot of the master that has the key; ANY if that is unknown.

        Unlike the master's address, it stays the same when a replica takes over.
        """
        return ANY if key is None else self._lowest.get(key_slot(key.encode()), ANY)

    def note_moved(self, key: str | None, master: Address) -> None:
        """Note that this master has the slot of the key now."""
        if key is not None:
            self._masters[key_slot(key.encode())] = master

    def search_again(self) -> None:
        """Read the map again, before the next command."""
        self._outdated = True

    async def aclose(self) -> None:
        """Close the connections to all nodes."""
        await self._searches.aclose()
        for node in self._nodes.values():
            await node.aclose()

    def _node(self, address: Address) -> Redis:
        node = self._nodes.get(address)
        if node is None:
            # Nodes that have left the cluster are forgotten.
            self._nodes = {
                it: node for it, node in self._nodes.items() if it in self._members or open_in(node.connection_pool)
            }
            node = self._nodes[address] = self._connect(address)
        return node

    async def _search(self) -> None:
        """Read the map from the first node that knows all of it. Raises NoConnection."""
        failure = ""
        members = random.sample([*self._members], len(self._members))
        # The nodes of the URL, too: if all others are gone, its names may resolve to new ones.
        for address in dict.fromkeys((*members, *self._given)):
            node = self._node(address)
            try:
                self._take(await node.execute_command("CLUSTER SLOTS"), address)  # type: ignore[no-untyped-call]
                return
            except FAILURES as error:
                failure = str(error) or type(error).__name__
            finally:
                # An idle connection may be closed by the server, and would fail the next search.
                await node.connection_pool.disconnect(inuse_connections=False)
        raise NoConnection(f"no node of the cluster says where its slots are: {failure}")

    def _take(self, ranges: list[Any], asked: Address) -> None:
        """Take the reply to CLUSTER SLOTS: a list of `[first, last, master, replica...]`."""
        masters, lowest = dict[int, Address](), dict[int, int]()
        members, first_of = set[Address](), dict[Address, int]()
        for first, last, *nodes in sorted(ranges):
            if not len(masters) == first <= last < REDIS_CLUSTER_HASH_SLOTS:
                break  # a gap, or an overlap
            # A node that does not know its own host leaves it out.
            addresses = [Address((host or b"").decode() or asked.host, int(port)) for host, port, *_ in nodes]
            members.update(addresses)
            shard = first_of.setdefault(addresses[0], first)
            for slot in range(first, last + 1):
                masters[slot], lowest[slot] = addresses[0], shard
        if len(masters) < REDIS_CLUSTER_HASH_SLOTS:
            raise NoConnection(f"{asked.host}:{asked.port} does not say who has slot {len(masters)}")
        self._masters, self._lowest, self._members = masters, lowest, members
        self.shards, self._outdated = tuple(first_of.values()), False


def open_in(pool: ConnectionPool) -> int:
    """How many connections of the pool are open, including idle ones."""
    return sum(connection.is_connected for connection in (*pool._available_connections, *pool._in_use_connections))
