"""The answer of `POST /v1/test`: a row for each decision, and what concerns the whole file.

Nothing here needs the service: a test and a file go in, bytes come out, in a helper process if it takes long.
"""

import json
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime
from math import inf
from typing import NamedTuple

import msgspec
from pydantic import BaseModel, Field
from pydantic_core import to_json

from app.api.fragments import fragment, purposes_fragment
from app.api.schemas.answers import (
    NOTES,
    PARTIAL,
    ExplanationOut,
    ExtensionOut,
    GroupOut,
    NextRateOut,
    NoteOut,
    ProblemOut,
    PurposeOut,
    RateOut,
    RobotsOut,
    RuleTextOut,
    SummaryOut,
    UsageOut,
    VisitOut,
    WarningOut,
    is_none,
)
from app.api.serialize import (
    answer_out,
    next_rate_out,
    notes_out,
    rate_out,
    robots_out,
    rule_out,
    summary_of,
    warnings_out,
)
from app.evaluate import Decision, Question
from app.instants import instant
from app.pasted import Result, SimulatedOutcome, deciding
from robots_core.notes import agent_notes
from robots_core.origin import Target
from robots_core.purposes.policy import Purpose, PurposePolicy
from robots_core.robots.agents import Agent
from robots_core.robots.as_json import extension_members
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission, Reason

TEST_SECONDS = 4.0
"""CPU seconds after which the rows that remain are left out. A helper has five."""

TEST_ROOM = 15 * 1024 * 1024
"""Bytes of answer after which the rows that remain are left out; the last one may take some more."""


class TestRowOut(BaseModel):
    """One decision, as a table shows it. `allowed` is true only for the verdict `allow`."""

    url: str
    agent: str
    dialect: str
    verdict: Permission
    allowed: bool
    reason: Reason
    partial: bool = Field(description=PARTIAL)
    explanation: SummaryOut = Field(description="Why, in a sentence.")
    rule: RuleTextOut | None
    rate: RateOut | None
    next_rate: NextRateOut | None = Field(description="How the rate changes next; null if it does not.")
    purposes: dict[Purpose, PurposeOut] | None = Field(
        None,
        exclude_if=is_none,
        description="Whether the site permits each purpose of the test; absent without purposes.",
    )
    notes: list[NoteOut] | None = Field(None, exclude_if=is_none, description=NOTES)
    retry_at: str | None = Field(description="When to ask again, if the verdict is defer.")


class ExplainedRowOut(TestRowOut):
    """A row with `explain`: how its group was found, every rule that matched, and what else the file states."""

    explanation: ExplanationOut | SummaryOut = Field(description="Why, in detail if a file decided.")
    group: GroupOut | None
    crawl_delay: float | None
    visit: VisitOut | None
    usage: UsageOut | None


class TimelineEntryOut(BaseModel):
    """The answer to the row's question from `after` seconds after the first fetch with the simulated outcome."""

    after: int
    at: str
    verdict: Permission
    reason: Reason
    stale: bool = Field(description="Whether the answer comes from the copy cached before.")


class SimulatedOut(BaseModel):
    """What a simulated outcome adds to a row: `robots` is what the service would have cached.

    `timeline` goes on past `at`, to the last change if the outcome stays the same.
    """

    robots: RobotsOut
    timeline: list[TimelineEntryOut]


class SimulatedRowOut(TestRowOut, SimulatedOut):
    """A row under a simulated outcome."""


class ExplainedSimulatedRowOut(ExplainedRowOut, SimulatedOut):
    """An explained row under a simulated outcome."""


class FailedRowOut(BaseModel):
    """A row in which something failed unexpectedly. The other rows are not affected, and have no member `problem`."""

    url: str
    agent: str
    dialect: str
    problem: ProblemOut


class TestOut(BaseModel):
    """A row per URL, agent and dialect, in this order."""

    rows: list[TestRowOut | ExplainedRowOut | SimulatedRowOut | ExplainedSimulatedRowOut | FailedRowOut]
    sitemaps: list[str]
    licenses: list[str]
    extensions: list[ExtensionOut]
    warnings: list[WarningOut]
    left_out: int = Field(
        description="Rows left out, because computing or sending them would exceed the limits of a request."
    )


