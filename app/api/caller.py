"""Who sends a request: the holder of an API key, or an address; and what the quota of the key is charged for."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network
from typing import Final

from starlette.types import Scope

from app.api.problems import Problem
from app.auth.keys import ApiKey, Keys
from app.auth.keys import Scope as KeyScope
from app.auth.quotas import QuotaAccount
from robots_core.purposes.policy import PurposePolicy

SECONDS_PER_REQUEST = 0.1
"""CPU seconds that one request of a quota pays for; longer work is charged as several requests."""

CALLER: Final = "caller"
"""Where the state of a request has its Caller, if it has an API key."""

CHALLENGE: Final = 'Bearer realm="robots-decisions"'
"""What WWW-Authenticate says (RFC 6750 3)."""


@dataclass(slots=True)
class Caller:
    """Who sends a request. Its `id` is that of its API key, else its address, or the /64 of its IPv6 address.

    `keys` returns the keys that are valid now. `keys_required`: every caller of the service needs one; elsewhere the
    only key is the operator's token. `account` is that of the key's quota, if it has one.
    """

    id: str
    key: ApiKey | None = None
    keys: Callable[[], Keys] = lambda: Keys({})
    account: QuotaAccount | None = None
    keys_required: bool = False
    seconds: float = 0.0
    """CPU seconds of long work so far."""

    @property
    def is_operator(self) -> bool:
        """Whether it may do all that operators do."""
        return self.key is not None and self.key.may(KeyScope.ADMIN)

    def policy(self, default: PurposePolicy) -> PurposePolicy:
        """The purposes of questions that name none: those of the API key, else the `default` of the settings."""
        return default if self.key is None else self.key.policy(default)

    def refuse_revoked(self) -> None:
        """Raise Problem (401) if the API key was removed or replaced since the request began.

        Requests that stay open call it at least every second.
        """
        if self.key is not None and not self._is_valid(self.key):
            detail = f"The API key {self.id!r} was revoked. Ask the operator of this service for a new one."
            raise unauthorized(detail, sent=True)

    def may_sign(self, profile: str) -> bool:
        """Whether requests may be signed as the profile for the caller, by the API keys that are valid now."""
        if self.key is None or not self.keys_required:
            return True
        return self._is_valid(self.key) and profile in self.keys().by_id[self.id].sign

    def _is_valid(self, key: ApiKey) -> bool:
        now = self.keys().by_id.get(key.id)
        return now is not None and now.sha256 == key.sha256 and now.may(KeyScope.READ)

    def charge(self, cost: int) -> None:
        """Take `cost` more requests from the quota, if there is one. Raises QuotaExceeded if they exceed it.

        KeyCheck takes one for every request, so a route that does the work of n requests charges n - 1.
        """
        if self.account is not None and cost > 0:
            self.account.charge(cost, prepaid=1)

    def charge_on_credit(self, cost: int) -> None:
        """Take `cost` more requests from the quota for work already done, even if they exceed it."""
        if self.account is not None:
            self.account.charge_on_credit(cost)

    def spent(self, seconds: float) -> None:
        """Charge the CPU seconds of long work, little by little, as those of one piece of work."""
        before, self.seconds = int(self.seconds / SECONDS_PER_REQUEST), self.seconds + seconds
        self.charge_on_credit(int(self.seconds / SECONDS_PER_REQUEST) - before)

    async def wait_and_charge(self, cost: int) -> None:
        """Take `cost` more requests from the quota, waiting until it has them."""
        account = self.account
        while account is not None and (seconds := account.try_charge(cost)):  # noqa: ASYNC110 - only time refills it
            await asyncio.sleep(seconds)


def caller_of(scope: Scope) -> Caller:
    """Who sends the request."""
    caller: Caller | None = scope.get("state", {}).get(CALLER)
    if caller is None:
        client = scope.get("client")
        address: str = client[0] if client else ""
        caller = Caller(_network_of(address) if ":" in address else address)
    return caller


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


def unauthorized(detail: str, *, sent: bool) -> Problem:
    """401 for a caller without a valid key; `sent` says whether it sent another (RFC 6750 3)."""
    challenge = f'{CHALLENGE}, error="invalid_token"' if sent else CHALLENGE
    return Problem("unknown-key" if sent else "no-key", detail, {"WWW-Authenticate": challenge})
