"""Keep responses that do not say otherwise out of every cache (RFC 9111)."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NO_STORE = "no-store"


class NoStoreByDefault:
    """Add `Cache-Control: no-store` to responses that set no caching headers.

    Without it, a cache may reuse such a response for as long as it sees fit (RFC 9111 4.2.2).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("Cache-Control", NO_STORE)
            await send(message)

        await self._app(scope, receive, send_with_header)
