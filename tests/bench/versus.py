"""Compare this checkout with another one, in alternating rounds of one run: `make bench NAME=versus ARGS=TREE`.

TREE is a checkout whose core is compiled in place, such as a `git worktree`; both run on this environment's packages.
The core of each is measured in a process of its own (`core_turns`), and so is the service, by its CPU time for a hot
GET /v1/allowed and for a batch of 100. Every figure is the median of alternating rounds. Nothing here asserts; the
budgets are those that a change of the core must keep.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import IO

import uvloop

from tests.bench.core_turns import WORKS
from tests.bench.http import Contestant, Origins, compare, get, service

ROUNDS = 7
OURS = Path(__file__).parents[2]

BUDGETS = {
    "a decision, real files": 1.6,
    "a decision, 60 rules": 1.6,
    "a decision, 2,000 rules": 4.0,
    "a decision, 15,000 rules": 20.0,
    "parsing and the first decision, real files": 3.5,
    "a hot GET": 1.03,
    "a batch of 100": 1.03,
}


@contextmanager
def _core(tree: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    """A process that measures the core of `tree`: takes names on its input, and prints seconds."""
    arguments = [sys.executable, "-m", "tests.bench.core_turns", str(tree)]
    with subprocess.Popen(
        arguments, cwd=OURS, env={"PYTHONPATH": str(OURS)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        yield running.stdin, running.stdout
        running.stdin.close()


def _turn(core: tuple[IO[str], IO[str]], name: str) -> float:
    written, read = core
    written.write(f"{name}\n")
    written.flush()
    return float(read.readline())


def _row(name: str, ours: float, theirs: float) -> None:
    budget = BUDGETS.get(name)
    mark = "" if budget is None else f"   at most {budget}" + ": OVER" * (ours / theirs > budget)
    print(f"  {name:<46}{1e6 * ours:>11.2f} us{1e6 * theirs:>11.2f} us{ours / theirs:>8.2f}x{mark}")


def _cores(trees: Sequence[Path]) -> None:
    with ExitStack() as stack:
        cores = [stack.enter_context(_core(tree)) for tree in trees]
        for name in WORKS:
            taken: list[list[float]] = [[] for _ in cores]
            for _ in range(ROUNDS):
                for core, seconds in zip(cores, taken, strict=True):
                    seconds.append(_turn(core, name))
            _row(name, *map(median, taken))


async def _services(trees: Sequence[Path]) -> None:
    origins = Origins()
    with ExitStack() as stack:
        async with origins.serving():
            servers = [stack.enter_context(service("false", tree)) for tree in trees]
            urls = origins.urls(60, 10)
            for name, requests in (("a hot GET", list(map(get, urls))), ("a batch of 100", [origins.batch(60, 10)])):
                for server in servers:
                    async with server.connected(1) as [connection]:
                        for request in requests:
                            answer = json.loads(await connection.ask(request))
                            answers = answer.get("answers", [answer])
                            assert all(it["verdict"] in {"allow", "disallow"} for it in answers)
                _row(name, *await compare([Contestant(name, server, requests) for server in servers]))


def main(tree: str) -> None:
    """Print a line for each measurement: this checkout, the other one, and the ratio."""
    trees = [OURS, Path(tree).resolve()]
    print(f"  {'':<46}{'here':>14}{'there':>14}{'here / there':>14}")
    _cores(trees)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_services(trees))


if __name__ == "__main__":
    main(sys.argv[1])
