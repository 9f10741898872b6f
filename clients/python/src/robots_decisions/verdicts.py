"""Verdicts without slots (`/v1/allowed`), without I/O. Answers of the service are not trusted."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast
from urllib.parse import urlencode

from robots_decisions.parsing import detail, instant, json_value, number, reason, rule_of, shown
from robots_decisions.permits import (
    FETCH_WAIT,
    Fields,
    InvalidQuestion,
    NoAnswer,
    RetryLater,
    Unavailable,
    encode,
    parse_failure,
    without_credentials,
)

PATH: Final = "/v1/allowed"

VERDICT_FIELDS: Final = ("verdict", "allowed", "reason", "rule", "rate", "retry_at", "version")
"""The members of an answer that a Verdict is made of."""

LINES: Final = "application/x-ndjson"

BATCH_ITEMS, BATCH_BYTES = 500, 1024 * 1024
"""Questions, and their bytes, that one request of a batch has. The service reads twice as many ahead of its answers,
and so does not wait for a client that sends all of them before it reads an answer."""

PROBLEM_LIMIT = 65_536
"""Bytes that are read of a response without answers."""

LINE_LIMIT = 4 * 1024 * 1024
"""Bytes of the longest line of an answer."""


Asks = TypeVar("Asks")
Answered = TypeVar("Answered")


@dataclass(frozen=True)
class Question:
    """A question of a batch. None leaves a parameter to the client (`agent`) or to the service.

    Agents after the first are fallbacks. `as_of` is an RFC 3339 instant in the past: the version of the file that was
    stored then decides.
    """

    url: str
    agent: str | Sequence[str] | None = None
    dialect: str | None = None
    purpose: Sequence[str] | None = None
    as_of: str | None = None


Asked: TypeAlias = "str | tuple[str, str] | Question"
"""A URL, a URL and the agent, or a whole question."""


@dataclass(frozen=True)
class Verdict:
    """Whether a page may be fetched: true if it is allowed. `members` is the whole answer, as the HTTP API has it.

    `rule` is the deciding line of robots.txt, if any, and `line` its number. `interval` is the seconds from one
    document to the next; `retry_at` is when to ask again after a defer.
    """

    url: str
    agent: str
    verdict: Literal["allow", "disallow", "defer"]
    reason: str
    rule: str | None = None
    line: int | None = None
    interval: float | None = None
    retry_at: datetime | None = None
    members: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def allowed(self) -> bool:
        """Whether the page may be fetched now."""
        return self.verdict == "allow"

    def __bool__(self) -> bool:
        return self.allowed


@dataclass(frozen=True)
class Unanswered:
    """A question of a batch that has no verdict: `why`, and the `status` of the problem.

    422 is a malformed question; after a 503, ask again in `retry_after` seconds.
    """

    url: str
    agent: str
    status: int
    why: str
    retry_after: float | None = None

    def __bool__(self) -> bool:
        return False


VerdictAnswer: TypeAlias = Verdict | RetryLater | InvalidQuestion | NoAnswer


def verdict_path(url: str, agent: str) -> str:
    """The path that asks about a page."""
    query = {"url": without_credentials(url), "agent": agent, "wait": f"{FETCH_WAIT:g}"}
    return f"{PATH}?{urlencode(query, errors='replace')}"


def parse_verdict(url: str, agent: str, status: int, fields: Fields, body: bytes) -> VerdictAnswer:
    """Parse the response to `verdict_path`."""
    message = json_value(body)
    failure = parse_failure(status, fields, message)
    if failure is not None:
        return failure
    verdict = _verdict(url, agent, message)
    return verdict if isinstance(verdict, Verdict) else NoAnswer(verdict)


def batch_path(fields: Sequence[str] | None) -> str:
    """The path that asks a batch: for whole answers, or for no more than these members and those of a verdict."""
    return PATH if fields is None else f"{PATH}?fields={','.join(dict.fromkeys((*VERDICT_FIELDS, *fields)))}"


def encode_item(question: Question) -> bytes:
    """The line that asks a question of a batch."""
    item: dict[str, object] = {"url": without_credentials(question.url), "agent": question.agent, "wait": FETCH_WAIT}
    for name in ("dialect", "purpose", "as_of"):
        value = getattr(question, name)
        if value is not None:
            item[name] = value
    return encode(item) + b"\n"


def parse_item(url: str, agent: str, line: bytes) -> Verdict | Unanswered:
    """Parse a line of the answer to a batch. Raise Unavailable if it is not an answer."""
    message = json_value(line)
    problem = problem_in(message, url, agent)
    if problem is not None:
        return problem
    verdict = _verdict(url, agent, message)
    if not isinstance(verdict, Verdict):
        raise Unavailable(verdict, is_final=True)
    return verdict


def problem_in(message: object, url: str, agent: str = "") -> Unanswered | None:
    """The problem in place of an answer, if the message is one."""
    problem = message.get("problem") if isinstance(message, dict) else None
    if not isinstance(problem, dict):
        return None
    status = number(problem.get("status")) or 0.0
    why = detail(problem) or "it does not say why"
    return Unanswered(url, agent, int(status) if status < 1000 else 0, why, number(problem.get("retry_after")))


class LineSplitter:
    """Splits the pieces of a body into lines. Raises Unavailable for a line that is longer than LINE_LIMIT."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that the piece completes."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._add(line)
            whole = bytes(self._rest)
            self._rest.clear()
            yield whole
        self._add(rest)

    def _add(self, data: bytes) -> None:
        if len(self._rest) + len(data) > LINE_LIMIT:
            raise Unavailable(f"a line of its answer is longer than {LINE_LIMIT} bytes", is_final=True)
        self._rest += data


