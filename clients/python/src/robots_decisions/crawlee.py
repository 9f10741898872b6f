"""Hooks of crawlee that request a permit before every navigation, by HTTP or in a browser, and an HTTP client that
requests one before every redirect.

async with PermitHooks("http://127.0.0.1:8080", agent="ExampleBot") as hooks:
    crawler = ParselCrawler(http_client=hooks.http_client())
    hooks.install(crawler)
    await crawler.run(urls)
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from crawlee import HttpHeaders, Request
from crawlee.crawlers import BasicCrawlingContext
from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse, ImpitHttpClient
from crawlee.request_loaders import RequestManager

from robots_decisions._async.permit_client import AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions._default_http import default_async_http
from robots_decisions._io import AsyncHttp
from robots_decisions.crawlee_queue import WAITS_FOR, HeldRequests
from robots_decisions.errors import Deferred, Misconfigured, Options, PermitError
from robots_decisions.permits import PACE, VERSION, Fields, Granted, NoAnswer, Open, RetryLater, Slot, asked_price
from robots_decisions.question import Names, origin_key
from robots_decisions.signatures import SIGNATURE_FIELDS
from robots_decisions.waits import because

__all__ = ["GIVE_UP_AFTER", "MAX_WAIT", "PermitHooks"]

MAX_WAIT = 5.0
"""Default seconds that a page waits for its slot in the crawler. Those whose slots are later wait in the queue."""

GIVE_UP_AFTER = 3600.0
"""Default seconds that a site may stay deferred before its pages fail."""

REDIRECTS = 20
"""Redirects in a row that are followed."""

_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_OF_BODIES = frozenset({"content-type", "content-length", "content-encoding"})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that a redirect to another origin must not carry."""

_log = logging.getLogger(__name__)


class HookedCrawler(Protocol):
    """A crawler of crawlee that navigates: those for HTTP, and the one for Playwright."""

    async def get_request_manager(self) -> RequestManager:
        """Open the queue of the crawler."""

    def pre_navigation_hook(self, hook: Callable[[Any], Awaitable[None]]) -> None:
        """Register a hook that runs before each navigation."""

    def post_navigation_hook(self, hook: Callable[[Any], Awaitable[None]]) -> None:
        """Register a hook that runs after each navigation."""

    def stop(self, reason: str) -> None:
        """Stop the crawler, once the requests in flight have ended."""


class _Begun(NamedTuple):
    url: str
    slot: Slot
    at: float


class _Installed(NamedTuple):
    crawler: HookedCrawler
    held: HeldRequests


