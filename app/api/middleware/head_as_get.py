"""Answer HEAD wherever GET is answered (RFC 9110 9.1, 9.3.2)."""

from starlette.types import ASGIApp, Receive, Scope, Send


class HeadAsGet:
    """Passes HEAD on as GET, so it has the same status and fields, does the same work, and costs as much.

    The scope of the server keeps the method: by it the server leaves out the content, and the access log and the
    metrics name it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "HEAD":
            await self._app(scope, receive, send)
            return
        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, send)
        finally:
            scope["route"] = as_get.get("route")
