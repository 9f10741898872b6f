"""Hooks of crawlee that request a permit before every navigation, by HTTP or in a browser.

async with PermitHooks("http://127.0.0.1:8080", agent="ExampleBot") as hooks:
    crawler = ParselCrawler()
    hooks.install(crawler)
    await crawler.run(urls)
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from crawlee.crawlers import BasicCrawlingContext

from robots_decisions._async.permit_client import AsyncPermitClient
from robots_decisions._async.service import AsyncService
from robots_decisions._default_http import default_async_http
from robots_decisions._io import AsyncHttp
from robots_decisions.errors import Disallowed, NotUnderstood, Options, Unreachable
from robots_decisions.permits import Granted

__all__ = ["MAX_WAIT", "PermitHooks"]

MAX_WAIT = 30.0
"""Default seconds that a page may wait for its slot: crawlee's navigation timeout, by default 60 s, includes them."""


class HookedCrawler(Protocol):
    """A crawler of crawlee that navigates: those for HTTP, and the one for Playwright."""

    def pre_navigation_hook(self, hook: Callable[[Any], Awaitable[None]]) -> None:
        """Register a hook that runs before each navigation."""

    def post_navigation_hook(self, hook: Callable[[Any], Awaitable[None]]) -> None:
        """Register a hook that runs after each navigation."""


class _Begun(NamedTuple):
    grant: Granted
    at: float


class PermitHooks:
    """Waits for a slot before each navigation, and reports a page that answers 429 or 503, or refuses.

    `agent` is the crawler to ask as. A disallowed page fails with Disallowed, without retries. A page whose slot, or
    whose verdict, is more than `max_wait` seconds away fails with Deferred, and crawlee retries it. Redirects and what
    a browser loads for a page are not asked about. Raises ValueError for invalid arguments.
    """

    def __init__(
        self,
        service: str,
        *,
        agent: str,
        key: str | None = None,
        caller: str | None = None,
        max_wait: float = MAX_WAIT,
        unreachable: Unreachable = "fail",
        http: AsyncHttp | None = None,
    ) -> None:
        self._options = Options(agent, max_wait, unreachable)
        self._agent = agent
        self._service = AsyncPermitClient(AsyncService(service, key, http or default_async_http()), caller=caller)
        self._begun: dict[int, _Begun] = {}

    def install(self, crawler: HookedCrawler) -> None:
        """Register both hooks."""
        crawler.pre_navigation_hook(self.before_navigation)
        crawler.post_navigation_hook(self.after_navigation)

    async def __aenter__(self) -> "PermitHooks":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release unused slots, then close the connections to the service."""
        await self._service.aclose()

    async def before_navigation(self, context: BasicCrawlingContext) -> None:
        """Wait for the slot. Raise PermitError if the page must not be fetched."""
        options, request = self._options, context.request
        answer = await self._service.permit(request.url, self._agent, options.max_wait, retry=options.retry)
        try:
            grant = options.grant(request.url, answer)
        except (Disallowed, NotUnderstood):
            request.no_retry = True
            raise
        if grant is not None:
            self._begun[id(request)] = _Begun(grant, time.monotonic())

            async def forget() -> None:
                self._begun.pop(id(request), None)

            context.register_deferred_cleanup(forget)

    async def after_navigation(self, context: Any) -> None:
        """Report a page that answers 429 or 503, or refuses. Crawlee runs this before it looks at the status."""
        begun = self._begun.pop(id(context.request), None)
        if begun is None:
            return
        if hasattr(context, "http_response"):
            status, headers = context.http_response.status_code, context.http_response.headers
        else:
            status, headers = context.response.status, context.response.headers
        if begun.grant.to_report(status):
            elapsed = time.monotonic() - begun.at
            await self._service.report(begun.grant, status, headers.get("retry-after"), elapsed)
