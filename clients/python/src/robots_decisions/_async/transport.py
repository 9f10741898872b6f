"""What the transports of httpx and httpx2 do: request a permit before every request, and keep to its rate."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

from robots_decisions._async.http import AsyncLibraryHttp
from robots_decisions._async.permit_client import AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions.errors import MAX_WAIT, ErrorTypes, Options, Sign, Unreachable
from robots_decisions.permits import UNASKED, VERSION, Open, Slot, asked_price
from robots_decisions.question import Names
from robots_decisions.signatures import sign_request


class Request(Protocol):
    """A request of either library."""

    @property
    def url(self) -> object:
        """Where it is sent."""

    @property
    def method(self) -> str:
        """Its method."""

    @property
    def headers(self) -> MutableMapping[str, str]:
        """Its header fields."""


class AsyncResponse(Protocol):
    """A response of either library."""

    status_code: int
    extensions: dict[str, Any]

    @property
    def headers(self) -> Mapping[str, str]:
        """Its header fields."""

    async def aclose(self) -> None:
        """Close it without reading the rest."""


RequestT = TypeVar("RequestT", bound=Request, contravariant=True)
ResponseT = TypeVar("ResponseT", bound=AsyncResponse, covariant=True)


class AsyncTransport(Protocol[RequestT, ResponseT]):
    """A transport of either library."""

    async def handle_async_request(self, request: RequestT) -> ResponseT:
        """Send the request."""

    async def aclose(self) -> None:
        """Close the connections."""


SentT = TypeVar("SentT", bound=Request)
ReceivedT = TypeVar("ReceivedT", bound=AsyncResponse)


class AsyncPermits(Generic[SentT, ReceivedT]):
    """Sends each request in a slot that the service at the URL `service` grants.

    `transport` sends the requests; the default is the library's own. A request waits up to `max_wait` seconds for its
    slot, or for a deferred verdict. Its agent is `agent`, or its User-Agent; `purpose`, `enforce`, `dialect` and
    `max_age` are those of AsyncClient. What the page answers is reported, and an unused slot is released. With
    `unreachable="allow"`, requests are sent without a permit while the service is silent, at least a second apart for
    each host; a warning and the response extension UNASKED say so. With `sign`, the service signs GET requests, which
    then have the User-Agent and From of the agent's profile, if it can (Web Bot Auth); with `sign="asked"`, it signs
    those whose page answers 401, 403 or 429 with Accept-Signature, which are sent once more. The extension VERSION is
    the id of the robots.txt that decided. Raises PermitError, and ValueError for invalid arguments.
    """

    library: ModuleType
    http: type[AsyncLibraryHttp[Any]]
    error_types: ErrorTypes

    def __init__(
        self,
        service: str,
        transport: AsyncTransport[SentT, ReceivedT] | None = None,
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
        service_transport: AsyncTransport[SentT, ReceivedT] | None = None,
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
            errors=self.error_types,
        )
        asked = AsyncService(service, key, self.http(service_transport))
        self._service = AsyncPermitClient(asked, self._options, monotonic=monotonic, sleep=sleep)
        self._transport: AsyncTransport[SentT, ReceivedT] = transport or self.library.AsyncHTTPTransport()
        self._monotonic = monotonic

    async def aclose(self) -> None:
        """Release unused slots, then close everything."""
        await self._service.aclose()
        await self._transport.aclose()

    async def handle_async_request(self, request: SentT) -> ReceivedT:
        """Wait for the slot and send the request. Raise PermitError if it must not be sent."""
        url = str(request.url)
        members = self._options.members_of(url, request.headers.get("User-Agent"))
        response = await self._send(request, url, await self._service.permit(url, members))
        try:
            slot = await self._service.asked_slot(url, members, request.method, response.status_code, response.headers)
        except BaseException:
            await response.aclose()
            raise
        if slot is None:
            return response
        await response.aclose()
        return await self._send(request, url, slot)

    async def _send(self, request: SentT, url: str, slot: Slot) -> ReceivedT:
        """Send the request in the slot, and report what the page answers."""
        if self._options.signs:
            sign_request(request.method, request.headers, slot.signed)
        begun = self._monotonic()
        try:
            response = await self._transport.handle_async_request(request)
        except (self.library.PoolTimeout, self.library.UnsupportedProtocol):
            # Nothing was sent. A refused or broken connection has used its slot: releasing it would let the fleet
            # reconnect without any delay.
            self._service.release(slot)
            raise
        if isinstance(slot, Open):
            response.extensions[UNASKED] = True
        elif slot.version is not None:
            response.extensions[VERSION] = slot.version
        elapsed = self._monotonic() - begun
        try:
            await self._service.report(
                slot,
                response.status_code,
                response.headers.get("Retry-After"),
                elapsed,
                asked_price(response.headers, url),
            )
        except BaseException:
            await response.aclose()
            raise
        return response
