"""The service on loopback, in a process of its own."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.cli.command import LOOPBACK, ROOT
from tests.operator_token import TOKEN_FILE

_LISTENING = re.compile(rb"Uvicorn running on (http://[0-9.:]+)")


@asynccontextmanager
async def service(store_url: str, **others: str) -> AsyncIterator[str]:
    """Yield the URL of a service on this store that may fetch from loopback; `others` are more settings."""
    settings = {
        **LOOPBACK,
        "REDIS_URL": store_url,
        "PORT": "0",
        "ACCESS_LOG": "false",
        "OPERATOR_TOKEN_FILE": str(TOKEN_FILE),
        **others,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.patient_service",
        cwd=ROOT,
        env={**os.environ, **settings},
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async for line in process.stderr:
            found = _LISTENING.search(line)
            if found:
                break
        else:
            raise AssertionError("the service exited before it listened")
        yield found[1].decode()
    finally:
        process.kill()
        await process.communicate()
