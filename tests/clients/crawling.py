"""Crawls in processes of their own: by Scrapy, with crawl.py, and by the other integrations, with integrations.py."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests import forked

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "clients" / "python" / "src"
HERE = Path(__file__).parent
CRAWLERS = ROOT / "build" / "clients" / "venv" / "bin" / "python"
"""The Python of an environment with the libraries of crawlers, and pyarrow: `make build/clients/.installed`."""


def environment(**others: str) -> Mapping[str, str]:
    """The environment of a client in a process of its own, which has no certificates of authorities.

    Libraries of HTTP read those of the machine for each client that they make, which takes 20 ms of CPU time, and no
    client here uses TLS.
    """
    kept = {name: value for name, value in os.environ.items() if name not in {"ROBOTS_API_KEY", "SSL_CERT_FILE"}}
    return {**kept, "PYTHONPATH": str(SOURCES), "SSL_CERT_DIR": str(HERE), **others}


class Installation(NamedTuple):
    """A Python, where it finds `robots_decisions`, and the directory that it runs in."""

    python: str = sys.executable
    packages: Path = SOURCES
    directory: Path = ROOT


@asynccontextmanager
async def crawler(
    plan: Mapping[str, Any], script: str = "crawl", installation: Installation | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running crawl, which is killed at the end; the scripts say what a plan is."""
    installed = installation or Installation()
    process = await asyncio.create_subprocess_exec(
        *(installed.python, str(HERE / f"{script}.py"), json.dumps(plan)),
        cwd=installed.directory,
        env=environment(PYTHONPATH=str(installed.packages)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def crawl(
    plan: Mapping[str, Any], script: str = "crawl", installation: Installation | None = None
) -> dict[str, Any]:
    """The result of a crawl, and its standard error as `complaints`."""
    if installation is None:
        code, out, err = await forked.run(f"tests.clients.{script}", [json.dumps(plan)], environment())
    else:
        async with crawler(plan, script, installation) as process:
            said, complaints = await process.communicate()
        assert process.returncode is not None
        code, out, err = process.returncode, said.decode(), complaints.decode()
    assert code == 0, err
    return {**json.loads(out.splitlines()[-1]), "complaints": err}


async def crawl_by_scrapy(
    *urls: str, service: str, plan: Mapping[str, Any] | None = None, **settings: Any
) -> dict[str, Any]:
    """The result of a crawl by Scrapy from these URLs."""
    return await crawl({"urls": urls, "settings": {"ROBOTS_DECISIONS_URL": service, **settings}, **(plan or {})})
