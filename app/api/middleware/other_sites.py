"""Refuse what a browser sends for a web page of another site, to a service without API keys."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import Problem
from app.identity.well_known import is_public

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that other origins may use outside of the API: a link to the page at `/` is followed."""

_API = "/v1/"
"""Where the paths of the API begin. Pages of other origins cannot read its answers, but a GET may fetch a file."""

_OWN = frozenset({b"same-origin", b"none"})
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]*)?")  # RFC 9110 7.2, without user-info


class RefuseOtherSites:
    """Answers 403 to requests of pages of other origins to the API, and elsewhere to those with unsafe methods.

    A form, or a `fetch` with text/plain, needs no preflight, so any page open in a browser that can reach the service
    could use it.

    With `loopback_only`, it answers 421 to requests whose Host is not a loopback name (RFC 9110 7.4), except for the
    paths of an identity. To a browser, a web page whose host name now resolves to this machine (DNS rebinding) has the
    service's origin: it may send any request and read the answer. Host still has that name.
    """

    def __init__(self, app: ASGIApp, *, loopback_only: bool) -> None:
        self._app = app
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._check(scope["method"], scope["path"], dict(scope["headers"]))
        await self._app(scope, receive, send)

    def _check(self, method: str, path: str, fields: Mapping[bytes, bytes]) -> None:
        """Raise Problem for a request that is refused."""
        host = fields.get(b"host", b"")
        if self._loopback_only and not _is_loopback_host(host) and not is_public(path):
            raise Problem(
                "wrong-host",
                "Without API keys, this service answers only for hosts such as localhost and 127.0.0.1, not for "
                f"{host[:80].decode('latin-1')!r}. To serve other names, for example behind a proxy, set "
                "API_KEYS_FILE; or set ALLOW_UNAUTHENTICATED=1 if only trusted clients can reach it.",
            )
        if (method not in _SAFE or path.startswith(_API)) and _is_cross_site(fields):
            raise Problem(
                "forbidden",
                "Without API keys, requests from web pages of another origin are refused. "
                "If this page is the service's own, make the proxy forward the Host header unchanged.",
            )


def _is_cross_site(fields: Mapping[bytes, bytes]) -> bool:
    """Whether a browser sent the request for a page of another origin. Another port is another origin.

    Browsers send Sec-Fetch-Site with every request that is not a plain GET; older browsers, and pages loaded by plain
    HTTP, send Origin. Other clients send neither.
    """
    if fields.get(b"sec-fetch-site", b"none") not in _OWN:
        return True
    origin = fields.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != fields.get(b"host")


@lru_cache(64)  # nearly all requests have the same
def _is_loopback_host(host: bytes) -> bool:
    """Whether a Host field has a loopback name."""
    name = _HOST.fullmatch(host.decode("latin-1"))
    return name is not None and is_loopback(name[1] or name[2])


def is_loopback(host: str) -> bool:
    """Whether the host is `localhost` or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
