"""What a fetched robots.txt means: facts in, verdict out. A dialect is a record of functions; `judge` is the same."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from threading import Lock
from typing import NamedTuple, assert_never

from app.robots.access import Access, Blocked, Cause, Fetched, Successful, Unavailable, Unreachable, is_plain_text
from app.robots.agents import STAR, Agent
from app.robots.compiled.lines import Groups
from app.robots.document import Document, Grammar, Group
from app.robots.matcher import Entry, Ruleset
from app.robots.rates import PLAIN_RATES, RatePolicy
from app.robots.selection import Selection, Selector
from app.robots.syntax import MEMBER_KEYS, Key
from app.robots.terms import FileTerms, Terms

ROBOTS_PATH = "/robots.txt"

# How many compiled rules a reading keeps, for all tokens together, and how many lines of terms.
_ROOM_FACTOR, _ROOM = 2, 1000

# How many verdicts are kept for the groups of a token.
_VERDICTS = 50

# One for all files: what is made while it is held takes milliseconds, whatever the file.
_COMPILING = Lock()

# What a file costs to keep, in bytes, as tests/robots/test_size.py measures it: itself, and what is made for the first
# agent that is bound by it; a line, one that names an agent with its group and its place in the table, one of a group
# with what it states, one of the file; a pattern with its place in an index, and what an octet of it costs from its
# first wildcard on, where texts are told apart; a verdict with its rule.
_FILE_BYTES, _AGENTS_BYTES = 1300, 3000
_LINE_BYTES, _AGENT_BYTES, _MEMBER_BYTES, _LISTED_BYTES = 12, 110, 250, 150
_PATTERN_BYTES, _WILD_BYTES = 65, 11
_VERDICT_BYTES = 280
_LISTED = frozenset({Key.SITEMAP, Key.HOST, Key.CLEAN_PARAM})


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
    select: Callable[[Groups], Selector]
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


_IMPLICIT = Verdict(Decision.ALLOW, Reason.IMPLICIT)
_NO_GROUP = Verdict(Decision.ALLOW, Reason.NO_GROUP)
_NO_RULES = Verdict(Decision.ALLOW, Reason.NO_RULES)

# Looked up once, not once a verdict.
_ALLOW, _DISALLOW = Decision.ALLOW, Decision.DISALLOW
_RULE, _NO_MATCH, _NO_RULE = Reason.RULE, Reason.NO_MATCH, Reason.NO_RULES


class Rulings:
    """What the groups of one token decide; of the verdicts some are kept, so that most need not be made anew."""

    __slots__ = ("_first", "_verdicts", "rules", "selection")

    def __init__(self, selection: Selection, rules: Ruleset, verdicts: dict[int, Verdict] | None = None) -> None:
        self.selection = selection
        self.rules = rules
        self._first = rules.first
        self._verdicts = {} if verdicts is None else verdicts  # by place in the rules, their number for no match

    def under(self, selection: Selection) -> "Rulings":
        """The same for another token that the same groups speak for; both keep no more verdicts than one would."""
        return Rulings(selection, self.rules, self._verdicts)

    def about(self, path: str) -> Verdict:
        """What they say about `path`."""
        place = self._first(path)
        verdict = self._verdicts.get(place)
        if verdict is None or verdict[3] is not self.selection:
            verdict = self._verdict(place)
        return verdict

    def _verdict(self, place: int) -> Verdict:
        if len(self._verdicts) >= _VERDICTS:
            self._verdicts.clear()
        rules = self.rules
        if place == len(rules):
            verdict = Verdict(_ALLOW, _NO_MATCH if place else _NO_RULE, None, self.selection)
        else:
            rule = rules.entry(place)
            verdict = Verdict(_ALLOW if rule.allows else _DISALLOW, _RULE, rule, self.selection)
        self._verdicts[place] = verdict
        return verdict


class Reading:
    """One document as one dialect reads it; rules are compiled when an agent they bind first asks."""

    __slots__ = (
        "_compiled",
        "_dialect",
        "_document",
        "_kept",
        "_rulings",
        "_selector",
        "_terms",
        "has_groups",
    )

    def __init__(self, document: Document, dialect: Dialect) -> None:
        groups = document.groups(dialect.grammar)
        self.has_groups = len(groups) > 0
        self._document = document
        self._dialect = dialect
        self._selector = dialect.select(groups)
        self._rulings: dict[str, Rulings] = {}
        self._compiled: dict[tuple[Group, ...], Rulings] = {}
        self._kept = 0
        self._terms: FileTerms | None = None

    def judge(self, agent: Agent, path: str) -> Verdict:
        """What it says to `agent` about `path`."""
        token = self._selector.token(agent)
        if token is None:
            return _NO_GROUP if self.has_groups else _NO_RULES
        rulings = self._rulings.get(token) or self._compile(self._selection(token))
        return rulings.about(path)

    def select(self, agent: Agent) -> Selection | None:
        """The groups that speak for `agent`."""
        token = self._selector.token(agent)
        return None if token is None else self._selection(token)

    def _selection(self, token: str) -> Selection:
        return Selection(token, self._selector.groups(token))

    def rules(self, selection: Selection) -> Ruleset:
        """Their rules, compiled."""
        return (self._rulings.get(selection.token) or self._compile(selection)).rules

    def _compile(self, selection: Selection) -> Rulings:
        # Tokens that the same groups speak for share what is compiled. A file can still give each of a thousand
        # tokens another thousand groups, and in the draft of 1996 callers make tokens up: there is a bound, past
        # which what is kept is let go, and compiled anew for whoever asks next.
        token, groups = selection
        with _COMPILING:
            # Who came from another thread meanwhile has waited for what was made, rather than make it again.
            rulings = self._rulings.get(token)
            if rulings is not None:
                return rulings
            shared = self._compiled.get(groups)
            if shared is not None:
                rulings = shared.under(selection)
                self._kept += 1
            else:
                rulings = Rulings(selection, self._dialect.compile(groups))
                self._kept += 1 + len(rulings.rules)
            if self._kept > _room(self._document):
                self._rulings.clear()
                self._compiled.clear()
                self._kept = 0
            self._rulings[token] = self._compiled[groups] = rulings
            return rulings

    def terms(self, selection: Selection, agent: Agent) -> Terms:
        """What else they state; for an agent that says so, with the Crawl-delay of `*` too (spec C12)."""
        kept = self._terms
        if kept is None:
            # Of two threads that make one at once, both go on with terms that say the same.
            kept = self._terms = FileTerms(self._selector, self._dialect.rates, room=_room(self._document))
        inherits = agent.star_delay and selection.token != STAR
        return kept.of(selection.token, STAR if inherits else None)


def _room(document: Document) -> int:
    return _ROOM_FACTOR * len(document.scan) + _ROOM


class RobotsTxt:
    """A file that every dialect can be asked about: what is kept in process between decisions."""

    __slots__ = ("_readings", "document")

    def __init__(self, body: bytes, *, truncated: bool = False) -> None:
        self.document = Document(body, truncated=truncated)
        self._readings: dict[str, Reading] = {}

    @property
    def size(self) -> int:
        """About how many bytes it costs to keep, once a dialect has read it and its rules are compiled for an agent.

        It errs upwards: ordinary files were measured at 0.2 to 1.1 times this, most of them between 0.5 and 1, and none
        made to be large at more than 1.5 times. Another dialect, or an agent with other groups, can cost as much again.
        """
        body, scan = self.document.body, self.document.scan
        agents, members = scan.count({Key.USER_AGENT}), scan.count(MEMBER_KEYS)
        listed = scan.count(_LISTED)
        patterns, octets, wild = scan.patterns()
        return (
            _FILE_BYTES
            + len(body)
            + _LINE_BYTES * len(scan)
            + (_AGENTS_BYTES if agents else 0)
            + _AGENT_BYTES * agents
            + _MEMBER_BYTES * members
            + _LISTED_BYTES * listed
            + _PATTERN_BYTES * patterns
            + octets
            + _WILD_BYTES * wild
            + _VERDICT_BYTES * min(patterns, _VERDICTS)
        )

    def reading(self, dialect: Dialect) -> Reading:
        """The file as `dialect` reads it."""
        reading = self._readings.get(dialect.name)
        if reading is None:
            # Of two threads that make one at once, both go on with the same.
            reading = self._readings.setdefault(dialect.name, Reading(self.document, dialect))
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
        return _IMPLICIT
    return robots.reading(dialect).judge(agent, path)


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
