"""What changed from one robots.txt to another, as JSON: from bytes to bytes, as a helper process needs it."""

from typing import Any

from robots_core.diff.comparison import AgentsChange, PathChange, changes
from robots_core.file import File
from robots_core.robots.access import Access
from robots_core.robots.as_json import dumped, rule_members, span_members
from robots_core.robots.verdict import Verdict


def changes_json(before: Access, after: Access, dialect: str, *, forbidden: bool) -> bytes:
    """The changes as an object with the members of DiffOut from `agents` on; the arguments are those of `changes`."""
    found = changes(File(before), File(after), dialect, forbidden=forbidden)
    members = {
        "agents": list(map(_agents, found.agents)),
        "sitemaps_added": found.sitemaps_added,
        "sitemaps_removed": found.sitemaps_removed,
        "truncated": found.truncated,
    }
    return dumped(members)


def _agents(change: AgentsChange) -> dict[str, Any]:
    rates = change.rates
    return {
        "agents": change.agents,
        "added": list(map(rule_members, change.added)),
        "removed": list(map(rule_members, change.removed)),
        "paths": list(map(_path, change.paths)),
        "rates": rates
        and {"before": list(map(span_members, rates.before)), "after": list(map(span_members, rates.after))},
    }


def _path(change: PathChange) -> dict[str, Any]:
    path, before, after = change
    return {"path": path, "gained": change.gained, "before": _verdict(before), "after": _verdict(after)}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    rule = verdict.rule and rule_members(verdict.rule.directive)
    return {"verdict": verdict.permission, "reason": verdict.reason, "rule": rule}