class Trial(NamedTuple):
    """What to decide by a file: each target for each reader, an agent and the name of a dialect, `at` an instant.

    `policy` is for the purposes that pages are wanted for. With an `outcome`, every fetch of the file ends so.
    `truncated`: the file goes on beyond what is tested. `forbidden`: whether a 401 or 403 closes the site.
    """

    targets: Sequence[Target]
    readers: Sequence[tuple[Agent, str]]
    at: datetime
    policy: PurposePolicy | None = None
    outcome: SimulatedOutcome | None = None
    truncated: bool = False
    explained: bool = False
    forbidden: bool = False

    @property
    def rows(self) -> int:
        """The number of decisions."""
        return len(self.targets) * len(self.readers)

    def questions(self) -> Iterator[Question]:
        """The question of each row."""
        for target in self.targets:
            for agent, dialect in self.readers:
                yield Question(target, agent, DIALECTS[dialect], self.at, policy=self.policy)


class PastedFile(NamedTuple):
    """A file to test, parsed, and its warnings."""

    robots: RobotsTxt
    warnings: Sequence[WarningOut]

    @classmethod
    def read(cls, body: bytes, *, truncated: bool = False) -> "PastedFile":
        """Parse a file of any size, or the beginning of a `truncated` one."""
        robots = RobotsTxt(body, truncated=truncated)
        return cls(robots, warnings_out(robots))


def answer(
    trial: Trial,
    file: PastedFile,
    problem: bytes,
    failed: Callable[[Exception], None],
    *,
    seconds: float = inf,
    room: float = inf,
) -> bytes:
    """The JSON of TestOut.

    A row that fails unexpectedly is passed to `failed`, and has `problem`, which is JSON, in its place. After so many
    CPU `seconds`, or bytes (`room`), the rows that remain are left out.
    """
    robots, warnings = file
    last = time.process_time() + seconds
    whole = {
        "sitemaps": msgspec.json.encode(robots.sitemaps),
        "licenses": msgspec.json.encode(robots.licenses),
        "extensions": to_json(list(map(extension_members, robots.extensions))),
        "warnings": to_json(warnings),
    }
    room -= sum(map(len, whole.values()))
    decide = deciding(robots, trial.outcome, trial.at.timestamp(), forbidden=trial.forbidden)
    encoder = Rows(explained=trial.explained)
    rows: list[bytes] = []
    for question in trial.questions():
        try:
            row = encoder.encode(decide(question))
        except Exception as error:  # noqa: BLE001 - it fails this row alone
            failed(error)
            row = _failed(question, problem)
        rows.append(row)
        room -= len(row)
        if room <= 0 or time.process_time() >= last:
            break
    members = b"".join(b'"%b":%b,' % (name.encode(), text) for name, text in whole.items())
    return b'{"rows":[%b],%b"left_out":%d}' % (b",".join(rows), members, trial.rows - len(rows))


def trial_json(trial: Trial, body: bytes, problem: bytes) -> bytes:
    """The JSON of TestOut within the limits of a request, after a line with the traceback of the first row that failed.

    The line is a JSON string. The process that asks logs it, since a helper has no log.
    """
    failures: list[str] = []

    def note(error: Exception) -> None:
        if not failures:
            failures.append("".join(traceback.format_exception(error)))

    content = answer(
        trial, PastedFile.read(body, truncated=trial.truncated), problem, note, seconds=TEST_SECONDS, room=TEST_ROOM
    )
    return json.dumps("".join(failures)).encode() + b"\n" + content


def _failed(question: Question, problem: bytes) -> bytes:
    target, agent, dialect = question[:3]
    row = {"url": target.url, "agent": agent.token, "dialect": dialect.name, "problem": msgspec.Raw(problem)}
    return msgspec.json.encode(row)


