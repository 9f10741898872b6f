"""Transports of httpx that request a permit before every request, redirects included, and keep to its rate.

transport = PermittedTransport("http://127.0.0.1:8080")
client = httpx.AsyncClient(transport=transport, headers={"User-Agent": "ExampleBot/1.0"})
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, assert_never

import httpx

from app.clients.permit_client import PermitClient, SyncPermitClient
from app.clients.permits import (
    BACKOFF_STATUSES,
    Answer,
    Denied,
    Grant,
    InvalidQuestion,
    NoAnswer,
    RetryLater,
)

MAX_WAIT = 60.0
"""Default seconds that a request may wait for its slot."""

Unreachable: TypeAlias = Literal["fail", "wait", "allow"]
"""If the service is unavailable: fail at once, wait until `max_wait` is over, or send the request without a permit."""

UNASKED = "unasked"
"""The response extension that is true if the request was sent without a permit."""

_UNSENT = (httpx.PoolTimeout, httpx.UnsupportedProtocol)
# A refused or broken connection has used its slot: releasing it would let the fleet reconnect without any delay.

_log = logging.getLogger(__name__)


class PermitError(httpx.RequestError):
    """A request that was not sent.

    Not an httpx.TransportError, which clients retry at once; here only waiting helps, if anything.
    """


class Disallowed(PermitError):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` where one decided."""

    def __init__(self, url: httpx.URL, refused: Denied) -> None:
        super().__init__(f"{url} may not be fetched: {refused}.")
        self.reason = refused.reason
        self.rule = refused.rule
        self.line = refused.line


class Deferred(PermitError):
    """No slot within `max_wait`: retry at `retry_at`, in `seconds`. `reason` is "pace", or the reason of a defer."""

    def __init__(self, url: httpx.URL, later: RetryLater) -> None:
        self.seconds = later.seconds
        self.reason = later.reason
        self.retry_at = datetime.now(UTC) + timedelta(seconds=later.seconds)
        super().__init__(f"{url} may not be fetched for {later.seconds:g} s: {later.reason}.")


class NotUnderstood(PermitError):
    """The service rejects the URL or the agent as malformed."""


class ServiceUnavailable(PermitError):
    """The service is unavailable, so nothing is known about the page."""


class _Terms:
    """The validated arguments of both transports."""

    def __init__(self, agent: str | None, max_wait: float, unreachable: Unreachable) -> None:
        if not 0 <= max_wait < float("inf"):
            raise ValueError(f"max_wait={max_wait!r} is not a valid number of seconds")
        if unreachable not in {"fail", "wait", "allow"}:
            raise ValueError(f"unreachable={unreachable!r} is not one of 'fail', 'wait' and 'allow'")
        if agent is not None and not agent.strip():
            raise ValueError(f"agent={agent!r} is empty")
        self._agent = agent
        self.max_wait = max_wait
        self.retry = unreachable == "wait"
        self._open = unreachable == "allow"

    def agent(self, request: httpx.Request) -> str:
        agent: str = self._agent or request.headers.get("User-Agent", "").strip()
        if not agent:
            raise NotUnderstood(f"{request.url} has no agent: set a User-Agent, or the transport's agent.")
        return agent

    def allowed(self, request: httpx.Request, answer: Answer) -> Grant | None:
        """The grant, or None to send the request without a permit. Raise PermitError otherwise."""
        match answer:
            case Grant():
                return answer
            case Denied():
                raise Disallowed(request.url, answer)
            case RetryLater():
                raise Deferred(request.url, answer)
            case InvalidQuestion(why=why):
                raise NotUnderstood(f"The service does not take {request.url}: {why}.")
            case NoAnswer(why=why):
                if not self._open:
                    raise ServiceUnavailable(f"Whether {request.url} may be fetched is not known: {why}.")
                _log.warning("%s is fetched without a permit: %s", request.url, why)
                return None
            case _:
                assert_never(answer)


class PermittedTransport(httpx.AsyncBaseTransport):
    """Sends through `transport` (httpx's own by default) what the service at the URL `service` permits, when it does.

    A request waits for its turn for `max_wait` seconds at most, a verdict that is put off included. It is asked for as
    `agent`, or else as its User-Agent. A page that answers 429 or 503 is reported, and a turn that is not used given
    back. With `unreachable` "allow", requests go out unasked while the service cannot be asked, which is logged and in
    the response's extensions as UNASKED. Under asyncio. Raises PermitError; ValueError for an argument that cannot be
    used.
    """

    def __init__(
        self,
        service: str,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        key: str | None = None,
        agent: str | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        service_transport: httpx.AsyncBaseTransport | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._terms = _Terms(agent, max_wait, unreachable)
        self._service = PermitClient(
            service, key=key, caller=caller, transport=service_transport, monotonic=monotonic, sleep=sleep
        )
        self._transport = transport or httpx.AsyncHTTPTransport()
        self._monotonic = monotonic

    async def aclose(self) -> None:
        """Release unused slots, then close everything."""
        await self._service.aclose()
        await self._transport.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Wait for the slot and send the request. Raise PermitError if it must not be sent."""
        terms = self._terms
        agent = terms.agent(request)
        answer = await self._service.permit(str(request.url), agent, terms.max_wait, retry=terms.retry)
        turn = terms.allowed(request, answer)
        begun = self._monotonic()
        try:
            response = await self._transport.handle_async_request(request)
        except _UNSENT:
            if turn is not None:
                self._service.release(turn)
            raise
        if turn is None:
            response.extensions[UNASKED] = True
        elif response.status_code in BACKOFF_STATUSES:
            elapsed = self._monotonic() - begun
            try:
                await self._service.report(turn, response.status_code, response.headers.get("Retry-After"), elapsed)
            except BaseException:
                await response.aclose()
                raise
        return response


class SyncPermittedTransport(httpx.BaseTransport):
    """The transport for httpx.Client; see PermittedTransport."""

    def __init__(
        self,
        service: str,
        transport: httpx.BaseTransport | None = None,
        *,
        key: str | None = None,
        agent: str | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        service_transport: httpx.BaseTransport | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._terms = _Terms(agent, max_wait, unreachable)
        self._service = SyncPermitClient(
            service, key=key, caller=caller, transport=service_transport, monotonic=monotonic, sleep=sleep
        )
        self._transport = transport or httpx.HTTPTransport()
        self._monotonic = monotonic

    def close(self) -> None:
        """Close everything."""
        self._service.close()
        self._transport.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Wait for the slot and send the request. Raise PermitError if it must not be sent."""
        terms = self._terms
        agent = terms.agent(request)
        answer = self._service.permit(str(request.url), agent, terms.max_wait, retry=terms.retry)
        turn = terms.allowed(request, answer)
        begun = self._monotonic()
        try:
            response = self._transport.handle_request(request)
        except _UNSENT:
            if turn is not None:
                self._service.release(turn)
            raise
        if turn is None:
            response.extensions[UNASKED] = True
        elif response.status_code in BACKOFF_STATUSES:
            elapsed = self._monotonic() - begun
            try:
                self._service.report(turn, response.status_code, response.headers.get("Retry-After"), elapsed)
            except BaseException:
                response.close()
                raise
        return response
