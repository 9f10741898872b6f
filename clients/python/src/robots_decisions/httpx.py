"""Transports of httpx that request a permit before every request, redirects included, and keep to its rate.

transport = AsyncPermittedTransport("http://127.0.0.1:8080")
client = httpx.AsyncClient(transport=transport, headers={"User-Agent": "ExampleBot/1.0"})
"""

from robots_decisions._async.httpx_http import AsyncHttpxHttp
from robots_decisions._async.httpx_transport import AsyncPermittedTransport
from robots_decisions._sync.httpx_http import HttpxHttp
from robots_decisions._sync.httpx_transport import PermittedTransport
from robots_decisions.httpx_errors import Deferred, Disallowed, NotUnderstood, PermitError, ServiceUnavailable
from robots_decisions.permits import UNASKED

__all__ = [
    "UNASKED",
    "AsyncHttpxHttp",
    "AsyncPermittedTransport",
    "Deferred",
    "Disallowed",
    "HttpxHttp",
    "NotUnderstood",
    "PermitError",
    "PermittedTransport",
    "ServiceUnavailable",
]
