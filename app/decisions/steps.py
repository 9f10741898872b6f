"""The steps of a decision behind its evaluation: each takes a decision and returns it, changed or as it is."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from app.cache.byte_lru import ByteLRU
from app.decisions.evaluate import CachedFile, Decision, Question, evaluate, judge_policy, with_delay
from app.decisions.overriding import apply, decide_by
from app.edge.facts import EdgeTable
from app.observability.metrics import Metrics
from app.overrides.table import Matching, Table
from robots_core.origin import Origin
from robots_core.robots.access import Successful
from robots_core.robots.agents import Agent
from robots_core.robots.robots_txt import RobotsTxt

Step: TypeAlias = Callable[[Decision], Decision]

Decide: TypeAlias = Callable[[Question, CachedFile], Decision]
"""Decides a question by a file, at the instant that it was made for."""


class Pipeline:
    """How a question is decided by a file: evaluate it, then take each step in order.

    Each of `steps` returns the step, None while that would change no decision. `forbidden`: whether a 401 or 403 closes
    a site.
    """

    def __init__(self, steps: Sequence[Callable[[], Step | None]], *, forbidden: bool) -> None:
        self._steps = tuple(steps)
        self._forbidden = forbidden

    def at(self, now: float) -> Decide:
        """What decides questions at `now` (Unix seconds), until another task runs: that may change the steps."""
        steps = list(filter(None, [find() for find in self._steps]))
        forbidden = self._forbidden

        def decide(question: Question, file: CachedFile) -> Decision:
            decision = evaluate(question, file, now, forbidden=forbidden)
            for step in steps:
                decision = step(decision)
            return decision

        return decide

    def evaluate(self, question: Question, file: CachedFile, now: float) -> Decision:
        """The decision before the steps."""
        return evaluate(question, file, now, forbidden=self._forbidden)


class Overriding:
    """Applies the overrides in force to decisions, and counts their effects and those of shadow overrides.

    The files that overrides bring take at most `memory_bytes` when parsed.
    """

    def __init__(self, table: Callable[[], Table], metrics: Metrics, memory_bytes: int) -> None:
        self._table = table
        self._metrics = metrics
        self._parsed: ByteLRU[Successful, RobotsTxt] = ByteLRU(memory_bytes)

    def decides(self, origin: Origin, agent: Agent, now: float) -> bool:
        """Whether an override in force decides for the agent, whatever the file says."""
        table = self._table()
        matching = table.find(origin, agent, now) if table else None
        return matching is not None and matching.deciding is not None

    def has_any(self) -> bool:
        """Whether there are overrides."""
        return bool(self._table())

    def step(self) -> Step | None:
        """The step that applies them; None if there are none."""
        table = self._table()
        return partial(self._apply, table) if table else None

    def _apply(self, table: Table, decision: Decision) -> Decision:
        matching = table.find(decision.question.target.origin, decision.question.agent, decision.now)
        if matching is None:
            return decision
        decided = apply(decision, matching, self._parse)
        self._count(decision, decided, matching)
        return decided

    def _count(self, before: Decision, decided: Decision, matching: Matching) -> None:
        for override in (decided.overrides.deciding if decided.overrides else None, matching.delaying):
            if override is not None:
                self._metrics.overridden(override.action)
        shadow = matching.shadow_deciding
        if shadow is not None and shadow is not matching.deciding:
            verdict = decide_by(before, shadow, self._parse).verdict
            differs = verdict.permission is not decided.verdict.permission
            self._metrics.shadowed(shadow.action, differs=differs)
        shadow = matching.shadow_delaying
        if shadow is not None and shadow is not matching.delaying:
            rate = decided.rate
            differs = with_delay(rate, shadow) is not rate
            self._metrics.shadowed(shadow.action, differs=differs)

    def _parse(self, file: Successful) -> RobotsTxt:
        robots = self._parsed.get(file)
        if robots is None:
            robots = RobotsTxt(file.body)
            self._parsed.put(file, robots, robots.size)
        return robots


def purposes(metrics: Metrics) -> Callable[[], Step]:
    """Returns the step that judges the purposes that the question names, and counts the judgements."""

    def judged(decision: Decision) -> Decision:
        policy = decision.question.policy
        if policy is None:
            return decision
        decision = judge_policy(decision, policy)
        if decision.purposes is not None:
            metrics.purposes_judged(decision.purposes.states, enforced=policy.enforce)
        return decision

    return lambda: judged


def edge_facts(table: EdgeTable) -> Callable[[], Step | None]:
    """Returns the step that adds what callers have reported of the site's pages, None if that is nothing.

    It changes no verdict.
    """

    def with_edge(decision: Decision) -> Decision:
        question = decision.question
        fact = table.find(question.target.origin.key, question.agent.token, decision.now)
        return decision if fact is None else decision._replace(edge=fact)

    return lambda: with_edge if table else None
