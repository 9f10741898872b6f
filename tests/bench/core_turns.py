"""Measure the core of one checkout, round by round, for `versus`: `python -m tests.bench.core_turns TREE`.

Files, paths and clocks are from this checkout; only the core is from TREE. For each name of `WORKS` on standard input,
one round is measured, and its seconds per operation go to standard output.
"""

import gc
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from tests.bench.bodies import body, paths
from tests.corpus import real_files

TURN = 0.1
"""Minimum seconds of a round, whose result is the best of several passes."""

EVERY = 12
"""One in so many real files is measured."""

DECIDED = (60, 2000, 15_000)


class Core:
    """The measured functions, under the names of either checkout."""

    def __init__(self, package: str) -> None:
        def module(name: str) -> Any:
            return importlib.import_module(f"{package}.robots.{name}")

        self._dialect = module("dialects").DIALECTS["rfc9309"]
        self._agent = module("agents").read_agent("ExampleBot")
        self._file = module("robots_txt").RobotsTxt
        self._judge: Callable[..., Any] = self._file.judge

    def parse(self, data: bytes) -> Any:
        """Parse a file down to its groups."""
        robots = self._file(data)
        robots.reading(self._dialect)
        return robots

    def decide(self, robots: Any, path: str) -> object:
        """One decision."""
        return self._judge(robots, self._dialect, self._agent, path)


def _real() -> list[bytes]:
    return list(real_files().values())[::EVERY]


@cache
def _files_and_paths(rules: int) -> tuple[list[bytes], list[str]]:
    """Files with their paths; 0 rules: the real files."""
    return ([body(rules)], paths(rules, queries=True)) if rules else (_real(), paths(60, queries=True)[:8])


def _decisions(core: Core, rules: int) -> tuple[Callable[[], object], int]:
    files, subjects = _files_and_paths(rules)
    pairs = list(product(map(core.parse, files), subjects))
    return lambda: [core.decide(robots, path) for robots, path in pairs], len(pairs)


def _first_decisions(core: Core, rules: int) -> tuple[Callable[[], object], int]:
    files, subjects = _files_and_paths(rules)
    return lambda: [core.decide(core.parse(data), subjects[0]) for data in files], len(files)


def _parsing(core: Core, rules: int) -> tuple[Callable[[], object], int]:
    files, _ = _files_and_paths(rules)
    return lambda: [core.parse(data) for data in files], len(files)


WORKS: Mapping[str, tuple[Callable[[Core, int], tuple[Callable[[], object], int]], int]] = {
    "a decision, real files": (_decisions, 0),
    **{f"a decision, {rules:,} rules": (_decisions, rules) for rules in DECIDED},
    "parsing, real files": (_parsing, 0),
    "parsing and the first decision, real files": (_first_decisions, 0),
    **{f"parsing and the first decision, {rules:,} rules": (_first_decisions, rules) for rules in DECIDED},
}
"""Measurements by name: the work of one pass, and its number of operations."""


def _turn(work: Callable[[], object], operations: int) -> float:
    """CPU seconds of this thread for one operation."""
    best, begun = float("inf"), time.thread_time()
    while time.thread_time() - begun < TURN:
        before = time.thread_time()
        work()
        best = min(best, time.thread_time() - before)
        gc.collect(0)
    return best / operations


def main(arguments: Sequence[str]) -> None:
    """Measure a round for every line of standard input, until it ends."""
    sys.path[:0] = [f"{arguments[0]}/core", arguments[0]]
    # Checkouts older than the distribution `robots-core` have the core in `app`.
    package = "robots_core" if Path(arguments[0], "core").exists() else "app"
    importlib.import_module(package)
    del sys.path[:2]
    core = Core(package)
    made: dict[str, tuple[Callable[[], object], int]] = {}
    gc.disable()
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name not in made:
            make, rules = WORKS[name]
            made[name] = make(core, rules)
            made[name][0]()  # exclude what is created on first use
        print(_turn(*made[name]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
