"""deploy/redis/start.sh with real servers: a group forms, fails over, and a pod that returns follows the new master."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.store.connect import connect
from app.store.embedded import server_binary
from tests.faults.until import until

START = Path(__file__).parent.parent.parent / "deploy" / "redis" / "start.sh"
PASSWORD = "a-password-of-a-test"
HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
COMMAND_LINE = """#!{python}
import os, sys
from redis import Redis
host, port, *command = [word for word in sys.argv[1:] if word not in ("-h", "-p", "--no-auth-warning")]
for word in Redis(host, int(port), password=os.environ["REDISCLI_AUTH"], protocol=2).execute_command(*command):
    print(word.decode())
"""


class Pods:
    """The processes of the three pods, each on an address of loopback of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        tools = directory / "bin"
        tools.mkdir()
        (tools / "valkey-server").symlink_to(server_binary())
        (tools / "valkey-cli").write_text(COMMAND_LINE.format(python=sys.executable))
        (tools / "valkey-cli").chmod(0o700)
        (directory / "password").write_text(PASSWORD)
        self.port, self.sentinel_port = free_ports()
        self._running: dict[tuple[str, str], subprocess.Popen[bytes]] = {}

    def start(self, host: str, part: str) -> None:
        """Start the Valkey or the sentinel of a pod."""
        data = self._directory / host
        data.mkdir(exist_ok=True)
        environment = {
            "PATH": f"{self._directory / 'bin'}:{os.environ['PATH']}",
            "OWN": host,
            "BIND": host,
            "PEERS": " ".join(HOSTS),
            "PASSWORD_FILE": str(self._directory / "password"),
            "DATA": str(data),
            "VALKEY_PORT": str(self.port),
            "SENTINEL_PORT": str(self.sentinel_port),
        }
        command = ["/bin/sh", str(START), part]
        self._running[host, part] = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    def kill(self, host: str, part: str) -> None:
        """End a process as a node that fails does."""
        process = self._running.pop((host, part))
        process.kill()
        process.wait()

    def end(self) -> None:
        """Kill all processes."""
        for host, part in list(self._running):
            self.kill(host, part)

    def client(self) -> Redis:
        """The client of the service, which asks the sentinels."""
        sentinels = ",".join(f"{host}:{self.sentinel_port}" for host in HOSTS)
        client = connect(f"redis+sentinel://:{PASSWORD}@{sentinels}/robots?sentinel_password={PASSWORD}")
        assert isinstance(client, Redis)
        return client

    async def says(self, host: str, port: int, *command: str) -> dict[str, str]:
        """The answer of a server, as names and values; empty while there is none."""
        async with Redis(host=host, port=port, password=PASSWORD, protocol=2, decode_responses=True) as server:
            with suppress(RedisError, OSError):
                words = await server.execute_command(*command)  # type: ignore[no-untyped-call]
                return words if isinstance(words, dict) else dict(zip(words[::2], words[1::2], strict=True))
        return {}


def free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    pods = Pods(tmp_path)
    try:
        yield pods
    finally:
        pods.end()


async def written(client: Redis, value: str) -> bool:
    with suppress(RedisError, OSError):
        return bool(await client.set("robots:{test}", value))
    return False


async def test_the_group_fails_over_and_takes_the_old_master_back(pods: Pods) -> None:
    for host in HOSTS:
        pods.start(host, "valkey")
        pods.start(host, "sentinel")
    for host in HOSTS:
        await until(
            lambda host=host: pods.says(host, pods.sentinel_port, "SENTINEL", "MASTER", "robots"),  # type: ignore[misc]
            lambda seen: (seen.get("num-slaves"), seen.get("num-other-sentinels")) == ("2", "2"),
        )
    client = pods.client()
    try:
        await until(lambda: written(client, "before"), bool)
        pods.kill(HOSTS[0], "valkey")
        pods.kill(HOSTS[0], "sentinel")
        await until(lambda: written(client, "after"), bool)
        pods.start(HOSTS[0], "valkey")
        seen = await until(
            lambda: pods.says(HOSTS[0], pods.port, "INFO", "replication"),
            lambda found: found.get("master_link_status") == "up",
        )
        assert seen["role"] == "slave"
        assert seen["master_host"] in HOSTS[1:]
        assert await client.get("robots:{test}") == b"after"
    finally:
        await client.aclose()
