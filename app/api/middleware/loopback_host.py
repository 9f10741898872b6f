"""Refuse requests for other hosts than this machine, where the service listens on loopback for callers without keys."""

import re
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import Problem

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]*)?")  # RFC 9110 7.2, without user-info


class LoopbackHostOnly:
    """Answers 421 to requests whose Host is not a loopback name (RFC 9110 7.4).

    To a browser, a web page whose host name now resolves to this machine (DNS rebinding) has the service's origin: it
    may send any request and read the answer. Host still has that name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            name = _HOST.fullmatch(host)
            if name is None or not is_loopback(name[1] or name[2]):
                detail = (
                    f"Without API keys, this service answers only for hosts such as localhost and 127.0.0.1, not for "
                    f"{host[:80]!r}. To serve other names, for example behind a proxy, set API_KEYS_FILE; or set "
                    "ALLOW_UNAUTHENTICATED=1 if only trusted clients can reach it."
                )
                await Problem(421, "wrong-host", detail).response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether the host is `localhost` or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
