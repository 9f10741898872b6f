"""Evaluate a question against one robots.txt: pure, with time as an argument.

Everything that an answer says is computed here. Serialisers, permits and cache headers only read a Decision.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from app.cache.result import CacheResult
from app.edge.facts import EdgeFact
from app.overrides.table import Matching, Override
from robots_core.file import terms_of
from robots_core.origin import Origin, Target
from robots_core.purposes.judge import Judgements, judge_for
from robots_core.purposes.policy import PURPOSES, PurposePolicy
from robots_core.robots.agents import STAR, Agent
from robots_core.robots.dialects import Dialect
from robots_core.robots.dialects.draft1996 import DRAFT1996
from robots_core.robots.judge import judge
from robots_core.robots.rates import InForce, Rate, RateChange, RateSource, Visit, visit_at
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.terms import Terms
from robots_core.robots.usage import Usage
from robots_core.robots.verdict import Permission, Reason, Verdict

if TYPE_CHECKING:
    from app.decisions.shared_answers import SharedAnswers

PENDING_SECONDS = 5
"""Seconds after which to ask again about an origin whose first fetch is still running."""

_BY_LINES = frozenset({Reason.RULE, Reason.NO_MATCH, Reason.NO_RULES, Reason.NO_GROUP})
"""Reasons of verdicts that any further line of the file could change."""


Labels: TypeAlias = tuple[str, str, str, str]
"""The labels that a decision is counted under: verdict, reason, source of the file, dialect."""


class Question(NamedTuple):
    """Whether `agent` may fetch `target`, as `dialect` reads the file, at the instant `at` (None: now).

    `max_age`: the oldest acceptable copy, in seconds; None leaves it to the cache. `wait`: seconds that a cold fetch
    may hold up the answer. `policy`: the purposes that the page is wanted for, None for none. `as_of`: the instant in
    the past whose version of the file decides, None for the file of now. `caller` asks: the id of an API key, or an
    address; it does not affect the decision, but fetches are shared out fairly among callers. `nonce`: that of the
    signature, if the request of the page is to be signed; it is logged with the decision.
    """

    target: Target
    agent: Agent
    dialect: Dialect
    at: datetime | None = None
    max_age: float | None = None
    wait: float = 10.0
    policy: PurposePolicy | None = None
    as_of: datetime | None = None
    caller: str = ""
    nonce: str | None = None

    @property
    def origin(self) -> Origin:
        """The origin whose file decides, with the agent's fetch profile."""
        profile = self.agent.profile
        return self.target.origin if profile is None else self.target.origin.with_profile(profile)


class CachedFile(NamedTuple):
    """The cache's result for an origin, and the parsed file if there is one.

    `revision` identifies the snapshot within this process: equal revisions were derived from the same snapshot. None
    means that the file is not the cached one, so nothing derived from it may be cached. `version` is the id of the
    file's version, None if the fetch failed. `shared` has answers that it gave; None if none are kept.
    """

    cached: CacheResult
    robots: RobotsTxt | None
    revision: int | None = None
    version: str | None = None
    shared: "SharedAnswers | None" = None


class Decision(NamedTuple):
    """The verdict on a question, given at `now` (Unix seconds), and everything that an answer says about it.

    `robots` is the file that decided, None without one. `retry_at` (Unix seconds) is set if the verdict is defer.
    `revision` is that of the CachedFile, None if anything else took part. `overrides` are those that match, shadows
    included; None if there are none. `purposes` are decided if the question has any. `edge` is what callers reported of
    the origin's pages; it never changes the verdict. `version` is that of the CachedFile, also if an override decided.

    Rates, visit times and usage are computed on access: a cached answer needs none of them.
    """

    question: Question
    verdict: Verdict
    cached: CacheResult
    robots: RobotsTxt | None
    now: float
    retry_at: float | None = None
    revision: int | None = None
    overrides: Matching | None = None
    purposes: Judgements | None = None
    edge: EdgeFact | None = None
    version: str | None = None

    @property
    def at(self) -> datetime:
        """The aware instant that rates are given for."""
        return self.question.at or datetime.fromtimestamp(self.now, UTC)

    @property
    def allowed(self) -> bool:
        """Whether the page may be fetched now."""
        return self.verdict.permission is Permission.ALLOW

    @property
    def labels(self) -> Labels:
        """What it is counted under."""
        verdict = self.verdict
        return verdict.permission, verdict.reason, self.cached.source, self.question.dialect.name

    @property
    def partial(self) -> bool:
        """Whether what is behind the file's limit could change the verdict."""
        return is_partial(self.robots, self.question.dialect, self.verdict)

    @property
    def star(self) -> Verdict | None:
        """What the groups for `*` say of the URL, if they do not apply to the agent and say otherwise."""
        verdict, question = self.verdict, self.question
        if verdict.selection is not None and verdict.selection.token == STAR:
            return None
        if self.robots is None or verdict.reason not in _BY_LINES:
            return None
        found = self.robots.reading(question.dialect).judge_star(question.target.path)
        if found is None or found.permission is verdict.permission or found.reason is Reason.TOO_COMPLEX:
            return None
        return found

    @property
    def terms(self) -> Terms | None:
        """What the agent's groups state besides their rules; None if no group applies to the agent."""
        return terms_of(self.robots, self.question.dialect, self.question.agent, self.verdict.selection)

    @property
    def delay(self) -> Override | None:
        """The operators' delay in force, if any."""
        return None if self.overrides is None else self.overrides.delaying

    @property
    def rate(self) -> InForce[Rate | None] | None:
        """The effective rate and its end: the file's rate, or the operators' delay if that is slower."""
        return self._rate_at(self.at)

    @property
    def next_rate(self) -> RateChange | None:
        """When the interval changes next, and the rate from then on; None if it does not."""
        rate, delay = self.rate, self.delay
        interval, day = _interval(rate), self.at + timedelta(days=1)
        ends = None if rate is None else rate.valid_until
        while ends is not None:
            if ends > day:  # each window has been met, so only the end of the delay can change the interval
                if delay is None or delay.expires_at is None:
                    return None
                ends = datetime.fromtimestamp(delay.expires_at, UTC)
            following = self._rate_at(ends)
            if _interval(following) != interval:
                return RateChange(ends, None if following is None else following.value)
            ends = None if following is None or ends > day else following.valid_until
        return None

    def _rate_at(self, at: datetime) -> InForce[Rate | None] | None:
        terms, delay = self.terms, self.delay
        if delay is not None and delay.expired(at.timestamp()):
            delay = None
        return with_delay(None if terms is None else terms.rates.at(at), delay)

    @property
    def crawl_delay(self) -> float | None:
        """The Crawl-delay as the file declares it, in seconds."""
        terms = self.terms
        return None if terms is None or terms.crawl_delay is None else terms.crawl_delay.seconds

    @property
    def visit(self) -> Visit | None:
        """Whether Visit-time welcomes a visit; None if the file has no Visit-time."""
        terms = self.terms
        return None if terms is None or terms.visits is None else visit_at(terms.visits, self.at)

    @property
    def usage(self) -> Usage | None:
        """The file's preferences for the use of the page."""
        terms = self.terms
        if terms is None or terms.usage is None:
            return None
        # A page that is refused for its usage alone could be fetched, so all that is stated about it holds.
        fetchable = self.allowed or self.verdict.reason is Reason.USAGE
        return terms.usage.at(self.question.target.path, allowed=fetchable)

    @property
    def valid_until(self) -> datetime | None:
        """When the rate or the visit time changes next; None for never."""
        terms, delay = self.terms, self.delay
        if delay is None and (terms is None or (terms.visits is None and len(terms.rates.starts) == 1)):
            return None  # nothing depends on the time of day, as in nearly every file
        ends = [it.valid_until for it in (self.rate, self.visit) if it is not None and it.valid_until is not None]
        return min(ends, default=None)


