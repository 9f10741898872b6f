"""Decide by a robots.txt that was pasted, or by what the cache would hold if every fetch of it ended alike; pure."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import NamedTuple, TypeAlias

from app.cache.freshness import Freshness, Recheck, Snapshot, State
from app.cache.outage import TimelineEntry, simulate_outage
from app.cache.result import CacheResult, Source
from app.decisions.evaluate import CachedFile, Decision, Question, evaluate, judge_policy
from robots_core.origin import Origin
from robots_core.robots.access import Fetched, Successful
from robots_core.robots.robots_txt import RobotsTxt

Rechecks: TypeAlias = Mapping[tuple[Origin, str], Recheck]
"""The rechecks in force, by origin and the name of the crawler's own model."""


class SimulatedOutcome(NamedTuple):
    """How every fetch ends since `lasted` seconds; `copy` is what was cached before, None for nothing."""

    fetched: Fetched
    lasted: float
    copy: Successful | None
    rechecks: Rechecks


class TrialResult(NamedTuple):
    """A decision; and under an outcome those since it began, each with the seconds since then."""

    decision: Decision
    timeline: tuple[tuple[int, Decision], ...] = ()


def decider_for(
    robots: RobotsTxt, outcome: SimulatedOutcome | None, now: float, *, forbidden: bool
) -> Callable[[Question], TrialResult]:
    """The function that decides a question by a pasted file, or under an outcome with `robots` as what is fetched.

    `forbidden`: whether a 401 or 403 closes the site.
    """
    if outcome is not None:
        return Simulation(robots, outcome, now, forbidden=forbidden).decide
    snapshot = Snapshot(Successful(200, robots.body, robots.scan.truncated), now)
    cached = CacheResult(snapshot, Freshness(now, State.FRESH, 0.0, stale=False), Source.MEMORY)
    file = CachedFile(cached, robots, 0)
    return lambda question: TrialResult(decide_by_file(question, file, now, forbidden=forbidden))


class Simulation:
    """An outcome, simulated once for each origin and recheck."""

    def __init__(self, robots: RobotsTxt, outcome: SimulatedOutcome, now: float, *, forbidden: bool) -> None:
        self._robots = robots
        self._outcome = outcome
        self._now = now
        self._forbidden = forbidden
        self._simulated: dict[tuple[Origin, Recheck], list[tuple[float, CachedFile]]] = {}
        self._revisions = count()

    def decide(self, question: Question) -> TrialResult:
        """Decide a question now, and at each change since the outcome began."""
        files = self._files(question.target.origin, question.agent.recheck)
        decision, *turns = [decide_by_file(question, file, at, forbidden=self._forbidden) for at, file in files]
        began = self._now - self._outcome.lasted
        return TrialResult(decision, tuple([(int(turn.now - began), turn) for turn in turns]))

    def _files(self, origin: Origin, model: str) -> list[tuple[float, CachedFile]]:
        """What the cache has now, and then at each change, with the instant."""
        fetched, lasted, copy, rechecks = self._outcome
        recheck = rechecks[origin, model]
        files = self._simulated.get((origin, recheck))
        if files is None:
            outage = simulate_outage(copy, fetched, recheck, origin.key, self._now - lasted, self._now)
            files = [(entry.at, self._file(entry)) for entry in (outage.now, *outage.timeline)]
            self._simulated[origin, recheck] = files
        return files

    def _file(self, entry: TimelineEntry) -> CachedFile:
        access, robots = entry.snapshot.access, None
        if isinstance(access, Successful):
            robots = self._robots if access.body else RobotsTxt(b"")
        cached = CacheResult(entry.snapshot, entry.freshness, Source.MEMORY)
        return CachedFile(cached, robots, next(self._revisions))


def decide_by_file(question: Question, file: CachedFile, now: float, *, forbidden: bool) -> Decision:
    """Decide a question by a file alone, with no override."""
    decision = evaluate(question, file, now, forbidden=forbidden)
    return decision if question.policy is None else judge_policy(decision, question.policy)
