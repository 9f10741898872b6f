"""What a file and a path made to be slow cost, step by step."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import TypeVar

from app.api.wire import EXPLAINED_RULES
from app.robots.agents import first_of, read_agent
from app.robots.dialect import RobotsTxt, judge_file
from app.robots.dialects import DIALECTS
from tests.bench.adversaries import Adversary

_Made = TypeVar("_Made")

ASKED = 5
"""So often is asked what is told by its median."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of this thread: to read the file, for the first decision, which compiles, for one more, to count all
    rules that match and make the first of them, as an explanation does, and to read what else the groups state, once
    for an agent.
    """

    read: float
    first: float
    decision: float
    every: float
    terms: float


def cost(it: Adversary, asked: int = ASKED, told: Callable[[Iterable[float]], float] = median) -> Cost:
    """What it takes; its agents ask in turn, so often as `asked`, and of their times `told` is told."""
    dialect = DIALECTS[it.dialect]
    agents = cycle([first_of([read_agent(name) for name in names.split(",")]) for names in it.agents])

    def read() -> RobotsTxt:
        robots = RobotsTxt(it.body)
        robots.reading(dialect)
        return robots

    reading, robots = _taken(read)

    def decide() -> None:
        judge_file(robots, dialect, next(agents), it.path)

    first, _ = _taken(decide)
    decision = told(_taken(decide)[0] for _ in range(asked))
    agent = next(agents)
    selection = robots.reading(dialect).select(agent)
    if selection is None:
        return Cost(reading, first, decision, 0.0, 0.0)
    terms, _ = _taken(lambda: robots.reading(dialect).terms(selection, agent))
    rules = robots.reading(dialect).rules(selection)
    every = told(_taken(lambda: rules.matches(it.path, EXPLAINED_RULES))[0] for _ in range(asked))
    return Cost(reading, first, decision, every, terms)


def _taken(work: Callable[[], _Made]) -> tuple[float, _Made]:
    begun = time.thread_time()
    made = work()
    return 1e3 * (time.thread_time() - begun), made
