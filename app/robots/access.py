"""What a fetch of robots.txt found: facts only, which a dialect gives their meaning (RFC 9309 2.3.1).

The status is kept as it came: what a 403 means is for `judge` to say, not for the fetch or the cache.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

BODY_LIMIT = 512_000
"""How many decoded octets of a robots.txt are read; the rest is ignored (RFC 9309 2.5, spec A24)."""

REDIRECT_LIMIT = 5
"""How many redirects are followed (RFC 9309 2.3.1.2, spec A9)."""


class Cause(StrEnum):
    """Why there is no file, where the status alone does not say it."""

    SERVER_ERROR = "server_error"
    TOO_MANY_REQUESTS = "too_many_requests"
    TIMEOUT = "timeout"
    DNS = "dns"
    TLS = "tls"
    CONNECTION = "connection"
    REDIRECT_LOOP = "redirect_loop"
    REFUSED_REDIRECT = "refused_redirect"
    BAD_RESPONSE = "bad_response"
    CHALLENGE = "challenge"


@dataclass(frozen=True, slots=True)
class Successful:
    """2xx: a body to read (RFC 9309 2.3.1.1).

    `body` holds at most BODY_LIMIT octets after content decoding; `truncated` says that there were more.
    `content_type` is the field's value as sent, or None.
    """

    status: int
    body: bytes
    truncated: bool = False
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The origin answered that there is no file for us: 4xx but 429, or a redirect that leads nowhere.

    `status` is the last status met. `cause` is None for a plain 4xx (RFC 9309 2.3.1.3), REDIRECT_LOOP for a loop or
    more than REDIRECT_LIMIT redirects (2.3.1.2), and REFUSED_REDIRECT for a Location that is not http(s) (spec A9). A
    Location that is missing or cannot be read is Unreachable: nothing was learnt.
    """

    status: int
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nothing was learnt: 5xx, 429, no address, connection, time or sense (RFC 9309 2.3.1.4, spec A14, A15).

    A challenge page is no file either: it asks whether we are a person (spec Q9).
    `status` is None where no status came. `retry_after` is what Retry-After asked for, in seconds from the fetch.
    """

    cause: Cause
    status: int | None = None
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """The asked origin leads only to addresses that the guard does not admit (spec A32): `address` is one."""

    address: str


def is_plain_text(content_type: str) -> bool:
    """Whether a Content-Type is that of a robots.txt, its parameters left aside (RFC 9309 2.3)."""
    return content_type.partition(";")[0].strip().lower() == "text/plain"


Access: TypeAlias = Successful | Unavailable | Unreachable | Blocked


@dataclass(frozen=True, slots=True)
class NotModified:
    """304 to a conditional request: the copy held before is still the file (RFC 9110 15.4.5)."""


@dataclass(frozen=True, slots=True)
class Validators:
    """What makes the next request conditional (RFC 9110 8.8): field values as sent, or None."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The response fields that speak of its freshness (RFC 9111 4.2, 5.2, 5.3), as sent, or None."""

    cache_control: str | None = None
    expires: str | None = None
    date: str | None = None
    age: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """One finished fetch: what was found, where (`final_url`, None when nothing redirected), and what came with it."""

    access: Access | NotModified
    final_url: str | None = None
    validators: Validators = Validators()
    lifetime: Lifetime = Lifetime()


class Busy(Exception):
    """No fetch was begun: as many as this process takes are under way and waiting. `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"Too many fetches are under way and waiting; ask again in {retry_after} s.")
        self.retry_after = retry_after
