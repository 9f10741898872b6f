"""The map of a cluster: what a node says of it is not trusted, and a shard keeps its number."""

from typing import Any, cast

import pytest
from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError

from app.store.cluster import ANY, ClusterClient
from app.store.url import Address

FIRST, SECOND = Address("first", 7000), Address("second", 7000)
LAST = 16383
KEY = "{b}"  # of slot 3300
HALVES = [[8192, LAST, [b"other", 7002, b"id"]], [0, 8191, [b"", 7001, b"id", []], [b"replica", 7003, b"id"]]]


class Node:
    """A node of a cluster that gives this reply to CLUSTER SLOTS."""

    def __init__(self, reply: Any) -> None:
        self.connection_pool = ConnectionPool()
        self.reply = reply
        self.asked = 0

    async def execute_command(self, command: str) -> Any:
        assert command == "CLUSTER SLOTS"
        self.asked += 1
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    async def aclose(self) -> None:
        pass


def cluster_of(**nodes: Node) -> ClusterClient:
    return ClusterClient((FIRST, SECOND), lambda address: cast("Redis", nodes.get(address.host) or Node([])))


@pytest.mark.parametrize(
    "reply",
    [
        None,
        b"OK",
        [],
        [[0]],
        [[0, LAST]],
        [[0, LAST, []]],
        [[0, LAST, [b"\xff", 7001]]],
        [[0, LAST, [b"host", b"port"]]],
        [["0", LAST, [b"host", 7001]]],
        [[0, 10**18, [b"host", 7001]]],
        [[-5, LAST, [b"host", 7001]]],
        [[0, 8191, [b"host", 7001]], [8193, LAST, [b"other", 7002]]],
        [[0, 8191, [b"host", 7001]], [8191, LAST, [b"other", 7002]]],
        ResponseError("ERR This instance has cluster support disabled"),
        OSError("gone"),
    ],
    ids=repr,
)
async def test_a_node_that_does_not_say_all_is_passed_over(reply: Any) -> None:
    one, other = Node(reply), Node(HALVES)
    cluster = cluster_of(first=one, second=other)
    await cluster.node(None)
    assert cluster.server_of(KEY) == Address("second", 7001)  # which leaves out its own host
    assert (one.asked, other.asked) == (1, 1)
    await cluster.aclose()


async def test_without_a_map_there_is_no_server() -> None:
    cluster = cluster_of(first=Node(OSError("gone")), second=Node([]))
    assert (cluster.shards, cluster.shard_of(KEY), cluster.server_of(KEY)) == ((ANY,), ANY, None)
    with pytest.raises(NoConnection, match="no node of the cluster says where its slots are: second:7000 does not say"):
        await cluster.node(None)
    await cluster.aclose()


async def test_a_shard_keeps_its_number_when_a_replica_takes_over() -> None:
    node = Node(HALVES)
    cluster = cluster_of(first=node, second=node)
    await cluster.node(None)
    assert (sorted(cluster.shards), cluster.shard_of(KEY)) == ([0, 8192], 0)
    cluster.note_moved(KEY, Address("replica", 7003))
    assert (cluster.server_of(KEY), cluster.shard_of(KEY)) == (Address("replica", 7003), 0)
    node.reply = [[0, 8191, [b"replica", 7003]], HALVES[0]]
    cluster.search_again()
    cluster.server_of(KEY)
    await cluster._searches.do(None, cluster._search)
    assert (cluster.server_of(KEY), cluster.shard_of(KEY)) == (Address("replica", 7003), 0)
    await cluster.aclose()
