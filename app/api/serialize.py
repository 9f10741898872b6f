"""Turn decisions into the models of `schemas`; nothing is worked out here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from json.encoder import encode_basestring as quoted
from typing import assert_never

from app.api.schemas.answers import (
    AnswerOut,
    ExplanationOut,
    ExtensionOut,
    GroupOut,
    MatchOut,
    OverrideOut,
    RateOut,
    RobotsOut,
    RuleOut,
    SpanOut,
    UsageOut,
    VisitOut,
    WarningOut,
    WindowOut,
)
from app.cache.robots_cache import CacheResult
from app.evaluate import Decision
from app.origin import Origin
from app.overrides.table import Matching
from app.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable
from app.robots.explain import Explanation, explain
from app.robots.groups import Group
from app.robots.lines import Directive, readable
from app.robots.lint import lint
from app.robots.patterns import Entry
from app.robots.rates import Rate, Span, Visit, Window, schedule
from app.robots.robots_txt import RobotsTxt
from app.robots.usage import Usage
from app.robots.verdict import Verdict

EXPLAINED_RULES = 100
"""So many of the rules that matched are shown; `matched` counts them all."""

AGENTS_ROOM, USAGE_ROOM, SITEMAPS_ROOM, EXPLAINED_ROOM = 4096, 2048, 32 * 1024, 64 * 1024
"""Bytes of JSON that a group's agents, either kind of usage, sitemaps, and explained rules take in one answer.

What is left out is counted. A file could otherwise make every answer about its origin as large as 3 MB.
"""


def answer_out(decision: Decision, *, explained: bool) -> AnswerOut:
    """The answer to `GET /v1/allowed`."""
    question, verdict, robots = decision.question, decision.verdict, decision.robots
    rate, visit, usage, overrides = decision.rate, decision.visit, decision.usage, decision.overrides
    sitemaps = robots.sitemaps if robots else ()
    shown = _fitting(sitemaps, SITEMAPS_ROOM)
    return AnswerOut(
        url=question.target.url,
        agent=question.agent.token,
        dialect=question.dialect.name,
        verdict=verdict.permission,
        allowed=decision.allowed,
        reason=verdict.reason,
        rule=rule_out(verdict),
        group=_group(verdict),
        rate=rate_out(rate.value, rate.valid_until) if rate else None,
        crawl_delay=decision.crawl_delay,
        visit=visit_out(visit) if visit else None,
        usage=usage_out(usage) if usage else None,
        retry_at=None if decision.retry_at is None else instant(decision.retry_at),
        explanation=_explanation(decision, robots) if explained and robots is not None else None,
        override=None if overrides is None else _override(overrides, shadows=explained),
        sitemaps=shown,
        more_sitemaps=len(sitemaps) - len(shown),
        robots=robots_out(question.target.origin, decision.cached),
    )


def extensions_out(directives: Iterable[Directive]) -> Iterator[ExtensionOut]:
    """Lines that decide nothing, as they stand in the file."""
    return (ExtensionOut(key=key, value=readable(value), line=line) for line, key, value in directives)


def warnings_out(robots: RobotsTxt, content_type: str | None = None) -> list[WarningOut]:
    """What its owner could do better; `content_type` is that of the response it came by, where one is known."""
    return [WarningOut(code=it.code, line=it.line, message=it.message) for it in lint(robots, content_type)]


def robots_out(origin: Origin, cached: CacheResult) -> RobotsOut:
    """The facts of the cached fetch for `origin`."""
    snapshot, freshness = cached.snapshot, cached.freshness
    if snapshot is None:
        return RobotsOut(url=origin.robots_url, source=cached.source)
    failing = snapshot.failing
    outcome, status, cause = facts_of(snapshot.access)
    return RobotsOut(
        url=origin.robots_url,
        final_url=snapshot.final_url,
        outcome=outcome,
        status=status,
        cause=failing.failure.cause if failing else cause,
        fetched_at=instant(snapshot.fetched_at),
        recheck_at=instant(freshness.recheck_at) if freshness else None,
        age=int(freshness.age) if freshness else None,
        stale=freshness is not None and freshness.stale,
        failing_since=instant(failing.since) if failing else None,
        truncated=isinstance(snapshot.access, Successful) and snapshot.access.truncated,
        source=cached.source,
    )


def instant(seconds: float) -> str:
    """Unix seconds as RFC 3339, whole seconds, UTC."""
    return rfc3339(datetime.fromtimestamp(int(seconds), UTC))


def rfc3339(at: datetime) -> str:
    """An aware instant as RFC 3339, whole seconds, UTC."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def facts_of(access: Access) -> tuple[str, int | None, Cause | None]:
    """The outcome of a fetch, as answers name it, its status, and what went wrong."""
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
            return "blocked_address", None, None
        case _:
            assert_never(access)


