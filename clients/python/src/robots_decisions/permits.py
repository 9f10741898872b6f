"""The protocol of permits (`POST /v1/permits`), without I/O. Answers of the service are not trusted.

The service says whether a page may be fetched, and from when; the client reports what came of it.
`conversation.py` has the whole exchange.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

from robots_decisions.parsing import (
    detail,
    http_date,
    instant,
    json_value,
    number,
    reason,
    rule_of,
    sentence,
    shown,
    summary,
    version_of,
)
from robots_decisions.question import Members, without_credentials
from robots_decisions.signatures import signed_of

Fields: TypeAlias = Mapping[str, str]
"""Headers by lower-case name."""

PATH: Final = "/v1/permits"

MAX_PERMIT_WAIT = 3600.0
"""Seconds: the longest `max_wait` that the service accepts, and so the longest wait that it grants."""

FETCH_WAIT = 10.0
"""Seconds that the service may take to fetch a robots.txt that is not cached."""

ANSWER_TIMEOUT, MIN_ANSWER_TIMEOUT = 15.0, 1.0
"""Most seconds for an answer, and for each line of a batch; and least, however little a request may wait."""

OUTCOME_TIMEOUT = 5.0
"""Seconds for the report of an outcome, which is lost after that."""

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

VERSION = "robots_version"
"""The name under which a page has the id of the robots.txt that decided about it."""

REFUSAL_STATUSES = frozenset({401, 402, 403, 451})
"""Statuses of a page that the service keeps as facts about its origin."""

PAYMENT_REQUIRED, PRICE, PRICE_CHARS = 402, "crawler-price", 100
"""The status of a page that has a price, the header that names it, and how much of that is reported."""

RELEASED: Final[Mapping[str, object]] = {"released": True}
"""The outcome of a slot that was not used."""

PACE, BUSY = "pace", "busy"
"""Reasons of RetryLater: the page is allowed but its slot is too far away; the service has no room, or a quota is
used up."""

QUOTA_DELAY = 30.0
"""Seconds until the next request after a 429 that names no time."""

SET_KEY = "Set `key` to an API key of the service."
SET_URL = "Set the URL of a robots.txt decision service, without a path such as /v1."
"""What to do about answers that no waiting changes."""


def naming(text: str, key: str, url: str) -> str:
    """The text with what to do, by the names that the settings for the key and the URL have for its reader."""
    return text.replace(SET_KEY, SET_KEY.replace("`key`", key)).replace(
        SET_URL, SET_URL.replace("the", f"{url} to the", 1)
    )


_NO_VERSION = "urn:robots-decisions:problem:no-version"
"""The problem of an `as_of` at which no version was stored."""

_MAY_NOT_SIGN = "urn:robots-decisions:problem:may-not-sign"
"""The problem of a key that may not sign, whose sentence says what to do."""

_PERMIT = re.compile(r"[A-Za-z0-9_=-]{1,2048}(?:\.[A-Za-z0-9_=-]{1,64})?")
_KEY = re.compile(r"[!-~]{1,512}")
_CALLER = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_SECONDS = re.compile(r"[0-9]{1,6}")
_INVALID_QUESTION = frozenset({400, 413, 422})


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
    knows of pages that the origin refused to this agent, so it should learn of a success. `version` is the id of the
    robots.txt that decided. `signed` are the header fields of the signed request, if it was to be signed and could be.
    """

    permit: str
    wait: float
    interval: float
    degraded: bool = False
    refused: bool = False
    version: str | None = None
    signed: Mapping[str, str] | None = None

    def is_urgent(self, status: int) -> bool:
        """Whether the service should learn at once that the page answered with this status."""
        success = 200 <= status < 300
        return status in BACKOFF_STATUSES or status in REFUSAL_STATUSES or (self.refused and success)

    def is_over(self, late: float) -> bool:
        """Whether a request that is `late` seconds late would use the slot of another."""
        return late > max(self.interval, GRACE)


@dataclass(frozen=True, slots=True)
class Open:
    """The service is silent, and the page is fetched in a slot of the client's own pace."""

    interval: float
    version: None = None
    signed: None = None


