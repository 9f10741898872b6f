"""What a crawler asks before it fetches a page, and what the answer comes to: no I/O, and no answer is trusted.

The service says whether a page may be fetched and when it is its turn (`POST /v1/permits`), and is told what came of it
where that matters to others. `turns` is the whole conversation; clients only carry what it asks for.
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

LONGEST_WAIT = 3600.0
"""Seconds: the longest `max_wait` that the service takes, and so the longest wait that it gives."""

LONGEST_COLD = 10.0
"""Seconds that the service may take to fetch a robots.txt that it does not hold."""

MARGIN = 5.0
"""Seconds that an answer may take besides."""

ANSWER_LIMIT = 4 * 1024 * 1024
"""Octets of the longest answer that is read: it names all of a file's sitemaps, which fill 512,000 octets at most."""

SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 86_400.0
"""Seconds until the service is asked again, at least and at most, whatever it says."""

SHORTEST_DEFER = 1.0
"""The same where the verdict is to change meanwhile, and not only the turn: at least."""

GRACE = 0.1
"""Seconds by which a turn may be missed in any case: an event loop is no clockwork."""

FIRST_PAUSE, LAST_PAUSE = 0.5, 30.0
"""Seconds between attempts to reach a service that does not answer: they double."""

HOLDS_BACK = frozenset({429, 503})
"""What a page answers that has too much to do: all of the fleet leave its origin alone for a while."""

RELEASED: Final[Mapping[str, object]] = {"released": True}
"""The outcome of a turn that was not used."""

PACE = "pace"
"""Why to come later where nothing forbids the page: it is the turn of others."""

_PERMIT = re.compile(r"[A-Za-z0-9_=-]{1,2048}(?:\.[A-Za-z0-9_=-]{1,64})?")
_REASON = re.compile(r"[a-z_]{1,40}")
_KEY = re.compile(r"[!-~]{1,512}")
_CALLER = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_AUTHORITY = re.compile(r"[^/?\\]*")
_SECONDS = re.compile(r"[0-9]{1,6}")
_QUESTION_IS_BAD = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Turn:
    """The page may be fetched `wait` seconds after the answer came, and for `interval` seconds from then nothing else.

    `degraded`: the service cannot reach its store, and goes by a careful share of the pace.
    """

    permit: str
    wait: float
    interval: float
    degraded: bool = False

    def is_over(self, late: float) -> bool:
        """Whether who is `late` by so many seconds would go at the time of another."""
        return late > max(self.interval, GRACE)


@dataclass(frozen=True, slots=True)
class Refused:
    """The page may not be fetched; `rule` is the line of robots.txt that says so, where one does, `line` its number."""

    reason: str
    rule: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.reason if self.rule is None else f"line {self.line} of robots.txt: {self.rule}"


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing is known against the page, but not now: come again in `seconds`. `reason` is PACE, or why it defers.

    `interval` is the pace, as in a Turn, or 0 where it is not known.
    """

    seconds: float
    reason: str
    interval: float = 0.0


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The service does not take the question: the URL or the agent cannot be read."""

    why: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The service cannot be asked, or what came is no answer; nothing is known of the page."""

    why: str


Answer: TypeAlias = Turn | Refused | Later | NotTaken | NoAnswer


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the service, and send its answer back; a turn is to begin within `max_wait` seconds."""

    max_wait: float


@dataclass(frozen=True, slots=True)
class Sleep:
    """Sleep; whoever is interrupted meanwhile gives back the turn that he is `holding`."""

    seconds: float
    holding: Turn | None = None


Step: TypeAlias = Ask | Sleep


def turns(max_wait: float, *, insist: bool, monotonic: Callable[[], float]) -> Generator[Step, Answer | None, Answer]:
    """The conversation about one page: ends with a Turn that begins now, or with why none does in `max_wait` seconds.

    With `insist`, a service that does not answer is asked again until then.
    """
    ends = monotonic() + max_wait
    pause = FIRST_PAUSE
    while True:
        left = max(0.0, ends - monotonic())
        answer = yield Ask(min(left, LONGEST_WAIT))
        if answer is None:
            raise TypeError("an Ask is answered by an Answer")
        match answer:
            case Turn(wait=wait) if wait > left + GRACE:
                return NoAnswer(f"it gave a turn in {wait} s where {left:.3f} s were asked for")
            case Turn(wait=wait):
                due = monotonic() + wait
                yield Sleep(wait, holding=answer)
                if not answer.is_over(monotonic() - due):
                    return answer
                continue  # nothing to give back: its time is over
            case Later(seconds=seconds):
                pass
            case NoAnswer() if insist:
                seconds, pause = pause, min(pause * 2, LAST_PAUSE)
            case Refused() | NotTaken() | NoAnswer():
                return answer
            case _:
                assert_never(answer)
        if seconds > max(0.0, ends - monotonic()):
            return answer
        yield Sleep(seconds)


def question(url: str, agent: str, max_wait: float, *, caller: str | None = None) -> dict[str, object]:
    """The JSON to send to PATH."""
    asked: dict[str, object] = {
        "url": bare(url),
        "agent": agent,
        "max_wait": round(min(max(max_wait, 0.0), LONGEST_WAIT), 3),
        "wait": LONGEST_COLD,
    }
    return asked if caller is None else {**asked, "caller": caller}


