"""What a fetched robots.txt means: facts in, verdict out. A dialect is a record of functions; `judge` is the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from app.robots.access import Access, Blocked, Cause, Fetched, Successful, Unavailable, Unreachable
from app.robots.agents import STAR, Agent, read_agent
from app.robots.document import Document, Grammar, Group
from app.robots.matcher import Entry, Ruleset
from app.robots.rates import PLAIN_RATES, RatePolicy
from app.robots.selection import Selection, Selector
from app.robots.syntax import Key
from app.robots.terms import Terms, read_terms

ROBOTS_PATH = "/robots.txt"

_FILE_BYTES = 4096
_DIRECTIVE_BYTES = 600


class Decision(StrEnum):
    """Whether the page may be fetched; DEFER is no refusal: it is not known now (RFC 9309 2.3.1.4)."""

    ALLOW = "allow"
    DISALLOW = "disallow"
    DEFER = "defer"


class Reason(StrEnum):
    """What decided: a rule, its absence, or what the fetch of the file came to."""

    RULE = "rule"
    NO_MATCH = "no_match"
    NO_GROUP = "no_group"
    NO_RULES = "no_rules"
    MISSING = "missing"
    FORBIDDEN = "forbidden"
    UNREACHABLE = "unreachable"
    CHALLENGE = "challenge"
    PENDING = "pending"
    IMPLICIT = "implicit"
    BLOCKED_ADDRESS = "blocked_address"
    OVERRIDDEN = "overridden"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of robot reads the file.

    `forbidden_closes`: 401 and 403 close the whole site to it (spec A13).
    """

    name: str
    grammar: Grammar
    select: Callable[[Sequence[Group]], Selector]
    compile: Callable[[Sequence[Group]], Ruleset]
    rates: RatePolicy = PLAIN_RATES
    forbidden_closes: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer about one URL: `rule` decided where `reason` is RULE; `selection` are the groups that were asked."""

    decision: Decision
    reason: Reason
    rule: Entry | None = None
    selection: Selection | None = None

    @property
    def group(self) -> Group | None:
        """The group that holds the rule that decided, else the first that speaks for the agent."""
        if self.selection is None:
            return None
        groups = self.selection.groups
        if self.rule is None:
            return groups[0]
        line = self.rule.directive[0]
        return next(group for group in reversed(groups) if group.line < line)


class Reading:
    """One document as one dialect reads it; rules are compiled when an agent they bind first asks."""

    def __init__(self, document: Document, dialect: Dialect) -> None:
        self._selector = dialect.select(document.groups(dialect.grammar).groups)
        self._dialect = dialect
        # By the token that was found, so that there are never more than the file has: callers cannot make it grow.
        self._rulesets: dict[str, Ruleset] = {}
        self._terms: dict[tuple[str, bool], Terms] = {}
        self.has_groups = bool(document.groups(dialect.grammar).groups)

    def select(self, agent: Agent) -> Selection | None:
        """The groups that speak for `agent`."""
        return self._selector.find(agent)

    def rules(self, selection: Selection) -> Ruleset:
        """Their rules, compiled."""
        rules = self._rulesets.get(selection.token)
        if rules is None:
            rules = self._rulesets[selection.token] = self._dialect.compile(selection.groups)
        return rules

    def terms(self, selection: Selection, agent: Agent) -> Terms:
        """What else they state; for an agent that says so, with the Crawl-delay of `*` too (spec C12)."""
        inherits = agent.star_delay and selection.token != STAR
        terms = self._terms.get((selection.token, inherits))
        if terms is None:
            members = list(self._selector.members(selection))
            star = self._selector.find(read_agent(STAR)) if inherits else None
            if star is not None:
                members += (member for member in self._selector.members(star) if member[1] is Key.CRAWL_DELAY)
            terms = self._terms[selection.token, inherits] = read_terms(members, self._dialect.rates)
        return terms


class RobotsTxt:
    """A file that every dialect can be asked about: what is kept in process between decisions."""

    def __init__(self, body: bytes, *, truncated: bool = False) -> None:
        self.document = Document(body, truncated=truncated)
        self._readings: dict[str, Reading] = {}

    @property
    def size(self) -> int:
        """About how many bytes it costs to keep, once every rule of it has been compiled."""
        return _FILE_BYTES + 2 * len(self.document.body) + _DIRECTIVE_BYTES * len(self.document.scan.directives)

    def reading(self, dialect: Dialect) -> Reading:
        """The file as `dialect` reads it."""
        reading = self._readings.get(dialect.name)
        if reading is None:
            reading = self._readings[dialect.name] = Reading(self.document, dialect)
        return reading


def judge(
    access: Access, robots: RobotsTxt | None, dialect: Dialect, agent: Agent, path: str, *, forbidden: bool = False
) -> Verdict:
    """What `access` means for `agent` and `path`, a URL's path and query (RFC 9309 2.3.1, spec L4).

    `robots` is the file of a Successful access where the caller has it parsed. `forbidden` closes a site that
    answers 401 or 403 under every dialect, not only those that say so themselves (spec Q3).
    """
    match access:
        case Blocked():
            return Verdict(Decision.DISALLOW, Reason.BLOCKED_ADDRESS)
        case _ if path == ROBOTS_PATH:
            return Verdict(Decision.ALLOW, Reason.IMPLICIT)
        case Unreachable(cause=Cause.CHALLENGE):
            return Verdict(Decision.DEFER, Reason.CHALLENGE)
        case Unreachable():
            return Verdict(Decision.DEFER, Reason.UNREACHABLE)
        case Unavailable(status=401 | 403) if forbidden or dialect.forbidden_closes:
            return Verdict(Decision.DISALLOW, Reason.FORBIDDEN)
        case Unavailable():
            return Verdict(Decision.ALLOW, Reason.MISSING)
        case Successful():
            robots = robots or RobotsTxt(access.body, truncated=access.truncated)
            return judge_file(robots, dialect, agent, path)
        case _:
            assert_never(access)


def judge_file(robots: RobotsTxt, dialect: Dialect, agent: Agent, path: str) -> Verdict:
    """What the file says to `agent` about `path`."""
    if path == ROBOTS_PATH:
        return Verdict(Decision.ALLOW, Reason.IMPLICIT)
    reading = robots.reading(dialect)
    selection = reading.select(agent)
    if selection is None:
        return Verdict(Decision.ALLOW, Reason.NO_GROUP if reading.has_groups else Reason.NO_RULES)
    rules = reading.rules(selection)
    rule = rules.best(path)
    if rule is None:
        reason = Reason.NO_MATCH if rules.entries else Reason.NO_RULES
        return Verdict(Decision.ALLOW, reason, None, selection)
    decision = Decision.ALLOW if rule.allows else Decision.DISALLOW
    return Verdict(decision, Reason.RULE, rule, selection)


def recognise_challenge(fetched: Fetched) -> Fetched:
    """A page that came with another 2xx than 200 where the file should be is a challenge, not an answer (spec Q9)."""
    access = fetched.access
    if not isinstance(access, Successful) or access.status == 200 or _is_plain_text(access.content_type):
        return fetched
    if not Document(access.body, truncated=access.truncated).is_html:
        return fetched
    return Fetched(Unreachable(Cause.CHALLENGE, access.status), fetched.final_url)


def _is_plain_text(content_type: str | None) -> bool:
    return content_type is not None and content_type.partition(";")[0].strip().lower() == "text/plain"
