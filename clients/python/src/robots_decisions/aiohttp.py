"""A client middleware of aiohttp that requests a permit before every request, redirects included.

async with (
    PermitMiddleware("http://127.0.0.1:8080") as permits,
    aiohttp.ClientSession(middlewares=[permits], headers={"User-Agent": "ExampleBot/1.0"}) as session,
):
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from robots_decisions import errors
from robots_decisions._async.permit_client import AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions._io import AsyncHttp, AsyncReply
from robots_decisions.errors import MAX_WAIT, Options, Unreachable
from robots_decisions.permits import Fields, Unavailable

__all__ = [
    "AiohttpHttp",
    "Deferred",
    "Disallowed",
    "NotUnderstood",
    "PermitError",
    "PermitMiddleware",
    "ServiceUnavailable",
]


class PermitError(errors.PermitError, aiohttp.ClientError):
    """A request that was not sent. It is not an aiohttp.ClientConnectionError, which aiohttp and others retry."""


class Disallowed(errors.Disallowed, PermitError):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` if one decided."""


class Deferred(errors.Deferred, PermitError):
    """No slot within `max_wait`: retry at `retry_at`, in `seconds`. `reason` is "pace", or the reason of a defer."""


class NotUnderstood(errors.NotUnderstood, PermitError):
    """The service rejects the URL or the agent as malformed."""


class ServiceUnavailable(errors.ServiceUnavailable, PermitError):
    """The service is unavailable, so nothing is known about the page."""


_TYPES = errors.ErrorTypes(Disallowed, Deferred, NotUnderstood, ServiceUnavailable)


class AiohttpHttp:
    """The service over aiohttp, in a session of its own."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None  # needs a running event loop

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        headers: Fields,
        content: bytes | None,
        timeout: float,
    ) -> AsyncIterator[AsyncReply]:
        """Send a request. The connection, and each piece of the response, may take `timeout` seconds."""
        if self._session is None:
            self._session = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        limits = aiohttp.ClientTimeout(total=None, connect=timeout, sock_connect=timeout, sock_read=timeout)
        # The URL is encoded already: yarl would change escapes in it.
        request = self._session.request(
            method, URL(url, encoded=True), headers=headers, data=content, timeout=limits, allow_redirects=False
        )
        try:
            async with request as response:
                yield AsyncReply(response.status, response.headers, response.content.iter_any())
        except asyncio.TimeoutError:
            raise Unavailable(f"it does not respond within {timeout:g} s") from None
        except aiohttp.ClientError as error:
            raise Unavailable(f"it cannot be reached: {str(error) or type(error).__name__}") from None


class PermitMiddleware:
    """Sends each request of a session in a slot that the service at the URL `service` grants.

    A request waits for its slot, or for a deferred verdict, for at most `max_wait` seconds; the session's total timeout
    includes this. Its agent is `agent`, or its User-Agent. A page that answers 429 or 503, or refuses, is reported.
    With `unreachable="allow"`, requests are sent without a permit while the service is unavailable, with a warning.
    Raises PermitError, and ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        *,
        key: str | None = None,
        agent: str | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        http: AsyncHttp | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._options = Options(agent, max_wait, unreachable, _TYPES)
        self._service = AsyncPermitClient(
            AsyncService(service, key, http or AiohttpHttp()), caller=caller, monotonic=monotonic, sleep=sleep
        )
        self._monotonic = monotonic

    async def __aenter__(self) -> "PermitMiddleware":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release unused slots, then close the connections to the service."""
        await self._service.aclose()

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Wait for the slot and send the request. Raise PermitError if it must not be sent."""
        options, url = self._options, str(request.url)
        agent = options.agent(url, request.headers.get("User-Agent"))
        answer = await self._service.permit(url, agent, options.max_wait, retry=options.retry)
        grant = options.grant(url, answer)
        begun = self._monotonic()
        response = await handler(request)
        if grant is not None and grant.to_report(response.status):
            elapsed = self._monotonic() - begun
            try:
                await self._service.report(grant, response.status, response.headers.get("Retry-After"), elapsed)
            except BaseException:
                response.close()
                raise
        return response
