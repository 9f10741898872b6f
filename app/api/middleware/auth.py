"""API keys: once any is configured, every caller needs one. Operators' routes always need one with the scope admin, and
`PUT /v1/robots` one with the scope ingest.

Without API keys, that is the operator's token, which the service makes at its start.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import Problem
from app.api.rate_limit import rate_limit_fields, too_many_requests
from app.auth.keys import ApiKey, Keys
from app.auth.keys import Scope as KeyScope
from app.auth.quotas import QuotaAccount, QuotaExceeded, Quotas
from app.identity.well_known import is_public
from app.loop.spending import SPENT
from app.observability.logs import KEY_ID
from app.observability.metrics import Metrics

OPEN = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"})
"""Paths that need no key: the web page, the documentation, health and metrics; so do those of an identity."""

SECONDS_PER_REQUEST = 0.1
"""CPU seconds that one request of a quota pays for; longer work is charged as several requests."""

_OPEN_BELOW = "/web/"
_CHALLENGE = 'Bearer realm="robots-decisions"'
_KEY = "api_key"
_KEYS = "api_keys"
_REQUIRED = "api_keys_required"
_ACCOUNT = "quota_account"


def key_of(scope: Scope) -> ApiKey | None:
    """The API key of the request; None if the service needs none."""
    key: ApiKey | None = scope.get("state", {}).get(_KEY)
    return key


def keys_required(scope: Scope) -> bool:
    """Whether every caller of the service needs an API key, so that the request's key is not the operator's token."""
    required: bool = scope.get("state", {}).get(_REQUIRED, False)
    return required


def caller_of(scope: Scope) -> str:
    """Whom the request is from: the id of its API key, else its address, or the /64 of its IPv6 address."""
    key = key_of(scope)
    if key is not None:
        return key.id
    client = scope.get("client")
    address: str = client[0] if client else ""
    return _network_of(address) if ":" in address else address


@lru_cache(maxsize=1024)
def _network_of(address: str) -> str:
    """The /64 of an IPv6 address, which one host may use as it likes (RFC 6177, RFC 8981); IPv4 in IPv6 as IPv4.

    Some proxies send an address with its port in X-Forwarded-For, which differs for each connection.
    """
    host = address[1:].partition("]")[0] if address.startswith("[") else address
    if host.count(":") == 1:
        return host.partition(":")[0]
    try:
        parsed = IPv6Address(host.partition("%")[0])
    except ValueError:  # what else a proxy sent
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed) >> 64 << 64, 64)))


def admin(request: Request) -> str:
    """The id of the operator's key. Raises 401 or 403 for any other caller."""
    return _with_scope(request, KeyScope.ADMIN)


def ingest(request: Request) -> str:
    """The id of a key that may send files; without API keys, the operator's. Raises 401 or 403 for other callers."""
    return _with_scope(request, KeyScope.INGEST)


def _with_scope(request: Request, scope: KeyScope) -> str:
    key = key_of(request.scope)
    if key is None:
        raise _no_operator(sent=_key_sent(request.scope["headers"]) is not None)
    if not key.may(scope):
        raise _lacks_scope(key, scope)
    return key.id


def is_operator(request: Request) -> bool:
    """Whether `admin` accepts the caller."""
    key = key_of(request.scope)
    return key is not None and key.may(KeyScope.ADMIN)


def refuse_revoked(scope: Scope) -> None:
    """Raise Problem (401) if the API key of a request is no longer valid: it was removed or replaced meanwhile.

    Requests that stay open call it at least every second.
    """
    key = key_of(scope)
    if key is not None:
        keys: Keys = scope["state"][_KEYS]()
        now = keys.by_id.get(key.id)
        if now is None or now.sha256 != key.sha256 or not now.may(KeyScope.READ):
            detail = f"The API key {key.id!r} was revoked. Ask the operator of this service for a new one."
            raise _unauthorized(detail, sent=True)


def may_sign(scope: Scope, profile: str) -> bool:
    """Whether requests may be signed as the profile for the caller, by the API keys that are valid now."""
    key = key_of(scope)
    if key is None or not keys_required(scope):
        return True
    keys: Keys = scope["state"][_KEYS]()
    now = keys.by_id.get(key.id)
    return now is not None and now.sha256 == key.sha256 and now.may(KeyScope.READ) and profile in now.sign


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
    """Find the caller's key, and refuse requests beyond its quota. Open paths need none.

    Where keys are `required`, refuse requests without a key for reading. Elsewhere every caller may read, an unknown
    key is ignored, and the only key, the operator's token, opens operators' routes.
    """

    def __init__(
        self, app: ASGIApp, keys: Callable[[], Keys], quotas: Quotas, metrics: Metrics, *, required: bool
    ) -> None:
        """`keys` returns the keys that are valid now."""
        self._app = app
        self._keys = keys
        self._quotas = quotas
        self._metrics = metrics
        self._required = required

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
        if key is None:
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state[_KEY], state[_KEYS], state[_REQUIRED] = key, self._keys, self._required
        KEY_ID.set(key.id)
        if key.limit is None:
            await self._app(scope, receive, send)
            return
        account = state[_ACCOUNT] = self._quotas.account(key.id, key.limit)
        SPENT.set(_charging(account))
        send = _with_rate_limit(account, send)
        try:
            account.charge(1)
        except QuotaExceeded as error:
            await too_many_requests(error).response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _authenticate(self, headers: Iterable[tuple[bytes, bytes]]) -> ApiKey | None:
        sent = _key_sent(headers)
        key = None if sent is None else self._keys().find(sent)
        if not self._required:
            return key
        if sent is None:
            detail = "An API key is required. Send it as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'."
            raise _unauthorized(detail, sent=False)
        if key is None:
            detail = "Unknown API key. Check it, or ask the operator of this service for a new one."
            raise _unauthorized(detail, sent=True)
        if not key.may(KeyScope.READ):
            raise _lacks_scope(key, KeyScope.READ)
        return key


def _unauthorized(detail: str, *, sent: bool) -> Problem:
    """The problem of a caller without a valid key; `sent` says whether it sent another (RFC 6750 3)."""
    challenge = f'{_CHALLENGE}, error="invalid_token"' if sent else _CHALLENGE
    return Problem(401, "unknown-key" if sent else "no-key", detail, {"WWW-Authenticate": challenge})


def _no_operator(*, sent: bool) -> Problem:
    what = "This is not the operator's token" if sent else "Without API keys, this route needs the operator's token"
    where = "The service names its file (OPERATOR_TOKEN_FILE) in the log when it starts"
    return _unauthorized(f"{what}. {where}; send it as 'Authorization: Bearer <token>'.", sent=sent)


def _account_of(scope: Scope) -> QuotaAccount | None:
    account: QuotaAccount | None = scope.get("state", {}).get(_ACCOUNT)
    return account


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(_OPEN_BELOW) or is_public(path)


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


def _charging(account: QuotaAccount) -> Callable[[float], None]:
    """Charges the CPU seconds that a request spends, little by little, as those of one piece of long work."""
    total = 0.0

    def spent(seconds: float) -> None:
        nonlocal total
        before, total = int(total / SECONDS_PER_REQUEST), total + seconds
        account.charge_on_credit(int(total / SECONDS_PER_REQUEST) - before)

    return spent


def _with_rate_limit(account: QuotaAccount, send: Send) -> Send:
    async def send_with_fields(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in rate_limit_fields(account).items():
                headers[name] = value
        await send(message)

    return send_with_fields