class Rows:
    """Encodes the rows of one test.

    The members besides the URL are encoded once for all rows that share them: as in `encoding`, they depend on the
    revision of the file, the agent, the dialect, and what decided.
    """

    def __init__(self, *, explained: bool) -> None:
        self._explained = explained
        self._shared: dict[Hashable, bytes] = {}
        self._rules: dict[Hashable, msgspec.Raw] = {}
        self._rates: dict[Hashable, tuple[msgspec.Raw, msgspec.Raw]] = {}
        self._facts: dict[Hashable, msgspec.Raw] = {}

    def encode(self, result: Result) -> bytes:
        """The JSON of a row: TestRowOut, or the one of its kinds that the test asks for."""
        decision = result.decision
        url = b'{"url":' + msgspec.json.encode(decision.question.target.url) + b","
        if self._explained:
            return url + msgspec.json.encode(_explained(decision) | self._simulated(result))[1:]
        _, reason, rule, _ = decision.verdict
        line = rule.directive.line if rule else 0
        turns = tuple([(it.verdict.permission, it.verdict.reason) for _, it in result.timeline])
        key = (_reader(decision), reason, line, decision.purposes, turns)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = msgspec.json.encode(self._members(decision) | self._simulated(result))[1:]
        return url + shared

    def _members(self, decision: Decision) -> dict[str, object]:
        question, verdict, purposes = decision.question, decision.verdict, decision.purposes
        notes = notes_out(agent_notes(question.agent, question.dialect))
        rate, next_rate = self._rate(decision)
        members: dict[str, object] = {
            "agent": question.agent.token,
            "dialect": question.dialect.name,
            "verdict": verdict.permission,
            "allowed": decision.allowed,
            "reason": verdict.reason,
            "partial": decision.partial,
            "explanation": {"summary": summary_of(decision)},
            "rule": self._rule(decision),
            "rate": rate,
            "next_rate": next_rate,
            "retry_at": None if decision.retry_at is None else instant(decision.retry_at),
        }
        if purposes is not None:
            members["purposes"] = purposes_fragment(purposes)
        if notes is not None:
            members["notes"] = fragment(notes)
        return members

    def _rule(self, decision: Decision) -> msgspec.Raw | None:
        rule = decision.verdict.rule
        if rule is None:
            return None
        key = decision.revision, rule.directive.line
        if key not in self._rules:
            self._rules[key] = fragment(rule_out(decision.verdict, decision.robots))
        return self._rules[key]

    def _rate(self, decision: Decision) -> tuple[msgspec.Raw, msgspec.Raw]:
        """The rate and the next one."""
        reader = _reader(decision)
        rates = self._rates.get(reader)
        if rates is None:
            rate = decision.rate
            now = None if rate is None else rate_out(rate.value, rate.valid_until)
            rates = self._rates[reader] = fragment(now), fragment(next_rate_out(decision.next_rate))
        return rates

    def _simulated(self, result: Result) -> dict[str, object]:
        """What a simulated outcome adds to a row; nothing without one."""
        decision = result.decision
        if not result.timeline:
            return {}
        if decision.revision not in self._facts:
            facts = robots_out(decision.question.target.origin, decision.cached)
            self._facts[decision.revision] = fragment(facts)
        turns = [fragment(_turn(after, turn)) for after, turn in result.timeline]
        return {"robots": self._facts[decision.revision], "timeline": turns}


def _explained(decision: Decision) -> dict[str, object]:
    """The members of an explained row besides the URL, from the answer of `GET /v1/allowed`."""
    answer = answer_out(decision, explained=True)
    optional = {"purposes": decision.purposes, "notes": answer.notes}
    names = ExplainedRowOut.model_fields.keys() - {"url", *(name for name, value in optional.items() if value is None)}
    return {name: fragment(value) for name, value in answer if name in names}


def _reader(decision: Decision) -> Hashable:
    """What the rate depends on. All rows are of one instant; /robots.txt itself has no selection, and no rate."""
    (_, agent, dialect, *_), selection = decision.question, decision.verdict.selection
    token = selection.token if selection else ""
    return decision.revision, dialect.name, agent.token, agent.names, agent.unnamed, token


def _turn(after: int, decision: Decision) -> TimelineEntryOut:
    freshness, verdict = decision.cached.freshness, decision.verdict
    return TimelineEntryOut(
        after=after,
        at=instant(decision.now),
        verdict=verdict.permission,
        reason=verdict.reason,
        stale=freshness is not None and freshness.stale,
    )
