"""Debian's nginx with the configuration of deploy/proxies, on a port and in a directory of the test."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.faults.until import until_so

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "proxies"

_SERVICE, _PROXY = "127.0.0.1:8080", "127.0.0.1:3129"
_CLOSED, _OPEN = "127.0.0.0/8 1;", "127.0.0.0/8 0;"


@asynccontextmanager
async def nginx(service: str, *, loopback: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose requests go through nginx with the example's configuration, which asks the service.

    `loopback`: whether sites may be there, as with ALLOW_ADDRESSES.
    """

    def example(_folder: str, port: int) -> str:
        text = (EXAMPLES / "nginx.conf").read_text()
        changes = [(_PROXY, f"127.0.0.1:{port}"), (_SERVICE, service.removeprefix("http://"))]
        changes += [(_CLOSED, _OPEN)] if loopback else []
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return text

    async with (
        running_nginx(example) as url,
        httpx.AsyncClient(proxy=url, trust_env=False, timeout=60) as client,
    ):
        yield client


@asynccontextmanager
async def running_nginx(configuration: Callable[[str, int], str]) -> AsyncIterator[str]:
    """The URL of an nginx; `configuration` makes the text of its configuration for a directory and a free port."""
    binary = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        pytest.fail("nginx is not installed. `make test-tools AREA=proxies` installs it.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = "user root; " if os.geteuid() == 0 else ""  # or its workers could not read the directory
    with tempfile.TemporaryDirectory() as folder:
        path = _written(Path(folder, "nginx.conf"), configuration(folder, port))
        command = [binary, "-p", folder, "-c", path, "-g", f"{user}daemon off;"]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, cwd="/"
        )
        try:
            await until_so(lambda: _listens(port, process))
            yield f"http://127.0.0.1:{port}"
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def _listens(port: int, process: asyncio.subprocess.Process) -> bool:
    assert process.returncode is None, f"the proxy has ended with {process.returncode}"
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
