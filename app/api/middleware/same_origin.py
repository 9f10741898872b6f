"""Refuse requests that a browser sends for a web page of another origin."""

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import Problem

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that other origins may use outside of the API: a link to the page at `/` is followed."""

_API = "/v1/"
"""Where the paths of the API begin. Pages of other origins cannot read its answers, but a GET may fetch a file."""

_OWN = frozenset({b"same-origin", b"none"})


def is_cross_site(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a browser sent the request for a page of another origin. Another port is another origin.

    Browsers send Sec-Fetch-Site with every request that is not a plain GET; older browsers, and pages loaded by plain
    HTTP, send Origin. Other clients send neither.
    """
    site = origin = host = None
    for name, value in headers:
        if name == b"host":
            host = value
        elif name == b"origin":
            origin = value
        elif name == b"sec-fetch-site":
            site = value
    if site is not None and site not in _OWN:
        return True
    return origin is not None and origin.partition(b"://")[2] != host


class RefuseCrossSite:
    """Answers 403 to cross-site requests to the API, and to all others with unsafe methods.

    For a service without API keys: a form, or a `fetch` with text/plain, needs no preflight, so any page open in a
    browser that can reach the service could use it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and (scope["method"] not in _SAFE or scope["path"].startswith(_API))
            and is_cross_site(scope["headers"])
        ):
            detail = (
                "Without API keys, requests from web pages of another origin are refused. "
                "If this page is the service's own, make the proxy forward the Host header unchanged."
            )
            await Problem(403, "forbidden", detail).response()(scope, receive, send)
            return
        await self._app(scope, receive, send)
