"""Decide questions: get the file, evaluate it, apply the operators' overrides, count the decision."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeAlias

from app.cache.byte_lru import ByteLRU
from app.decisions.cached_files import BatchMemo, CachedFiles, PastFiles
from app.decisions.evaluate import CachedFile, Decision, Question, evaluate, judge_policy, with_delay
from app.decisions.overriding import apply, decide_by
from app.edge.facts import EdgeTable
from app.loop.work_turns import Overloaded
from app.observability.metrics import Metrics
from app.overrides.table import Matching, Table
from robots_core.origin import Origin
from robots_core.purposes.policy import PurposePolicy
from robots_core.robots.access import Busy, Successful
from robots_core.robots.agents import Agent
from robots_core.robots.robots_txt import RobotsTxt

Labels: TypeAlias = tuple[str, str, str, str]
"""The labels that a decision is counted under: verdict, reason, source of the file, dialect."""


class Decider:
    """Decides questions by `files` and the operators' overrides; `edge` has the facts beside the verdict.

    `overrides` gives those in force; their files, parsed, take at most `override_bytes`. `asked` is called with the key
    of the origin of every decision, and `log` with every decision. While `is_late`, questions about origins that are
    not in memory are refused.
    """

    def __init__(
        self,
        files: CachedFiles,
        clock: Callable[[], float],
        *,
        forbidden: bool,
        metrics: Metrics,
        monotonic: Callable[[], float],
        overrides: Callable[[], Table],
        override_bytes: int,
        edge: EdgeTable,
        asked: Callable[[str], None],
        log: Callable[[Decision], None] | None,
        is_late: Callable[[], bool],
    ) -> None:
        self.files = files
        self._overriding = _Overriding(overrides, metrics, override_bytes)
        self._edge = edge
        self._clock = clock
        self._forbidden = forbidden
        self._metrics = metrics
        self._asked = asked
        self._log = log
        self.monotonic = monotonic
        self._is_late = is_late

    async def decide(self, question: Question, *, begun: bool = False) -> Decision:
        """Decide a question, fetching if needed. Raises Busy when the fetch queue is full, or the process overloaded.

        `begun`: it is one of a request that has begun, which an overloaded process goes on with. Raises NoVersion and
        StoreDown for a question about the past.
        """
        started = self.monotonic()
        if question.as_of is not None:
            async with self.past(question.origin) as decide:
                return await decide(question)
        return self.decide_by(await self.file_for(question, begun=begun), question, started)

    async def file_for(self, question: Question, *, begun: bool = False) -> CachedFile:
        """The file that decides a question about now, fetched if needed. Raises Busy, as decide() does."""
        file = self.files.get_if_fresh(question)
        if file is not None:
            return file
        try:
            return await self._get_cold(question, begun=begun)
        except Busy:
            self._metrics.decisions_overloaded.inc()
            raise

    def decide_by(self, file: CachedFile, question: Question, started: float) -> Decision:
        """Decide a question that came at the instant `started` (monotonic clock) by its file."""
        decision = self._decide_by(file, question)
        self._metrics.decided(*self.note(decision), seconds=self.monotonic() - started)
        return decision

    def note_known(self, file: CachedFile, question: Question) -> None:
        """Note a question whose answer the caller has. It is logged, but not counted as a decision."""
        self._asked(question.target.origin.key)
        if self._log is not None:
            self._log(self._decide_by(file, question))

    def decide_if_cached(self, question: Question, memo: BatchMemo | None = None) -> Decision | None:
        """Decide a question if memory has a fresh file for it; the caller notes and counts the decision.

        A question about the past is left to decide(). For `memo` see CachedFiles.get_if_fresh().
        """
        file = None if question.as_of is not None else self.files.get_if_fresh(question, memo)
        return None if file is None else self._decide_by(file, question)

    def note(self, decision: Decision) -> Labels:
        """Note a decision of decide_if_cached(): its origin, and its line in the log. The labels are for count()."""
        self._asked(decision.question.target.origin.key)
        if self._log is not None:
            self._log(decision)
        return _labels(decision)

    def count(self, counts: Mapping[Labels, int]) -> None:
        """Count decisions of decide_if_cached(), by their labels."""
        for labels, times in counts.items():
            self._metrics.decided(*labels, times=times)

    @asynccontextmanager
    async def past(self, origin: Origin) -> AsyncIterator[Callable[[Question], Awaitable[Decision]]]:
        """Within the block, decide questions with an `as_of` about an origin, each by the version in use then.

        The rates are those of that time, unless the question has an `at`. Overrides are not applied, nothing is
        fetched, and no visit is counted. The history is read once, and a version is parsed once if the questions come
        in the order of their instants. The block raises StoreDown, a question NoVersion.
        """
        started = self.monotonic()
        async with self.files.past(origin) as files:

            async def decide(question: Question) -> Decision:
                nonlocal started
                try:
                    return await self._decide_past(question, files, started)
                finally:
                    started = self.monotonic()  # only the first question took the time to read the history

            yield decide

    async def _decide_past(self, question: Question, files: PastFiles, started: float) -> Decision:
        as_of = question.as_of or datetime.fromtimestamp(self._clock(), UTC)
        file, is_new = await files.get(as_of)
        question = question._replace(at=question.at or as_of)
        if is_new:
            # In a thread: this file is not compiled yet, and it is not cached.
            decision = await asyncio.to_thread(evaluate, question, file, as_of.timestamp(), forbidden=self._forbidden)
        else:
            decision = evaluate(question, file, as_of.timestamp(), forbidden=self._forbidden)
        if question.policy is not None:
            decision = self._judge_policy(decision, question.policy)
        self._metrics.decided(*_labels(decision), seconds=self.monotonic() - started)
        # The past does not change, so there is no time at which to ask again.
        return decision._replace(retry_at=None)

    async def _get_cold(self, question: Question, *, begun: bool) -> CachedFile:
        agent = question.agent
        # If an override decides, the file does not matter, and its origin may well be down.
        decided = self._overriding.decides(question.target.origin, agent, self._clock())
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

    def _decide_by(self, file: CachedFile, question: Question) -> Decision:
        decision = self._overriding.apply(evaluate(question, file, self._clock(), forbidden=self._forbidden))
        if question.policy is not None:
            decision = self._judge_policy(decision, question.policy)
        return self._with_edge(decision) if self._edge else decision

    def _with_edge(self, decision: Decision) -> Decision:
        question = decision.question
        fact = self._edge.find(question.target.origin.key, question.agent.token, decision.now)
        return decision if fact is None else decision._replace(edge=fact)

    def _judge_policy(self, decision: Decision, policy: PurposePolicy) -> Decision:
        decision = judge_policy(decision, policy)
        if decision.purposes is not None:
            self._metrics.purposes_judged(decision.purposes.states, enforced=policy.enforce)
        return decision


class _Overriding:
    """Applies the overrides in force, and counts their effects and those that shadow overrides would have."""

    def __init__(self, table: Callable[[], Table], metrics: Metrics, memory_bytes: int) -> None:
        self._table = table
        self._metrics = metrics
        self._parsed: ByteLRU[Successful, RobotsTxt] = ByteLRU(memory_bytes)

    def decides(self, origin: Origin, agent: Agent, now: float) -> bool:
        """Whether an override in force decides for the agent, whatever the file says."""
        table = self._table()
        matching = table.find(origin, agent, now) if table else None
        return matching is not None and matching.deciding is not None

    def apply(self, decision: Decision) -> Decision:
        """The decision with the overrides in force applied."""
        table = self._table()
        if not table:
            return decision
        matching = table.find(decision.question.target.origin, decision.question.agent, decision.now)
        if matching is None:
            return decision
        decided = apply(decision, matching, self._parse)
        self._count(decision, decided, matching)
        return decided

    def _count(self, before: Decision, decided: Decision, matching: Matching) -> None:
        for override in (decided.overrides.deciding if decided.overrides else None, matching.delaying):
            if override is not None:
                self._metrics.overridden(override.action.name)
        shadow = matching.shadow_deciding
        if shadow is not None and shadow is not matching.deciding:
            verdict = decide_by(before, shadow, self._parse).verdict
            differs = verdict.permission is not decided.verdict.permission
            self._metrics.shadowed(shadow.action.name, differs=differs)
        shadow = matching.shadow_delaying
        if shadow is not None and shadow is not matching.delaying:
            rate = decided.rate
            differs = with_delay(rate, shadow) is not rate
            self._metrics.shadowed(shadow.action.name, differs=differs)

    def _parse(self, file: Successful) -> RobotsTxt:
        robots = self._parsed.get(file)
        if robots is None:
            robots = RobotsTxt(file.body)
            self._parsed.put(file, robots, robots.size)
        return robots


def _labels(decision: Decision) -> Labels:
    return (
        decision.verdict.permission,
        decision.verdict.reason,
        decision.cached.source,
        decision.question.dialect.name,
    )