class Batch(ABC, Generic[Asks, Answered]):
    """Lines to send in one request, until it is full, and how the lines of its answer are read.

    `path` answers them. `what` names the answers in an error, with the number that is missing and that of all.
    """

    what: str
    items = BATCH_ITEMS

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: list[bytes] = []
        self._size = 0

    @abstractmethod
    def add(self, asked: Asks) -> None:
        """Add a question."""

    @abstractmethod
    def parse(self, number: int, line: bytes) -> Answered:
        """The answer to the question of this number. Raise Unavailable if the line has none."""

    def is_full(self) -> bool:
        """Whether to send it."""
        return len(self.lines) >= self.items or self._size >= BATCH_BYTES

    def _add_line(self, line: bytes) -> None:
        self.lines.append(line)
        self._size += len(line)


class VerdictBatch(Batch[Asked, "Verdict | Unanswered"]):
    """Questions to which the answers are verdicts; `agent` is that of questions without one."""

    what = "There is no verdict on {} of {} pages"

    def __init__(self, fields: Sequence[str] | None, agent: str | None) -> None:
        super().__init__(batch_path(fields))
        self._agent = agent
        self._questions: list[tuple[str, str]] = []

    def add(self, asked: Asked) -> None:
        """Add a question. Raise ValueError if it has no agent."""
        question = question_of(asked, self._agent)
        agents = [question.agent] if isinstance(question.agent, str) else question.agent or [""]
        self._questions.append((question.url, agents[0]))
        self._add_line(encode_item(question))

    def parse(self, number: int, line: bytes) -> Verdict | Unanswered:
        """The verdict, or why there is none."""
        return parse_item(*self._questions[number], line)


def question_of(asked: Asked, agent: str | None) -> Question:
    """The question with its agent, by default `agent`. Raise ValueError without one."""
    if isinstance(asked, str):
        asked = Question(asked)
    elif isinstance(asked, tuple):
        asked = Question(*asked)
    return asked if asked.agent else replace(asked, agent=agent_of(asked.url, agent))


def agent_of(url: str, agent: str | None) -> str:
    """The agent. Raise ValueError without one."""
    if not agent:
        raise ValueError(f"{url} has no agent: name one, or set the client's `agent`")
    return agent


def _verdict(url: str, agent: str, message: object) -> Verdict | str:
    """The verdict, or why the message has none."""
    if not isinstance(message, dict):
        return "its answer is not a JSON object"
    verdict = message.get("verdict")
    if not isinstance(verdict, str) or verdict not in {"allow", "disallow", "defer"}:
        return f"its verdict is {shown(verdict)}"
    if message.get("allowed") is not (verdict == "allow"):
        return f"its verdict is {shown(verdict)}, but allowed is {shown(message.get('allowed'))}"
    rate = message.get("rate")
    rule, line = rule_of(message)
    return Verdict(
        url,
        agent,
        cast('Literal["allow", "disallow", "defer"]', verdict),
        reason(message),
        rule,
        line,
        number(rate.get("interval")) if isinstance(rate, dict) else None,
        instant(message.get("retry_at")),
        message,
    )
