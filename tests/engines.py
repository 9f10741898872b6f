"""Real servers for tests, one process each: alone, watched by sentinels, as a cluster, and behind TLS."""

import random
import select
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import trustme
from redis import Redis
from redis.exceptions import RedisError

from app.store.connect import Client, connect
from app.store.embedded import release, server_binary, start_watched

MASTER = "main"
PASSWORD = "p@ss:wörd/?"
QUOTED = "p%40ss%3Aw%C3%B6rd%2F%3F"
SENTINEL_PASSWORD = "sentinel secret"
SENTINEL_QUOTED = "sentinel%20secret"

_PATIENCE = 60.0
_PAUSE = 0.02
_SLOTS = 16384


def eventually(what: str, condition: Callable[[], bool]) -> None:
    """Poll until the condition holds; errors of a server that is starting are ignored."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        with suppress(RedisError):
            if condition():
                return
        assert time.monotonic() < deadline, f"not within {_PATIENCE} s: {what}"
        time.sleep(_PAUSE)


def free_port() -> int:
    """A free port, whose cluster bus port (10000 above) is free, too.

    Both are below the ephemeral ports: an outgoing connection could take one of those before the server starts.
    """
    while True:
        port = random.randrange(10_240, 22_000)
        with socket.socket() as first, socket.socket() as second, suppress(OSError):
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 10_000))
            return port


@dataclass(frozen=True)
class Node:
    """A server that answers on `port`; `admin` is a client of it."""

    port: int
    admin: Redis
    process: psutil.Process

    def kill(self) -> None:
        self.process.kill()

    def stop(self) -> None:
        """Suspend it: its connections stay open, and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)
        eventually("the server is stopped", lambda: bool(self.process.status() == psutil.STATUS_STOPPED))

    def ask(self, *command: str | int) -> Any:
        """The server's reply, as redis-py parses it."""
        return self.admin.execute_command(*command)  # type: ignore[no-untyped-call]


@contextmanager
def node(*, port: int | None = None, password: str = PASSWORD, config: str = "", **options: str) -> Iterator[Node]:
    """A running server, with `config` in a file or options on its command line.

    It stops even if the tests are killed, as the embedded server does.
    """
    port = free_port() if port is None else port
    directory = Path(tempfile.mkdtemp(prefix="robots-test-"))
    arguments = [str(server_binary())]
    if config:
        (directory / "server.conf").write_text(config)
        arguments += [str(directory / "server.conf"), "--sentinel"]
    else:
        options = {"requirepass": password, "masterauth": password, "save": "", **options}
    every = {"port": str(port), "bind": "127.0.0.1", "dir": str(directory), **options}
    arguments += [part for name, value in every.items() for part in (f"--{name.replace('_', '-')}", value)]
    server = start_watched(arguments, directory, 2, subprocess.DEVNULL)
    admin = Redis(port=port, password=password, socket_timeout=2.0)
    try:
        eventually(f"a server answers on port {port}", lambda: bool(admin.ping()))
        yield Node(port, admin, psutil.Process(server.pid))
    finally:
        admin.close()
        server.kill()  # the test may have suspended it
        server.wait()
        release(server)
        shutil.rmtree(directory)


@asynccontextmanager
async def client_of(server: Node) -> AsyncIterator[Client]:
    """An asynchronous client of the server."""
    client = connect(f"redis://:{QUOTED}@127.0.0.1:{server.port}")
    try:
        yield client
    finally:
        await client.aclose()


@dataclass(frozen=True)
class Fleet:
    """Servers that work together; `hosts` is for a URL. Replicas are assigned to masters in rotation."""

    hosts: str
    masters: Sequence[Node]
    replicas: Sequence[Node] = ()
    sentinels: Sequence[Node] = ()

    def copied(self) -> None:
        """Wait until every replica has caught up with its master."""
        for i, replica in enumerate(self.replicas):
            offset = self.masters[i % len(self.masters)].ask("INFO", "replication")["master_repl_offset"]
            eventually("a replica has what its master has", partial(_has, replica, offset))


@contextmanager
def alone() -> Iterator[Fleet]:
    """One server."""
    with node() as master:
        yield Fleet(f"127.0.0.1:{master.port}", [master])


@contextmanager
def watched(sentinels: int, replicas: int, front: Callable[[Node], int] | None = None) -> Iterator[Fleet]:
    """A master with replicas and sentinels, all of which know each other.

    `front` returns the port that the sentinels use for the master, if it is not its own.
    """
    with ExitStack() as stack:
        master = stack.enter_context(node(repl_diskless_sync_delay="0"))
        followers = [
            stack.enter_context(node(replicaof=f"127.0.0.1 {master.port}", repl_diskless_sync_delay="0"))
            for _ in range(replicas)
        ]
        for follower in followers:
            eventually("a replica follows", partial(_follows, follower))
        port = master.port if front is None else front(master)
        watchers = []
        for _ in range(sentinels):
            config = [
                f"requirepass {_text(SENTINEL_PASSWORD)}",
                f"sentinel sentinel-pass {_text(SENTINEL_PASSWORD)}",
                f"sentinel monitor {MASTER} 127.0.0.1 {port} {sentinels // 2 + 1}",
                f"sentinel auth-pass {MASTER} {_text(PASSWORD)}",
                f"sentinel down-after-milliseconds {MASTER} 1000",
                f"sentinel failover-timeout {MASTER} 4000",
            ]
            watchers.append(stack.enter_context(node(password=SENTINEL_PASSWORD, config="\n".join(config))))
        for watcher in watchers:
            eventually("a sentinel knows the others", partial(_watches, watcher, sentinels - 1, replicas))
        yield Fleet(",".join(f"127.0.0.1:{one.port}" for one in watchers), [master], followers, watchers)


