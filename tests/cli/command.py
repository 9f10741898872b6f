"""Commands as users run them: `python -m app ...` in a process of its own."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests import forked
from tests.forked import LOOPBACK, ROOT

_SETTINGS = ("REDIS_URL", "ROBOTS_API_KEY", "API_KEYS_FILE")


class Result(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class Running:
    """A running command."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    async def ended(self, given: bytes | None = None) -> Result:
        """Write to standard input and wait for the exit."""
        out, err = await self._process.communicate(given)
        assert self._process.returncode is not None
        return Result(self._process.returncode, out.decode(), err.decode())


@asynccontextmanager
async def command(*arguments: str, settings: Mapping[str, str] = LOOPBACK) -> AsyncIterator[Running]:
    """Start a command; it is killed at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "app",
        *arguments,
        cwd=ROOT,
        env={**_environment(), **settings},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # A shell may have started the tests with SIGINT ignored, which processes inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def run(*arguments: str, given: bytes | None = None, settings: Mapping[str, str] = LOOPBACK) -> Result:
    """Run a command to its end."""
    return Result(*await forked.run("app.__main__", arguments, {**_environment(), **settings}, given or b""))


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _SETTINGS}
