"""The protocol of permits (`POST /v1/permits`), without I/O. Answers of the service are not trusted.

The service says whether a page may be fetched, and from when; the client reports outcomes that matter to others.
`permit_conversation` is the whole exchange as a generator; clients only perform its steps.
"""

import json
import math
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeAlias, assert_never
from urllib.parse import quote

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
"""Minimum and maximum seconds until the service is asked again, whatever it says."""

MIN_DEFER = 1.0
"""Minimum seconds until the service is asked again after a defer."""

GRACE = 0.1
"""Seconds by which a slot may always be missed: timers of an event loop are not exact."""

FIRST_RETRY_DELAY, LAST_RETRY_DELAY = 0.5, 30.0
"""Seconds between attempts to reach a service that does not respond; they double from the first to the last."""

BACKOFF_STATUSES = frozenset({429, 503})
"""Statuses of a page that put its origin into backoff for the whole fleet."""

RELEASED: Final[Mapping[str, object]] = {"released": True}
"""The outcome of a slot that was not used."""

PACE = "pace"
"""The reason of RetryLater when the page is allowed but its slot is too far away."""

_PERMIT = re.compile(r"[A-Za-z0-9_=-]{1,2048}(?:\.[A-Za-z0-9_=-]{1,64})?")
_REASON = re.compile(r"[a-z_]{1,40}")
_KEY = re.compile(r"[!-~]{1,512}")
_CALLER = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_AUTHORITY = re.compile(r"[^/?\\]*")
_SECONDS = re.compile(r"[0-9]{1,6}")
_QUESTION_IS_BAD = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Grant:
    """The page may be fetched `wait` seconds after the answer; the slot lasts `interval` seconds.

    `degraded`: the service cannot reach its store and grants only its own share of the rate.
    """

    permit: str
    wait: float
    interval: float
    degraded: bool = False

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

    `interval` is as in a Grant, or 0 if unknown.
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


Answer: TypeAlias = Grant | Denied | RetryLater | InvalidQuestion | NoAnswer


@dataclass(frozen=True, slots=True)
class RequestPermit:
    """RequestPermit the service, and send its answer back; a turn is to begin within `max_wait` seconds."""

    max_wait: float


@dataclass(frozen=True, slots=True)
class Sleep:
    """Sleep; if interrupted, release the slot in `holding`."""

    seconds: float
    holding: Grant | None = None


Step: TypeAlias = RequestPermit | Sleep


def permit_conversation(
    max_wait: float, *, retry: bool, monotonic: Callable[[], float]
) -> Generator[Step, Answer | None, Answer]:
    """The exchange about one page: returns a Grant whose slot begins now, or why there is none within `max_wait` s.

    With `retry`, a service that does not respond is asked again until then.
    """
    ends = monotonic() + max_wait
    pause = FIRST_RETRY_DELAY
    while True:
        left = max(0.0, ends - monotonic())
        answer = yield RequestPermit(min(left, MAX_PERMIT_WAIT))
        if answer is None:
            raise TypeError("send an Answer after RequestPermit")
        match answer:
            case Grant(wait=wait) if wait > left + GRACE:
                return NoAnswer(f"it granted a slot in {wait} s, but at most {left:.3f} s were requested")
            case Grant(wait=wait):
                due = monotonic() + wait
                yield Sleep(wait, holding=answer)
                if not answer.is_over(monotonic() - due):
                    return answer
                continue  # nothing to release: the slot is over
            case RetryLater(seconds=seconds):
                pass
            case NoAnswer() if retry:
                seconds, pause = pause, min(pause * 2, LAST_RETRY_DELAY)
            case Denied() | InvalidQuestion() | NoAnswer():
                return answer
            case _:
                assert_never(answer)
        if seconds > max(0.0, ends - monotonic()):
            return answer
        yield Sleep(seconds)


def question(url: str, agent: str, max_wait: float, *, caller: str | None = None) -> dict[str, object]:
    """The JSON to POST to PATH."""
    asked: dict[str, object] = {
        "url": without_credentials(url),
        "agent": agent,
        "max_wait": round(min(max(max_wait, 0.0), MAX_PERMIT_WAIT), 3),
        "wait": FETCH_WAIT,
    }
    return asked if caller is None else {**asked, "caller": caller}


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
    plain = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json"}
    if key is None:
        return plain
    if not _KEY.fullmatch(key):
        raise ValueError("malformed API key: use printable ASCII without spaces")
    return {**plain, "Authorization": f"Bearer {key}"}


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