def bare(url: str) -> str:
    """The URL without what is for the origin only, or for nobody: credentials and fragment. No verdict goes by them."""
    scheme, separator, rest = url.partition("#")[0].partition("://")
    authority = _AUTHORITY.match(rest)
    if not separator or authority is None:
        return url
    return f"{scheme}://{authority[0].rpartition('@')[2]}{rest[authority.end() :]}"


def place(url: str) -> str:
    """The scheme and the authority of a URL: those whose pages share a pace begin alike, as a rule."""
    scheme, _, rest = bare(url).partition("://")
    authority = _AUTHORITY.match(rest)
    return f"{scheme}://{authority[0] if authority else ''}".lower()


def headers(key: str | None) -> dict[str, str]:
    """What to send with every request; ValueError for a key that no header can hold."""
    # Compressed answers are not asked for: the limit then bounds what is read, and not only what is sent.
    plain = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json"}
    if key is None:
        return plain
    if not _KEY.fullmatch(key):
        raise ValueError("the API key holds what no key is made of: it is printable ASCII without blanks")
    return {**plain, "Authorization": f"Bearer {key}"}


def checked_caller(caller: str | None) -> str | None:
    """The caller's name as the service takes it, or ValueError."""
    if caller is not None and not _CALLER.fullmatch(caller):
        raise ValueError(f"{caller!r} is no caller's name: 1 to 64 letters, digits, '.', '_', '@' and '-'")
    return caller


def outcome_path(permit: str) -> str:
    """Where the service is told what came of a turn."""
    return f"{PATH}/{quote(permit, safe='')}/outcome"


def outcome(status: int, retry_after: str | None, elapsed: float) -> dict[str, object]:
    """The JSON to send there: `retry_after` is the header of the page's answer, which came after `elapsed` seconds."""
    told: dict[str, object] = {"status": status, "elapsed": round(max(elapsed, 0.0), 3)}
    return told if retry_after is None else {**told, "retry_after": retry_after[:100]}


def encoded(said: Mapping[str, object]) -> bytes:
    """The JSON that is sent: ASCII, since half a surrogate pair, as names and URLs may hold, is none in UTF-8."""
    return json.dumps(said).encode("ascii")


def read_answer(status: int, fields: Mapping[str, str], body: bytes, now: float) -> Answer:
    """What the response to a question comes to; `fields` by lower-case name, `now` in Unix seconds."""
    if status in {429, 503} and _SECONDS.fullmatch(fields.get("retry-after", "")):
        return Later(_pause(float(fields["retry-after"])), "busy")
    said = _json(body)
    if status in _QUESTION_IS_BAD:
        return NotTaken(_detail(said, status))
    if status != 200:
        return NoAnswer(_detail(said, status))
    if not isinstance(said, dict):
        return NoAnswer("its answer is no JSON object")
    match said.get("verdict"):
        case "allow" if said.get("allowed") is True:
            return _turn(said)
        case "disallow":
            return _refused(said)
        case "defer":
            until = _until(said.get("retry_at"), _date(fields.get("date"), now))
            return NoAnswer("it defers without saying until when") if until is None else Later(until, _reason(said))
        case verdict:
            return NoAnswer(f"its verdict is {_shown(verdict)}")


def read_held_back(status: int, body: bytes) -> float | None:
    """How long the origin is left alone now, in seconds, by the response to an outcome; None where it says nothing."""
    said = _json(body)
    if status != 200 or not isinstance(said, dict):
        return None
    seconds = _number(said.get("backoff"))
    return 0.0 if seconds is None else min(seconds, LONGEST_PAUSE)


def _turn(said: Mapping[str, Any]) -> Answer:
    permit, wait, interval = said.get("permit"), _number(said.get("wait")), _number(said.get("interval"))
    if isinstance(permit, str) and wait is not None:
        if not _PERMIT.fullmatch(permit):
            return NoAnswer(f"its permit is {_shown(permit)}")
        if wait > LONGEST_WAIT:
            return NoAnswer(f"its wait is {wait} s")
        return Turn(permit, wait, interval or 0.0, said.get("degraded") is True)
    again = _number(said.get("retry_after"))
    if permit is None and again is not None:
        return Later(_pause(again), PACE, interval or 0.0)
    return NoAnswer("it allows the page, and says neither when to fetch it nor when to ask again")


def _refused(said: Mapping[str, Any]) -> Refused:
    rule = said.get("rule")
    if not isinstance(rule, dict):
        return Refused(_reason(said))
    line = rule.get("line")
    text = f"{_text(rule.get('directive'))}: {_text(rule.get('pattern'))}"
    return Refused(_reason(said), text, line if isinstance(line, int) else None)


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
    return None if at.tzinfo is None else max(SHORTEST_DEFER, _pause(at.timestamp() - now))


def _date(text: str | None, now: float) -> float:
    """The service's time: `retry_at` is by its clock, which may not be ours."""
    if text is None or len(text) > 64:
        return now
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return now


def _pause(seconds: float) -> float:
    return min(max(seconds, SHORTEST_PAUSE), LONGEST_PAUSE)


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
    """A text of theirs that may go into a log: bounded, and in one line."""
    return "".join(char if char.isprintable() else "?" for char in str(value)[:300])


def _shown(value: object) -> str:
    return _text(repr(value) if value is None or isinstance(value, str | int | float) else type(value).__name__)
