"""Commands as people run them: `python -m app ...` as a process of its own."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LOOPBACK = {"ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*"}
_OURS = ("REDIS_URL", "ROBOTS_API_KEY", "API_KEYS_FILE")


class Ended(NamedTuple):
    """How a command ended: its exit code, and what it said."""

    code: int
    out: str
    err: str


class Running:
    """A command under way."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    async def ended(self, given: bytes | None = None) -> Ended:
        """Wait for its end, with this on its standard input."""
        out, err = await self._process.communicate(given)
        assert self._process.returncode is not None
        return Ended(self._process.returncode, out.decode(), err.decode())


@asynccontextmanager
async def command(*arguments: str, settings: Mapping[str, str] = LOOPBACK) -> AsyncIterator[Running]:
    """The command, begun; it is ended with the block."""
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "app",
        *arguments,
        cwd=ROOT,
        env={**environment, **settings},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def run(*arguments: str, given: bytes | None = None, settings: Mapping[str, str] = LOOPBACK) -> Ended:
    """The command, run to its end."""
    async with command(*arguments, settings=settings) as running:
        return await running.ended(given)
