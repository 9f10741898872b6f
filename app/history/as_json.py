"""What changed from one robots.txt to another, as JSON: from bytes to bytes, as a helper process needs it."""

import json
from typing import Any

from app.history.diff import AgentsChange, PathChange, changes, side_of
from app.robots.access import Access
from app.robots.dialects import DIALECTS
from app.robots.lines import Directive, readable
from app.robots.rates import Rate, Span, Window
from app.robots.verdict import Verdict


def changes_json(before: Access, after: Access, dialect: str, *, forbidden: bool) -> bytes:
    """The changes as an object with the members of DiffOut from `agents` on; the arguments are those of `changes`."""
    found = changes(side_of(before), side_of(after), DIALECTS[dialect], forbidden=forbidden)
    members = {
        "agents": list(map(_agents, found.agents)),
        "sitemaps_added": found.sitemaps_added,
        "sitemaps_removed": found.sitemaps_removed,
        "truncated": found.truncated,
    }
    return json.dumps(members, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _agents(change: AgentsChange) -> dict[str, Any]:
    rates = change.rates
    return {
        "agents": change.agents,
        "added": list(map(_rule, change.added)),
        "removed": list(map(_rule, change.removed)),
        "paths": list(map(_path, change.paths)),
        "rates": rates and {"before": list(map(_span, rates.before)), "after": list(map(_span, rates.after))},
    }


def _path(change: PathChange) -> dict[str, Any]:
    path, before, after = change
    return {"path": path, "gained": change.gained, "before": _verdict(before), "after": _verdict(after)}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    rule = verdict.rule and _rule(verdict.rule.directive)
    return {"verdict": verdict.permission, "reason": verdict.reason, "rule": rule}


def _rule(rule: Directive) -> dict[str, Any]:
    line, key, value = rule
    return {"directive": str(key), "pattern": readable(value), "line": line}


def _span(span: Span) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "rate": span.rate and _rate(span.rate)}


def _rate(rate: Rate) -> dict[str, Any]:
    return {
        "interval": rate.interval,
        "documents": rate.documents,
        "seconds": rate.seconds,
        "declared_interval": rate.declared_interval,
        "source": rate.source,
        "line": rate.line or None,
        "inherited": rate.inherited,
        "window": rate.window and _window(rate.window),
        "valid_until": None,
    }


def _window(window: Window) -> dict[str, str]:
    return {"start": window.start_text, "end": window.end_text}
