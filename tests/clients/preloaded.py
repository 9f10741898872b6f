"""What `tests.forked` imports for the client's commands and for crawls, so that no process imports it again."""

import sys
from importlib import import_module
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "clients" / "python" / "src"
sys.path.append(str(SOURCES))  # the server of forks has no settings of pytest

COMMANDS = ("main", "check", "ingest", "overrides", "why")
"""Modules of the command, without `bundle`, which needs pyarrow."""

LAZY = (
    "aiohttp.web",
    "requests",
    "robots_decisions.httpx",
    "robots_decisions.httpx2",
    "scrapy.core.downloader.handlers.http11",
    "scrapy.downloadermiddlewares.cookies",
    "scrapy.extensions.feedexport",
)
"""What Scrapy and the client import when a crawl begins."""

for name in (*(f"robots_decisions.cli.{it}" for it in COMMANDS), "tests.clients.crawl", "tests.clients.integrations"):
    import_module(name)
for name in LAZY:
    import_module(name)
