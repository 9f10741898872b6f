"""Refuse requests for other hosts than this machine, where the service listens on loopback for callers without keys."""

import re
from functools import lru_cache
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import Problem
from app.identity.well_known import is_public

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]*)?")  # RFC 9110 7.2, without user-info


class LoopbackHostOnly:
    """Answers 421 to requests whose Host is not a loopback name (RFC 9110 7.4), except for the paths of an identity.

    To a browser, a web page whose host name now resolves to this machine (DNS rebinding) has the service's origin: it
    may send any request and read the answer. Host still has that name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_public(scope["path"]):
            host = next((value for name, value in scope["headers"] if name == b"host"), b"")
            if not _is_loopback_host(host):
                named = host[:80].decode("latin-1")
                detail = (
                    f"Without API keys, this service answers only for hosts such as localhost and 127.0.0.1, not for "
                    f"{named!r}. To serve other names, for example behind a proxy, set API_KEYS_FILE; or set "
                    "ALLOW_UNAUTHENTICATED=1 if only trusted clients can reach it."
                )
                await Problem(421, "wrong-host", detail).response()(scope, receive, send)
                return
        await self._app(scope, receive, send)


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
