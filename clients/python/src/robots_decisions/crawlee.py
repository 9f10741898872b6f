"""Hooks of crawlee that request a permit before every navigation, by HTTP or in a browser, and an HTTP client that
requests one before every redirect.

async with PermitHooks("http://127.0.0.1:8080", agent="ExampleBot") as hooks:
    crawler = ParselCrawler(http_client=hooks.http_client())
    hooks.install(crawler)
    await crawler.run(urls)
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol
from urllib.parse import urljoin, urlsplit

from crawlee import Request
from crawlee.crawlers import BasicCrawlingContext
from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse, ImpitHttpClient

from robots_decisions._async.permit_client import AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions._default_http import default_async_http
from robots_decisions._io import AsyncHttp
from robots_decisions.errors import Disallowed, Misconfigured, NotUnderstood, Options, PermitError, Unreachable
from robots_decisions.permits import VERSION, Slot
from robots_decisions.question import Names, origin_key

__all__ = ["MAX_WAIT", "PermitHooks"]

MAX_WAIT = 30.0
"""Default seconds that a page may wait for its slot: crawlee's navigation timeout, by default 60 s, includes them."""

REDIRECTS = 20
"""Redirects in a row that are followed."""

_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_OF_BODIES = frozenset({"content-type", "content-length", "content-encoding"})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that a redirect to another origin must not carry."""


class HookedCrawler(Protocol):
    """A crawler of crawlee that navigates: those for HTTP, and the one for Playwright."""

    def pre_navigation_hook(self, hook: Callable[[Any], Awaitable[None]]) -> None:
        """Register a hook that runs before each navigation."""

    def post_navigation_hook(self, hook: Callable[[Any], Awaitable[None]]) -> None:
        """Register a hook that runs after each navigation."""


class _Begun(NamedTuple):
    url: str
    slot: Slot
    at: float


class PermitHooks:
    """Waits for a slot before each navigation, and reports what came.

    `agent` is the crawler to ask as; `purpose`, `dialect` and `max_age` are those of AsyncClient. A disallowed page
    fails with Disallowed, without retries. A page whose slot, or whose verdict, is more than `max_wait` seconds away
    fails with Deferred, and crawlee retries it. With `http_client`, redirects need a permit each. Without it, and in
    a browser, they were followed before they can be asked about: then a page fails that a redirect to a disallowed
    one gave. What a browser loads for a page is not asked about. Raises ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        *,
        agent: Names,
        purpose: Names | None = None,
        dialect: str | None = None,
        max_age: float | None = None,
        key: str | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        http: AsyncHttp | None = None,
    ) -> None:
        self._options = Options(
            agent=agent,
            purpose=purpose,
            dialect=dialect,
            max_age=max_age,
            caller=caller,
            max_wait=max_wait,
            unreachable=unreachable,
        )
        self._service = AsyncPermitClient(AsyncService(service, key, http or default_async_http()), self._options)
        self._begun: dict[int, _Begun] = {}

    def install(self, crawler: HookedCrawler) -> None:
        """Register both hooks."""
        crawler.pre_navigation_hook(self.before_navigation)
        crawler.post_navigation_hook(self.after_navigation)

    def http_client(self, client: HttpClient | None = None) -> HttpClient:
        """An HTTP client for the crawler, which requests a permit before it follows a redirect.

        `client` sends the requests, by default crawlee's own; it must not follow redirects itself.
        """
        return _PermittedHttpClient(self, client or ImpitHttpClient(follow_redirects=False))

    async def __aenter__(self) -> "PermitHooks":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release unused slots, send what was not reported yet, then close the connections to the service."""
        await self._service.aclose()

    async def before_navigation(self, context: BasicCrawlingContext) -> None:
        """Wait for the slot. Raise PermitError if the page must not be fetched."""
        request = context.request

        async def forget() -> None:
            self._begun.pop(id(request), None)

        await self._wait(request, request.url)
        context.register_deferred_cleanup(forget)

    async def before_redirect(self, request: Request, response: HttpResponse, url: str) -> None:
        """Report a redirect, and wait for the slot of the page that it names. Raise PermitError as before a page."""
        await self._report(request, response.status_code, response.headers.get("retry-after"))
        await self._wait(request, url)

    async def after_navigation(self, context: Any) -> None:
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
            await self._wait(request, came)
        await self._report(request, status, headers.get("retry-after"))

    async def _wait(self, request: Request, url: str) -> None:
        try:
            slot = await self._service.permit(url, self._options.members)
        except PermitError as error:
            if isinstance(error, Disallowed | NotUnderstood | Misconfigured):
                request.no_retry = True
            raise
        self._begun[id(request)] = _Begun(url, slot, time.monotonic())
        if slot.version is not None:
            request.user_data[VERSION] = slot.version

    async def _report(self, request: Request, status: int, retry_after: str | None) -> None:
        begun = self._begun.pop(id(request), None)
        if begun is not None:
            await self._service.report(begun.slot, status, retry_after, time.monotonic() - begun.at)


class _PermittedHttpClient(HttpClient):
    """Follows redirects one by one. `send_request` and `stream` are those of `client`."""

    def __init__(self, hooks: PermitHooks, client: HttpClient) -> None:
        super().__init__()
        self._hooks = hooks
        self._client = client

    async def crawl(self, request: Request, **how: Any) -> HttpCrawlingResult:
        """Load a page. Raise PermitError at a redirect to a page that may not be fetched."""
        hop = request
        for _ in range(REDIRECTS + 1):
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
