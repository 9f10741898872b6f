"""What an override makes of an answer; pure. All delays are seconds."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple, assert_never

from app.overrides.table import Allow, Delay, Deny, Override, Replace
from app.robots.access import Access, Blocked, Successful
from app.robots.agents import Agent
from app.robots.dialects import Dialect
from app.robots.rates import InForce, Rate, RateSource
from app.robots.robots_txt import ROBOTS_PATH, RobotsTxt
from app.robots.verdict import Decision, Reason, Verdict


class Applied(NamedTuple):
    """A verdict, and the file that it and its rates are by; `override` is what decided, None where the file did."""

    verdict: Verdict
    robots: RobotsTxt | None
    override: Override | None


def rule(
    override: Override | None,
    by_file: Applied,
    access: Access | None,
    dialect: Dialect,
    agent: Agent,
    path: str,
    parse: Callable[[Successful], RobotsTxt],
) -> Applied:
    """What comes of `override` where the file alone, or its absence, says `by_file`.

    A blocked address stays blocked: nothing is fetched from there, whatever an operator says of the pages. And
    /robots.txt stays open, also where nothing is known of it yet (RFC 9309 2.2.2).
    """
    if override is None or isinstance(access, Blocked):
        return by_file
    if path == ROBOTS_PATH:
        return by_file._replace(verdict=Verdict(Decision.ALLOW, Reason.IMPLICIT))
    match override.action:
        case Allow():
            verdict = Verdict(Decision.ALLOW, Reason.OVERRIDDEN, None, by_file.verdict.selection)
            return Applied(verdict, by_file.robots, override)
        case Deny():
            verdict = Verdict(Decision.DISALLOW, Reason.OVERRIDDEN, None, by_file.verdict.selection)
            return Applied(verdict, by_file.robots, override)
        case Replace(own):
            robots = parse(own)
            verdict = robots.judge(dialect, agent, path)._replace(reason=Reason.OVERRIDDEN)
            return Applied(verdict, robots, override)
        case Delay():
            return by_file
        case unknown:
            assert_never(unknown)


def with_delay(now: InForce[Rate | None] | None, override: Override | None) -> InForce[Rate | None] | None:
    """The rate in force, or the delay of `override` where that is longer: until either ends.

    Its line is 0, since it stands in no file.
    """
    if override is None or not isinstance(override.action, Delay):
        return now
    seconds = override.action.seconds
    rate = None if now is None else now.value
    if rate is not None and rate.interval >= seconds:
        return now
    ends = [] if now is None or now.valid_until is None else [now.valid_until]
    if override.expires_at is not None:
        ends.append(datetime.fromtimestamp(override.expires_at, UTC))
    floor = Rate(seconds, 1, seconds, seconds, RateSource.OVERRIDE, 0, None)
    return InForce(floor, min(ends, default=None))
