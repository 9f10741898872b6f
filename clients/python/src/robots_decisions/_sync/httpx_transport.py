# scripts/generate.py made this module from _async/httpx_transport.py; change that one.
"""A transport of httpx that requests a permit before every request, redirects included, and keeps to its rate."""

import time
from collections.abc import Callable

import httpx

from robots_decisions import httpx_errors
from robots_decisions._sync.httpx_http import HttpxHttp
from robots_decisions._sync.permit_client import PermitClient
from robots_decisions._sync.service import Service
from robots_decisions.errors import MAX_WAIT, Options, Unreachable
from robots_decisions.permits import UNASKED

_NOT_SENT = (httpx.PoolTimeout, httpx.UnsupportedProtocol)
# A refused or broken connection has used its slot: releasing it would let the fleet reconnect without any delay.


class PermittedTransport(httpx.BaseTransport):
    """Sends each request in a slot that the service at the URL `service` grants.

    `transport` sends the requests; the default is httpx's own. A request waits up to `max_wait` seconds for its slot,
    or for a deferred verdict. Its agent is `agent`, or its User-Agent. A page that answers 429 or 503, or refuses, is
    reported, and an unused slot is released. With `unreachable="allow"`, requests are sent without a permit while the
    service is unavailable; a warning and the response extension UNASKED say so. Raises PermitError, and ValueError for
    invalid arguments.
    """

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
        self._options = Options(agent, max_wait, unreachable, httpx_errors.TYPES)
        http = HttpxHttp(service_transport)
        self._service = PermitClient(Service(service, key, http), caller=caller, monotonic=monotonic, sleep=sleep)
        self._transport = transport or httpx.HTTPTransport()
        self._monotonic = monotonic

    def close(self) -> None:
        """Release unused slots, then close everything."""
        self._service.close()
        self._transport.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Wait for the slot and send the request. Raise PermitError if it must not be sent."""
        options, url = self._options, str(request.url)
        agent = options.agent(url, request.headers.get("User-Agent"))
        answer = self._service.permit(url, agent, options.max_wait, retry=options.retry)
        grant = options.grant(url, answer)
        begun = self._monotonic()
        try:
            response = self._transport.handle_request(request)
        except _NOT_SENT:
            if grant is not None:
                self._service.release(grant)
            raise
        if grant is None:
            response.extensions[UNASKED] = True
        elif grant.to_report(response.status_code):
            elapsed = self._monotonic() - begun
            try:
                self._service.report(grant, response.status_code, response.headers.get("Retry-After"), elapsed)
            except BaseException:
                response.close()
                raise
        return response
