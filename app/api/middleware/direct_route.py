"""Call the handlers of hot routes without the application's routing, which takes longer than a hot decision."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problems

Handler = Callable[[Request], Awaitable[Response]]


class DirectRoute:
    """Dispatches requests for one path to the handlers that the router would call; all else goes to the router.

    `handlers` gives, by method, a handler and the route that its requests are counted under. Their responses say how
    they may be cached. Nothing is read or decided here.
    """

    def __init__(self, app: ASGIApp, path: str, handlers: Mapping[str, tuple[Handler, BaseRoute]]) -> None:
        self._app = app
        self._path = path
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = None
        if scope["type"] == "http" and scope["path"] == self._path:
            found = self._handlers.get(scope["method"])
        if found is None:
            await self._app(scope, receive, send)
            return
        handler, scope["route"] = found
        request = Request(scope, receive)
        try:
            response = await handler(request)
        except problems.HANDLED as error:
            response = await problems.answer(request, error)
        await response(scope, receive, send)
