"""The service in its own process, `python -m app`, and all processes that it starts."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, Thread

import psutil

from tests.operator_token import TOKEN_FILE

ROOT = Path(__file__).parent.parent.parent
LISTENING = re.compile(r"Uvicorn running on (http://\S+)")
STARTED = "Application startup complete"
PATIENCE = 120.0
"""Seconds after which a wait fails, even on a busy machine."""


class Process:
    """`python -m app` in its own session; `below` has every descendant process seen so far."""

    def __init__(
        self, stdout: int = subprocess.DEVNULL, root: Path = ROOT, /, *, module: str = "app", **environment: str
    ) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
        settings = {
            "PORT": "0",
            "ALLOW_ADDRESSES": "127.0.0.0/8",
            "ALLOW_PORTS": "*",
            "LOG_FORMAT": "text",
            "OPERATOR_TOKEN_FILE": str(TOKEN_FILE),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=root,
            env={**kept, **settings, **environment},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.output = ""
        self.url = ""
        self.below: set[psutil.Process] = set()
        self._ended = False
        self._changed = Condition()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until the text has appeared `times` times in its output."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self.output.count(text) >= times, PATIENCE)
            assert self.output.count(text) >= times, f"{text!r} is missing from its output: {self.output}"
        self._find_descendants()

    def wait_ready(self, workers: int = 1) -> str:
        """Wait until it serves, and return its URL."""
        self.wait_for(STARTED, workers)
        self.wait_for("Uvicorn running on")
        found = LISTENING.search(self.output)
        assert found is not None
        self.url = found[1]
        return self.url

    def _find_descendants(self) -> None:
        """Add its descendant processes to `below`."""
        with suppress(psutil.NoSuchProcess):
            self.below |= set(psutil.Process(self.pid).children(recursive=True))

    def send_signal(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to the process that was started, as a platform does."""
        self._find_descendants()
        os.kill(self.pid, number)

    def ended(self) -> int:
        """Wait until it and its descendants have exited; return its status. Raises AssertionError if any remains."""
        status = self._process.wait(PATIENCE)
        _, left = psutil.wait_procs(self.below, PATIENCE)
        assert not left, left
        self._reader.join(PATIENCE)
        return status

    def kill(self) -> None:
        """Kill all processes."""
        self._find_descendants()
        for one in self.below:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.kill()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self.output += line
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@contextmanager
def process(
    stdout: int = subprocess.DEVNULL, root: Path = ROOT, /, *, module: str = "app", **environment: str
) -> Iterator[Process]:
    """A process that is killed at the end of the block; `root` is the tree that it runs."""
    one = Process(stdout, root, module=module, **environment)
    try:
        yield one
    finally:
        one.kill()
