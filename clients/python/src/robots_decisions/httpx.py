"""Transports of httpx that request a permit before every request, redirects included, and keep to its rate.

transport = AsyncPermittedTransport("http://127.0.0.1:8080")
client = httpx.AsyncClient(transport=transport, headers={"User-Agent": "ExampleBot/1.0"})

The errors are not httpx.TransportError, which clients retry at once; here only waiting helps, if anything.
"""

import httpx

from robots_decisions import errors
from robots_decisions._async.http import AsyncLibraryHttp
from robots_decisions._async.transport import AsyncPermits
from robots_decisions._sync.http import LibraryHttp
from robots_decisions._sync.transport import Permits
from robots_decisions.permits import UNASKED, VERSION

__all__ = [
    "UNASKED",
    "VERSION",
    "AsyncHttpxHttp",
    "AsyncPermittedTransport",
    "Deferred",
    "Disallowed",
    "HttpxHttp",
    "Misconfigured",
    "NotUnderstood",
    "PermitError",
    "PermittedTransport",
    "ServiceUnavailable",
]


class PermitError(errors.PermitError, httpx.RequestError):
    """A request that was not sent."""


class Disallowed(errors.Disallowed, PermitError):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided."""


class Deferred(errors.Deferred, PermitError):
    """No slot within `max_wait`: retry at `retry_at`, in `seconds`. `reason` is "pace", "busy", or that of a defer."""


class NotUnderstood(errors.NotUnderstood, PermitError):
    """The service rejects the URL, the agent or another member of the question."""


class ServiceUnavailable(errors.ServiceUnavailable, PermitError):
    """The service is unavailable, so nothing is known about the page."""


class Misconfigured(errors.Misconfigured, ServiceUnavailable):
    """What answers refuses the key, or is not a robots.txt decision service: the message says what to set."""


_TYPES = errors.ErrorTypes(Disallowed, Deferred, NotUnderstood, ServiceUnavailable, Misconfigured)


class AsyncHttpxHttp(AsyncLibraryHttp[httpx.AsyncBaseTransport]):
    """Sends requests to the service by httpx. `transport` replaces its own."""

    library = httpx


class HttpxHttp(LibraryHttp[httpx.BaseTransport]):
    """Sends requests to the service by httpx. `transport` replaces its own."""

    library = httpx


class AsyncPermittedTransport(AsyncPermits[httpx.Request, httpx.Response], httpx.AsyncBaseTransport):
    """A transport for httpx.AsyncClient; AsyncPermits describes its arguments."""

    library, http, error_types = httpx, AsyncHttpxHttp, _TYPES


class PermittedTransport(Permits[httpx.Request, httpx.Response], httpx.BaseTransport):
    """A transport for httpx.Client; Permits describes its arguments."""

    library, http, error_types = httpx, HttpxHttp, _TYPES
