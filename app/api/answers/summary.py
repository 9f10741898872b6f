"""The sentence that says why a verdict is what it is, for people who read an answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from app.cache.freshness import Snapshot, is_page
from app.decisions.evaluate import Decision
from app.overrides.table import Override
from robots_core.purposes.judge import Judgements, PurposeState
from robots_core.robots.access import BODY_LIMIT, Cause, Successful, Unavailable, Unreachable
from robots_core.robots.agents import STAR
from robots_core.robots.groups import tokens_of
from robots_core.robots.lines import readable
from robots_core.robots.patterns import NormalisedRule
from robots_core.robots.verdict import Permission, Reason, Verdict
from robots_core.times import instant

SHOWN = 100
"""Characters of a pattern or a name that a sentence quotes."""

COMPANY = 2
"""Crawlers that a sentence names of those that share a group."""

_SAYS = {PurposeState.NO: "refuses", PurposeState.YES: "permits", PurposeState.UNSTATED: "says nothing of"}
_EFFECTS = {Permission.ALLOW: "allows", Permission.DISALLOW: "disallows"}


def summary(decision: Decision) -> str:
    """Why the verdict is what it is, in one sentence of bounded length."""
    verdict, snapshot, retry_at = decision.verdict, decision.cached.snapshot, decision.retry_at
    if verdict.permission is Permission.DEFER:
        again = "" if retry_at is None else f"; ask again at {instant(retry_at)}"
        return _missing(snapshot) + again + "."
    if verdict.reason is Reason.USAGE:
        return _refused(decision.purposes) + _stale(snapshot) + "."
    parts = [_decided(decision), *_not_by_star(decision), *_guessed(decision)]
    if decision.partial:
        parts.append(f"lines behind the first {BODY_LIMIT:,} bytes, which are not read, could say otherwise")
    said = "" if decision.purposes is None or not decision.allowed else f"; the site {_said(decision.purposes)}"
    return "; ".join(parts) + _stale(snapshot) + said + "."


def _decided(decision: Decision) -> str:
    verdict, agent, snapshot = decision.verdict, decision.question.agent, decision.cached.snapshot
    match verdict.reason:
        case Reason.RULE:
            return f"{_line(verdict.rule)} in the group for {_named(decision)} {_EFFECTS[verdict.permission]} this URL"
        case Reason.NO_MATCH:
            return f"No rule in the group for {_named(decision)} matches this URL, so it is allowed"
        case Reason.NO_RULES:
            return _without_rules(decision)
        case Reason.NO_GROUP:
            return f"No group of robots.txt applies to {_shortened(agent.token)}, so this URL is allowed"
        case Reason.TOO_COMPLEX:
            return "Matching this URL against robots.txt takes too long, so it is disallowed"
        case Reason.UNAVAILABLE:
            return f"{_unavailable(snapshot)}, which counts as having no robots.txt, so every URL is allowed"
        case Reason.FORBIDDEN:
            return f"{_unavailable(snapshot)}, so every URL is disallowed"
        case Reason.IMPLICIT:
            return "/robots.txt itself may always be fetched"
        case Reason.BLOCKED_ADDRESS:
            return "The host resolves to an address that is not public and that ALLOW_ADDRESSES does not admit"
        case Reason.OVERRIDDEN:
            return _overridden(verdict, None if decision.overrides is None else decision.overrides.deciding)
        case Reason.UNREACHABLE | Reason.CHALLENGE | Reason.PENDING | Reason.USAGE:
            raise AssertionError(f"{verdict.reason} is the reason of a defer or of a refused purpose")
        case _:
            assert_never(verdict.reason)


def _without_rules(decision: Decision) -> str:
    group, robots = decision.verdict.group, decision.robots
    if group is not None:
        rules = "only empty rules" if group.rule_positions else "no rules"
        return f"The group for {_named(decision)} has {rules}, so this URL is allowed"
    if robots is not None and robots.is_html:
        return "A web page (HTML) came in place of robots.txt; it has no rules, so every URL is allowed"
    return f"robots.txt has no rules for {_shortened(decision.question.agent.token)}, so this URL is allowed"


def _named(decision: Decision) -> str:
    """The token by which the group was selected, and the other crawlers that the group names."""
    verdict, token = decision.verdict, decision.question.dialect.token
    if verdict.selection is None or verdict.group is None:
        return STAR
    own = verdict.selection.token
    others = [it for it in dict.fromkeys(tokens_of(verdict.group.agents, token)) if it not in ("", own)]
    if not others:
        return _shortened(own)
    shared = [*map(_shortened, others[:COMPANY]), *([f"{len(others) - COMPANY} more"] if others[COMPANY:] else [])]
    return f"{_shortened(own)} (shared with {_listed(shared)})"


def _not_by_star(decision: Decision) -> Iterator[str]:
    """That the groups for `*`, which people read first, do not apply, if they say otherwise."""
    star, selection = decision.star, decision.verdict.selection
    if star is not None:
        name = decision.question.agent.token if selection is None else selection.token
        line = "" if star.rule is None else f" (line {star.rule.directive.line})"
        effect = _EFFECTS[star.permission]
        yield f"the group for {STAR}, which {effect} it{line}, does not apply to {_shortened(name)}"


def _guessed(decision: Decision) -> Iterator[str]:
    agent = decision.question.agent
    if agent.unnamed and decision.robots is not None:
        yield f"the User-Agent header names no crawler, so it is read as {_shortened(agent.token)}"


def _said(purposes: Judgements) -> str:
    """What the site says of each purpose."""
    said = []
    for purpose, (state, _, line) in purposes.by_purpose.items():
        where = "" if line is None else f" (line {line})"
        said.append(f"{_SAYS[state]} {purpose}{where}")
    return _listed(said)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _refused(purposes: Judgements | None) -> str:
    refused = [
        f"{purpose} by line {judgement.line} ({judgement.directive})"
        for purpose, judgement in (purposes.by_purpose if purposes else {}).items()
        if judgement.state is PurposeState.NO
    ]
    return f"The site refuses {' and '.join(refused)}, and the caller's policy enforces that"


def _overridden(verdict: Verdict, override: Override | None) -> str:
    effect = _EFFECTS[verdict.permission]
    name = "" if override is None else f" {override.id}"
    if verdict.rule is not None:
        return f"{_line(verdict.rule)} of the text that override{name} puts in place of robots.txt {effect} this URL"
    return f"An operator's override{name} {effect} this URL"


def _line(rule: NormalisedRule | None) -> str:
    if rule is None:
        return "A rule"
    line, key, value = rule.directive
    return f"Line {line} ({str(key).capitalize()}: {_shortened(readable(value))})"


def _unavailable(snapshot: Snapshot | None) -> str:
    access = None if snapshot is None else snapshot.access
    if not isinstance(access, Unavailable):
        return "The origin has no robots.txt"
    match access.cause:
        case Cause.REDIRECT_LOOP:
            return "The redirects of robots.txt form a loop or are more than 5"
        case Cause.COOKIE_LOOP:
            return "The redirects of robots.txt form a loop and set a cookie, which the fetch does not keep"
        case Cause.REFUSED_REDIRECT:
            return "robots.txt redirects to a URL that is neither http nor https"
        case Cause.HTML_PAGE:
            return f"The origin answers {access.status} with an HTML page (perhaps a challenge for people)"
        case _:
            return f"The origin answers {access.status} for robots.txt"


def _stale(snapshot: Snapshot | None) -> str:
    """The addition for a stale copy. It depends only on the snapshot, so it can be cached with it."""
    if snapshot is None or snapshot.failing is None or not isinstance(snapshot.access, Successful):
        return ""
    since, fetched = instant(snapshot.failing.since), instant(snapshot.fetched_at)
    if is_page(snapshot.failing.failure):
        return f"; a web page (HTML) has come in its place since {since}, so the copy of {fetched} is used"
    return f"; fetches have failed since {since}, so the copy of {fetched} is used"


def _missing(snapshot: Snapshot | None) -> str:
    """What failed, when and how often, and that no copy is cached."""
    access = None if snapshot is None else snapshot.access
    if snapshot is None or not isinstance(access, Unreachable):
        return "The first fetch of robots.txt has not finished, and no copy is cached"
    failing = snapshot.failing
    at = instant(snapshot.checked_at)
    when = f" at {at}"
    if failing is not None and failing.attempts > 1:
        when = f" at {at}, the last of {failing.attempts} attempts that failed since {instant(failing.since)}"
    return f"robots.txt could not be fetched: {_failure(access)}{when}; no copy from the last 30 days is cached"


_CAUSE_TEXTS: Mapping[Cause, str] = {
    Cause.SERVER_ERROR: "the server answered {status}",
    Cause.TOO_MANY_REQUESTS: "the server answered {status}",
    Cause.TIMEOUT: "the fetch timed out",
    Cause.DNS: "the host name could not be resolved",
    Cause.TLS: "the TLS handshake failed",
    Cause.CONNECTION: "the connection failed",
    Cause.PROXY: "the proxy opened no tunnel",
    Cause.REDIRECT_LOOP: "its redirects form a loop",
    Cause.COOKIE_LOOP: "its redirects form a loop, and set a cookie",
    Cause.REFUSED_REDIRECT: "its redirect could not or may not be followed",
    Cause.BAD_RESPONSE: "the response could not be read",
    Cause.HTML_PAGE: "the server answered {status} with an HTML page (perhaps a challenge for people)",
    Cause.CHALLENGE: "a challenge page for people came in its place",
}
"""What each cause means, for sites that nothing was learned of."""


def _failure(access: Unreachable) -> str:
    """What failed, with the detail if there is one."""
    return _CAUSE_TEXTS[access.cause].format(status=access.status) + (f" ({access.detail})" if access.detail else "")


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