class PermitHooks:
    """Waits for a slot before each navigation, and reports what came.

    `agent` is the crawler to ask as; `purpose`, `enforce`, `dialect` and `max_age` are those of AsyncClient. A
    disallowed page fails with Disallowed, without retries. A page whose slot is within `max_wait` seconds waits for it
    in the crawler. One whose slot or verdict is later goes back to crawlee's queue until then, and so does one about
    which the service says nothing; that counts as no retry. The pages of a site that stays deferred for more than
    `give_up_after` seconds fail with Deferred; `math.inf` waits for ever. With `unreachable="allow"`, pages are fetched
    without a permit while the service is silent, at the client's own pace. If the service refuses the key, or is none,
    the crawler is stopped, its requests stay in its queue, and `misconfigured` says why.

    With `sign`, the service signs GET requests, redirects included, which then have the User-Agent and From of the
    agent's profile, if it can (Web Bot Auth). It needs `http_client`: the requests of a browser are not signed.

    With `http_client`, redirects need a permit each. Without it, and in a browser, they were followed before they can
    be asked about: then a page fails that a redirect to a disallowed one gave. What a browser loads for a page is not
    asked about. Raises ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        *,
        agent: Names,
        purpose: Names | None = None,
        enforce: bool = False,
        dialect: str | None = None,
        max_age: float | None = None,
        key: str | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        give_up_after: float = GIVE_UP_AFTER,
        unreachable: Literal["wait", "allow"] = "wait",
        sign: bool = False,
        http: AsyncHttp | None = None,
    ) -> None:
        if unreachable not in {"wait", "allow"}:
            raise ValueError(f"unreachable={unreachable!r} is not one of 'wait' and 'allow'")
        if not give_up_after >= 0:
            raise ValueError(f"give_up_after={give_up_after!r} is not a number of seconds")
        self._give_up_after = give_up_after
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
        )
        self._signs = False
        self._url = service
        self._service = AsyncPermitClient(AsyncService(service, key, http or default_async_http()), self._options)
        self._begun: dict[int, _Begun] = {}
        self._installed: dict[int, _Installed] = {}
        self._asking: dict[int, _Installed] = {}
        self.misconfigured: Misconfigured | None = None

    def install(self, crawler: HookedCrawler) -> None:
        """Register both hooks, and hold back those requests of the crawler's queue that have to wait. Raise ValueError
        if requests should be signed and there is no HTTP client to sign them."""
        if self._options.sign and not self._signs:
            raise ValueError("sign=True signs requests by HTTP only: give the crawler http_client=hooks.http_client()")
        opened, installed = crawler.get_request_manager, _Installed(crawler, HeldRequests())
        self._installed[id(crawler)] = installed

        async def held() -> RequestManager:
            return installed.held.over(await opened())

        async def before(context: BasicCrawlingContext) -> None:
            await self._before_navigation(installed, context)

        crawler.get_request_manager = held  # type: ignore[method-assign] # crawlee has no other way to wrap its queue
        crawler.pre_navigation_hook(before)
        crawler.post_navigation_hook(self._after_navigation)

    def http_client(self, client: HttpClient | None = None) -> HttpClient:
        """An HTTP client for the crawler, which requests a permit before it follows a redirect.

        `client` sends the requests, by default crawlee's own; it must not follow redirects itself.
        """
        self._signs = self._options.sign
        return _PermittedHttpClient(self, client or ImpitHttpClient(follow_redirects=False))

    async def __aenter__(self) -> "PermitHooks":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give held requests back to crawlee's queue, release unused slots, send what was not reported yet, then close
        the connections to the service."""
        for installed in self._installed.values():
            await installed.held.give_back()
        await self._service.aclose()

    def signed(self, request: Request, hop: Request) -> Request:
        """A hop of the request with the fields of its slot's signature in place of those of the page before."""
        if not self._options.sign:
            return hop
        begun, headers = self._begun.get(id(request)), {name.lower(): value for name, value in hop.headers.items()}
        for name in SIGNATURE_FIELDS:
            headers.pop(name.lower(), None)
        if begun is not None and begun.slot.signed is not None and hop.method == "GET":
            headers.update((name.lower(), value) for name, value in begun.slot.signed.items())
        return hop.model_copy(update={"headers": HttpHeaders(headers)})

    async def before_redirect(self, request: Request, response: HttpResponse, url: str) -> None:
        """Report a redirect, and wait for the slot of the page that it names. Raise PermitError if it must not be
        fetched."""
        await self._report(request, response.status_code, response.headers)
        await self._wait(request, url, resume=request.method in {"GET", "HEAD"})

    async def _before_navigation(self, installed: _Installed, context: BasicCrawlingContext) -> None:
        """Wait for the slot. Raise PermitError if the page must not be fetched."""
        request = context.request

        async def forget() -> None:
            self._begun.pop(id(request), None)
            self._asking.pop(id(request), None)

        context.register_deferred_cleanup(forget)
        self._asking[id(request)] = installed
        await self._wait(request, str(request.user_data.get(WAITS_FOR) or request.url))

    async def _after_navigation(self, context: Any) -> None:
        """Report what came. Crawlee runs this before it looks at the status. Raise PermitError after a redirect."""
        request = context.request
        begun = self._begun.get(id(request))
        if begun is None:
            return
        if hasattr(context, "http_response"):
            came, status, headers = request.loaded_url, context.http_response.status_code, context.http_response.headers
        else:
            came, status, headers = context.response.url, context.response.status, context.response.headers
        if came and _is_other(came, begun.url):
            await self._wait(request, came, came=True)
        await self._report(request, status, headers)

    async def _wait(self, request: Request, url: str, *, resume: bool | None = None, came: bool = False) -> None:
        """Wait for the slot of a page. Raise PermitError, or an error that puts the request back.

        `resume`: whether a request that is redirected to this URL can go on there later. `came`: the page has come.
        """
        installed = self._asking[id(request)]
        resume = WAITS_FOR in request.user_data if resume is None else resume
        try:
            slot = await self._slot(installed, request, url, resume=resume, came=came)
        finally:
            installed.held.answered(request, url)
        self._begun[id(request)] = _Begun(url, slot, time.monotonic())
        if slot.version is not None:
            request.user_data[VERSION] = slot.version

    async def _slot(self, installed: _Installed, request: Request, url: str, *, resume: bool, came: bool) -> Slot:
        held, max_wait = installed.held, self._options.max_wait
        self._fail_if_given_up(installed, request, url)
        answer = await self._service.answer(url, self._options.members, max_wait, waiting=held.waiting(url))
        line, now = held.line(url), time.monotonic()
        match answer:
            case Granted(interval=interval):
                line.granted(now, interval, max_wait)
                return answer
            case RetryLater(seconds=seconds, reason=reason, interval=interval) if reason == PACE:
                line.wait_for_slot(now, seconds, interval)
                self._service.waits.slow(url, interval or seconds, len(line.waiting))
                if came:  # the page is allowed, and to fetch it again would only be another one
                    return Open(interval)
            case RetryLater():
                line.deferred(now, answer, self._give_up_after)
                self._fail_if_given_up(installed, request, url)
            case NoAnswer(remedy=None) if self._options.opens:
                own = self._service.own_slot(url, answer, max_wait)
                if own.taken:
                    line.granted(now, own.interval, max_wait)
                    return await self._service.wait_for(own)
                line.wait_for_slot(now, own.wait, own.interval)
            case NoAnswer(remedy=None):
                line.forget_trouble()
                if now >= line.opens_at:  # of several that asked together, the first to fail counts
                    line.verdict_unknown(now, None, math.inf)
            case NoAnswer():
                self._stop(installed.crawler, self._options.errors.error(url, self._url, answer))
                raise held.put_back(request, url, resume=resume)
            case _:
                line.verdict_known()
                request.no_retry = True
                raise self._options.errors.error(url, self._url, answer)
        if not (came or resume or url == request.url):  # it would be posted again and again
            raise self._options.errors.error(url, self._url, answer)
        raise held.put_back(request, url, resume=resume)

    def _fail_if_given_up(self, installed: _Installed, request: Request, url: str) -> None:
        line = installed.held.line(url)
        if line.refusal is not None and time.monotonic() < line.given_up_until:
            request.no_retry = True
            since = f"its site stays deferred for more than `give_up_after`, {self._give_up_after:g} s"
            raise Deferred(f"{url} is given up, since {since}: {because(self._url, line.refusal)}", line.refusal)

    def _stop(self, crawler: HookedCrawler, error: PermitError) -> None:
        if self.misconfigured is None and isinstance(error, Misconfigured):
            self.misconfigured = error
            _log.error("%s The crawler stops; its requests stay in its queue.", error)
        crawler.stop(str(error))

    async def _report(self, request: Request, status: int, headers: Fields) -> None:
        begun = self._begun.pop(id(request), None)
        if begun is not None:
            price, elapsed = asked_price(headers, begun.url), time.monotonic() - begun.at
            await self._service.report(begun.slot, status, headers.get("retry-after"), elapsed, price)


