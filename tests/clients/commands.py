"""The command `robots-decisions` in processes of its own, and a service that answers its batches as a test says."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests import forked
from tests.clients.crawling import ROOT, environment
from tests.origins import Exchange, Handler, Reply, text

LINES = {"Content-Type": "application/x-ndjson"}
WORDS = (sys.executable, "-m", "robots_decisions")
ALLOW = {"verdict": "allow", "allowed": True, "reason": "no_match"}
DISALLOW = {"verdict": "disallow", "allowed": False, "reason": "rule", "rule": None, "version": "0123456789abcdef"}


def busy(retry_after: float | None = 0.0) -> dict[str, Any]:
    """The answer of a service that has no room for a question."""
    problem = {
        "status": 503,
        "type": "urn:x:store-down",
        "detail": "The store is unavailable.",
        "retry_after": retry_after,
    }
    return {"problem": problem}


class Ended(forked.Ended):
    """The exit code and the output of a command."""

    def rows(self) -> Sequence[dict[str, Any]]:
        """The JSON of each line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Running:
    """A running command."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Send a signal, by default what Ctrl-C sends."""
        self._process.send_signal(number)

    async def ended(self, given: bytes = b"") -> Ended:
        """Write to standard input and wait for the exit."""
        out, err = await self._process.communicate(given)
        assert self._process.returncode is not None
        return Ended(self._process.returncode, out.decode(), err.decode())


@asynccontextmanager
async def command(*arguments: str, python: str = sys.executable, **settings: str) -> AsyncIterator[Running]:
    """Start a command; it is killed at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        python,
        *WORDS[1:],
        *arguments,
        cwd=ROOT,
        env=environment(**settings),
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


async def run(*arguments: str, given: bytes = b"", python: str = sys.executable, **settings: str) -> Ended:
    """Run a command to its end."""
    if python == sys.executable:
        return Ended(*await forked.run("robots_decisions.cli.main", arguments, environment(**settings), given))
    async with command(*arguments, python=python, **settings) as running:
        return await running.ended(given)


def numbered(count: int) -> bytes:
    """A list of pages of one site, whose URLs end with their numbers."""
    return b"".join(b"http://h/%d\n" % number for number in range(1, count + 1))


def log(count: int) -> bytes:
    """A log of the same pages."""
    lines = ({"url": f"http://h/{number}", "agent": "A", "time": number} for number in range(1, count + 1))
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


async def asked_in(exchange: Exchange) -> list[dict[str, Any]]:
    """The questions of a request."""
    [length] = [line for line in exchange.head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    body = await exchange.receive(int(length.partition(b":")[2]))
    return [json.loads(line) for line in body.splitlines()]


def answering(
    answer: Callable[[int], Mapping[str, Any]], reply: Callable[[int], Reply | None] = lambda _: None
) -> Handler:
    """A service that answers questions by the numbers in their URLs; `reply` may reply otherwise by the first."""

    async def handle(exchange: Exchange) -> None:
        asked = [int(item["url"].rpartition("/")[2]) for item in await asked_in(exchange)]
        other = reply(asked[0])
        if other is None:
            await exchange.send(text(200, "".join(json.dumps(answer(number)) + "\n" for number in asked), LINES))
        elif isinstance(other, bytes):
            await exchange.send(other)
        else:
            await other(exchange)

    return handle
