"""A Valkey that a test kills, empties and starts again with what it had saved, behind a proxy that can refuse."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from tests.engines import Node, free_port, node
from tests.faults.proxy import Proxy, proxy


class Restartable:
    """A server on a socket; `between` is a proxy to it."""

    def __init__(self, directory: Path, between: Proxy) -> None:
        self.between = between
        self._directory = directory
        self._port = free_port()
        self._running = ExitStack()
        self._node: Node | None = None

    def start(self) -> None:
        """Start it, with what was saved last."""
        socket = str(self._directory / "valkey.sock")
        options = {"unixsocket": socket, "dir": str(self._directory), "dbfilename": "dump.rdb"}
        self._node = self._running.enter_context(node(port=self._port, password="", **options))

    @property
    def node(self) -> Node:
        assert self._node is not None
        return self._node

    def save(self) -> None:
        """Save what it has now."""
        self.node.ask("SAVE")

    def kill(self) -> None:
        """Kill it, and all connections to it."""
        self.between.cut()
        self._running.close()


@asynccontextmanager
async def restartable(directory: Path) -> AsyncIterator[Restartable]:
    """A running server, empty."""
    async with proxy(f"unix://{directory}/valkey.sock", directory) as between:
        server = Restartable(directory, between)
        server.start()
        try:
            yield server
        finally:
            server.kill()
