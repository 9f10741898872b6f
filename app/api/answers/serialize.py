"""Turn decisions into the models of `schema`; nothing is computed here."""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from app.api.answers.schema import (
    AnswerOut,
    EdgeOut,
    ExplanationOut,
    GroupOut,
    MatchOut,
    NextRateOut,
    NoteOut,
    OverrideOut,
    PriceOut,
    PurposeOut,
    RateOut,
    RobotsOut,
    RuleOut,
    RuleTextOut,
    SpanOut,
    SummaryOut,
    UsageLinesOut,
    UsageOut,
    VisitOut,
)
from app.api.answers.summary import summary
from app.cache.result import CacheResult
from app.decisions.evaluate import Decision
from app.edge.facts import EdgeFact
from app.overrides.table import Matching
from robots_core.notes import Note, agent_notes
from robots_core.origin import Origin
from robots_core.purposes.judge import Judgements
from robots_core.purposes.policy import Purpose
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable
from robots_core.robots.as_json import fitting, group_members, json_size, rate_members, rule_members, span_members
from robots_core.robots.explain import explain
from robots_core.robots.lines import Directive
from robots_core.robots.patterns import NormalisedRule
from robots_core.robots.rates import InForce, Rate, RateChange, Visit, schedule
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.usage import Preference, Usage
from robots_core.robots.verdict import Verdict
from robots_core.times import instant, rfc3339

EXPLAINED_RULES = 100
"""Matching rules that an explanation lists; `matched` counts all of them."""

RULE_SHOWN = 500
"""Characters of the pattern and the line of a rule in an answer, of 16,000 that a line may have."""

USAGE_ROOM, LICENSES_ROOM, SITEMAPS_ROOM, EXPLAINED_ROOM = 2048, 4096, 32 * 1024, 64 * 1024
"""Bytes of JSON in one answer for each kind of usage, licences, sitemaps, and explained rules.

The rest is counted. Without these limits, a file could make every answer about its origin 3 MB long.
"""


def answer_out(decision: Decision, *, explained: bool) -> AnswerOut:
    """The answer to `GET /v1/allowed`."""
    question, verdict, robots = decision.question, decision.verdict, decision.robots
    rate, visit, usage, overrides = decision.rate, decision.visit, decision.usage, decision.overrides
    sitemaps = robots.sitemaps if robots else ()
    shown = fitting(sitemaps, SITEMAPS_ROOM)
    return AnswerOut(
        url=question.target.url,
        agent=question.agent.token,
        dialect=question.dialect.name,
        verdict=verdict.permission,
        allowed=decision.allowed,
        reason=verdict.reason,
        partial=decision.partial,
        explanation=_explanation(decision, detailed=explained),
        rule=rule_out(verdict, robots),
        group=_group(verdict),
        rate=_rate(rate) if rate else None,
        next_rate=_next_rate(decision.next_rate),
        crawl_delay=decision.crawl_delay,
        visit=_visit(visit) if visit else None,
        usage=_usage(usage) if usage else None,
        retry_at=None if decision.retry_at is None else instant(decision.retry_at),
        override=None if overrides is None else _override(overrides, shadows=explained),
        sitemaps=shown,
        more_sitemaps=len(sitemaps) - len(shown),
        licenses=fitting(robots.licenses, LICENSES_ROOM) if robots else [],
        notes=notes_out(agent_notes(question.agent, question.dialect)),
        version=decision.version,
        robots=robots_out(question.target.origin, decision.cached),
        purposes=None if decision.purposes is None else purposes_out(decision.purposes),
        edge=None if decision.edge is None else edge_out(decision.edge),
    )


def notes_out(notes: Iterable[Note]) -> list[NoteOut] | None:
    """The notes, None if there are none."""
    return [NoteOut(code=code, message=message) for code, message in notes] or None


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
        detail=failing.failure.detail if failing else None,
        fetched_at=instant(snapshot.fetched_at),
        recheck_at=instant(freshness.recheck_at) if freshness else None,
        age=int(freshness.age) if freshness else None,
        stale=freshness is not None and freshness.stale,
        failing_since=instant(failing.since) if failing else None,
        truncated=isinstance(snapshot.access, Successful) and snapshot.access.truncated,
        source=cached.source,
    )


def facts_of(access: Access) -> tuple[str, int | None, Cause | None]:
    """The outcome of a fetch, by its name in answers; its status; and its cause."""
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


def refusal_out(decision: Decision) -> dict[str, object]:
    """The members of a problem that say why a page may not be fetched now; those without a value are left out."""
    verdict, overrides = decision.verdict, decision.overrides
    override = None if overrides is None or overrides.deciding is None else _override(overrides, shadows=False)
    rule = rule_out(verdict, decision.robots)
    members = {
        "verdict": verdict.permission,
        "reason": verdict.reason,
        "agent": decision.question.agent.token,
        "rule": None if rule is None else rule.model_dump(),
        "override": None if override is None else override.model_dump(),
        "retry_at": None if decision.retry_at is None else instant(decision.retry_at),
        "version": decision.version,
    }
    return {name: value for name, value in members.items() if value is not None}


