"""Call the handlers of `/v1/allowed` without the application's routing, which takes longer than a hot decision."""

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problems
from app.api.middleware.http_caching import NO_STORE
from app.api.routes import allowed, batch


class DirectRoute:
    """Dispatches `/v1/allowed` to its handlers, the ones that the router would call; all else goes to the router.

    It reads no parameter and decides nothing. Without it, a hot GET takes about twice as long.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._handlers = {
            "GET": (allowed.handle, allowed.router.routes[0]),
            "POST": (batch.batch, batch.router.routes[0]),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = (
            self._handlers.get(scope["method"]) if scope["type"] == "http" and scope["path"] == allowed.PATH else None
        )
        if found is None:
            await self._app(scope, receive, send)
            return
        handler, scope["route"] = found  # the route is what requests are counted by
        request = Request(scope, receive)
        try:
            response = await handler(request)
        except problems.HANDLED as error:
            response = await problems.answer(request, error)
        response.headers.setdefault("Cache-Control", NO_STORE)
        await response(scope, receive, send)
