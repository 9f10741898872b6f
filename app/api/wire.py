"""The JSON shapes of the answers, and how an Answer becomes one. Times are RFC 3339 in UTC, delays are seconds."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, assert_never

from pydantic import BaseModel, Field

from app.cache.robots_cache import Held, Source
from app.decide import Answer
from app.origin import Origin, Target
from app.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable
from app.robots.advice import advise
from app.robots.agents import Agent
from app.robots.dialect import Decision, Dialect, Reason, RobotsTxt, Verdict
from app.robots.rates import InForce, Rate, visit_at
from app.robots.syntax import line_texts, readable
from app.robots.terms import Terms


class RuleOut(BaseModel):
    """The rule that decided: its pattern as written, and the 1-based line of the file it stands in."""

    directive: str
    pattern: str
    line: int


class RuleText(RuleOut):
    text: str = Field(description="The line as written, without outer blanks and comment.")


class GroupOut(BaseModel):
    """The group that was asked: `token` is what it was found by, `agents` are its user-agent lines as written."""

    token: str
    agents: list[str]
    line: int


class WindowOut(BaseModel):
    """Every UTC day from `start`, inclusive, to `end`, exclusive, as HH:MM."""

    start: str
    end: str


class RateOut(BaseModel):
    """How fast this agent may fetch from this origin now: one document every `interval` seconds.

    `documents` per `seconds` are what the line declares; `declared_interval` is what they make before the dialect's
    clamp. The rate holds until `valid_until`, or for as long as the file does where that is null.
    """

    interval: float
    documents: int
    seconds: float
    declared_interval: float
    source: str
    line: int
    window: WindowOut | None
    valid_until: str | None


class VisitOut(BaseModel):
    """Visit-time: whether visits are welcome now. It never changes the verdict."""

    now: bool
    next_open: str | None
    valid_until: str | None


class RobotsOut(BaseModel):
    """Facts of the fetch that the answer rests on; null where nothing has been fetched yet."""

    url: str
    final_url: str | None = None
    outcome: str | None = Field(None, description="successful, unavailable, unreachable, challenge or blocked")
    status: int | None = None
    cause: str | None = Field(None, description="What failed last, where something did.")
    fetched_at: str | None = None
    recheck_at: str | None = None
    age: int | None = None
    stale: bool = False
    failing_since: str | None = None
    truncated: bool = False
    source: Source = Source.NONE


class RowOut(BaseModel):
    """One decision. `allowed` is true only for the verdict `allow`."""

    url: str
    agent: str
    dialect: str
    verdict: Decision
    allowed: bool
    reason: Reason
    rule: RuleOut | None = None
    group: GroupOut | None = None
    rate: RateOut | None = None
    crawl_delay: float | None = None
    visit: VisitOut | None = None
    usage: None = None
    retry_at: str | None = Field(None, description="When to ask again; set where the verdict is defer.")


class AnswerOut(RowOut):
    sitemaps: list[str] = []
    robots: RobotsOut


class TrialRow(RowOut):
    rule: RuleText | None = None


class WarningOut(BaseModel):
    code: str
    line: int
    message: str


class TrialOut(BaseModel):
    rows: list[TrialRow]
    sitemaps: list[str]
    warnings: list[WarningOut]


class ProblemOut(BaseModel):
    """An error as RFC 9457 writes it; `parameter` and `value` name what could not be read."""

    type: str
    title: str
    status: int
    detail: str
    parameter: str | None = None
    value: str | float | bool | None = None


def answer_out(answer: Answer) -> AnswerOut:
    """The answer to `GET /v1/allowed`."""
    question = answer.question
    row = _row(question.target.url, question.agent, question.dialect, answer.verdict, answer.robots, answer.at)
    return AnswerOut(
        **row,
        rule=_rule(answer.verdict),
        sitemaps=list(answer.robots.document.sitemaps) if answer.robots else [],
        robots=robots_out(question.target.origin, answer.held),
        retry_at=None if answer.retry_at is None else instant(answer.retry_at),
    )


def trial_out(robots: RobotsTxt, cases: Sequence[tuple[Target, Agent, Dialect, Verdict]], at: datetime) -> TrialOut:
    """The answer to `POST /v1/test`: a row per case, and what is true of the whole file."""
    lines = {verdict.rule.directive[0] for *_, verdict in cases if verdict.rule}
    texts = line_texts(robots.document.body, lines) if lines else {}
    rows = []
    for target, agent, dialect, verdict in cases:
        rule = _rule(verdict)
        text = None if rule is None else RuleText(**dict(rule), text=texts[rule.line])
        rows.append(TrialRow(**_row(target.url, agent, dialect, verdict, robots, at), rule=text))
    warnings = [WarningOut(code=it.code, line=it.line, message=it.message) for it in advise(robots.document)]
    return TrialOut(rows=rows, sitemaps=list(robots.document.sitemaps), warnings=warnings)


def _row(
    url: str, agent: Agent, dialect: Dialect, verdict: Verdict, robots: RobotsTxt | None, at: datetime
) -> dict[str, Any]:
    terms = None
    if robots is not None and verdict.selection is not None:
        terms = robots.reading(dialect).terms(verdict.selection, agent)
    return {
        "url": url,
        "agent": agent.token,
        "dialect": dialect.name,
        "verdict": verdict.decision,
        "allowed": verdict.decision is Decision.ALLOW,
        "reason": verdict.reason,
        "group": _group(verdict),
        "rate": _rate(terms.rates.at(at)) if terms else None,
        "crawl_delay": terms.crawl_delay.seconds if terms and terms.crawl_delay else None,
        "visit": _visit(terms, at) if terms else None,
    }


def robots_out(origin: Origin, held: Held) -> RobotsOut:
    """The facts of what is held for `origin`."""
    snapshot, freshness = held.snapshot, held.freshness
    if snapshot is None or freshness is None:
        return RobotsOut(url=origin.robots_url, source=held.source)
    failing = snapshot.failing
    outcome, status, cause = _facts(snapshot.access)
    return RobotsOut(
        url=origin.robots_url,
        final_url=snapshot.final_url,
        outcome=outcome,
        status=status,
        cause=failing.failure.cause if failing else cause,
        fetched_at=instant(snapshot.fetched_at),
        recheck_at=instant(freshness.recheck_at),
        age=int(freshness.age),
        stale=freshness.stale,
        failing_since=instant(failing.since) if failing else None,
        truncated=isinstance(snapshot.access, Successful) and snapshot.access.truncated,
        source=held.source,
    )


def instant(seconds: float) -> str:
    """Unix seconds as RFC 3339, whole seconds, UTC."""
    return _rfc3339(datetime.fromtimestamp(int(seconds), UTC))


def _rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _facts(access: Access) -> tuple[str, int | None, Cause | None]:
    match access:
        case Successful():
            return "successful", access.status, None
        case Unavailable():
            return "unavailable", access.status, access.cause
        case Unreachable(cause=Cause.CHALLENGE):
            return "challenge", access.status, access.cause
        case Unreachable():
            return "unreachable", access.status, access.cause
        case Blocked():
            return "blocked", None, None
        case _:
            assert_never(access)


def _rule(verdict: Verdict) -> RuleOut | None:
    if verdict.rule is None:
        return None
    line, key, value = verdict.rule.directive
    return RuleOut(directive=str(key), pattern=readable(value), line=line)


def _group(verdict: Verdict) -> GroupOut | None:
    group = verdict.group
    if group is None or verdict.selection is None:
        return None
    return GroupOut(token=verdict.selection.token, agents=[readable(name) for name in group.agents], line=group.line)


def _rate(now: InForce[Rate | None]) -> RateOut | None:
    rate = now.value
    if rate is None:
        return None
    window = None
    if rate.window is not None:
        window = WindowOut(start=rate.window.start_text, end=rate.window.end_text)
    return RateOut(
        interval=rate.interval,
        documents=rate.documents,
        seconds=rate.seconds,
        declared_interval=rate.declared_interval,
        source=rate.source,
        line=rate.line,
        window=window,
        valid_until=_rfc3339(now.valid_until) if now.valid_until else None,
    )


def _visit(terms: Terms, at: datetime) -> VisitOut | None:
    if terms.visits is None:
        return None
    visit = visit_at(terms.visits, at)
    return VisitOut(
        now=visit.visit_now,
        next_open=_rfc3339(visit.next_open) if visit.next_open else None,
        valid_until=_rfc3339(visit.valid_until) if visit.valid_until else None,
    )
