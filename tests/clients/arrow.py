"""Bundles by the command, and decisions by them, in an environment that has pyarrow and nothing of the service."""

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.clients.commands import Ended, run
from tests.clients.crawling import CRAWLERS, ROOT, SOURCES

DECIDE = """
import json, sys
from datetime import datetime
import pyarrow as pa
from robots_core.arrow import Bundle, decide

path, asked, *each = json.load(sys.stdin)
urls, agents = zip(*asked)
found = []
for options in each:
    if "at" in options:
        options["at"] = datetime.fromisoformat(options["at"])
    answers = decide(pa.table({"url": urls, "agent": agents}), Bundle.open(path), **options)
    found.append([list(row.values()) for row in answers.to_pylist()])
json.dump(found, sys.stdout)
"""


@cache
def crawlers() -> str:
    """The Python of that environment, which is made if it is missing."""
    subprocess.run(["make", "--silent", "build/clients/.installed"], cwd=ROOT, check=True)
    return str(CRAWLERS)


async def make_bundle(*arguments: str, **others: Any) -> Ended:
    """Run `robots-decisions bundle`."""
    return await run("bundle", *arguments, python=crawlers(), **others)


async def decided(
    bundle: Path, asked: Sequence[tuple[str, str]], *options: Mapping[str, object]
) -> list[list[list[Any]]]:
    """The rows of robots_core.arrow.decide by a bundle, with each of these options."""
    given = json.dumps([str(bundle), asked, *options])
    return list(json.loads(await in_arrow(DECIDE, given)))


async def in_arrow(program: str, given: str) -> str:
    """What a program prints that reads standard input."""
    process = await asyncio.create_subprocess_exec(
        *(crawlers(), "-c", program),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{SOURCES}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(given.encode())
    assert process.returncode == 0, err.decode()
    return out.decode()
