"""Ask a robots.txt decision service from a crawler.

async with AsyncClient("http://127.0.0.1:8080", agent="ExampleBot") as client:
    if await client.allowed("https://www.example.com/page"):
        ...

Transports and middlewares are in modules named after their library: robots_decisions.httpx, .httpx2, .aiohttp, .scrapy
and .crawlee.
"""

from robots_decisions._async.client import AsyncClient
from robots_decisions._sync.client import Client
from robots_decisions.bundle_rows import BundleRow
from robots_decisions.errors import (
    Deferred,
    Disallowed,
    Misconfigured,
    NotUnderstood,
    PermitError,
    ServiceUnavailable,
    Unreachable,
)
from robots_decisions.outcomes import Permit
from robots_decisions.verdicts import Question, Unanswered, Verdict

__all__ = [
    "AsyncClient",
    "BundleRow",
    "Client",
    "Deferred",
    "Disallowed",
    "Misconfigured",
    "NotUnderstood",
    "Permit",
    "PermitError",
    "Question",
    "ServiceUnavailable",
    "Unanswered",
    "Unreachable",
    "Verdict",
]
