"""Requests that a web page of another origin had a browser send."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import Problem

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing and whose answers a page of another origin cannot read."""

_OWN = frozenset({"same-origin", "none"})


def is_cross_site(headers: Headers) -> bool:
    """Whether the request is a browser's, for a page that is not of the service's own origin.

    A browser says where a page is from with every request that is not a plain GET: in Sec-Fetch-Site, or, an older one
    or one that was asked by plain HTTP, in Origin. What is not a browser sends neither. Another port is another origin.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in _OWN:
        return True
    return origin is not None and origin.partition("://")[2] != headers.get("host")


class RefuseCrossSite:
    """Refuses what pages of other origins have a browser send (403), but for safe methods.

    For a service without keys: a form or a `fetch` of text/plain needs no preflight, so any page that is open in a
    browser near the service could give it work to do.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in _SAFE and is_cross_site(Headers(scope=scope)):
            detail = (
                "Without API keys, requests from web pages of another origin are refused. "
                "A proxy in front has to pass Host on as it was sent."
            )
            await Problem(403, "forbidden", detail).response()(scope, receive, send)
            return
        await self._app(scope, receive, send)
