"""Programs in processes that are forked from one that has imported them, which saves up to a second of CPU time each.

They skip what an interpreter does at its end: `tests.faults.process` starts whole ones.
"""

import asyncio
import importlib
import multiprocessing
import os
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, NoReturn

import psutil

from app.__main__ import COMMANDS, module_of
from tests.faults.process import LISTENING, PATIENCE, STARTED
from tests.operator_token import TOKEN_FILE

ROOT = Path(__file__).parents[1]
LOOPBACK = {"ALLOW_ADDRESSES": "127.0.0.0/8", "ALLOW_PORTS": "*"}

_FORKS = multiprocessing.get_context("forkserver")
_PRELOADED = ["app.__main__", *map(module_of, COMMANDS)]
_FORKS.set_forkserver_preload(_PRELOADED)


def preload(module: str) -> None:
    """Import a module before the first process is forked."""
    _PRELOADED.append(module)
    _FORKS.set_forkserver_preload(_PRELOADED)


class Ended(NamedTuple):
    """The exit code and the output of a program."""

    code: int
    out: str
    err: str


async def run(module: str, arguments: Sequence[str], environment: Mapping[str, str], given: bytes = b"") -> Ended:
    """Run `main` of a module with this standard input to its end."""
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("in", "out", "err")]
        files[0].write_bytes(given)
        process = await asyncio.to_thread(start, arguments, environment, files, module)
        try:
            await asyncio.to_thread(process.join)
        finally:
            process.kill()
        assert process.exitcode is not None
        return Ended(process.exitcode, files[1].read_text(), files[2].read_text())


def start(
    arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[Path], module: str = "app.__main__"
) -> BaseProcess:
    """Run `main` of a module with these arguments; `files` are its standard input, output and error."""
    process = _FORKS.Process(target=_main, args=(module, arguments, environment, files))
    process.start()
    return process


def _main(module: str, arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[Path]) -> NoReturn:
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    for number, (path, flags) in enumerate(zip(files, (os.O_RDONLY, *2 * [os.O_WRONLY | os.O_CREAT]), strict=True)):
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing gives each process an empty one
    sys.argv = ["python -m app", *arguments]
    sys.exit(importlib.import_module(module).main())


class ForkedService:
    """A service on a store, which may fetch from loopback; `settings` are more. It is patient with its store."""

    def __init__(self, store_url: str, module: str = "tests.patient_service", **settings: str) -> None:
        environment = {
            **os.environ,
            **LOOPBACK,
            "REDIS_URL": store_url,
            "PORT": "0",
            "ACCESS_LOG": "false",
            "LOG_FORMAT": "text",
            "OPERATOR_TOKEN_FILE": str(TOKEN_FILE),
            **settings,
        }
        self._folder = TemporaryDirectory()
        self._log = Path(self._folder.name, "log")
        self._process = start(("serve",), environment, (Path(os.devnull), self._log, self._log), module)

    def listen(self) -> str:
        """Wait until it serves, and return its URL."""
        deadline = time.monotonic() + PATIENCE
        while True:
            output = self._log.read_text() if self._log.exists() else ""
            found = LISTENING.search(output)
            if found is not None and STARTED in output:
                return found[1]
            assert self._process.is_alive(), f"it ended while starting: {output}"
            assert time.monotonic() < deadline, output
            time.sleep(0.02)

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self._log.read_text()

    def cpu(self) -> float:
        """The CPU seconds that it has taken."""
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def die(self) -> None:
        """Let it end as by `kill -9`."""
        self._process.kill()
        self._process.join()

    def kill(self) -> None:
        """Kill it, and remove its log."""
        self.die()
        self._folder.cleanup()
