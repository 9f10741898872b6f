"""Verdicts without slots (`/v1/allowed`), without I/O. Answers of the service are not trusted."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast
from urllib.parse import urlencode

from robots_decisions.parsing import detail, instant, json_value, number, reason, rule_of, sentence, summary, version_of
from robots_decisions.permits import (
    ANSWER_LIMIT,
    Failure,
    Fields,
    NoAnswer,
    Unavailable,
    answer_timeout,
    encode,
    not_a_verdict,
    not_ours,
    parse_failure,
    question,
)
from robots_decisions.question import Members, Names, answered_agent, asking

PATH: Final = "/v1/allowed"

VERDICT_FIELDS: Final = ("verdict", "allowed", "reason", "rule", "rate", "retry_at", "version")
"""The members of an answer that a Verdict is made of."""

LINES: Final = "application/x-ndjson"

BATCH_ITEMS, BATCH_BYTES = 500, 1024 * 1024
"""Questions, and their bytes, that one request of a batch has. The service reads twice as many ahead of its answers,
and so does not wait for a client that sends all of them before it reads an answer."""

LINE_LIMIT = ANSWER_LIMIT
"""Bytes of the longest line of an answer."""

Asks = TypeVar("Asks")
Answered = TypeVar("Answered")


@dataclass(frozen=True)
class Question:
    """A question of a batch. None leaves a parameter to the client, or to the service.

    Agents after the first are fallbacks. `as_of` is an instant in the past: the version of the file that was stored
    then decides. `max_age`: a copy of the file that is older, in seconds, is fetched again first. `enforce`: disallow
    the page if its site refuses a purpose.
    """

    url: str
    agent: Names | None = None
    dialect: str | None = None
    purpose: Names | None = None
    as_of: str | datetime | None = None
    max_age: float | None = None
    enforce: bool | None = None


Asked: TypeAlias = "str | tuple[str, str] | Question"
"""A URL, a URL and the agent, or a whole question."""


@dataclass(frozen=True)
class Verdict:
    """Whether a page may be fetched: true if it is allowed. `members` is the whole answer, as the HTTP API has it.

    `rule` is the deciding line of robots.txt, if any, and `line` its number. `interval` is the seconds from one
    document to the next; `retry_at` is when to ask again after a defer. `version` is the id of the file that decided,
    and `summary` the service's own sentence.
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
    version: str | None = None

    @property
    def summary(self) -> str:
        """Why, as the service says it."""
        return summary(self.members)

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


VerdictAnswer: TypeAlias = Verdict | Failure


