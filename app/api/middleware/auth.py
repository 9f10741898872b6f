"""API keys: once any is configured, every caller needs one. Operators' routes always need one with the scope admin, and
`PUT /v1/robots` one with the scope ingest.

Without API keys, that is the operator's token, which the service makes at its start.
"""

import math
from collections.abc import Callable, Iterable, Mapping

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.caller import CALLER, CHALLENGE, Caller, caller_of, unauthorized
from app.api.problems import Problem, problem_of
from app.auth.keys import ApiKey, Keys
from app.auth.keys import Scope as KeyScope
from app.auth.quotas import QuotaAccount, QuotaExceeded, Quotas
from app.identity.well_known import is_public
from app.loop.request import KEY_ID, SPENT
from app.observability.metrics import Metrics

OPEN = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"})
"""Paths that need no key: the web page, the documentation, health and metrics; so do those of an identity."""

_OPEN_BELOW = "/web/"


def admin(request: Request) -> str:
    """The id of the operator's key. Raises 401 or 403 for any other caller."""
    return _with_scope(request, KeyScope.ADMIN)


def ingest(request: Request) -> str:
    """The id of a key that may send files; without API keys, the operator's. Raises 401 or 403 for other callers."""
    return _with_scope(request, KeyScope.INGEST)


def _with_scope(request: Request, scope: KeyScope) -> str:
    key = caller_of(request.scope).key
    if key is None:
        raise _no_operator(sent=_key_sent(request.scope["headers"]) is not None)
    if not key.may(scope):
        raise _lacks_scope(key, scope)
    return key.id


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
            raise
        if key is None:
            await self._app(scope, receive, send)
            return
        account = None if key.limit is None else self._quotas.account(key.id, key.limit)
        caller = Caller(key.id, key, self._keys, account, self._required)
        scope.setdefault("state", {})[CALLER] = caller
        KEY_ID.set(key.id)
        if account is not None:
            SPENT.set(caller.spent)
            send = _with_rate_limit(account, send)
            try:
                account.charge(1)
            except QuotaExceeded as error:
                await problem_of(error).response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _authenticate(self, headers: Iterable[tuple[bytes, bytes]]) -> ApiKey | None:
        sent = _key_sent(headers)
        key = None if sent is None else self._keys().find(sent)
        if not self._required:
            return key
        if sent is None:
            detail = "An API key is required. Send it as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'."
            raise unauthorized(detail, sent=False)
        if key is None:
            detail = "Unknown API key. Check it, or ask the operator of this service for a new one."
            raise unauthorized(detail, sent=True)
        if not key.may(KeyScope.READ):
            raise _lacks_scope(key, KeyScope.READ)
        return key


def _no_operator(*, sent: bool) -> Problem:
    what = "This is not the operator's token" if sent else "Without API keys, this route needs the operator's token"
    where = "The service names its file (OPERATOR_TOKEN_FILE) in the log when it starts"
    return unauthorized(f"{what}. {where}; send it as 'Authorization: Bearer <token>'.", sent=sent)


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
        "forbidden",
        f"The API key {key.id!r} lacks the scope {str(scope)!r}.",
        {"WWW-Authenticate": f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'},
    )


def _with_rate_limit(account: QuotaAccount, send: Send) -> Send:
    async def send_with_fields(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(rate_limit_fields(account))
        await send(message)

    return send_with_fields


def rate_limit_fields(account: QuotaAccount) -> Mapping[str, str]:
    """The fields of draft-ietf-httpapi-ratelimit-headers: the quota, what remains of it, and when it resets."""
    interval, burst, debt = account.limit.interval, account.limit.burst, account.debt
    left = max(0, math.floor(burst - debt / interval + 1e-6))
    return {
        "RateLimit-Policy": f'"default";q={burst};w={max(1, math.ceil(burst * interval))}',
        "RateLimit": f'"default";r={left};t={math.ceil(debt)}',
    }
