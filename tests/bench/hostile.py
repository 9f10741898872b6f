"""The cost of hostile files and paths, in hot answers: `make bench NAME=hostile ARGS="[DIALECT...]"`.

The service runs as a process of its own. Its CPU time for a hot GET /v1/allowed is measured before and after the rows,
in the same run. Budgets: 200 of these for a decision, and 600 for reading a file, compiling its rules and reading the
other lines of an agent. Rows over budget are marked; nothing here asserts.
"""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from operator import itemgetter
from statistics import median

import uvloop

from app.loop.garbage import GarbageCollection
from tests.bench.adversaries import Adversary, adversaries
from tests.bench.costs import Cost, cost
from tests.bench.http import Contestant, Origins, get, service

DECISION_BUDGET, READING_BUDGET = 200, 600
"""Hot GETs that a decision, and a file before its second decision, may cost."""

MAX_CONCURRENT, TURN_SECONDS = 7, 0.4


async def _hot_get(ours: Contestant) -> float:
    """CPU milliseconds of the service for one hot GET: the median over rounds of a few hundred requests."""
    return 1e3 * median([(await ours.turn(TURN_SECONDS))[0] for _ in range(MAX_CONCURRENT)])


def _row(it: Adversary, found: Cost, unit: float) -> str:
    decision, reading = found.decision / unit, found.reading / unit
    marks = [
        "decision over budget" * (decision > DECISION_BUDGET),
        "reading over budget" * (reading > READING_BUDGET),
        "out of steps" * found.over,
    ]
    return (
        f"  {it.name:<64}{len(it.body):>8}{found.read / unit:>7.0f}{found.first / unit:>7.0f}{found.terms / unit:>7.0f}"
        f"{reading:>9.0f}{decision:>10.1f}{found.every / unit:>8.1f}{found.lint / unit:>8.0f}"
        f"  {', '.join(filter(None, marks))}"
    )


async def main(dialects: Sequence[str] = ()) -> None:
    """Print every row and the worst of each dialect."""
    origins = Origins()
    with ExitStack() as stack:
        # As in the service: Python starts no full collection by itself.
        async with origins.serving(), GarbageCollection().running():
            ours = Contestant("ours", stack.enter_context(service("false")), list(map(get, origins.urls(60, 10))))
            await ours.turn(TURN_SECONDS)  # fetches everything
            before = await _hot_get(ours)
            rows = [(it, cost(it)) for it in adversaries() if it.dialect in (dialects or (it.dialect,))]
            after = await _hot_get(ours)
    unit = (before + after) / 2
    print(f"CPU of the service for a hot GET: {1e3 * before:.1f} us before the rows, {1e3 * after:.1f} us after")
    print(f"In hot GETs; budgets: {DECISION_BUDGET} for a decision, {READING_BUDGET} for all that reads")
    steps = f"{'read':>7}{'first':>7}{'terms':>7}{'reading':>9}{'decision':>10}{'every':>8}{'lint':>8}"
    print(f"  {'':<64}{'bytes':>8}{steps}")
    for it, found in rows:
        print(_row(it, found, unit))
    print("The worst of each dialect")
    for dialect in sorted({it.dialect for it, _ in rows}):
        for step in ("decision", "reading", "every", "lint"):
            costs = [(getattr(found, step) / unit, it.name) for it, found in rows if it.dialect == dialect]
            worst, name = max(costs, key=itemgetter(0))
            print(f"  {dialect:<10}{step:<10}{worst:>8.1f}  {name}")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1:]))