def verdict_path(url: str, members: Members, left: float, *, explain: bool = False) -> str:
    """The path that asks about a page, for a request that may wait for `left` seconds."""
    asked = question(url, members, left)
    pairs = [
        (name, _parameter(one))
        for name, value in asked.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return f"{PATH}?{urlencode(pairs + [('explain', 'true')] * explain, errors='replace')}"


def _parameter(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else value


def parse_verdict(url: str, agent: object, status: int, fields: Fields, body: bytes) -> VerdictAnswer:
    """Parse the response to `verdict_path`."""
    message = json_value(body)
    failure = parse_failure(status, fields, message)
    return failure if failure is not None else _verdict(url, agent, message)


def batch_path(fields: Names | None) -> str:
    """The path that asks a batch: for whole answers, or for no more than these members and those of a verdict."""
    if fields is None:
        return PATH
    own = (fields,) if isinstance(fields, str) else fields
    return f"{PATH}?fields={','.join(dict.fromkeys((*VERDICT_FIELDS, *own)))}"


def encode_item(url: str, members: Members, max_wait: float, wait: float | None) -> bytes:
    """The line that asks a question of a batch. `wait`: see Client.batch()."""
    item = question(url, members, max_wait)
    if wait is not None:
        item["wait"] = wait
    return encode(item) + b"\n"


def parse_item(url: str, agent: object, line: bytes) -> Verdict | Unanswered:
    """Parse a line of the answer to a batch. Raise Unavailable if it is not an answer."""
    message = json_value(line)
    problem = problem_in(message, url, answered_agent(agent, message))
    if problem is not None:
        return problem
    verdict = _verdict(url, agent, message)
    if not isinstance(verdict, Verdict):
        raise Unavailable(verdict)
    return verdict


def problem_in(message: object, url: str, agent: str = "") -> Unanswered | None:
    """The problem in place of an answer, if the message is one."""
    problem = message.get("problem") if isinstance(message, dict) else None
    if not isinstance(problem, dict):
        return None
    status = number(problem.get("status")) or 0.0
    why = sentence(detail(problem) or "the service does not say why")
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

    @property
    def rest(self) -> bytes:
        """What follows the last line."""
        return bytes(self._rest)

    def _add(self, data: bytes) -> None:
        if len(self._rest) + len(data) > LINE_LIMIT:
            raise Unavailable(not_ours(f"more than {LINE_LIMIT} bytes in a line"))
        self._rest += data


class Batch(ABC, Generic[Asks, Answered]):
    """Lines to send in one request, until it is full, and how the lines of its answer are read.

    `path` answers them, each within `timeout` seconds. `what` and `plural` name the answers, and what they are about,
    in an error.
    """

    what: str
    plural: str
    items = BATCH_ITEMS

    def __init__(self, path: str, max_wait: float) -> None:
        self.path = path
        self.timeout = answer_timeout(max_wait)
        self.urls: list[str] = []
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

    def _add_line(self, url: str, line: bytes) -> None:
        self.urls.append(url)
        self.lines.append(line)
        self._size += len(line)


class VerdictBatch(Batch[Asked, "Verdict | Unanswered"]):
    """Questions to which the answers are verdicts. Their members are those of `defaults` and their own.

    `wait`: see Client.batch().
    """

    what, plural = "verdict on", "pages"

    def __init__(self, fields: Names | None, defaults: Members, max_wait: float, wait: float | None = None) -> None:
        super().__init__(batch_path(fields), max_wait)
        self._wait = wait
        self._defaults = defaults
        self._agents: list[object] = []

    def add(self, asked: Asked) -> None:
        """Add a question. Raise ValueError if it has no agent, or is invalid."""
        if isinstance(asked, tuple):
            asked = Question(*asked)
        url, members = (asked, self._defaults) if isinstance(asked, str) else (asked.url, self._members(asked))
        self._agents.append(agent_of(url, members))
        self._add_line(url, encode_item(url, members, self.timeout, self._wait))

    def parse(self, number: int, line: bytes) -> Verdict | Unanswered:
        """The verdict, or why there is none."""
        return parse_item(self.urls[number], self._agents[number], line)

    def _members(self, asked: Question) -> Members:
        own = asking(
            agent=asked.agent or None,
            purpose=asked.purpose,
            enforce=asked.enforce,
            dialect=asked.dialect,
            max_age=asked.max_age,
            as_of=asked.as_of,
        )
        return {**self._defaults, **own}


def agent_of(url: str, members: Members) -> object:
    """The agents of a question. Raise ValueError without one."""
    agent = members.get("agent")
    if not agent:
        raise ValueError(f"{url} has no agent: name one, or set the client's `agent`")
    return agent


def _verdict(url: str, agent: object, message: object) -> Verdict | NoAnswer:
    """The verdict, or why the message has none."""
    wrong = not_a_verdict(message)
    if wrong is not None or not isinstance(message, dict):
        return not_ours(wrong or "what is not a JSON object")
    rate = message.get("rate")
    rule, line = rule_of(message)
    return Verdict(
        url,
        answered_agent(agent, message),
        cast('Literal["allow", "disallow", "defer"]', message["verdict"]),
        reason(message),
        rule,
        line,
        number(rate.get("interval")) if isinstance(rate, dict) else None,
        instant(message.get("retry_at")),
        message,
        version_of(message),
    )
