"""How decisions become the JSON that `shapes` describes."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, assert_never

from app.api.shapes import (
    AnswerOut,
    ExplanationOut,
    ExtensionOut,
    FileGroupOut,
    FileOut,
    GroupOut,
    MatchOut,
    RateOut,
    RobotsOut,
    RuleOut,
    RuleText,
    SpanOut,
    TrialOut,
    TrialRow,
    UsageOut,
    VisitOut,
    WarningOut,
    WindowOut,
)
from app.cache.robots_cache import Held
from app.decide import Answer, HeldFile
from app.origin import Origin, Target
from app.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable
from app.robots.advice import advise
from app.robots.agents import Agent
from app.robots.dialect import Decision, Dialect, RobotsTxt, Verdict
from app.robots.document import Document, Group
from app.robots.explain import explain
from app.robots.matcher import Entry
from app.robots.rates import Rate, schedule, visit_at
from app.robots.rfc9309 import RFC9309
from app.robots.syntax import Directive, line_texts, readable
from app.robots.terms import Terms

EXPLAINED_RULES = 100
"""So many of the rules that matched are shown; `matched` counts them all."""


class Case(NamedTuple):
    """One decision: who asked about what, and what came of it."""

    target: Target
    agent: Agent
    dialect: Dialect
    verdict: Verdict


def answer_out(answer: Answer, *, explained: bool) -> AnswerOut:
    """The answer to `GET /v1/allowed`."""
    question = answer.question
    case = Case(question.target, question.agent, question.dialect, answer.verdict)
    row = _row(case, answer.robots, answer.at, explained=explained)
    return AnswerOut(
        **row,
        rule=_rule(answer.verdict),
        sitemaps=list(answer.robots.document.sitemaps) if answer.robots else [],
        robots=robots_out(question.target.origin, answer.held),
        retry_at=None if answer.retry_at is None else instant(answer.retry_at),
    )


def trial_out(robots: RobotsTxt, cases: Sequence[Case], at: datetime, *, explained: bool) -> TrialOut:
    """The answer to `POST /v1/test`: a row per case, and what is true of the whole file."""
    lines = {case.verdict.rule.directive[0] for case in cases if case.verdict.rule}
    texts = line_texts(robots.document.body, lines) if lines else {}
    rows = []
    for case in cases:
        rule = _rule(case.verdict)
        text = None if rule is None else RuleText(**dict(rule), text=texts[rule.line])
        rows.append(TrialRow(**_row(case, robots, at, explained=explained), rule=text))
    return TrialOut(
        rows=rows,
        sitemaps=list(robots.document.sitemaps),
        extensions=_extensions(robots.document.extensions),
        warnings=_warnings(robots.document),
    )


def file_out(origin: Origin, file: HeldFile) -> FileOut:
    """The answer to `GET /v1/robots`."""
    facts = robots_out(origin, file.held)
    if file.robots is None:
        return FileOut(robots=facts, text=None, groups=[], sitemaps=[], extensions=[], warnings=[])
    document = file.robots.document
    snapshot = file.held.snapshot
    content_type = None
    if snapshot is not None and isinstance(snapshot.access, Successful):
        content_type = snapshot.access.content_type
    return FileOut(
        robots=facts,
        text=document.body.decode("utf-8", "replace"),
        groups=[_file_group(group) for group in document.groups(RFC9309.grammar).groups],
        sitemaps=list(document.sitemaps),
        extensions=_extensions(document.extensions),
        warnings=_warnings(document, content_type),
    )


def _file_group(group: Group) -> FileGroupOut:
    return FileGroupOut(
        agents=[readable(name) for name in group.agents],
        line=group.line,
        rules=[_directive_out(rule) for rule in group.rules],
        members=_extensions((line, key, value) for line, key, value, _ in group.members),
    )


def _extensions(directives: Iterable[Directive]) -> list[ExtensionOut]:
    return [ExtensionOut(key=key, value=readable(value), line=line) for line, key, value in directives]


def _warnings(document: Document, content_type: str | None = None) -> list[WarningOut]:
    return [WarningOut(code=it.code, line=it.line, message=it.message) for it in advise(document, content_type)]


def _row(case: Case, robots: RobotsTxt | None, at: datetime, *, explained: bool) -> dict[str, Any]:
    target, agent, dialect, verdict = case
    terms = None
    if robots is not None and verdict.selection is not None:
        terms = robots.reading(dialect).terms(verdict.selection, agent)
    now = terms.rates.at(at) if terms else None
    return {
        "url": target.url,
        "agent": agent.token,
        "dialect": dialect.name,
        "verdict": verdict.decision,
        "allowed": verdict.decision is Decision.ALLOW,
        "reason": verdict.reason,
        "group": _group(verdict),
        "rate": _rate_out(now.value, now.valid_until) if now else None,
        "crawl_delay": terms.crawl_delay.seconds if terms and terms.crawl_delay else None,
        "visit": _visit(terms, at) if terms else None,
        "usage": _usage(terms, case) if terms else None,
        "explanation": _explanation(case, robots, terms) if explained and robots is not None else None,
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
    return rfc3339(datetime.fromtimestamp(int(seconds), UTC))


def rfc3339(at: datetime) -> str:
    """An aware instant as RFC 3339, whole seconds, UTC."""
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
    return None if verdict.rule is None else _rule_out(verdict.rule)


def _rule_out(rule: Entry) -> RuleOut:
    return _directive_out(rule.directive)


def _directive_out(rule: Directive) -> RuleOut:
    line, key, value = rule
    return RuleOut(directive=str(key), pattern=readable(value), line=line)


def _group(verdict: Verdict) -> GroupOut | None:
    group = verdict.group
    if group is None or verdict.selection is None:
        return None
    return GroupOut(token=verdict.selection.token, agents=[readable(name) for name in group.agents], line=group.line)


def _usage(terms: Terms, case: Case) -> UsageOut | None:
    if terms.usage is None:
        return None
    usage = terms.usage.at(case.target.path, allowed=case.verdict.decision is Decision.ALLOW)
    if usage is None:
        return None
    return UsageOut(content_usage=dict(usage.content_usage), content_signal=dict(usage.content_signal))


def _explanation(case: Case, robots: RobotsTxt, terms: Terms | None) -> ExplanationOut:
    told = explain(robots, case.dialect, case.agent, case.target.path)
    rules = [MatchOut(**dict(_rule_out(entry)), length=entry.length) for entry in told.rules[:EXPLAINED_RULES]]
    spans = schedule(terms.rates) if terms else []
    return ExplanationOut(
        path=told.path,
        tokens=list(told.tokens),
        group=told.group,
        matched=len(told.rules),
        rules=rules,
        schedule=[SpanOut(start=span.start, end=span.end, rate=_rate_out(span.rate, None)) for span in spans],
    )


def _rate_out(rate: Rate | None, valid_until: datetime | None) -> RateOut | None:
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
        valid_until=rfc3339(valid_until) if valid_until else None,
    )


def _visit(terms: Terms, at: datetime) -> VisitOut | None:
    if terms.visits is None:
        return None
    visit = visit_at(terms.visits, at)
    return VisitOut(
        now=visit.visit_now,
        next_open=rfc3339(visit.next_open) if visit.next_open else None,
        valid_until=rfc3339(visit.valid_until) if visit.valid_until else None,
    )
