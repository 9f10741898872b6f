"""The protocol of permits (`POST /v1/permits`), without I/O. Answers of the service are not trusted.

The service says whether a page may be fetched, and from when; the client reports outcomes that matter to others.
`conversation.py` has the whole exchange.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

from robots_decisions.parsing import detail, http_date, instant, json_value, number, reason, rule_of, shown

Fields: TypeAlias = Mapping[str, str]
"""Headers by lower-case name."""

PATH: Final = "/v1/permits"

MAX_PERMIT_WAIT = 3600.0
"""Seconds: the longest `max_wait` that the service accepts, and so the longest wait that it grants."""

FETCH_WAIT = 10.0
"""Seconds that the service may take to fetch a robots.txt that is not cached."""

MARGIN = 5.0
"""Seconds that an answer may take in addition."""

ANSWER_LIMIT = 4 * 1024 * 1024
"""Bytes of the longest answer that is read: it names all sitemaps of a file, at most 512,000 bytes."""

MIN_DELAY, MAX_DELAY = 0.05, 86_400.0
"""Minimum and maximum seconds until the next request, whatever the service answers."""

MIN_DEFER = 1.0
"""Minimum seconds until the next request after a defer."""

GRACE = 0.1
"""Seconds by which a slot may always be missed: timers of an event loop are not exact."""

FIRST_RETRY_DELAY, LAST_RETRY_DELAY = 0.5, 30.0
"""Seconds between attempts to reach a service that does not respond; they double from the first to the last."""

BACKOFF_STATUSES = frozenset({429, 503})
"""Statuses of a page that put its origin into backoff for the whole fleet."""

UNASKED = "unasked"
"""The mark of a response whose request was sent without a permit."""

REFUSAL_STATUSES = frozenset({401, 402, 403, 451})
"""Statuses of a page that the service keeps as facts about its origin."""

RELEASED: Final[Mapping[str, object]] = {"released": True}
"""The outcome of a slot that was not used."""

PACE = "pace"
"""The reason of RetryLater when the page is allowed but its slot is too far away."""

_PERMIT = re.compile(r"[A-Za-z0-9_=-]{1,2048}(?:\.[A-Za-z0-9_=-]{1,64})?")
_KEY = re.compile(r"[!-~]{1,512}")
_CALLER = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_AUTHORITY = re.compile(r"[^/?\\]*")
_SECONDS = re.compile(r"[0-9]{1,6}")
_TEMPORARY = frozenset({408, 429})
_INVALID_QUESTION = frozenset({400, 413, 422})


class Unavailable(Exception):
    """The service did not respond; the text says why. Callers see NoAnswer or ServiceUnavailable.

    `seconds` is after how many to ask again, if the service says so. `is_final`: asking again does not help.
    """

    def __init__(self, why: str, *, seconds: float | None = None, is_final: bool = False) -> None:
        super().__init__(why)
        self.seconds = seconds
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response of the service."""

    status: int
    fields: Fields
    body: bytes


@dataclass(frozen=True, slots=True)
class Granted:
    """The page may be fetched `wait` seconds after the answer; the slot lasts `interval` seconds.

    `degraded`: the service cannot reach its store and grants only its own share of the rate. `refused`: the service
    knows of pages that the origin refused to this agent, so it should learn of a success.
    """

    permit: str
    wait: float
    interval: float
    degraded: bool = False
    refused: bool = False

    def to_report(self, status: int) -> bool:
        """Whether the service should be told that the page answered with this status."""
        success = 200 <= status < 300
        return status in BACKOFF_STATUSES or status in REFUSAL_STATUSES or (self.refused and success)

    def is_over(self, late: float) -> bool:
        """Whether a request that is `late` seconds late would use the slot of another."""
        return late > max(self.interval, GRACE)


@dataclass(frozen=True, slots=True)
class Denied:
    """The page may not be fetched; `rule` is the deciding line of robots.txt, if any, and `line` its number."""

    reason: str
    rule: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.reason if self.rule is None else f"line {self.line} of robots.txt: {self.rule}"


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Ask again in `seconds`. `reason` is PACE, or the reason of a defer.

    `interval` is as in Granted, or 0 if unknown.
    """

    seconds: float
    reason: str
    interval: float = 0.0


@dataclass(frozen=True, slots=True)
class InvalidQuestion:
    """The service rejects the question: the URL or the agent is malformed."""

    why: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The service did not respond, or not with an answer; nothing is known about the page."""

    why: str


Answer: TypeAlias = Granted | Denied | RetryLater | InvalidQuestion | NoAnswer


def question(url: str, agent: str, max_wait: float, *, caller: str | None = None) -> dict[str, object]:
    """The JSON to POST to PATH."""
    members: dict[str, object] = {
        "url": without_credentials(url),
        "agent": agent,
        "max_wait": round(min(max(max_wait, 0.0), MAX_PERMIT_WAIT), 3),
        "wait": FETCH_WAIT,
    }
    return members if caller is None else {**members, "caller": caller}


def without_credentials(url: str) -> str:
    """The URL without credentials and fragment, which do not influence a verdict."""
    scheme, separator, rest = url.partition("#")[0].partition("://")
    authority = _AUTHORITY.match(rest)
    if not separator or authority is None:
        return url
    return f"{scheme}://{authority[0].rpartition('@')[2]}{rest[authority.end() :]}"


