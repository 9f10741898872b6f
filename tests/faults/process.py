"""The service as a process of its own: `python -m app`, and what becomes of all that it starts."""

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

ROOT = Path(__file__).parent.parent.parent
LISTENING = re.compile(r"Uvicorn running on (http://\S+)")
STARTED = "Application startup complete"
PATIENCE = 120.0
"""Seconds after which what a test waits for has not come, on a machine however busy."""


class Process:
    """`python -m app` in a session of its own; `below` is every process that was ever seen below it."""

    def __init__(self, *, module: str = "app", **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
        settings = {"PORT": "0", "ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*", "LOG_FORMAT": "text"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env={**kept, **settings, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.said = ""
        self.url = ""
        self.below: set[psutil.Process] = set()
        self._ended = False
        self._news = Condition()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def says(self, word: str, times: int = 1) -> None:
        """Wait until it has said this so often."""
        with self._news:
            self._news.wait_for(lambda: self._ended or self.said.count(word) >= times, PATIENCE)
            assert self.said.count(word) >= times, f"it did not say {word!r}: {self.said}"
        self.look()

    def listens(self, workers: int = 1) -> str:
        """Wait until it serves, and say where."""
        self.says(STARTED, workers)
        self.says("Uvicorn running on")
        found = LISTENING.search(self.said)
        assert found is not None
        self.url = found[1]
        return self.url

    def look(self) -> None:
        """See what processes there are now."""
        with suppress(psutil.NoSuchProcess):
            self.below |= set(psutil.Process(self.pid).children(recursive=True))

    def tell(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to the one process that was started, as a platform does."""
        self.look()
        os.kill(self.pid, number)

    def ended(self) -> int:
        """Wait until it has ended, with all that it started; its status. AssertionError where something stays."""
        status = self._process.wait(PATIENCE)
        _, left = psutil.wait_procs(self.below, PATIENCE)
        assert not left, left
        self._reader.join(PATIENCE)
        return status

    def kill(self) -> None:
        """End everything, whatever it is doing."""
        self.look()
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
            with self._news:
                self.said += line
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


@contextmanager
def process(*, module: str = "app", **environment: str) -> Iterator[Process]:
    """A process that is there until the block ends, or longer only where the machine does not let it be killed."""
    one = Process(module=module, **environment)
    try:
        yield one
    finally:
        one.kill()
