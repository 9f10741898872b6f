"""Apply the operators' overrides to a decision; pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from app.decisions.evaluate import Decision
from app.overrides.table import ActionName, Matching, Override
from robots_core.robots.access import Blocked, Successful
from robots_core.robots.robots_txt import ROBOTS_PATH, RobotsTxt
from robots_core.robots.verdict import Permission, Reason, Verdict

Parse = Callable[[Successful], RobotsTxt]
"""Parses the robots.txt of an override."""

_PERMISSIONS: Final[Mapping[ActionName, Permission]] = {"allow": Permission.ALLOW, "deny": Permission.DISALLOW}


def apply(decision: Decision, matching: Matching, parse: Parse) -> Decision:
    """The decision with `matching` applied; its `overrides.deciding` is None if no override decided the verdict."""
    decided = decide_by(decision, matching.deciding, parse)
    override = matching.deciding if decided.verdict.reason is Reason.OVERRIDDEN else None
    matching = replace(matching, deciding=override)
    if decided is decision and matching.delaying is None:
        return decision._replace(overrides=matching)
    retry_at = decision.retry_at if decided.verdict.permission is Permission.DEFER else None
    return decided._replace(retry_at=retry_at, revision=None, overrides=matching)


def decide_by(decision: Decision, override: Override | None, parse: Parse) -> Decision:
    """The decision with the verdict of one override, or the same object if the override does not apply to it.

    A blocked address stays blocked: nothing is fetched from it, whatever operators decide about its pages. /robots.txt
    stays allowed, even before the file has been fetched (RFC 9309 2.2.2).
    """
    question, verdict, snapshot = decision.question, decision.verdict, decision.cached.snapshot
    if override is None or (snapshot is not None and isinstance(snapshot.access, Blocked)):
        return decision
    if question.target.path == ROBOTS_PATH:
        return decision._replace(verdict=Verdict(Permission.ALLOW, Reason.IMPLICIT))
    if override.robots is not None:
        robots = parse(override.robots)
        verdict = robots.judge(question.dialect, question.agent, question.target.path)
        return decision._replace(verdict=verdict._replace(reason=Reason.OVERRIDDEN), robots=robots)
    permission = _PERMISSIONS.get(override.action)
    if permission is None:  # a delay or a budget decides no verdict
        return decision
    return decision._replace(verdict=Verdict(permission, Reason.OVERRIDDEN, None, verdict.selection))
