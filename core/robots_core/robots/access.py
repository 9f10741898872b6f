"""The outcome of a fetch of robots.txt, as facts (RFC 9309 2.3.1).

The status is kept as received: `judge` decides what a 403 means, not the fetcher or the cache.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

BODY_LIMIT = 512_000
"""Bytes of a decoded robots.txt that are read; the rest is ignored (RFC 9309 2.5, spec A24)."""

RULE_ENDS = b"\n\r#\0"
"""Bytes that end the key and value of a line: a line end, the mark of a comment, and NUL (spec B1, B3, B13)."""

DETAIL_LIMIT = 200
"""Characters of the longest detail of a failed fetch."""

REDIRECT_LIMIT = 5
"""How many redirects are followed (RFC 9309 2.3.1.2, spec A9)."""


class Cause(StrEnum):
    """Why there is no file, if the status alone does not say so."""

    SERVER_ERROR = "server_error"
    TOO_MANY_REQUESTS = "too_many_requests"
    TIMEOUT = "timeout"
    DNS = "dns"
    TLS = "tls"
    CONNECTION = "connection"
    PROXY = "proxy"
    """The proxy through which the fetch goes opened no tunnel to the origin."""
    REDIRECT_LOOP = "redirect_loop"
    COOKIE_LOOP = "cookie_loop"
    """A redirect loop of a site that set a cookie, which a fetch does not keep: a browser gets out of it."""
    REFUSED_REDIRECT = "refused_redirect"
    BAD_RESPONSE = "bad_response"
    CHALLENGE = "challenge"
    HTML_PAGE = "html_page"
    """An HTML page with a 403 or 503: an error page, or a challenge that is not labelled as one. And one with a 200 in
    place of a file that is known (spec Q9)."""


@dataclass(frozen=True, slots=True)
class Successful:
    """2xx with a body (RFC 9309 2.3.1.1).

    `body` is the file after content decoding, as `readable_part` returns it; `truncated`: there was more.
    `content_type` is the field value as sent, or None.
    """

    status: int
    body: bytes
    truncated: bool = False
    content_type: str | None = None


def readable_part(body: bytes) -> bytes:
    """The first BODY_LIMIT bytes, and the next one if it ends the last rule, which is then whole (spec A24)."""
    ended = not body.endswith((b"\n", b"\r"), 0, BODY_LIMIT) and body[BODY_LIMIT : BODY_LIMIT + 1] in RULE_ENDS
    return body[: BODY_LIMIT + ended]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The origin has no file: 4xx except 429, or a redirect that cannot be followed.

    `status` is the last status received. `cause` is None for a plain 4xx (RFC 9309 2.3.1.3), REDIRECT_LOOP for a loop
    or more than REDIRECT_LIMIT redirects (2.3.1.2), COOKIE_LOOP if they also set a cookie, REFUSED_REDIRECT for a
    Location that is not http(s) (spec A9), and HTML_PAGE for a 403 with an HTML page. A missing or invalid Location is
    Unreachable, since nothing was learned.
    """

    status: int
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Nothing was learned: 5xx, 429, or no valid response in time (RFC 9309 2.3.1.4, spec A14, A15).

    A challenge page counts as well (spec Q9). `status` is None if there was no response. `retry_after` is the value of
    Retry-After in seconds from the fetch. `detail` says more than the cause, in at most DETAIL_LIMIT characters: never
    an address, nor what the server sent. Two failures that differ in it alone are equal.
    """

    cause: Cause
    status: int | None = None
    retry_after: int | None = None
    detail: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Blocked:
    """The origin has an address that the guard refuses (spec A32); `address` is the first one."""

    address: str


def media_type(content_type: str) -> str:
    """The media type of a Content-Type, without its parameters, in lower case (RFC 9110 8.3.1)."""
    return content_type.partition(";")[0].strip().lower()


def is_plain_text(content_type: str) -> bool:
    """Whether a Content-Type is text/plain, ignoring parameters (RFC 9309 2.3)."""
    return media_type(content_type) == "text/plain"


Access: TypeAlias = Successful | Unavailable | Unreachable | Blocked


@dataclass(frozen=True, slots=True)
class NotModified:
    """304 to a conditional request: the stored copy is still current (RFC 9110 15.4.5)."""


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators for the next, conditional request (RFC 9110 8.8): field values as sent, or None."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The response fields about freshness (RFC 9111 4.2, 5.2, 5.3), as sent, or None."""

    cache_control: str | None = None
    expires: str | None = None
    date: str | None = None
    age: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch. `final_url` is None if there was no redirect."""

    access: Access | NotModified
    final_url: str | None = None
    validators: Validators = Validators()
    lifetime: Lifetime = Lifetime()


class Busy(Exception):
    """There is no room for the work, by default a fetch, so it was not begun. `retry_after` is in seconds."""

    def __init__(self, retry_after: int, why: str = "The fetch queue is full") -> None:
        super().__init__(f"{why}; retry in {retry_after} s.")
        self.retry_after = retry_after
