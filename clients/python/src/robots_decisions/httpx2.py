# scripts/generate.py made this module from httpx.py; change that one.
"""Transports of httpx2 that request a permit before every request, redirects included, and keep to its rate.

transport = AsyncPermittedTransport("http://127.0.0.1:8080")
client = httpx2.AsyncClient(transport=transport, headers={"User-Agent": "ExampleBot/1.0"})
"""

from robots_decisions._async.httpx2_http import AsyncHttpx2Http
from robots_decisions._async.httpx2_transport import AsyncPermittedTransport
from robots_decisions._sync.httpx2_http import Httpx2Http
from robots_decisions._sync.httpx2_transport import PermittedTransport
from robots_decisions.httpx2_errors import Deferred, Disallowed, NotUnderstood, PermitError, ServiceUnavailable
from robots_decisions.permits import UNASKED

__all__ = [
    "UNASKED",
    "AsyncHttpx2Http",
    "AsyncPermittedTransport",
    "Deferred",
    "Disallowed",
    "Httpx2Http",
    "NotUnderstood",
    "PermitError",
    "PermittedTransport",
    "ServiceUnavailable",
]