def origin_key(url: str) -> str:
    """Scheme and authority of a URL: pages that share them usually share a rate."""
    scheme, _, rest = without_credentials(url).partition("://")
    authority = _AUTHORITY.match(rest)
    return f"{scheme}://{authority[0] if authority else ''}".lower()


def headers(key: str | None) -> dict[str, str]:
    """The headers of every request. Raise ValueError for a malformed key."""
    # No compression, so that the limit bounds what is read.
    plain = {"Accept": "application/json, application/x-ndjson", "Accept-Encoding": "identity"}
    if key is None:
        return plain
    if not _KEY.fullmatch(key):
        raise ValueError("malformed API key: use printable ASCII without spaces")
    return {**plain, "Authorization": f"Bearer {key}"}


def checked_service(url: str) -> str:
    """The URL of the service without a slash at its end. Raise ValueError for an invalid one."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for an invalid port
    except ValueError as error:
        raise ValueError(f"Invalid service URL {url!r}: {error}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"Invalid service URL {url!r}: use http:// or https://, a host, and no query")
    return url.rstrip("/")


def checked_caller(caller: str | None) -> str | None:
    """The caller, if the service accepts it. Raise ValueError otherwise."""
    if caller is not None and not _CALLER.fullmatch(caller):
        raise ValueError(f"Invalid caller {caller!r}: use 1 to 64 letters, digits, '.', '_', '@' and '-'")
    return caller


def outcome_path(permit: str) -> str:
    """The path to which the outcome of a permit is reported."""
    return f"{PATH}/{quote(permit, safe='')}/outcome"


def outcome(status: int, retry_after: str | None, elapsed: float) -> dict[str, object]:
    """The JSON of an outcome; `retry_after` is the header of the response, which took `elapsed` seconds."""
    reported: dict[str, object] = {"status": status, "elapsed": round(max(elapsed, 0.0), 3)}
    return reported if retry_after is None else {**reported, "retry_after": retry_after[:100]}


def encode(message: Mapping[str, object]) -> bytes:
    """Encode JSON as ASCII: URLs may contain lone surrogates, which UTF-8 cannot encode."""
    return json.dumps(message).encode("ascii")


def parse_failure(status: int, fields: Fields, message: object) -> RetryLater | InvalidQuestion | NoAnswer | None:
    """Why a response has no answer; None if it has one."""
    if status in {429, 503} and _SECONDS.fullmatch(fields.get("retry-after", "")):
        return RetryLater(_pause(float(fields["retry-after"])), "busy")
    if status == 200:
        return None
    why = f"it answers {status}" + (f": {problem}" if (problem := detail(message)) else "")
    return InvalidQuestion(why) if status in _INVALID_QUESTION else NoAnswer(why)


def refusal(status: int, fields: Fields, message: object) -> Unavailable:
    """The error for a response that is not a 200."""
    failure = parse_failure(status, fields, message)
    why = f"it answers {status}" + (f": {problem}" if (problem := detail(message)) else "")
    return Unavailable(
        why,
        seconds=failure.seconds if isinstance(failure, RetryLater) else None,
        is_final=400 <= status < 500 and status not in _TEMPORARY,
    )


def parse_answer(status: int, fields: Fields, body: bytes, now: float) -> Answer:
    """Parse the response to a question; `fields` are headers by lower-case name, `now` is in Unix seconds."""
    message = json_value(body)
    failure = parse_failure(status, fields, message)
    if failure is not None:
        return failure
    if not isinstance(message, dict):
        return NoAnswer("its answer is not a JSON object")
    match message.get("verdict"):
        case "allow" if message.get("allowed") is True:
            return _grant(message)
        case "disallow":
            return _denied(message)
        case "defer":
            until = _until(message.get("retry_at"), http_date(fields.get("date"), now))
            return NoAnswer("it defers without retry_at") if until is None else RetryLater(until, reason(message))
        case verdict:
            return NoAnswer(f"its verdict is {shown(verdict)}")


def parse_backoff(status: int, body: bytes) -> float | None:
    """Parse the response to an outcome: the seconds of backoff of the origin, None if unknown."""
    message = json_value(body)
    if status != 200 or not isinstance(message, dict):
        return None
    seconds = number(message.get("backoff"))
    return 0.0 if seconds is None else min(seconds, MAX_DELAY)


def _grant(message: Mapping[str, Any]) -> Answer:
    permit, wait, interval = message.get("permit"), number(message.get("wait")), number(message.get("interval"))
    if isinstance(permit, str) and wait is not None:
        if not _PERMIT.fullmatch(permit):
            return NoAnswer(f"its permit is {shown(permit)}")
        if wait > MAX_PERMIT_WAIT:
            return NoAnswer(f"its wait is {wait} s")
        refused = isinstance(message.get("edge"), dict)
        return Granted(permit, wait, interval or 0.0, message.get("degraded") is True, refused)
    retry_after = number(message.get("retry_after"))
    if permit is None and retry_after is not None:
        return RetryLater(_pause(retry_after), PACE, interval or 0.0)
    return NoAnswer("it allows the page without a slot or retry_after")


def _denied(message: Mapping[str, Any]) -> Denied:
    return Denied(reason(message), *rule_of(message))


def _until(value: object, now: float) -> float | None:
    """Seconds until an RFC 3339 instant."""
    at = instant(value)
    return None if at is None else max(MIN_DEFER, _pause(at.timestamp() - now))


def _pause(seconds: float) -> float:
    return min(max(seconds, MIN_DELAY), MAX_DELAY)
