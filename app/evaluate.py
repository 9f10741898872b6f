"""Evaluate a question against one robots.txt: pure, with time as an argument.

Whatever an answer says is worked out here. Serialisers, permits and cache headers read a Decision and add nothing.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from app.cache.robots_cache import CacheResult
from app.origin import Target
from app.overrides.table import Delay, Matching, Override
from app.robots.agents import Agent
from app.robots.dialects import Dialect
from app.robots.groups import Selection
from app.robots.judge import judge
from app.robots.rates import InForce, Rate, RateSource, Visit, visit_at
from app.robots.robots_txt import RobotsTxt
from app.robots.terms import Terms
from app.robots.usage import Usage
from app.robots.verdict import Permission, Reason, Verdict

PENDING_SECONDS = 5
"""Seconds after which to ask again about an origin whose first fetch is still running."""


class Question(NamedTuple):
    """Whether `agent` may fetch `target`, as `dialect` reads the file, at the instant `at` (None: now).

    `max_age`: the oldest acceptable copy, in seconds; None leaves it to the cache. `wait`: seconds that a cold fetch
    may hold up the answer.
    """

    target: Target
    agent: Agent
    dialect: Dialect
    at: datetime | None = None
    max_age: float | None = None
    wait: float = 10.0


class CachedFile(NamedTuple):
    """The cache's result for an origin, and the parsed file where there is one.

    `revision` identifies the snapshot within this process: equal revisions were derived from the same snapshot. None
    means that the file did not come from the cache as it is, and nothing derived from it may be kept.
    """

    cached: CacheResult
    robots: RobotsTxt | None
    revision: int | None = None


class Decision(NamedTuple):
    """The verdict on a question, given at `now` (Unix seconds), and everything that an answer says about it.

    `robots` is the file that decided, None where there is none. `retry_at` (Unix seconds) is set where the verdict is
    defer. `revision` is that of the CachedFile, None where anything else had a say. `overrides` are those that match,
    shadows included; None where there are none.

    Rates, visit times and usage are worked out when they are read: a cached answer needs none of them.
    """

    question: Question
    verdict: Verdict
    cached: CacheResult
    robots: RobotsTxt | None
    now: float
    retry_at: float | None = None
    revision: int | None = None
    overrides: Matching | None = None

    @property
    def at(self) -> datetime:
        """The aware instant that rates are given for."""
        return self.question.at or datetime.fromtimestamp(self.now, UTC)

    @property
    def allowed(self) -> bool:
        """Whether the page may be fetched now."""
        return self.verdict.permission is Permission.ALLOW

    @property
    def terms(self) -> Terms | None:
        """What the agent's groups state besides their rules; None where no group binds the agent."""
        return terms_of(self.robots, self.question.dialect, self.question.agent, self.verdict.selection)

    @property
    def delay(self) -> Override | None:
        """The operators' delay in force, if any."""
        return None if self.overrides is None else self.overrides.delaying

    @property
    def rate(self) -> InForce[Rate | None] | None:
        """The effective rate and its end: the file's rate, or the operators' delay where that is slower."""
        terms = self.terms
        return with_delay(None if terms is None else terms.rates.at(self.at), self.delay)

    @property
    def crawl_delay(self) -> float | None:
        """The Crawl-delay as the file declares it, in seconds."""
        terms = self.terms
        return None if terms is None or terms.crawl_delay is None else terms.crawl_delay.seconds

    @property
    def visit(self) -> Visit | None:
        """Whether Visit-time welcomes a visit; None where the file has none."""
        terms = self.terms
        return None if terms is None or terms.visits is None else visit_at(terms.visits, self.at)

    @property
    def usage(self) -> Usage | None:
        """What the file states about the use of the page."""
        terms = self.terms
        if terms is None or terms.usage is None:
            return None
        return terms.usage.at(self.question.target.path, allowed=self.allowed)

    @property
    def valid_until(self) -> datetime | None:
        """When the rate or the visit time changes next; None for never."""
        terms, delay = self.terms, self.delay
        if delay is None and (terms is None or (terms.visits is None and len(terms.rates.starts) == 1)):
            return None  # nothing depends on the time of day, as in nearly every file
        ends = [it.valid_until for it in (self.rate, self.visit) if it is not None and it.valid_until is not None]
        return min(ends, default=None)


def evaluate(question: Question, file: CachedFile, now: float, *, forbidden: bool) -> Decision:
    """Decide a question by the origin's file, or by what its fetch came to; overrides are applied afterwards.

    `forbidden`: whether a 401 or 403 closes the site.
    """
    cached, robots, revision = file
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
    return Decision(question, verdict, cached, robots, now, retry_at, revision)


def terms_of(robots: RobotsTxt | None, dialect: Dialect, agent: Agent, selection: Selection | None) -> Terms | None:
    """The terms of the selected groups; None without a file or a group."""
    if robots is None or selection is None:
        return None
    return robots.reading(dialect).terms(selection, agent)


def with_delay(rate: InForce[Rate | None] | None, override: Override | None) -> InForce[Rate | None] | None:
    """The rate in force, or the delay of `override` where that is longer, until either ends.

    The line of such a rate is 0, since it is not in the file.
    """
    if override is None or not isinstance(override.action, Delay):
        return rate
    seconds = override.action.seconds
    declared = None if rate is None else rate.value
    if declared is not None and declared.interval >= seconds:
        return rate
    ends = [] if rate is None or rate.valid_until is None else [rate.valid_until]
    if override.expires_at is not None:
        ends.append(datetime.fromtimestamp(override.expires_at, UTC))
    return InForce(Rate(seconds, 1, seconds, seconds, RateSource.OVERRIDE, 0, None), min(ends, default=None))
