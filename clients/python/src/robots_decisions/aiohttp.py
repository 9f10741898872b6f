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
from robots_decisions._not_http import is_not_http
from robots_decisions.errors import MAX_WAIT, Options, Sign, Unreachable
from robots_decisions.permits import Fields, Slot, asked_price, late, not_http, unreached
from robots_decisions.question import Names
from robots_decisions.signatures import sign_request

__all__ = [
    "AiohttpHttp",
    "Deferred",
    "Disallowed",
    "Misconfigured",
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
    """No slot within `max_wait`: retry at `retry_at`, in `seconds`. `reason` is "pace", "busy", or that of a defer."""


class NotUnderstood(errors.NotUnderstood, PermitError):
    """The service rejects the URL, the agent or another member of the question."""


class ServiceUnavailable(errors.ServiceUnavailable, PermitError):
    """The service is unavailable, so nothing is known about the page."""


class Misconfigured(errors.Misconfigured, ServiceUnavailable):
    """What answers refuses the key, or is not a robots.txt decision service: the message says what to set."""


_TYPES = errors.ErrorTypes(Disallowed, Deferred, NotUnderstood, ServiceUnavailable, Misconfigured)


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
            raise late(timeout) from None
        except aiohttp.ClientError as error:
            if is_not_http(error, (aiohttp.ClientResponseError, aiohttp.InvalidURL)):
                raise not_http(error) from None
            raise unreached(error) from None


class PermitMiddleware:
    """Sends each request of a session in a slot that the service at the URL `service` grants.

    A request waits for its slot, or for a deferred verdict, for at most `max_wait` seconds; the session's total timeout
    includes this. Its agent is `agent`, or its User-Agent; `purpose`, `enforce`, `dialect` and `max_age` are those of
    AsyncClient. What the page answers is reported. With `unreachable="allow"`, requests are sent without a permit while
    the service is silent, with a warning, and at least a second apart for each host. With `sign`, the service signs GET
    requests, which then have the User-Agent and From of the agent's profile, if it can (Web Bot Auth); with
    `sign="asked"`, it signs those whose page answers 401, 403 or 429 with Accept-Signature, which are sent once more.
    Raises PermitError, and ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        *,
        key: str | None = None,
        agent: Names | None = None,
        purpose: Names | None = None,
        enforce: bool = False,
        dialect: str | None = None,
        max_age: float | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        sign: Sign = False,
        http: AsyncHttp | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._options = Options(
            agent=agent,
            purpose=purpose,
            enforce=enforce,
            dialect=dialect,
            max_age=max_age,
            caller=caller,
            max_wait=max_wait,
            unreachable=unreachable,
            sign=sign,
            repeats=True,
            errors=_TYPES,
        )
        asked = AsyncService(service, key, http or AiohttpHttp())
        self._service = AsyncPermitClient(asked, self._options, monotonic=monotonic, sleep=sleep)
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
        url = str(request.url)
        members = self._options.members_of(url, request.headers.get("User-Agent"))
        response = await self._send(request, handler, await self._service.permit(url, members))
        try:
            slot = await self._service.asked_slot(url, members, request.method, response.status, response.headers)
        except BaseException:
            response.close()
            raise
        if slot is None:
            return response
        response.close()
        return await self._send(request, handler, slot)

    async def _send(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType, slot: Slot
    ) -> aiohttp.ClientResponse:
        """Send the request in the slot, and report what the page answers."""
        if self._options.signs:
            sign_request(request.method, request.headers, slot.signed)
        begun = self._monotonic()
        response = await handler(request)
        elapsed = self._monotonic() - begun
        try:
            price = asked_price(response.headers, str(request.url))
            await self._service.report(slot, response.status, response.headers.get("Retry-After"), elapsed, price)
        except BaseException:
            response.close()
            raise
        return response
