"""The answer about one URL: whether it may be fetched, and what decided."""

from bisect import bisect_left
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from app.robots.groups import Group, Selection
from app.robots.patterns import Entry


class Permission(StrEnum):
    """Whether the page may be fetched; DEFER says that this is not known now (RFC 9309 2.3.1.4)."""

    ALLOW = "allow"
    DISALLOW = "disallow"
    DEFER = "defer"


class Reason(StrEnum):
    """What decided: a rule, its absence, or the outcome of the fetch."""

    RULE = "rule"
    NO_MATCH = "no_match"
    NO_GROUP = "no_group"
    NO_RULES = "no_rules"
    TOO_COMPLEX = "too_complex"
    """Matching would take more than `patterns.STEPS`: file and path were made to be slow, and the path stays closed."""
    UNAVAILABLE = "unavailable"
    FORBIDDEN = "forbidden"
    UNREACHABLE = "unreachable"
    CHALLENGE = "challenge"
    PENDING = "pending"
    IMPLICIT = "implicit"
    BLOCKED_ADDRESS = "blocked_address"
    OVERRIDDEN = "overridden"


class Verdict(NamedTuple):
    """`rule` decided where `reason` is RULE; `selection` are the groups that were asked."""

    permission: Permission
    reason: Reason
    rule: Entry | None = None
    selection: Selection | None = None

    @property
    def group(self) -> Group | None:
        """The group that holds the rule that decided, else the first that binds the agent."""
        if self.selection is None:
            return None
        groups = self.selection.groups
        if self.rule is None:
            return groups[0]
        return groups[max(0, bisect_left(groups, self.rule.directive.line, key=attrgetter("line")) - 1)]
