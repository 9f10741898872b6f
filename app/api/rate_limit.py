"""Quotas in HTTP: the RateLimit fields, and 429 for requests that exceed a quota."""

import math
from collections.abc import Mapping

from app.api.problems import Problem
from app.auth.quotas import QuotaAccount, QuotaExceeded


def rate_limit_fields(account: QuotaAccount) -> Mapping[str, str]:
    """The fields of draft-ietf-httpapi-ratelimit-headers: the quota, what remains of it, and when it resets."""
    interval, burst, debt = account.limit.interval, account.limit.burst, account.debt
    left = max(0, math.floor(burst - debt / interval + 1e-6))
    return {
        "RateLimit-Policy": f'"default";q={burst};w={max(1, math.ceil(burst * interval))}',
        "RateLimit": f'"default";r={left};t={math.ceil(debt)}',
    }


def too_many_requests(error: QuotaExceeded) -> Problem:
    """429 (RFC 6585 4), with Retry-After in whole seconds."""
    seconds = max(1, math.ceil(error.retry_after))
    return Problem(429, "quota-exceeded", f"{error} Try again in {seconds} s.", retry_after=seconds)
