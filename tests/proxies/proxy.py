"""Debian's nginx and squid with the configurations of deploy/proxies, on ports and in a directory of the test."""

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.faults.until import until_so

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "proxies"
HELPER = "/usr/local/bin/robots-decisions"
SERVICE = "127.0.0.1:8080"

_CAPABILITIES = "caps=+dac_read_search,+dac_override"
_OTHER_USER = (
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    f"--inh-{_CAPABILITIES}",
    f"--ambient-{_CAPABILITIES}",
)
_AS_USER = ("setpriv", *_OTHER_USER) if os.geteuid() == 0 else ()
"""Before squid, which as root would run its helper as a user who may not read this checkout."""


def binary(name: str) -> str:
    """The path of a system program; the tests fail without it."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.fail(f"{name} is not installed. `make test-proxies` installs it.")
    return found


@asynccontextmanager
async def nginx(service: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose requests go through nginx, which asks the service."""
    user = "user root; " if os.geteuid() == 0 else ""  # or its workers could not read the directory
    async with _running("nginx", 3129, service, {}) as (folder, configuration, port):
        command = [binary("nginx"), "-p", folder, "-c", configuration, "-g", f"{user}daemon off;"]
        async with _client(command, port) as client:
            yield client


@asynccontextmanager
async def squid(service: str, *, cached: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose requests go through squid, whose helper asks the service; squid reuses answers if `cached`."""
    changed = {
        HELPER: f"/usr/bin/env PYTHONPATH={ROOT} {sys.executable} -m app",
        " ttl=60 ": " ttl=60 " if cached else " ttl=60 cache=0 ",
    }
    async with _running("squid", 3128, service, changed) as (folder, configuration, port):
        settings = (
            f"pid_filename {folder}/squid.pid",
            f"cache_log {folder}/cache.log",
            "access_log none",
            "visible_hostname localhost",
            "pinger_enable off",
            "shutdown_lifetime 0 seconds",
            f"coredump_dir {folder}",
        )
        more = Path(folder, "more.conf")
        _write(more, "".join(f"{line}\n" for line in settings) + f"include {configuration}\n")
        # Shared memory is named after the service.
        command = [*_AS_USER, binary("squid"), "-N", "-n", f"p{port}", "-f", str(more)]
        async with _client(command, port) as client:
            yield client


@asynccontextmanager
async def _running(
    name: str, port: int, service: str, changed: Mapping[str, str]
) -> AsyncIterator[tuple[str, str, int]]:
    """A directory, the example in it with a free port and the service's, and the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        chosen = free.getsockname()[1]
    text = (EXAMPLES / f"{name}.conf").read_text()
    replaced = {f"127.0.0.1:{port}": f"127.0.0.1:{chosen}", SERVICE: service.removeprefix("http://"), **changed}
    for old, new in replaced.items():
        assert old in text, old
        text = text.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder, f"{name}.conf")
        _write(configuration, text)
        yield folder, str(configuration), chosen


def _write(path: Path, text: str) -> None:
    """Write a file that every user can read, in a directory in which every user can write."""
    path.write_text(text)
    path.chmod(0o644)
    path.parent.chmod(0o777)


@asynccontextmanager
async def _client(command: list[str], port: int) -> AsyncIterator[httpx.AsyncClient]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, cwd="/"
    )
    try:
        await until_so(lambda: _listens(port, process))
        async with httpx.AsyncClient(proxy=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
            yield client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _listens(port: int, process: asyncio.subprocess.Process) -> bool:
    assert process.returncode is None, f"the proxy has ended with {process.returncode}"
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
