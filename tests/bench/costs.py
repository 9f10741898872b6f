"""The cost of slow files and paths, by step."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import TypeVar

from app.api.answers.serialize import EXPLAINED_RULES
from robots_core.lint.linter import lint
from robots_core.robots.agents import first_of, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Reason
from tests.bench.adversaries import Adversary

_Made = TypeVar("_Made")

ASKED = 5
"""Decisions that are measured."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds of this thread, by step.

    `read`: the file to its groups; `first`: the first decision, which compiles; `terms`: the first reading of an
    agent's other lines; `decision`: one more decision; `every`: the rules that an explanation lists; `lint`: warnings.
    `over`: whether the decision ran out of steps.
    """

    read: float
    first: float
    terms: float
    decision: float
    every: float
    lint: float
    over: bool

    @property
    def reading(self) -> float:
        """The cost of a file before its second decision."""
        return self.read + self.first + self.terms


def cost(it: Adversary, decisions: int = ASKED, of_times: Callable[[Iterable[float]], float] = median) -> Cost:
    """Measure every step; its agents ask in turn, `decisions` times, and `of_times` combines the times."""
    dialect = DIALECTS[it.dialect]
    agents = cycle([first_of([read_agent(name) for name in names.split(",")]) for names in it.agents])

    def read() -> RobotsTxt:
        robots = RobotsTxt(it.body)
        robots.reading(dialect)
        return robots

    reading, robots = _timed(read)
    first, verdict = _timed(lambda: robots.judge(dialect, next(agents), it.path))
    decision = of_times([_timed(lambda: robots.judge(dialect, next(agents), it.path))[0] for _ in range(decisions)])
    terms = every = 0.0
    agent = next(agents)
    selection = robots.reading(dialect).select(agent)
    if selection is not None:
        terms, _ = _timed(lambda: robots.reading(dialect).terms(selection, agent))
        rules = robots.reading(dialect).rules(selection)
        every = of_times([_timed(lambda: rules.matches(it.path, EXPLAINED_RULES))[0] for _ in range(decisions)])
    linting, _ = _timed(lambda: lint(robots))
    return Cost(reading, first, terms, decision, every, linting, verdict.reason is Reason.TOO_COMPLEX)


def _timed(work: Callable[[], _Made]) -> tuple[float, _Made]:
    begun = time.thread_time()
    made = work()
    return 1e3 * (time.thread_time() - begun), made