Slot: TypeAlias = Granted | Open
"""When a page may be fetched."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The page may not be fetched; `rule` is the deciding line of robots.txt, if any, and `line` its number.

    `why` is the service's own sentence, here and in other answers.
    """

    reason: str
    rule: str | None = None
    line: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Ask again in `seconds`. `reason` is PACE, BUSY with the `status` of the answer, or the reason of a defer.

    `interval` is as in Granted, or 0 if unknown.
    """

    seconds: float
    reason: str
    interval: float = 0.0
    why: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class InvalidQuestion:
    """The service rejects the question: the URL, the agent or another member is malformed."""

    why: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The service did not respond, or not with an answer; nothing is known about the page.

    `why` goes on after the URL of the service. With a `remedy`, asking again does not help: it says what to set.
    """

    why: str
    remedy: str | None = None


Answer: TypeAlias = Granted | Denied | RetryLater | InvalidQuestion | NoAnswer

Failure: TypeAlias = RetryLater | InvalidQuestion | NoAnswer
"""Why there is no answer about a page."""


class Unavailable(Exception):
    """The service did not respond, or not with an answer. Callers see `failure`, or an error that is made of it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.why)
        self.failure = failure


def silent(why: str) -> Unavailable:
    """The error of a service that does not answer; `why` goes on after its URL."""
    return Unavailable(NoAnswer(why))


def late(seconds: float) -> Unavailable:
    """The error of a service that does not answer in time."""
    return silent(f"does not respond within {round(seconds, 3):g} s.")


def unreached(error: BaseException) -> Unavailable:
    """The error of a service that cannot be reached."""
    return silent(f"cannot be reached: {sentence(str(error) or type(error).__name__)}")


def not_http(error: BaseException) -> Unavailable:
    """The error of what answers, but not in HTTP, without TLS, or with a certificate that is not trusted."""
    why = sentence(str(error) or type(error).__name__)
    return Unavailable(NoAnswer(f"does not answer in HTTP with a trusted certificate: {why}", SET_URL))


def not_ours(what: str) -> NoAnswer:
    """An answer that no robots.txt decision service gives."""
    return NoAnswer(f"answers with {what}.", SET_URL)


def answer_timeout(left: float) -> float:
    """Seconds for an answer to a request that may wait for `left` more."""
    return min(max(left, MIN_ANSWER_TIMEOUT), ANSWER_TIMEOUT)


def question(url: str, members: Members, left: float) -> dict[str, object]:
    """The members of a question of a verdict. The service has two thirds of the time for a fetch."""
    wait = round(answer_timeout(left) * FETCH_WAIT / ANSWER_TIMEOUT, 3)
    return {"url": without_credentials(url), **members, "wait": wait}


def permit_question(
    url: str,
    members: Members,
    left: float,
    caller: str,
    *,
    sign: bool = False,
    accept_signature: str | None = None,
) -> dict[str, object]:
    """The JSON to POST to PATH."""
    most = round(min(max(left, 0.0), MAX_PERMIT_WAIT), 3)
    asked = {**question(url, members, left), "max_wait": most, "caller": caller}
    if sign:
        asked["sign"] = True
    if accept_signature is not None:
        asked["accept_signature"] = accept_signature
    return asked


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


OUTCOMES_PATH: Final = "/v1/permits/outcomes"
"""Where outcomes are reported that need not be known at once."""


def outcome_path(permit: str) -> str:
    """The path to which the outcome of a permit is reported."""
    return f"{PATH}/{quote(permit, safe='')}/outcome"


def outcome(
    status: int, retry_after: str | None, elapsed: float, price: tuple[str, str] | None = None
) -> dict[str, object]:
    """The JSON of an outcome; `retry_after` is the header of the response, which took `elapsed` seconds. `price` is
    what a 402 asked (`crawler-price`), and the URL of its page."""
    reported: dict[str, object] = {"status": status, "elapsed": round(max(elapsed, 0.0), 3)}
    if price is not None and status == PAYMENT_REQUIRED:
        text, page = price[0].strip()[:PRICE_CHARS], without_credentials(price[1])
        if text and text.isascii() and text.isprintable():
            reported.update(price=text, url=page)
    return reported if retry_after is None else {**reported, "retry_after": retry_after[:100]}


def asked_price(fields: Fields, url: str) -> tuple[str, str] | None:
    """The price that a response with these headers names, and its page; None for none."""
    text = fields.get(PRICE)
    return None if text is None else (text, url)


def encode(message: Mapping[str, object]) -> bytes:
    """Encode JSON as ASCII: URLs may contain lone surrogates, which UTF-8 cannot encode."""
    return json.dumps(message).encode("ascii")


def parse_failure(status: int, fields: Fields, message: object) -> Failure | None:
    """Why a response has no answer; None if it has one."""
    if status == 200:
        return None
    problem = detail(message)
    said = f": {sentence(problem)}" if problem else "."
    header = fields.get("retry-after", "")
    after = pause(float(header)) if _SECONDS.fullmatch(header) else None
    if status == 429 or (status == 503 and after is not None):
        return RetryLater(QUOTA_DELAY if after is None else after, BUSY, 0.0, f"answers {status}{said}", status)
    kind = message.get("type") if isinstance(message, dict) else None
    if problem and (status in _INVALID_QUESTION or kind == _NO_VERSION):
        return InvalidQuestion(f"{status}{said}")
    if kind == _MAY_NOT_SIGN:
        return NoAnswer(f"answers {status}{said}", "")
    remedy = None if status >= 500 else SET_KEY if status in {401, 403} else SET_URL
    return NoAnswer(f"answers {status}{said}", remedy)


def refusal(status: int, fields: Fields, message: object) -> Unavailable:
    """The error for a response that is not a 200."""
    failure = parse_failure(status, fields, message)
    return Unavailable(not_ours("a 200") if failure is None else failure)


def not_a_verdict(message: object) -> str | None:
    """Why a message has no verdict; None if it has one."""
    if not isinstance(message, dict):
        return "what is not a JSON object"
    verdict, allowed = message.get("verdict"), message.get("allowed")
    known = isinstance(verdict, str) and verdict in {"allow", "disallow", "defer"}
    if known and allowed is (verdict == "allow"):
        return None
    return f"the verdict {shown(verdict)}, and {shown(allowed)} for allowed"


def parse_answer(status: int, fields: Fields, body: bytes, now: float) -> Answer:
    """Parse the response to a question; `fields` are headers by lower-case name, `now` is in Unix seconds."""
    message = json_value(body)
    failure = parse_failure(status, fields, message)
    if failure is not None:
        return failure
    wrong = not_a_verdict(message)
    if wrong is not None:
        return not_ours(wrong)
    match message["verdict"]:
        case "allow":
            return _grant(message)
        case "disallow":
            return Denied(reason(message), *rule_of(message), summary(message))
        case _:
            until = _until(message.get("retry_at"), http_date(fields.get("date"), now))
            if until is None:
                return not_ours("a defer without retry_at")
            return RetryLater(until, reason(message), 0.0, summary(message))


def parse_backoff(status: int, body: bytes) -> float | None:
    """Parse the response to an outcome: the seconds of backoff of the origin, None if unknown."""
    message = json_value(body)
    if status != 200 or not isinstance(message, dict):
        return None
    seconds = number(message.get("backoff"))
    return 0.0 if seconds is None else min(seconds, MAX_DELAY)


def _grant(message: Mapping[str, Any]) -> Answer:
    permit, wait, interval = message.get("permit"), number(message.get("wait")), number(message.get("interval")) or 0.0
    if isinstance(permit, str) and wait is not None:
        if not _PERMIT.fullmatch(permit):
            return not_ours(f"the permit {shown(permit)}")
        if wait > MAX_PERMIT_WAIT:
            return not_ours(f"a slot in {wait} s")
        refused, degraded = isinstance(message.get("edge"), dict), message.get("degraded") is True
        version, signed = version_of(message), signed_of(message)
        return Granted(permit, wait, min(interval, MAX_DELAY), degraded, refused, version, signed)
    retry_after = number(message.get("retry_after"))
    if permit is None and retry_after is not None:
        return RetryLater(pause(retry_after), PACE, interval, "the slots of the site are taken until then.")
    return not_ours("an allow without a slot or retry_after")


def _until(value: object, now: float) -> float | None:
    """Seconds until an RFC 3339 instant."""
    at = instant(value)
    return None if at is None else max(MIN_DEFER, pause(at.timestamp() - now))


def pause(seconds: float) -> float:
    """The seconds until the next request, within bounds."""
    return min(max(seconds, MIN_DELAY), MAX_DELAY)
