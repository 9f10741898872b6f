"""An adapter of requests that requests a permit before every request, redirects included, and keeps to its rate.

session = requests.Session()
session.headers["User-Agent"] = "ExampleBot/1.0"
PermitAdapter("http://127.0.0.1:8080").mount(session)
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter

from robots_decisions import errors
from robots_decisions._io import Http, Reply
from robots_decisions._not_http import causes, is_not_http
from robots_decisions._sync.permit_client import PermitClient
from robots_decisions._sync.service import Service
from robots_decisions.errors import MAX_WAIT, Options, Sign, Unreachable
from robots_decisions.permits import UNASKED, VERSION, Fields, Open, Slot, asked_price, late, not_http, unreached
from robots_decisions.question import Names
from robots_decisions.signatures import sign_request

__all__ = [
    "UNASKED",
    "VERSION",
    "Deferred",
    "Disallowed",
    "Misconfigured",
    "NotUnderstood",
    "PermitAdapter",
    "PermitError",
    "RequestsHttp",
    "ServiceUnavailable",
]

CONNECTIONS = 100
"""Connections to the service that are kept: as many threads share a client without opening others."""

PIECE = 65_536
"""Bytes of a piece of an answer, at most."""


class PermitError(errors.PermitError, requests.RequestException):
    """A request that was not sent. It is not a requests.ConnectionError, which crawlers retry."""


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


class RequestsHttp:
    """Sends requests to the service by requests."""

    def __init__(self) -> None:
        self._session = requests.Session()
        self._session.trust_env = False
        adapter = HTTPAdapter(pool_maxsize=CONNECTIONS)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    @contextmanager
    def stream(self, method: str, url: str, headers: Fields, content: bytes | None, timeout: float) -> Iterator[Reply]:
        """Send a request. The connection, and each piece of the response, may take `timeout` seconds."""
        try:
            response = self._session.request(
                method, url, headers=headers, data=content, timeout=timeout, stream=True, allow_redirects=False
            )
            with response:
                yield Reply(response.status_code, response.headers, _pieces(response))
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            raise late(timeout) from None
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            *_, first = causes(error)  # the messages of requests are about its pools
            if is_not_http(error, requests.exceptions.InvalidURL):
                raise not_http(first) from None
            raise unreached(first) from None


def _pieces(response: requests.Response) -> Iterator[bytes]:
    """The body as it arrives; Response.iter_content waits for whole pieces."""
    raw = cast("urllib3.HTTPResponse", response.raw)
    while piece := raw.read1(PIECE, decode_content=False):
        yield piece


class PermitAdapter(BaseAdapter):
    """Sends each request of a session in a slot that the service at the URL `service` grants.

    `adapter` sends the requests; the default is an HTTPAdapter. A request waits up to `max_wait` seconds for its slot,
    or for a deferred verdict. Its agent is `agent`, or its User-Agent; `purpose`, `enforce`, `dialect` and `max_age`
    are those of Client. What the page answers is reported. With `unreachable="allow"`, requests are sent without a
    permit while the service is silent, at least a second apart for each host; a warning and the response's attribute
    UNASKED say so. With `sign`, the service signs GET requests, which then have the User-Agent and From of the agent's
    profile, if it can (Web Bot Auth); with `sign="asked"`, it signs those whose page answers 401, 403 or 429 with
    Accept-Signature, which are sent once more. Its attribute VERSION is the id of the robots.txt that decided. Raises
    PermitError, and ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        adapter: BaseAdapter | None = None,
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
        http: Http | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__()
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
        asked = Service(service, key, http or RequestsHttp())
        self._service = PermitClient(asked, self._options, monotonic=monotonic, sleep=sleep)
        self._adapter = adapter or HTTPAdapter()
        self._monotonic = monotonic

    def mount(self, session: requests.Session) -> None:
        """Send all requests of the session by this adapter."""
        session.mount("http://", self)
        session.mount("https://", self)

    def close(self) -> None:
        """Send what was not reported yet, then close everything."""
        self._service.close()
        self._adapter.close()

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        """Wait for the slot and send the request. Raise PermitError if it must not be sent."""
        url = request.url or ""
        agent = request.headers.get("User-Agent")
        members = self._options.members_of(url, agent.decode("latin-1") if isinstance(agent, bytes) else agent)
        send = partial(self._adapter.send, request, *arguments, **options)
        response = self._send(request, send, self._service.permit(url, members))
        try:
            slot = self._service.asked_slot(url, members, request.method or "", response.status_code, response.headers)
        except BaseException:
            response.close()
            raise
        if slot is None:
            return response
        response.close()
        return self._send(request, send, slot)

    def _send(
        self, request: requests.PreparedRequest, send: Callable[[], requests.Response], slot: Slot
    ) -> requests.Response:
        """Send the request in the slot, and report what the page answers."""
        if self._options.signs:
            sign_request(request.method or "", request.headers, slot.signed)
        begun = self._monotonic()
        response = send()
        if isinstance(slot, Open):
            setattr(response, UNASKED, True)
        elif slot.version is not None:
            setattr(response, VERSION, slot.version)
        elapsed = self._monotonic() - begun
        try:
            self._service.report(
                slot,
                response.status_code,
                response.headers.get("Retry-After"),
                elapsed,
                asked_price(response.headers, request.url or ""),
            )
        except BaseException:
            response.close()
            raise
        return response