def rule_out(verdict: Verdict) -> RuleOut | None:
    """The rule that decided, where one did."""
    return None if verdict.rule is None else directive_out(verdict.rule.directive)


def directive_out(rule: Directive) -> RuleOut:
    """A rule as it stands in its file."""
    line, key, value = rule
    return RuleOut(directive=str(key), pattern=readable(value), line=line)


def group_out(token: str, group: Group) -> GroupOut:
    """The group, which was found by `token`."""
    agents = group.agents
    shown = _fitting(map(readable, agents), AGENTS_ROOM)
    return GroupOut(token=token, agents=shown, more_agents=len(agents) - len(shown), line=group.line)


def _group(verdict: Verdict) -> GroupOut | None:
    if verdict.group is None or verdict.selection is None:
        return None
    return group_out(verdict.selection.token, verdict.group)


def usage_out(usage: Usage) -> UsageOut:
    """What is stated about the use of a page."""
    usages, signals = (_fitting_members(stated, USAGE_ROOM) for stated in (usage.content_usage, usage.content_signal))
    more = len(usage.content_usage) + len(usage.content_signal) - len(usages) - len(signals)
    training = None if usage.ai_training is None else directive_out(usage.ai_training)
    return UsageOut(content_usage=usages, content_signal=signals, more=more, ai_training=training)


def _fitting(texts: Iterable[str], room: int) -> list[str]:
    """The first of the texts that take so many bytes as JSON."""
    fitting: list[str] = []
    for text in texts:
        room -= _json_size(text)
        if room < 0:
            break
        fitting.append(text)
    return fitting


def _fitting_members(members: Mapping[str, str], room: int) -> dict[str, str]:
    """The same of an object's members."""
    fitting: dict[str, str] = {}
    for name, value in members.items():
        room -= _json_size(name) + _json_size(value)
        if room < 0:
            break
        fitting[name] = value
    return fitting


def _json_size(text: str) -> int:
    """Bytes of the text as a JSON string with a separator; it has no lone surrogates."""
    return len(quoted(text).encode()) + 1


def _explanation(decision: Decision, robots: RobotsTxt) -> ExplanationOut:
    question = decision.question
    selection = decision.verdict.selection
    found = explain(
        robots, question.dialect, question.agent, question.target.path, limit=EXPLAINED_RULES, selection=selection
    )
    return ExplanationOut(
        path=found.path,
        tokens=list(found.tokens),
        group=found.group,
        matched=found.matched,
        rules=[MatchOut(**dict(directive_out(rule.directive)), length=rule.length) for rule in explained_rules(found)],
        schedule=spans_out(schedule(decision.terms.rates)) if decision.terms else [],
    )


def explained_rules(found: Explanation) -> Sequence[Entry]:
    """The rules of the explanation that are shown: those that fit, and the one that decided."""
    patterns = (readable(entry.directive[2]) for entry in found.rules)
    return found.rules[: max(1, len(_fitting(patterns, EXPLAINED_ROOM)))]


def spans_out(spans: Iterable[Span]) -> list[SpanOut]:
    """The rates of a day."""
    return [SpanOut(start=span.start, end=span.end, rate=rate_out(span.rate, None)) for span in spans]


def window_out(window: Window | None) -> WindowOut | None:
    """The stretch of every day, null for the whole of it."""
    return None if window is None else WindowOut(start=window.start_text, end=window.end_text)


def rate_out(rate: Rate | None, valid_until: datetime | None) -> RateOut | None:
    if rate is None:
        return None
    return RateOut(
        interval=rate.interval,
        documents=rate.documents,
        seconds=rate.seconds,
        declared_interval=rate.declared_interval,
        source=rate.source,
        line=rate.line or None,
        window=window_out(rate.window),
        valid_until=rfc3339(valid_until) if valid_until else None,
    )


def _override(found: Matching, *, shadows: bool) -> OverrideOut | None:
    shadow = found.shadow_deciding or found.shadow_delaying if shadows else None
    override = found.deciding or found.delaying or shadow
    if override is None:
        return None
    return OverrideOut(
        id=override.id,
        action=override.action_name,
        scope=override.scope_text,
        reason=override.reason,
        expires_at=None if override.expires_at is None else instant(override.expires_at),
        shadow=override.shadow,
    )


def visit_out(visit: Visit) -> VisitOut:
    """Whether visits are welcome, and when that changes."""
    return VisitOut(
        now=visit.visit_now,
        next_open=rfc3339(visit.next_open) if visit.next_open else None,
        valid_until=rfc3339(visit.valid_until) if visit.valid_until else None,
    )
