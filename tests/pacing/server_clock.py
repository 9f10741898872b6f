"""A server whose clock a test sets."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engines import Node, node


class ServerClock:
    """The clock of a server that was started with the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("0")

    def set(self, server: Node, seconds: int) -> None:
        """Move the clock to so many seconds after ours, and wait until scripts read it."""
        self._path.write_text(str(seconds))
        while abs(int(server.ask("EVAL", "return redis.call('time')[1]", 0)) - time.time() - seconds) > 1.5:
            time.sleep(0.001)


@contextmanager
def clocked(directory: Path) -> Iterator[tuple[ServerClock, Node]]:
    """A server, and its clock."""
    library, step = directory / "clock.so", directory / "step"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    clock = ServerClock(step)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(library))
        environment.setenv("CLOCK_FILE", str(step))
        with node() as server:
            yield clock, server