class _PermittedHttpClient(HttpClient):
    """Follows redirects one by one. `send_request` and `stream` are those of `client`."""

    def __init__(self, hooks: PermitHooks, client: HttpClient) -> None:
        super().__init__()
        self._hooks = hooks
        self._client = client

    async def crawl(self, request: Request, **how: Any) -> HttpCrawlingResult:
        """Load a page. Raise PermitError at a redirect to a page that may not be fetched."""
        resumed = request.user_data.pop(WAITS_FOR, None)
        hop = request if resumed is None else _next(request, 302, str(resumed))
        for _ in range(REDIRECTS + 1):
            hop = self._hooks.signed(request, hop)
            result = await self._client.crawl(hop, **how)
            response = result.http_response
            location = response.headers.get("location")
            if response.status_code not in _REDIRECT_STATUSES or not location:
                request.loaded_url = hop.loaded_url or hop.url
                return result
            url = urljoin(hop.url, location)
            if urlsplit(url).scheme not in {"http", "https"}:
                return result
            await self._hooks.before_redirect(request, response, url)
            hop = _next(hop, response.status_code, url)
        raise ValueError(f"{request.url} is behind more than {REDIRECTS} redirects")

    async def send_request(self, url: str, **how: Any) -> HttpResponse:
        """Send a request of the handler's own, without a permit."""
        return await self._client.send_request(url, **how)

    def stream(self, url: str, **how: Any) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a request of the handler's own, without a permit."""
        return self._client.stream(url, **how)

    async def cleanup(self) -> None:
        """Close the connections."""
        await self._client.cleanup()


def _next(hop: Request, status: int, url: str) -> Request:
    """The request that follows a redirect."""
    becomes_get = (status == 303 and hop.method != "HEAD") or (status in {301, 302} and hop.method == "POST")
    dropped = _OF_BODIES if becomes_get else frozenset()
    if origin_key(url) != origin_key(hop.url):
        dropped |= _CREDENTIALS
    headers = {name: value for name, value in dict(hop.headers).items() if name.lower() not in dropped}
    method, payload = ("GET", None) if becomes_get else (hop.method, hop.payload)
    return Request.from_url(url, method=method, headers=headers, payload=payload)


def _is_other(url: str, permitted: str) -> bool:
    """Whether two URLs differ in more than their fragments and an empty path."""

    def parts(one: str) -> tuple[str, str, str]:
        split = urlsplit(one)
        return origin_key(one), split.path or "/", split.query

    return parts(url) != parts(permitted)
