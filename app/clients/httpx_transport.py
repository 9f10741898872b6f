"""Transports of httpx that ask the service before every request, redirects included, and keep to the pace it gives.

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

from app.clients.permit_client import Service, SyncService
from app.clients.permits import (
    HOLDS_BACK,
    Answer,
    Later,
    NoAnswer,
    NotTaken,
    Refused,
    Turn,
)

MAX_WAIT = 60.0
"""Seconds that a request waits for its turn, unless the client is told otherwise."""

Unreachable: TypeAlias = Literal["fail", "wait", "allow"]
"""What a service that cannot be asked means: no request, at once or when `max_wait` is over; or one without a pace."""

UNASKED = "unasked"
"""In the extensions of a response that came without having been asked about: true."""

_UNSENT = (httpx.PoolTimeout, httpx.UnsupportedProtocol)
# A connection that is refused or breaks has reached the origin: were its turn given back, everybody would knock at
# the closed door with no pace at all.

_log = logging.getLogger(__name__)


class PermitError(httpx.RequestError):
    """A request that was not sent.

    No httpx.TransportError, which whoever meets one tries again at once: what may help here is to wait, if anything is.
    """


class Disallowed(PermitError):
    """The page may not be fetched: `reason`, and the `rule` of robots.txt and its `line` where one decided."""

    def __init__(self, url: httpx.URL, refused: Refused) -> None:
        super().__init__(f"{url} may not be fetched: {refused}.")
        self.reason = refused.reason
        self.rule = refused.rule
        self.line = refused.line


class Deferred(PermitError):
    """Not within `max_wait`: come again at `retry_at`, in `seconds`. `reason` is "pace", or why nothing is known."""

    def __init__(self, url: httpx.URL, later: Later) -> None:
        self.seconds = later.seconds
        self.reason = later.reason
        self.retry_at = datetime.now(UTC) + timedelta(seconds=later.seconds)
        super().__init__(f"{url} may not be fetched for {later.seconds:g} s: {later.reason}.")


class NotUnderstood(PermitError):
    """The service cannot read the URL or the agent, so nothing is known of the page."""


class ServiceUnavailable(PermitError):
    """The service cannot be asked, so nothing is known of the page."""


class _Terms:
    """What both transports are told, checked."""

    def __init__(self, agent: str | None, max_wait: float, unreachable: Unreachable) -> None:
        if not 0 <= max_wait < float("inf"):
            raise ValueError(f"max_wait={max_wait!r} is no number of seconds")
        if unreachable not in {"fail", "wait", "allow"}:
            raise ValueError(f"unreachable={unreachable!r} is none of 'fail', 'wait' and 'allow'")
        if agent is not None and not agent.strip():
            raise ValueError(f"agent={agent!r} names nobody")
        self._agent = agent
        self.max_wait = max_wait
        self.insist = unreachable == "wait"
        self._open = unreachable == "allow"

    def agent(self, request: httpx.Request) -> str:
        agent: str = self._agent or request.headers.get("User-Agent", "").strip()
        if not agent:
            raise NotUnderstood(f"{request.url} is asked for by nobody: set a User-Agent, or the transport's agent.")
        return agent

    def allowed(self, request: httpx.Request, answer: Answer) -> Turn | None:
        """The turn that has come, or None where nobody could be asked and that will do; raises what else it may be."""
        match answer:
            case Turn():
                return answer
            case Refused():
                raise Disallowed(request.url, answer)
            case Later():
                raise Deferred(request.url, answer)
            case NotTaken(why=why):
                raise NotUnderstood(f"The service does not take {request.url}: {why}.")
            case NoAnswer(why=why):
                if not self._open:
                    raise ServiceUnavailable(f"Whether {request.url} may be fetched is not known: {why}.")
                _log.warning("%s is fetched without having been asked about: %s", request.url, why)
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
        self._service = Service(
            service, key=key, caller=caller, transport=service_transport, monotonic=monotonic, sleep=sleep
        )
        self._transport = transport or httpx.AsyncHTTPTransport()
        self._monotonic = monotonic

    async def aclose(self) -> None:
        """Close everything, when the turns that were not used are given back."""
        await self._service.aclose()
        await self._transport.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response of the page, when its turn has come; raises PermitError where it does not come."""
        terms = self._terms
        agent = terms.agent(request)
        answer = await self._service.turn(str(request.url), agent, terms.max_wait, insist=terms.insist)
        turn = terms.allowed(request, answer)
        begun = self._monotonic()
        try:
            response = await self._transport.handle_async_request(request)
        except _UNSENT:
            if turn is not None:
                self._service.give_back(turn)
            raise
        if turn is None:
            response.extensions[UNASKED] = True
        elif response.status_code in HOLDS_BACK:
            elapsed = self._monotonic() - begun
            try:
                await self._service.report(turn, response.status_code, response.headers.get("Retry-After"), elapsed)
            except BaseException:
                await response.aclose()
                raise
        return response


class SyncPermittedTransport(httpx.BaseTransport):
    """The same for httpx.Client."""

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
        self._service = SyncService(
            service, key=key, caller=caller, transport=service_transport, monotonic=monotonic, sleep=sleep
        )
        self._transport = transport or httpx.HTTPTransport()
        self._monotonic = monotonic

    def close(self) -> None:
        """Close everything."""
        self._service.close()
        self._transport.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The response of the page, when its turn has come; raises PermitError where it does not come."""
        terms = self._terms
        agent = terms.agent(request)
        answer = self._service.turn(str(request.url), agent, terms.max_wait, insist=terms.insist)
        turn = terms.allowed(request, answer)
        begun = self._monotonic()
        try:
            response = self._transport.handle_request(request)
        except _UNSENT:
            if turn is not None:
                self._service.give_back(turn)
            raise
        if turn is None:
            response.extensions[UNASKED] = True
        elif response.status_code in HOLDS_BACK:
            elapsed = self._monotonic() - begun
            try:
                self._service.report(turn, response.status_code, response.headers.get("Retry-After"), elapsed)
            except BaseException:
                response.close()
                raise
        return response