def encode(said: Mapping[str, object]) -> bytes:
    """Encode JSON as ASCII: URLs may contain lone surrogates, which UTF-8 cannot encode."""
    return json.dumps(said).encode("ascii")


def parse_answer(status: int, fields: Mapping[str, str], body: bytes, now: float) -> Answer:
    """Parse the response to a question; `fields` are headers by lower-case name, `now` is in Unix seconds."""
    if status in {429, 503} and _SECONDS.fullmatch(fields.get("retry-after", "")):
        return RetryLater(_pause(float(fields["retry-after"])), "busy")
    said = _json(body)
    if status in _QUESTION_IS_BAD:
        return InvalidQuestion(_detail(said, status))
    if status != 200:
        return NoAnswer(_detail(said, status))
    if not isinstance(said, dict):
        return NoAnswer("its answer is not a JSON object")
    match said.get("verdict"):
        case "allow" if said.get("allowed") is True:
            return _turn(said)
        case "disallow":
            return _refused(said)
        case "defer":
            until = _until(said.get("retry_at"), _date(fields.get("date"), now))
            return NoAnswer("it defers without retry_at") if until is None else RetryLater(until, _reason(said))
        case verdict:
            return NoAnswer(f"its verdict is {_shown(verdict)}")


def parse_backoff(status: int, body: bytes) -> float | None:
    """Parse the response to an outcome: the seconds of backoff of the origin, None if unknown."""
    said = _json(body)
    if status != 200 or not isinstance(said, dict):
        return None
    seconds = _number(said.get("backoff"))
    return 0.0 if seconds is None else min(seconds, MAX_DELAY)


def _turn(said: Mapping[str, Any]) -> Answer:
    permit, wait, interval = said.get("permit"), _number(said.get("wait")), _number(said.get("interval"))
    if isinstance(permit, str) and wait is not None:
        if not _PERMIT.fullmatch(permit):
            return NoAnswer(f"its permit is {_shown(permit)}")
        if wait > MAX_PERMIT_WAIT:
            return NoAnswer(f"its wait is {wait} s")
        return Grant(permit, wait, interval or 0.0, said.get("degraded") is True)
    again = _number(said.get("retry_after"))
    if permit is None and again is not None:
        return RetryLater(_pause(again), PACE, interval or 0.0)
    return NoAnswer("it allows the page without a slot or retry_after")


def _refused(said: Mapping[str, Any]) -> Denied:
    rule = said.get("rule")
    if not isinstance(rule, dict):
        return Denied(_reason(said))
    line = rule.get("line")
    text = f"{_text(rule.get('directive'))}: {_text(rule.get('pattern'))}"
    return Denied(_reason(said), text, line if isinstance(line, int) else None)


def _reason(said: Mapping[str, Any]) -> str:
    reason = said.get("reason")
    return reason if isinstance(reason, str) and _REASON.fullmatch(reason) else "unknown"


def _until(instant: object, now: float) -> float | None:
    """Seconds until an RFC 3339 instant."""
    if not isinstance(instant, str) or len(instant) > 64:
        return None
    try:
        at = datetime.fromisoformat(instant)
    except ValueError:
        return None
    return None if at.tzinfo is None else max(MIN_DEFER, _pause(at.timestamp() - now))


def _date(text: str | None, now: float) -> float:
    """The time of the service, whose clock `retry_at` refers to."""
    if text is None or len(text) > 64:
        return now
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return now


def _pause(seconds: float) -> float:
    return min(max(seconds, MIN_DELAY), MAX_DELAY)


def _number(value: object) -> float | None:
    """A finite number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _detail(said: object, status: int) -> str:
    detail = said.get("detail") if isinstance(said, dict) else None
    return f"it answers {status}" + (f": {_text(detail)}" if isinstance(detail, str) else "")


def _text(value: object) -> str:
    """Untrusted text for a log: bounded, on one line."""
    return "".join(char if char.isprintable() else "?" for char in str(value)[:300])


def _shown(value: object) -> str:
    return _text(repr(value) if value is None or isinstance(value, str | int | float) else type(value).__name__)