def evaluate(question: Question, file: CachedFile, now: float, *, forbidden: bool) -> Decision:
    """Decide a question by the origin's file, or by the outcome of its fetch; overrides are applied afterwards.

    `forbidden`: whether a 401 or 403 closes the site.
    """
    cached, robots, revision, version, _ = file
    if cached.snapshot is None:
        verdict = Verdict(Permission.DEFER, Reason.PENDING)
        return Decision(question, verdict, cached, None, now, now + PENDING_SECONDS)
    dialect, agent, path = question.dialect, question.agent, question.target.path
    if robots is not None:
        verdict = robots.judge(dialect, agent, path)
    else:
        verdict = judge(cached.snapshot.access, None, dialect, agent, path, forbidden=forbidden)
    retry_at = None
    if verdict.permission is Permission.DEFER:
        retry_at = cached.freshness.recheck_at if cached.freshness else now + PENDING_SECONDS
    return Decision(question, verdict, cached, robots, now, retry_at, revision, version=version)


def judge_policy(decision: Decision, policy: PurposePolicy) -> Decision:
    """The decision with its purposes judged, and refused if the policy enforces a purpose that is not permitted.

    Overrides are applied before: statements of a file that an override brings count in place of the origin's.
    """
    verdict, judgements = judge_for(policy, decision.verdict, decision.usage)
    question, _, cached, robots, now, retry_at, revision, overrides, _, edge, version = decision
    return Decision(question, verdict, cached, robots, now, retry_at, revision, overrides, judgements, edge, version)


def judge_every_purpose(decision: Decision | None) -> Judgements:
    """All purposes as the file states them, whatever the question's policy; unstated without a decision."""
    if decision is None:
        return judge_for(PurposePolicy(PURPOSES), Verdict(Permission.DEFER, Reason.PENDING), None)[1]
    verdict = decision.verdict
    if verdict.reason is Reason.USAGE:
        verdict = verdict._replace(permission=Permission.ALLOW)  # as it was before the policy was enforced
    return judge_for(PurposePolicy(PURPOSES), verdict, decision.usage)[1]


def _interval(rate: InForce[Rate | None] | None) -> float | None:
    return None if rate is None or rate.value is None else rate.value.interval


def is_partial(robots: RobotsTxt | None, dialect: Dialect, verdict: Verdict) -> bool:
    """Whether lines behind the limit, which are not read, could make the file say otherwise (spec A24)."""
    if robots is None or not robots.scan.truncated or verdict.reason not in _BY_LINES:
        return False
    # The draft of 1996 stops at the first record that names the crawler, and at the first rule that matches.
    named = verdict.selection is not None and verdict.selection.token != STAR
    return not (dialect is DRAFT1996 and verdict.reason is Reason.RULE and named)


def with_delay(rate: InForce[Rate | None] | None, override: Override | None) -> InForce[Rate | None] | None:
    """The rate in force, or the delay of `override` if that is longer, until either ends.

    The line of such a rate is 0, since it is not in the file.
    """
    seconds = None if override is None else override.delay
    if override is None or seconds is None:
        return rate
    declared = None if rate is None else rate.value
    if declared is not None and declared.interval >= seconds:
        return rate
    ends = [] if rate is None or rate.valid_until is None else [rate.valid_until]
    if override.expires_at is not None:
        ends.append(datetime.fromtimestamp(override.expires_at, UTC))
    return InForce(Rate(seconds, 1, seconds, seconds, RateSource.OVERRIDE, 0, None), min(ends, default=None))
