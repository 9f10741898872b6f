"""Documents of a page in Chromium, under Playwright's asynchronous API: each waits for its slot, redirects included."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from playwright.async_api import CDPSession, Error, Page

from robots_decisions._async.client import AsyncClient
from robots_decisions._io import AsyncBackground
from robots_decisions.errors import PermitError
from robots_decisions.outcomes import Permit

_DOCUMENTS = [
    {"urlPattern": "http*", "resourceType": "Document", "requestStage": stage} for stage in ("Request", "Response")
]
_REFUSED = "BlockedByClient"


async def guard(page: Page, client: AsyncClient, *, max_wait: float | None = None) -> "Guard":
    """Ask for each document that the page and its frames request, before it is requested, as `client` asks.

    A document without a permit is not requested: `page.goto` fails with `net::ERR_BLOCKED_BY_CLIENT`, and `error` of
    the guard says why. It works in Chromium alone, since only its protocol shows redirects before they are followed;
    raises playwright's Error for a page of another browser. Images, scripts and other parts of a document are not
    asked about.
    """
    session = await page.context.new_cdp_session(page)
    guarding = Guard(session, client, max_wait)
    session.on("Fetch.requestPaused", guarding._paused)
    await session.send("Fetch.enable", {"patterns": _DOCUMENTS})
    return guarding


class Guard:
    """What was decided about the documents of a page. `error` is why the last one that was refused was refused."""

    def __init__(self, session: CDPSession, client: AsyncClient, max_wait: float | None) -> None:
        self.error: PermitError | None = None
        self._session = session
        self._client = client
        self._max_wait = max_wait
        self._requested: dict[str, tuple[AbstractAsyncContextManager[Permit], Permit]] = {}
        self._background = AsyncBackground()

    def _paused(self, event: dict[str, Any]) -> None:
        has_ended = "responseStatusCode" in event or "responseErrorReason" in event
        self._background.start(self._answered(event) if has_ended else self._requests(event))

    async def _requests(self, event: dict[str, Any]) -> None:
        url = event["request"]["url"] + event["request"].get("urlFragment", "")
        slot = self._client.permit(url, max_wait=self._max_wait)
        try:
            permit = await slot.__aenter__()
        except PermitError as error:
            self.error = error
            await self._send("Fetch.failRequest", requestId=event["requestId"], errorReason=_REFUSED)
            return
        self._requested[event["networkId"]] = slot, permit
        await self._send("Fetch.continueRequest", requestId=event["requestId"])

    async def _answered(self, event: dict[str, Any]) -> None:
        """Report a response; that of a redirect comes before the request that it leads to."""
        slot, permit = self._requested.pop(event["networkId"], (None, None))
        if slot is not None and permit is not None:
            if "responseStatusCode" in event:
                fields = {it["name"].lower(): it["value"] for it in event.get("responseHeaders", ())}
                permit.report(event["responseStatusCode"], fields.get("retry-after"), fields.get("crawler-price"))
            await slot.__aexit__(None, None, None)
        await self._send("Fetch.continueRequest", requestId=event["requestId"])

    async def _send(self, method: str, **parameters: str) -> None:
        try:
            await self._session.send(method, parameters)
        except Error:  # the page was closed, or has left the request
            return
