"""Where the pure core and I/O meet: a question, the robots.txt that is held for it, the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, assert_never

from app.cache.freshness import Recheck
from app.cache.memory import ByteLRU
from app.cache.recheck import RFC9309, ByVisits, Model
from app.cache.robots_cache import Held, RobotsCache
from app.cache.visits import Visits
from app.metrics import Metrics
from app.origin import Origin, Target
from app.robots.access import Busy, Successful
from app.robots.agents import Agent
from app.robots.dialect import Decision, Dialect, Reason, RobotsTxt, Verdict, judge

Models = Callable[[str, str], Model]
"""The recheck model in force for a host, and a crawler whose own model is named so."""

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


class HeldFile(NamedTuple):
    """What the cache holds of an origin, and the file where there is one."""

    held: Held
    robots: RobotsTxt | None


@dataclass(frozen=True, slots=True)
class _Parsed:
    access: Successful
    robots: RobotsTxt


class Decider:
    """Answers questions from what the cache holds, and keeps the files it parsed, in at most `memory_bytes`."""

    def __init__(
        self,
        cache: RobotsCache,
        clock: Callable[[], float],
        *,
        memory_bytes: int,
        models: Models,
        visits: Visits,
        forbidden: bool,
        metrics: Metrics,
        monotonic: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._parsed: ByteLRU[str, _Parsed] = ByteLRU(memory_bytes)
        self._models = models
        self._visits = visits
        self._forbidden = forbidden
        self._metrics = metrics
        self._monotonic = monotonic

    @property
    def usage(self) -> tuple[int, int]:
        """The bytes and the number of the parsed files in memory."""
        return self._parsed.usage

    async def ask(self, question: Question) -> Answer:
        """The answer; raises Busy where a fetch is needed and there is no room for one."""
        begun = self._monotonic()
        try:
            answer = await self._answer(question)
        except Busy:
            self._metrics.refused()
            raise
        verdict, seconds = answer.verdict, self._monotonic() - begun
        self._metrics.decided(
            verdict.decision, verdict.reason, answer.held.source, question.dialect.name, seconds=seconds
        )
        return answer

    async def _answer(self, question: Question) -> Answer:
        file = await self.hold(
            question.target.origin, visitor=question.agent, max_age=question.max_age, wait=question.wait
        )
        return self.answer_from(file, question)

    def answer_from(self, file: HeldFile, question: Question) -> Answer:
        """The answer that this file gives, whether it is the one that is held now or was held once."""
        held, robots = file
        now = self._clock()
        at = question.at or datetime.fromtimestamp(now, UTC)
        if held.snapshot is None:
            verdict = Verdict(Decision.DEFER, Reason.PENDING)
            return Answer(question, verdict, held, None, now, at, now + PENDING_SECONDS)
        access = held.snapshot.access
        verdict = judge(
            access, robots, question.dialect, question.agent, question.target.path, forbidden=self._forbidden
        )
        retry_at = None
        if verdict.decision is Decision.DEFER:
            retry_at = held.freshness.recheck_at if held.freshness else now + PENDING_SECONDS
        return Answer(question, verdict, held, robots, now, at, retry_at)

    async def hold(
        self, origin: Origin, *, visitor: Agent | None = None, max_age: float | None = None, wait: float = 10.0
    ) -> HeldFile:
        """What is held of the origin's robots.txt, parsed where there is a file; raises Busy as `ask` does.

        `visitor` is who asks in order to visit the origin, None for those who only look at the file.
        """
        recheck = await self._recheck(origin, visitor)
        held = await self._cache.held(origin, recheck, max_age=max_age, wait=wait)
        access = None if held.snapshot is None else held.snapshot.access
        return HeldFile(held, self._parse(origin.key, access) if isinstance(access, Successful) else None)

    async def _recheck(self, origin: Origin, visitor: Agent | None) -> Recheck:
        model = self._models(origin.host, RFC9309 if visitor is None else visitor.recheck)
        match model:
            case Recheck():
                return model
            case ByVisits():
                # Counted only here, where it matters: nothing is written for a fleet that rechecks as RFC 9309 has it,
                # and what is counted are the visits of those who recheck by them.
                visits = self._visits.per_day(origin) if visitor is None else self._visits.visit(origin)
                return model.recheck(await visits)
            case unknown:
                assert_never(unknown)

    def _parse(self, key: str, access: Successful) -> RobotsTxt:
        parsed = self._parsed.get(key)
        # The very object: a refresh that brings the same octets costs one parse, comparing them would cost each time.
        if parsed is None or parsed.access is not access:
            parsed = _Parsed(access, RobotsTxt(access.body, truncated=access.truncated))
            self._parsed.put(key, parsed, parsed.robots.size)
        return parsed.robots
