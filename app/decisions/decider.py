"""Decide questions: get the file, decide by it, note and count the decision."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from app.decisions.cached_files import CachedFiles, FoundFiles, PastFiles
from app.decisions.evaluate import CachedFile, Decision, Labels, Question
from app.decisions.steps import Decide, Pipeline
from app.loop.admission import Overloaded
from app.observability.metrics import Metrics
from robots_core.origin import Origin
from robots_core.robots.access import Busy
from robots_core.robots.agents import Agent


class BatchMemo(NamedTuple):
    """What many questions share until another task runs: what decides them at the instant `now` (Unix seconds).

    `files` are those that were found so far. `shares`: whether answers may be shared, too: no decision is logged, and
    no override changes one.
    """

    now: float
    decide: Decide
    files: FoundFiles
    shares: bool


class Decider:
    """Decides questions by `files`: those about now by the pipeline `now`, those about the past by `past`.

    `overridden`: whether an override decides for an agent whatever the file of an origin says, at an instant (Unix
    seconds); `has_overrides`: whether there are any. `asked` is called with the key of an origin and the number of
    decisions about it now, and `log` with each decision. While `is_late`, questions about origins that are not in
    memory are refused.
    """

    def __init__(
        self,
        files: CachedFiles,
        *,
        now: Pipeline,
        past: Pipeline,
        overridden: Callable[[Origin, Agent, float], bool],
        has_overrides: Callable[[], bool],
        asked: Callable[[str, int], None],
        log: Callable[[Decision], None] | None,
        metrics: Metrics,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        is_late: Callable[[], bool],
    ) -> None:
        self.files = files
        self._now = now
        self._past = past
        self._overridden = overridden
        self._has_overrides = has_overrides
        self._asked = asked
        self._log = log
        self._metrics = metrics
        self._clock = clock
        self._monotonic = monotonic
        self._is_late = is_late

    async def decide(self, question: Question, *, begun: bool = False) -> Decision:
        """Decide a question, fetching if needed. Raises Busy when the fetch queue is full, or the process overloaded.

        `begun`: it is one of a request that has begun, which an overloaded process goes on with. Raises NoVersion and
        StoreDown for a question about the past.
        """
        started = self._monotonic()
        if question.as_of is not None:
            async with self.past(question.origin) as decide:
                return await decide(question)
        now = self._clock()
        file = self.files.get_if_fresh(question, now)
        if file is None:
            try:
                file = await self._get_cold(question, begun=begun)
            except Busy:
                self._metrics.decisions_overloaded.inc()
                raise
            now = self._clock()
        decision = self._now.at(now)(question, file)
        self._metrics.decided(*self.note(decision), seconds=self._monotonic() - started)
        return decision

    def memo(self) -> BatchMemo:
        """What the questions that are decided before another task runs share."""
        now = self._clock()
        return BatchMemo(now, self._now.at(now), {}, self._log is None and not self._has_overrides())

    def note(self, decision: Decision) -> Labels:
        """Note a decision about now, and return the labels for count()."""
        self._asked(decision.question.target.origin.key, 1)
        if self._log is not None:
            self._log(decision)
        return decision.labels

    def note_shared(self, origin: Origin, times: int) -> None:
        """Note so many questions about an origin now that have the answers of others."""
        self._asked(origin.key, times)

    def count(self, counts: Mapping[Labels, int]) -> None:
        """Count decisions that decide() has not given, by their labels."""
        for labels, times in counts.items():
            self._metrics.decided(*labels, times=times)

    @asynccontextmanager
    async def past(self, origin: Origin) -> AsyncIterator[Callable[[Question], Awaitable[Decision]]]:
        """Within the block, decide questions with an `as_of` about an origin, each by the version in use then.

        The rates are those of that time, unless the question has an `at`. Overrides are not applied, nothing is
        fetched, and no visit is counted. The history is read once, and a version is parsed once if the questions come
        in the order of their instants. The block raises StoreDown, a question NoVersion.
        """
        started = self._monotonic()
        async with self.files.past(origin) as files:

            async def decide(question: Question) -> Decision:
                nonlocal started
                try:
                    return await self._decide_past(question, files, started)
                finally:
                    started = self._monotonic()  # only the first question took the time to read the history

            yield decide

    async def _decide_past(self, question: Question, files: PastFiles, started: float) -> Decision:
        as_of = question.as_of or datetime.fromtimestamp(self._clock(), UTC)
        file, is_new = await files.get(as_of)
        question = question._replace(at=question.at or as_of)
        if is_new:
            # In a thread first: this file is not compiled yet, and it is not cached.
            await asyncio.to_thread(self._past.evaluate, question, file, as_of.timestamp())
        decision = self._past.at(as_of.timestamp())(question, file)
        self._metrics.decided(*decision.labels, seconds=self._monotonic() - started)
        # The past does not change, so there is no time at which to ask again.
        return decision._replace(retry_at=None)

    async def _get_cold(self, question: Question, *, begun: bool) -> CachedFile:
        agent = question.agent
        # If an override decides, the file does not matter, and its origin may well be down.
        decided = self._overridden(question.target.origin, agent, self._clock())
        if not begun and self._is_late() and not (decided or self.files.has(question.origin)):
            raise Overloaded
        wait = 0.0 if decided else question.wait
        return await self.files.get(
            question.origin,
            visitor=agent,
            dialect=question.dialect.name,
            max_age=question.max_age,
            wait=wait,
            caller=question.caller,
        )
