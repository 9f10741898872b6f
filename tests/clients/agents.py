"""An agent's connection to `robots-decisions mcp`."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client

from tests.clients.commands import WORDS
from tests.clients.crawling import ROOT, environment


@asynccontextmanager
async def over_stdio(*arguments: str, **settings: str) -> AsyncIterator[Client]:
    """The tools of a server over its standard input and output; `settings` are variables of its environment."""
    words = [*WORDS[1:], "mcp", *arguments]
    started = StdioServerParameters(command=sys.executable, args=words, cwd=ROOT, env=dict(environment(**settings)))
    async with Client(stdio_client(started)) as client:
        yield client
