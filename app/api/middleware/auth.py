"""Who may do what: all, or all who hold a key, may ask; what changes the service for others is for operators."""

import asyncio
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.same_origin import is_cross_site
from app.api.problems import Problem
from app.api.quotas import Quotas, Spending
from app.auth.keys import Key, Keys
from app.auth.keys import Scope as May
from app.observability.metrics import Metrics

LOOPBACK = "loopback"
"""What an operator is called who needs no key, being on this machine."""

OPEN = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"})
"""What nobody needs a key for: the page and its files, the documentation, and what the platform asks."""

_OPEN_BELOW = "/web/"
_CHALLENGE = 'Bearer realm="robots-decisions"'
_FORWARDED = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip", "fastly-client-ip"}
)
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]*)?")  # RFC 9110 7.2, without user-info
_KEY = "api_key"
_SPENDING = "spending"


def key_of(scope: Scope) -> Key | None:
    """The key that let the request in; None where none is needed."""
    key: Key | None = scope.get("state", {}).get(_KEY)
    return key


def admin(request: Request) -> str:
    """The operator's name: the id of a key, or LOOPBACK; nobody else passes (403).

    Without keys, an operator is who asks from this machine, as far as that can be known. A web page that is open in a
    browser there asks from it too, and so does a proxy, whoever is behind it.
    """
    key = key_of(request.scope)
    if key is not None:
        if not key.may(May.ADMIN):
            raise _lacks(key, May.ADMIN)
        return key.id
    found = _not_from_here(request)
    if found is not None:
        raise Problem(403, "forbidden", f"Without API keys, this is for callers on the service's own machine: {found}.")
    return LOOPBACK


def is_operator(request: Request) -> bool:
    """Whether `admin` would let the caller pass."""
    key = key_of(request.scope)
    return key.may(May.ADMIN) if key is not None else _not_from_here(request) is None


def charge(request: Request, cost: int) -> None:
    """Take so many requests more from the caller's quota, where there is one: 429 where they are not in it.

    One is taken for every request before its route is asked, so a route that does the work of n charges n - 1.
    """
    spending = _spending_of(request.scope)
    if spending is not None and cost > 0:
        spending.charge(cost, begun=1)


def charge_afterwards(scope: Scope, cost: int) -> None:
    """Take so many requests more from the caller's quota for work that was done; who has none left is in debt."""
    spending = _spending_of(scope)
    if spending is not None:
        spending.owe(cost)


async def charge_in_time(scope: Scope, cost: int) -> None:
    """As `charge`, for those who go on and on: wait until they are in the quota."""
    spending = _spending_of(scope)
    while spending is not None and (seconds := spending.take(cost)):  # noqa: ASYNC110 - no event: time alone refills it
        await asyncio.sleep(seconds)


class KeyCheck:
    """Lets no request pass without a key that may read, but to what is OPEN, and none beyond its key's quota."""

    def __init__(self, app: ASGIApp, keys: Callable[[], Keys], quotas: Quotas, metrics: Metrics) -> None:
        """`keys` gives those that are admitted now."""
        self._app = app
        self._keys = keys
        self._quotas = quotas
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            key = self._admitted(scope["headers"])
        except Problem as problem:
            self._metrics.rejected(problem.slug)
            await problem.response()(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state[_KEY] = key
        if key.limit is None:
            await self._app(scope, receive, send)
            return
        spending = state[_SPENDING] = self._quotas.spending(key.id, key.limit)
        send = _telling(spending, send)
        try:
            spending.charge(1)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _admitted(self, headers: Iterable[tuple[bytes, bytes]]) -> Key:
        shown = _shown_key(headers)
        if shown is None:
            raise Problem(
                401,
                "no-key",
                "This needs an API key: send it as 'Authorization: Bearer <key>' or as 'X-API-Key: <key>'.",
                {"WWW-Authenticate": _CHALLENGE},
            )
        key = self._keys().find(shown)
        if key is None:
            raise Problem(
                401,
                "unknown-key",
                "The API key that was sent is not one that this service knows.",
                {"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'},
            )
        if not key.may(May.READ):
            raise _lacks(key, May.READ)
        return key


def _spending_of(scope: Scope) -> Spending | None:
    spending: Spending | None = scope.get("state", {}).get(_SPENDING)
    return spending


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(_OPEN_BELOW)


def _shown_key(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """What stands in `Authorization: Bearer` (RFC 6750 2.1), else in `X-API-Key`."""
    other = None
    for name, value in headers:
        if name == b"authorization":
            scheme, _, credentials = value.partition(b" ")
            if scheme.lower() == b"bearer":
                return credentials.strip()
        elif name == b"x-api-key":
            other = value.strip()
    return other


def _lacks(key: Key, scope: May) -> Problem:
    return Problem(
        403,
        "forbidden",
        f"The API key {key.id!r} is not for this: it lacks the scope {str(scope)!r}.",
        {"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'},
    )


def _telling(spending: Spending, send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in spending.fields().items():
                headers[name] = value
        await send(message)

    return told


def _not_from_here(request: Request) -> str | None:
    """Why the caller may be somebody else than an operator on this machine; None where nothing says so."""
    headers = request.headers
    if request.client is None or not is_loopback(request.client.host):
        return "this one is not"
    # A proxy on this machine makes everybody look as if they were on it.
    forwarded = next((name for name in headers if name in _FORWARDED or name.startswith("x-forwarded-")), None)
    if forwarded is not None:
        return f"this request came through a proxy, as its field {forwarded!r} says"
    # A page from elsewhere whose name was made to lead here (DNS rebinding) is of the same origin as the service, to
    # the browser; but the name is in Host.
    host = _HOST.fullmatch(headers.get("host", ""))
    if host is None or not is_loopback(host[1] or host[2]):
        return "the request's Host is no name of it; ask for localhost or 127.0.0.1"
    if is_cross_site(headers):
        return "this request comes from a web page of another origin"
    return None


def is_loopback(host: str) -> bool:
    """Whether this host is the machine itself: `localhost`, or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
