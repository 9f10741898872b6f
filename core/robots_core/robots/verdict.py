"""The verdict on one URL: whether it may be fetched, and why."""

from bisect import bisect_left
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from robots_core.robots.groups import Group, Selection
from robots_core.robots.patterns import NormalisedRule


class Permission(StrEnum):
    """Whether the URL may be fetched; `defer` means that this is not known now (RFC 9309 2.3.1.4)."""

    ALLOW = "allow"
    DISALLOW = "disallow"
    DEFER = "defer"


class Reason(StrEnum):
    """What determined the verdict: a rule, the lack of one, the outcome of the fetch, or an operator."""

    RULE = "rule"
    NO_MATCH = "no_match"
    NO_GROUP = "no_group"
    NO_RULES = "no_rules"
    TOO_COMPLEX = "too_complex"
    """Matching would take more than `patterns.STEPS`, which only hostile input does; the path is disallowed."""
    UNAVAILABLE = "unavailable"
    FORBIDDEN = "forbidden"
    UNREACHABLE = "unreachable"
    CHALLENGE = "challenge"
    PENDING = "pending"
    IMPLICIT = "implicit"
    BLOCKED_ADDRESS = "blocked_address"
    OVERRIDDEN = "overridden"
    USAGE = "usage"


class Verdict(NamedTuple):
    """A permission and its reason. `rule` is set if it is RULE; `selection` has the groups that bind the agent."""

    permission: Permission
    reason: Reason
    rule: NormalisedRule | None = None
    selection: Selection | None = None

    @property
    def group(self) -> Group | None:
        """The group of the rule that decided, else the first group that binds the agent."""
        if self.selection is None:
            return None
        groups = self.selection.groups
        if self.rule is None:
            return groups[0]
        return groups[max(0, bisect_left(groups, self.rule.directive.line, key=attrgetter("line")) - 1)]
