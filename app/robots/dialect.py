"""What a fetched robots.txt means: facts in, verdict out. A dialect is a record of functions; `judge` is the same."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple, assert_never

from app.robots.access import Access, Blocked, Cause, Fetched, Successful, Unavailable, Unreachable, is_plain_text
from app.robots.agents import STAR, Agent, read_agent
from app.robots.document import Document, Grammar, Group
from app.robots.matcher import Entry, Ruleset
from app.robots.rates import PLAIN_RATES, RatePolicy
from app.robots.selection import Selection, Selector
from app.robots.syntax import Key
from app.robots.terms import Terms, read_terms

ROBOTS_PATH = "/robots.txt"

# How many compiled rules a reading keeps, for all tokens together, and the terms of how many tokens.
_ROOM_FACTOR, _ROOM, _TERMS = 2, 1000, 100

# What a file costs to keep, in bytes, as tests/robots/test_size.py measures it: itself, a directive with its rule's
# place in an index, a line that says nothing, a star (the first few of a rule each begin a text of their own), a set.
_FILE_BYTES = 6000
_DIRECTIVE_BYTES = 400
_UNKNOWN_BYTES = 120
_TEXT_BYTES, _TEXTS_PER_RULE, _STAR_BYTES = 380, 4, 20
_SET_BYTES = 60


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


def chain_of(agent: Agent) -> tuple[str, ...]:
    """The tokens that a group is looked up by: the agent's own, then those it falls back to (spec C6)."""
    return agent.chain


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of robot reads the file.

    `tokens` are what it looks groups up by, in order; `rates` what it makes of rate lines; `forbidden_closes`: 401 and
    403 close the whole site to it (spec A13).
    """

    name: str
    grammar: Grammar
    select: Callable[[Sequence[Group]], Selector]
    compile: Callable[[Sequence[Group]], Ruleset]
    tokens: Callable[[Agent], tuple[str, ...]] = chain_of
    rates: RatePolicy = PLAIN_RATES
    forbidden_closes: bool = False


class Verdict(NamedTuple):
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
        return groups[bisect_left(groups, line, key=attrgetter("line")) - 1]


class Reading:
    """One document as one dialect reads it; rules are compiled when an agent they bind first asks."""

    def __init__(self, document: Document, dialect: Dialect) -> None:
        groups = document.groups(dialect.grammar).groups
        self.has_groups = bool(groups)
        self._selector = dialect.select(groups)
        self._dialect = dialect
        self._rulesets: dict[str, Ruleset] = {}
        self._by_groups: dict[tuple[Group, ...], Ruleset] = {}
        self._room = self._all_room = _ROOM_FACTOR * sum(len(group.rules) for group in groups) + _ROOM
        self._terms: dict[tuple[str, bool], Terms] = {}

    def select(self, agent: Agent) -> Selection | None:
        """The groups that speak for `agent`."""
        return self._selector.find(agent)

    def rules(self, selection: Selection) -> Ruleset:
        """Their rules, compiled."""
        rules = self._rulesets.get(selection.token)
        if rules is None:
            # Tokens that the same groups speak for share what is compiled. A file can still give each of a thousand
            # tokens another thousand groups, and in the draft of 1996 callers make tokens up: there is a bound, past
            # which what is kept is let go, and compiled anew for whoever asks next.
            rules = self._by_groups.get(selection.groups) or self._dialect.compile(selection.groups)
            self._room -= 1 if selection.groups in self._by_groups else 1 + len(rules.entries)
            if self._room < 0:
                self._rulesets.clear()
                self._by_groups.clear()
                self._room = self._all_room
            self._rulesets[selection.token] = self._by_groups[selection.groups] = rules
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
            if len(self._terms) >= _TERMS:
                self._terms.clear()
            terms = self._terms[selection.token, inherits] = read_terms(members, self._dialect.rates)
        return terms


class RobotsTxt:
    """A file that every dialect can be asked about: what is kept in process between decisions."""

    def __init__(self, body: bytes, *, truncated: bool = False) -> None:
        self.document = Document(body, truncated=truncated)
        self._readings: dict[str, Reading] = {}

    @property
    def size(self) -> int:
        """About how many bytes it costs to keep, once a dialect has read it and its rules are compiled for an agent.

        It errs upwards: ordinary files were measured at 0.5 to 1.1 times this, and none made to be large at more than
        1.5 times. Another dialect, or an agent with other groups, can cost as much again.
        """
        body, scan = self.document.body, self.document.scan
        stars = body.count(b"*")
        return (
            _FILE_BYTES
            + 2 * len(body)
            + _DIRECTIVE_BYTES * len(scan.directives)
            + _UNKNOWN_BYTES * len(scan.unknown_keys)
            + _TEXT_BYTES * min(stars, _TEXTS_PER_RULE * len(scan.directives))
            + _STAR_BYTES * stars
            + _SET_BYTES * body.count(b"[")
        )

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
    if not isinstance(access, Successful) or access.status == 200:
        return fetched
    if access.content_type is not None and is_plain_text(access.content_type):
        return fetched
    if not Document(access.body, truncated=access.truncated).is_html:
        return fetched
    return Fetched(Unreachable(Cause.CHALLENGE, access.status), fetched.final_url)