@contextmanager
def clustered(replicas: int, announced: Sequence[int] = (0, 0, 0), **options: str) -> Iterator[Fleet]:
    """Three masters, which share the slots, each with `replicas` replicas; they announce the ports `announced`.

    `options` are settings of every server.
    """
    with ExitStack() as stack:
        epoch = count(1)

        def member(port: int = 0) -> Node:
            own = free_port()
            every = {
                "cluster_enabled": "yes",
                "cluster_announce_ip": "127.0.0.1",
                "cluster_announce_port": str(port or own),
                "cluster_announce_bus_port": str(own + 10_000),
                "cluster_node_timeout": "1000",
                "cluster_replica_validity_factor": "0",
                "repl_diskless_sync_delay": "0",
                **options,
            }
            added = stack.enter_context(node(port=own, **every))
            added.ask("CLUSTER", "SET-CONFIG-EPOCH", next(epoch))
            return added

        masters = [member(port) for port in announced]
        followers = [member() for _ in range(replicas * len(masters))]
        everyone = masters + followers
        bounds = [_SLOTS * i // len(masters) for i in range(len(masters) + 1)]
        for master, first, after in zip(masters, bounds, bounds[1:], strict=False):
            master.ask("CLUSTER", "ADDSLOTSRANGE", first, after - 1)
        for other in everyone[1:]:
            masters[0].ask("CLUSTER", "MEET", "127.0.0.1", other.port, other.port + 10_000)
        for one in everyone:
            eventually("a member knows the others", partial(_knows, one, len(everyone)))
        for i, follower in enumerate(followers):
            name = masters[i % len(masters)].ask("CLUSTER", "MYID")
            eventually("a replica knows its master", partial(_replicates, follower, name))
        for follower in followers:
            eventually("a replica follows", partial(_follows, follower))
        for one in everyone:
            eventually("the cluster is whole", partial(_is_whole, one, 1 + replicas))
        hosts = ",".join(f"127.0.0.1:{port or one.port}" for one, port in zip(masters, announced, strict=True))
        yield Fleet(hosts, masters, followers)


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _follows(one: Node) -> bool:
    return bool(one.ask("INFO", "replication").get("master_link_status") == "up")


def _has(one: Node, offset: int) -> bool:
    return bool(one.ask("INFO", "replication")["slave_repl_offset"] >= offset)


def _watches(one: Node, others: int, replicas: int) -> bool:
    [state] = one.ask("SENTINEL MASTERS").values()
    complete = state["num-other-sentinels"] == others and state["num-slaves"] == replicas
    return bool(complete and state["is_master"] and not state["is_sdown"])


def _knows(one: Node, members: int) -> bool:
    return int(one.ask("CLUSTER INFO")["cluster_known_nodes"]) == members


def _replicates(one: Node, master_id: str) -> bool:
    return bool(one.ask("CLUSTER REPLICATE", master_id))


def _is_whole(one: Node, copies: int) -> bool:
    # An entry: the first slot, the last slot, and their nodes.
    entries = one.admin.cluster("SLOTS")
    return bool(
        one.ask("CLUSTER INFO")["cluster_state"] == "ok" and entries and all(len(e) == 2 + copies for e in entries)
    )


class Certificates:
    """Certificates of a test CA, in files: a server's for 127.0.0.1, and a client's."""

    def __init__(self, directory: Path) -> None:
        authority = trustme.CA()
        self.authority = directory / "authority.pem"
        self.client = directory / "client.pem"
        authority.cert_pem.write_to_path(self.authority)
        authority.issue_cert("client@example.com").private_key_and_cert_chain_pem.write_to_path(self.client)
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.authority))
        self.server.verify_mode = ssl.CERT_REQUIRED
        authority.issue_cert("127.0.0.1").configure_cert(self.server)

    @property
    def query(self) -> str:
        """The options of a URL."""
        return f"ssl_ca_certs={self.authority}&ssl_certfile={self.client}"


@contextmanager
def behind_tls(certificates: Certificates, port: int, target: int) -> Iterator[None]:
    """Forward connections from `port` to the local port `target`, and terminate TLS.

    Clients use TLS; the sentinels, which use the same port, do not.
    """

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            plain: socket.socket = self.request
            with suppress(OSError), socket.create_connection(("127.0.0.1", target)) as server:
                if plain.recv(1, socket.MSG_PEEK) == b"\x16":  # a TLS handshake record
                    with certificates.server.wrap_socket(plain, server_side=True) as client:
                        _pass_on(client, server)
                else:
                    _pass_on(plain, server)

    class Front(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        request_queue_size = 128
        daemon_threads = True
        block_on_close = False

    with Front(("127.0.0.1", port), Connection) as front:
        thread = threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield
        finally:
            front.shutdown()
            thread.join()


def _pass_on(client: socket.socket, server: socket.socket) -> None:
    while True:
        waiting = isinstance(client, ssl.SSLSocket) and client.pending()
        readable = [client] if waiting else select.select([client, server], [], [])[0]
        for one, other in ((client, server), (server, client)):
            if one in readable:
                data = one.recv(65536)
                if not data:
                    return
                other.sendall(data)


def sentinel_url(fleet: Fleet, scheme: str = "redis+sentinel", query: str = "") -> str:
    return (
        f"{scheme}://:{QUOTED}@{fleet.hosts}/{MASTER}?"
        + f"sentinel_username=default&sentinel_password={SENTINEL_QUOTED}&{query}".rstrip("&")
    )


def cluster_url(fleet: Fleet, scheme: str = "redis+cluster", query: str = "") -> str:
    return f"{scheme}://default:{QUOTED}@{fleet.hosts}?{query}".rstrip("?")
