"""Call the endpoints of hot routes without the application's routing, which takes longer than a hot decision."""

from collections.abc import Iterable

from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problems


class DirectRoutes:
    """Calls the endpoints of `routes`, as the router would; all other requests go to the router.

    Their endpoints take the Request and the parameters of the path, and their responses say how they may be cached.
    Nothing is read or decided here.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[Route]) -> None:
        self._app = app
        self._by_path: dict[tuple[str, str], Route] = {}
        self._by_pattern: list[Route] = []
        for route in routes:
            if route.param_convertors:
                self._by_pattern.append(route)
            else:
                self._by_path.update({(method, route.path): route for method in route.methods or ()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._route(scope) if scope["type"] == "http" else None
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive)
        try:
            response = await route.endpoint(request, **request.path_params)
        except problems.HANDLED as error:
            response = await problems.answer(request, error)
        await response(scope, receive, send)

    def _route(self, scope: Scope) -> Route | None:
        route = self._by_path.get((scope["method"], scope["path"]))
        if route is not None:
            return route
        for route in self._by_pattern:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                return route
        return None
