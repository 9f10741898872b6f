"""Where the pure core and I/O meet: a question, the robots.txt that is held for it, the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from app.cache.freshness import Recheck
from app.cache.memory import ByteLRU
from app.cache.robots_cache import Held, RobotsCache
from app.origin import Target
from app.robots.access import Successful
from app.robots.agents import Agent
from app.robots.dialect import Decision, Dialect, Reason, RobotsTxt, Verdict, judge

PENDING_SECONDS = 5
"""When to ask again about an origin whose first fetch is still under way."""


@dataclass(frozen=True, slots=True)
class Question:
    """Whether `agent` may fetch `target`, as `dialect` reads it, at the instant `at`.

    `max_age`: how old the copy may be, in seconds, None for as old as the cache thinks right. `wait`: how long a cold
    fetch may hold the answer, in seconds.
    """

    target: Target
    agent: Agent
    dialect: Dialect
    at: datetime | None = None
    max_age: float | None = None
    wait: float = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict, what it rests on, and `now` (Unix seconds), the instant it was given at.

    `robots` is the file where there is one; `retry_at` (Unix seconds) is set where the verdict is to defer.
    """

    question: Question
    verdict: Verdict
    held: Held
    robots: RobotsTxt | None
    now: float
    at: datetime
    retry_at: float | None


@dataclass(frozen=True, slots=True)
class _Parsed:
    access: Successful
    robots: RobotsTxt


class Decider:
    """Answers questions from what the cache holds, and keeps the files it parsed, in at most `memory_bytes`."""

    def __init__(
        self, cache: RobotsCache, clock: Callable[[], float], *, memory_bytes: int, recheck: Recheck, forbidden: bool
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._parsed: ByteLRU[str, _Parsed] = ByteLRU(memory_bytes)
        self._recheck = recheck
        self._forbidden = forbidden

    async def ask(self, question: Question) -> Answer:
        """The answer; raises Busy where a fetch is needed and there is no room for one."""
        origin = question.target.origin
        held = await self._cache.held(origin, self._recheck, max_age=question.max_age, wait=question.wait)
        now = self._clock()
        at = question.at or datetime.fromtimestamp(now, UTC)
        if held.snapshot is None:
            verdict = Verdict(Decision.DEFER, Reason.PENDING)
            return Answer(question, verdict, held, None, now, at, now + PENDING_SECONDS)
        access = held.snapshot.access
        robots = self._parse(origin.key, access) if isinstance(access, Successful) else None
        verdict = judge(
            access, robots, question.dialect, question.agent, question.target.path, forbidden=self._forbidden
        )
        retry_at = None
        if verdict.decision is Decision.DEFER:
            retry_at = held.freshness.recheck_at if held.freshness else now + PENDING_SECONDS
        return Answer(question, verdict, held, robots, now, at, retry_at)

    def _parse(self, key: str, access: Successful) -> RobotsTxt:
        parsed = self._parsed.get(key)
        # The very object: a refresh that brings the same octets costs one parse, comparing them would cost each time.
        if parsed is None or parsed.access is not access:
            parsed = _Parsed(access, RobotsTxt(access.body, truncated=access.truncated))
            self._parsed.put(key, parsed, parsed.robots.size)
        return parsed.robots