def rule_out(verdict: Verdict, robots: RobotsTxt | None) -> RuleTextOut | None:
    """The rule that decided, if one did; `robots` is the file that has it."""
    if verdict.rule is None or robots is None:
        return None
    rule = verdict.rule.directive
    return RuleTextOut(**_brief(rule), text=_shortened(robots.line_text(rule.line) or ""))


def _brief(rule: Directive) -> dict[str, Any]:
    """The members of RuleOut, with the beginning of the pattern."""
    members = rule_members(rule)
    return {**members, "pattern": _shortened(members["pattern"])}


def _shortened(text: str) -> str:
    return text if len(text) <= RULE_SHOWN else text[:RULE_SHOWN] + "…"


def _group(verdict: Verdict) -> GroupOut | None:
    if verdict.group is None or verdict.selection is None:
        return None
    return GroupOut(**group_members(verdict.selection.token, verdict.group))


def _usage(usage: Usage) -> UsageOut:
    usages, signals = (_fitting_members(stated, USAGE_ROOM) for stated in (usage.content_usage, usage.content_signal))
    return UsageOut(
        content_usage={name: stated.value for name, stated in usages.items()},
        content_signal={name: stated.value for name, stated in signals.items()},
        more=len(usage.content_usage) + len(usage.content_signal) - len(usages) - len(signals),
        ai_training=None if usage.ai_training is None else RuleOut(**_brief(usage.ai_training)),
        lines=UsageLinesOut(
            content_usage={name: stated.line for name, stated in usages.items()},
            content_signal={name: stated.line for name, stated in signals.items()},
        ),
    )


def purposes_out(judgements: Judgements) -> dict[Purpose, PurposeOut]:
    """Whether each purpose is permitted."""
    return {purpose: PurposeOut(**judged._asdict()) for purpose, judged in judgements.by_purpose.items()}


def edge_out(fact: EdgeFact) -> EdgeOut:
    """What callers reported of an origin's pages."""
    price = fact.price
    return EdgeOut(
        state=fact.state,
        status=fact.status,
        since=instant(fact.since),
        reported_at=instant(fact.reported_at),
        count=fact.count,
        price=None
        if price is None
        else PriceOut(text=price.text, reported_at=instant(price.reported_at), url=price.page),
    )


def _fitting_members(stated: Mapping[str, Preference], room: int) -> dict[str, Preference]:
    """The first members of an object of values, and of one of lines, that take at most `room` bytes as JSON."""
    fitting: dict[str, Preference] = {}
    for name, preference in stated.items():
        value, line = preference
        room -= 2 * json_size(name) + json_size(value) + len(str(line))
        if room < 0:
            break
        fitting[name] = preference
    return fitting


def _explanation(decision: Decision, *, detailed: bool) -> SummaryOut | ExplanationOut:
    question, robots, selection = decision.question, decision.robots, decision.verdict.selection
    sentence = summary(decision)
    if robots is None or not detailed:
        return SummaryOut(summary=sentence)
    found = explain(
        robots, question.dialect, question.agent, question.target.path, limit=EXPLAINED_RULES, selection=selection
    )
    return ExplanationOut(
        summary=sentence,
        path=found.path,
        tokens=list(found.tokens),
        group=found.group,
        matched=found.matched,
        rules=_matching(found.rules),
        schedule=[SpanOut(**span_members(it)) for it in schedule(decision.terms.rates)] if decision.terms else [],
    )


def _matching(rules: Iterable[NormalisedRule]) -> list[MatchOut]:
    """The rules that an explanation lists: those that fit, and always the one that decided."""
    matching = [MatchOut(**_brief(rule.directive), length=rule.length) for rule in rules]
    return matching[: max(1, len(fitting((rule.pattern for rule in matching), EXPLAINED_ROOM)))]


def _rate(found: InForce[Rate | None]) -> RateOut | None:
    if found.value is None:
        return None
    valid_until = None if found.valid_until is None else rfc3339(found.valid_until)
    return RateOut(**{**rate_members(found.value), "valid_until": valid_until})


def _next_rate(change: RateChange | None) -> NextRateOut | None:
    if change is None:
        return None
    return NextRateOut(at=rfc3339(change.at), interval=None if change.rate is None else change.rate.interval)


def _override(found: Matching, *, shadows: bool) -> OverrideOut | None:
    shadow = found.shadow_deciding or found.shadow_delaying if shadows else None
    override = found.deciding or found.delaying or shadow
    if override is None:
        return None
    return OverrideOut(
        id=override.id,
        action=override.action,
        scope=override.scope_text,
        reason=override.reason,
        expires_at=None if override.expires_at is None else instant(override.expires_at),
        shadow=override.shadow,
        source=override.source,
    )


def _visit(visit: Visit) -> VisitOut:
    return VisitOut(
        now=visit.visit_now,
        next_open=rfc3339(visit.next_open) if visit.next_open else None,
        valid_until=rfc3339(visit.valid_until) if visit.valid_until else None,
    )
