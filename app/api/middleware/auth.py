"""API keys: once any is configured, every caller needs one, and operators' routes need one with the scope admin."""

import asyncio
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.middleware.same_origin import is_cross_site
from app.api.problems import Problem
from app.api.rate_limit import rate_limit_fields, too_many_requests
from app.auth.keys import ApiKey, Keys
from app.auth.keys import Scope as KeyScope
from app.auth.quotas import QuotaAccount, QuotaExceeded, Quotas
from app.observability.logs import KEY_ID
from app.observability.metrics import Metrics

LOOPBACK = "loopback"
"""The name of an operator without a key, on this machine."""

OPEN = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"})
"""Paths that need no key: the web page, the documentation, health and metrics."""

_OPEN_BELOW = "/web/"
_CHALLENGE = 'Bearer realm="robots-decisions"'
_FORWARDED = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip", "fastly-client-ip"}
)
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]*)?")  # RFC 9110 7.2, without user-info
_KEY = "api_key"
_ACCOUNT = "quota_account"


def key_of(scope: Scope) -> ApiKey | None:
    """The API key of the request; None if the service needs none."""
    key: ApiKey | None = scope.get("state", {}).get(_KEY)
    return key


def admin(request: Request) -> str:
    """The operator's name: the id of a key, or LOOPBACK. Raises 403 for any other caller.

    Without keys, callers on this machine are operators. Two kinds of requests also come from this machine and are
    refused: those of web pages open in a browser on it, and those that a proxy on it forwards.
    """
    key = key_of(request.scope)
    if key is not None:
        if not key.may(KeyScope.ADMIN):
            raise _lacks_scope(key, KeyScope.ADMIN)
        return key.id
    reason = _not_local(request)
    if reason is not None:
        raise Problem(
            403,
            "forbidden",
            f"Without API keys, only callers on the service's own machine (in a container: inside it) may do this. "
            f"{reason} To call from elsewhere, set API_KEYS_FILE and use a key with the scope 'admin'.",
        )
    return LOOPBACK


def is_operator(request: Request) -> bool:
    """Whether `admin` accepts the caller."""
    key = key_of(request.scope)
    return key.may(KeyScope.ADMIN) if key is not None else _not_local(request) is None


def charge(request: Request, cost: int) -> None:
    """Take `cost` more requests from the caller's quota, if it has one. Raises 429 if they exceed it.

    KeyCheck takes one for every request, so a route that does the work of n requests charges n - 1.
    """
    account = _account_of(request.scope)
    if account is not None and cost > 0:
        try:
            account.charge(cost, prepaid=1)
        except QuotaExceeded as error:
            raise too_many_requests(error) from None


def charge_on_credit(scope: Scope, cost: int) -> None:
    """Take `cost` more requests from the caller's quota for work already done, even if they exceed it."""
    account = _account_of(scope)
    if account is not None:
        account.charge_on_credit(cost)


async def wait_and_charge(scope: Scope, cost: int) -> None:
    """Take `cost` more requests from the caller's quota, waiting until it has them."""
    account = _account_of(scope)
    while account is not None and (seconds := account.try_charge(cost)):  # noqa: ASYNC110 - only time refills it
        await asyncio.sleep(seconds)


class KeyCheck:
    """Refuse requests without a key for reading, except to OPEN paths, and requests beyond their key's quota."""

    def __init__(self, app: ASGIApp, keys: Callable[[], Keys], quotas: Quotas, metrics: Metrics) -> None:
        """`keys` returns the keys that are valid now."""
        self._app = app
        self._keys = keys
        self._quotas = quotas
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            key = self._authenticate(scope["headers"])
        except Problem as problem:
            self._metrics.rejected(problem.slug)
            await problem.response()(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state[_KEY] = key
        KEY_ID.set(key.id)
        if key.limit is None:
            await self._app(scope, receive, send)
            return
        account = state[_ACCOUNT] = self._quotas.account(key.id, key.limit)
        send = _with_rate_limit(account, send)
        try:
            account.charge(1)
        except QuotaExceeded as error:
            await too_many_requests(error).response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _authenticate(self, headers: Iterable[tuple[bytes, bytes]]) -> ApiKey:
        sent = _key_sent(headers)
        if sent is None:
            raise Problem(
                401,
                "no-key",
                "An API key is required. Send it as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'.",
                {"WWW-Authenticate": _CHALLENGE},
            )
        key = self._keys().find(sent)
        if key is None:
            raise Problem(
                401,
                "unknown-key",
                "Unknown API key. Check it, or ask the operator of this service for a new one.",
                {"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'},
            )
        if not key.may(KeyScope.READ):
            raise _lacks_scope(key, KeyScope.READ)
        return key


def _account_of(scope: Scope) -> QuotaAccount | None:
    account: QuotaAccount | None = scope.get("state", {}).get(_ACCOUNT)
    return account


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(_OPEN_BELOW)


def _key_sent(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The key in `Authorization: Bearer` (RFC 6750 2.1), else in `X-API-Key`."""
    from_header = None
    for name, value in headers:
        if name == b"authorization":
            scheme, _, credentials = value.partition(b" ")
            if scheme.lower() == b"bearer":
                return credentials.strip()
        elif name == b"x-api-key":
            from_header = value.strip()
    return from_header


def _lacks_scope(key: ApiKey, scope: KeyScope) -> Problem:
    return Problem(
        403,
        "forbidden",
        f"The API key {key.id!r} lacks the scope {str(scope)!r}.",
        {"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{scope}"'},
    )


def _with_rate_limit(account: QuotaAccount, send: Send) -> Send:
    async def send_with_fields(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in rate_limit_fields(account).items():
                headers[name] = value
        await send(message)

    return send_with_fields


def _not_local(request: Request) -> str | None:
    """Why the caller is not an operator on this machine, as a sentence; None if it is one."""
    headers = request.headers
    if request.client is None or not is_loopback(request.client.host):
        return "The client's address is not a loopback address."
    # All requests that a proxy on this machine forwards come from this machine.
    forwarded = next((name for name in headers if name in _FORWARDED or name.startswith("x-forwarded-")), None)
    if forwarded is not None:
        return f"The request came through a proxy: it has the header {forwarded!r}."
    # DNS rebinding: to the browser, a web page whose host name now resolves to this machine shares the service's
    # origin. Host still has that name.
    host = _HOST.fullmatch(headers.get("host", ""))
    if host is None or not is_loopback(host[1] or host[2]):
        return "The Host header is not a loopback name; use localhost or 127.0.0.1."
    if is_cross_site(headers):
        return "The request comes from a web page of another origin."
    return None


def is_loopback(host: str) -> bool:
    """Whether the host is `localhost` or a loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
