"""The service as users start it: `make run`, in its own process."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
STARTED = "Application startup complete"
LISTENING = re.compile(r"Uvicorn running on (http://\S+)")
NOT_KEPT = {"REDIS_URL", "MAKEFLAGS", "MAKELEVEL"}
LOOPBACK = {"PORT": "0", "ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*"}


class Process:
    """A running `make run` that listens at `url`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in NOT_KEPT}
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
        self.output = ""
        self.servers: list[psutil.Process] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            found = LISTENING.search(line)
            self.url = found[1] if found else self.url
            if self.url and STARTED in self.output:
                self.servers = self._servers()
                break

    def _servers(self) -> list[psutil.Process]:
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in below if process.name() == "valkey-server"]

    def signal(self, number: int) -> str:
        """Send a signal to the session of `make run`, and return the output until all its processes have exited.

        The shell that watches the embedded server holds the same standard error: this returns when it is gone, too.
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
