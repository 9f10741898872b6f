"""The service as its users start it: a process, by the command of the README, asked over HTTP, and killed."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.origins import serve, text

ROOT = Path(__file__).parent.parent
STARTED = "Application startup complete"
LISTENING = re.compile(r"Uvicorn running on (http://\S+)")
NOT_KEPT = {"REDIS_URL", "MAKEFLAGS", "MAKELEVEL"}
LOOPBACK = {"PORT": "0", "ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*"}


class Process:
    """`make run` under way, once it listens: `url` is where."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        kept = {
            name: value for name, value in os.environ.items() if name not in {"REDIS_URL", "MAKEFLAGS", "MAKELEVEL"}
        }
        self.process = subprocess.Popen(
            ["make", "--silent", "run"],
            cwd=ROOT,
            env={**kept, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.url = ""
        self.said = ""
        self.servers: list[psutil.Process] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            found = LISTENING.search(line)
            self.url = found[1] if found else self.url
            if self.url and STARTED in self.said:
                self.servers = self._servers()
                break

    def _servers(self) -> list[psutil.Process]:
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in below if process.name() == "valkey-server"]

    def signal(self, number: int) -> str:
        """Send to all that `make run` started in its own session, and return what was said until all had ended.

        The guard of the embedded server holds the same standard error: this returns when it, too, is gone.
        """
        os.killpg(self.process.pid, number)
        rest, _ = self.process.communicate()
        return rest


@contextmanager
def started(**environment: str) -> Iterator[Process]:
    process = Process({**LOOPBACK, **environment})
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.signal(signal.SIGKILL)


async def test_a_killed_service_leaves_no_server_behind() -> None:
    async with serve(text(200, "User-agent: *\nDisallow: /private/\n")) as origin:
        with started() as service:
            async with httpx.AsyncClient(base_url=service.url) as client:
                query = {"url": f"{origin.url}/private/page", "agent": "ExampleBot"}
                answer = (await client.get("/v1/allowed", params=query)).json()
                assert (answer["verdict"], answer["rule"]["line"]) == ("disallow", 2)
                assert (await client.get("/readyz")).json() == {"status": "ready", "store": "ok"}
                assert (await client.get("/healthz")).json() == {"status": "ok"}
                assert "swagger" in (await client.get("/docs")).text
            [server] = service.servers
            service.signal(signal.SIGKILL)
            assert not server.is_running()


async def test_a_service_that_is_told_to_end_ends_cleanly() -> None:
    with started() as service:
        [server] = service.servers
        assert "Finished server process" in service.signal(signal.SIGTERM)
        assert not server.is_running()


async def test_workers_share_one_embedded_server() -> None:
    with started(WORKERS="2") as service:
        async with httpx.AsyncClient(base_url=service.url) as client:
            assert (await client.get("/readyz")).json()["store"] == "ok"
        [server] = service.servers
        service.signal(signal.SIGKILL)
        assert not server.is_running()


@pytest.mark.parametrize(
    ("name", "value"), [("FETCH_TIMEOUT", "soon"), ("REDIS_URL", "mysql://h"), ("ALLOW_ADDRESSES", "all")]
)
def test_a_setting_that_cannot_be_read_stops_the_start(name: str, value: str) -> None:
    with started(**{name: value}) as service:
        service.process.communicate()
        assert service.process.returncode != 0
        assert name in service.said
        assert "Traceback" not in service.said
