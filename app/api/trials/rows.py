"""The answer of `POST /v1/test`: a row for each decision, and what concerns the whole file.

Nothing here needs the service: a test and a file go in, bytes come out, in a helper process if it takes long.
"""

import gzip
import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from math import inf
from typing import Final, NamedTuple

import msgspec
from pydantic import BaseModel, Field
from pydantic_core import to_json

from app.api.answers.encoding import AnswerEncoder
from app.api.answers.file_schema import RobotsGroupOut
from app.api.answers.schema import AnswerOut, ExplainedRowOut, ExtensionOut, ProblemOut, RobotsOut, RowOut
from app.api.answers.serialize import answer_out, robots_out
from app.decisions.evaluate import Decision, Question
from app.decisions.pasted import SimulatedOutcome, TrialResult, decider_for
from robots_core.file_json import groups_json
from robots_core.lint.advice import Advice
from robots_core.lint.linter import lint
from robots_core.origin import Target
from robots_core.purposes.policy import PurposePolicy
from robots_core.robots.agents import Agent
from robots_core.robots.as_json import extension_members
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission, Reason
from robots_core.times import instant

TEST_SECONDS = 4.0
"""CPU seconds after which the rows that remain are left out. A helper has five."""

TEST_ROOM = 15 * 1024 * 1024
"""Bytes of answer after which the rows that remain are left out; the last one may take some more."""

_LEVEL: Final = 6
"""Of gzip, of 9."""

_PLAIN: Final = [name for name in AnswerOut.model_fields if name in RowOut.model_fields and name != "group"]
_EXPLAINED: Final = set(ExplainedRowOut.model_fields)


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


class SimulatedRowOut(RowOut, SimulatedOut):
    """A row under a simulated outcome."""


class ExplainedSimulatedRowOut(ExplainedRowOut, SimulatedOut):
    """An explained row under a simulated outcome."""


class FailedRowOut(BaseModel):
    """A row in which something failed unexpectedly. The other rows are not affected, and have no member `problem`."""

    url: str
    agent: str
    dialect: str
    problem: ProblemOut


class TrialOut(BaseModel):
    """A row per URL, agent and dialect, in this order."""

    rows: list[RowOut | ExplainedRowOut | SimulatedRowOut | ExplainedSimulatedRowOut | FailedRowOut]
    sitemaps: list[str]
    licenses: list[str]
    extensions: list[ExtensionOut]
    warnings: list[Advice]
    groups: list[RobotsGroupOut] | None = Field(
        None, description="With `groups`, those of the file, as the dialect of the first row reads it."
    )
    left_out: int = Field(
        description="Rows left out, because computing or sending them would exceed the limits of a request."
    )


class Trial(NamedTuple):
    """What to decide by a file: each target for each reader, an agent and the name of a dialect, `at` an instant.

    `policy` is for the purposes that pages are wanted for. With an `outcome`, every fetch of the file ends so.
    `truncated`: the file goes on beyond what is tested. `forbidden`: whether a 401 or 403 closes the site. `grouped`:
    whether the answer has the groups of the file.
    """

    targets: Sequence[Target]
    readers: Sequence[tuple[Agent, str]]
    at: datetime
    policy: PurposePolicy | None = None
    outcome: SimulatedOutcome | None = None
    truncated: bool = False
    explained: bool = False
    forbidden: bool = False
    grouped: bool = False

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
    warnings: Sequence[Advice]

    @classmethod
    def read(cls, body: bytes, *, truncated: bool = False) -> "PastedFile":
        """Parse a file of any size, or the beginning of a `truncated` one."""
        robots = RobotsTxt(body, truncated=truncated)
        return cls(robots, lint(robots))


def answer(
    trial: Trial,
    file: PastedFile,
    problem: bytes,
    failed: Callable[[Exception], None],
    *,
    seconds: float = inf,
    room: float = inf,
) -> bytes:
    """The JSON of TrialOut.

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
    if trial.grouped:
        whole["groups"] = groups_json(robots.reading(DIALECTS[trial.readers[0][1]]))
    room -= sum(map(len, whole.values()))
    decide = decider_for(robots, trial.outcome, trial.at.timestamp(), forbidden=trial.forbidden)
    encoder = AnswerEncoder()
    rows: list[bytes] = []
    for question in trial.questions():
        try:
            row = _row(decide(question), encoder, explained=trial.explained)
        except Exception as error:  # noqa: BLE001 - it fails this row alone
            failed(error)
            row = _failed(question, problem)
        rows.append(row)
        room -= len(row)
        if room <= 0 or time.process_time() >= last:
            break
    members = b"".join(b'"%b":%b,' % (name.encode(), text) for name, text in whole.items())
    return b'{"rows":[%b],%b"left_out":%d}' % (b",".join(rows), members, trial.rows - len(rows))


def imported() -> bytes:
    """Nothing: a helper process that is asked for it has imported what tests need."""
    return b""


def trial_json(trial: Trial, body: bytes, problem: bytes, *, gzipped: bool = False) -> bytes:
    """The JSON of TrialOut within the limits of a request, after a line with the traceback of the first failed row.

    The line is a JSON string. The process that asks logs it, since a helper has no log. The JSON is
    compressed here if `gzipped`, since that takes long for many rows; they are alike, and shrink to a twentieth.
    """
    failures: list[str] = []

    def note(error: Exception) -> None:
        if not failures:
            failures.append("".join(traceback.format_exception(error)))

    content = answer(
        trial, PastedFile.read(body, truncated=trial.truncated), problem, note, seconds=TEST_SECONDS, room=TEST_ROOM
    )
    if gzipped:
        content = gzip.compress(content, _LEVEL, mtime=0)
    return json.dumps("".join(failures)).encode() + b"\n" + content


def _failed(question: Question, problem: bytes) -> bytes:
    target, agent, dialect = question[:3]
    row = {"url": target.url, "agent": agent.token, "dialect": dialect.name, "problem": msgspec.Raw(problem)}
    return msgspec.json.encode(row)


def _row(result: TrialResult, encoder: AnswerEncoder, *, explained: bool) -> bytes:
    """The JSON of a row: members of the answer of `GET /v1/allowed`, and what a simulated outcome adds."""
    decision = result.decision
    if explained:
        row = answer_out(decision, explained=True).model_dump_json(include=_EXPLAINED).encode()
    else:
        row = encoder.encode(decision, _PLAIN)[:-1] + b',"group":%b}' % _group(decision)
    if not result.timeline:
        return row
    facts = robots_out(decision.question.target.origin, decision.cached)
    simulated = SimulatedOut(robots=facts, timeline=[_turn(after, turn) for after, turn in result.timeline])
    return row[:-1] + b"," + simulated.model_dump_json().encode()[1:]


def _group(decision: Decision) -> bytes:
    """The JSON of a row's group: not its user-agent lines, of which a file may have thousands."""
    verdict = decision.verdict
    if verdict.group is None or verdict.selection is None:
        return b"null"
    return msgspec.json.encode({"token": verdict.selection.token, "line": verdict.group.line})


def _turn(after: int, decision: Decision) -> TimelineEntryOut:
    freshness, verdict = decision.cached.freshness, decision.verdict
    return TimelineEntryOut(
        after=after,
        at=instant(decision.now),
        verdict=verdict.permission,
        reason=verdict.reason,
        stale=freshness is not None and freshness.stale,
    )
