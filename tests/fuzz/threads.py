"""Parse, compile and match files in several threads at once: `python -m tests.fuzz.threads COUNT [SEED]`.

Some threads share a file, others have one each; every one has to say what a single thread says. The interpreter
switches threads as often as it can and collects garbage all the time, so that nothing is safe by accident.
"""

import gc
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

from robots_core.lint.linter import lint
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.explain import explain
from robots_core.robots.robots_txt import RobotsTxt
from tests.fuzz.bodies import line, text
from tests.fuzz.invariant import AGENTS, INSTANTS

THREADS = 6
PATIENCE = 600.0
"""Seconds within which all threads must have started, even on a busy machine."""


def file(random: Random) -> bytes:
    """A file with a group for every agent, wildcards and, by chance, a Robot-version."""
    groups = [
        b"User-agent: %b\n%b%b"
        % (
            agent.token.encode(),
            random.choice((b"", b"Robot-version: 2.0\n")),
            b"".join(line(random) for _ in range(random.choice((3, 30, 100)))),
        )
        for agent in AGENTS
    ]
    return b"\n".join(groups)


def answers(robots: RobotsTxt, paths: Sequence[str]) -> list[object]:
    """All decisions of a file for every agent in every dialect, as comparable values."""
    found: list[object] = [robots.sitemaps, [(advice.code, advice.line) for advice in lint(robots)]]
    for dialect in DIALECTS.values():
        for agent in AGENTS:
            reading = robots.reading(dialect)
            selection = reading.select(agent)
            found.append(selection and (selection.token, [group.line for group in selection.groups]))
            terms = None if selection is None else reading.terms(selection, agent)
            found.append(terms and [terms.rates.at(instant) for instant in INSTANTS])
            for path in paths:
                verdict = robots.judge(dialect, agent, path)
                explained = explain(robots, dialect, agent, path, limit=5)
                found += [verdict.permission, verdict.reason, verdict.rule, explained]
                found.append(terms and terms.usage and terms.usage.at(path, allowed=True))
    return found


def at_once(work: Callable[[int], object]) -> list[object]:
    """The results of all threads, which start together."""
    barrier = Barrier(THREADS)

    def begin(number: int) -> object:
        barrier.wait(PATIENCE)
        return work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(begin, range(THREADS)))


def stress(random: Random) -> None:
    """One round: half of the threads share one new object, and each of the others has its own."""
    body = file(random)
    own = [file(random) for _ in range(THREADS // 2)]
    paths = ["/" + text(random, 30).decode("utf-8", "replace") * random.choice((1, 1, 40)) for _ in range(3)]
    expected = answers(RobotsTxt(body), paths)
    expected_own = [answers(RobotsTxt(each), paths) for each in own]
    shared = RobotsTxt(body)

    def work(number: int) -> object:
        if number % 2:
            return answers(RobotsTxt(own[number // 2]), paths) == expected_own[number // 2]
        return answers(shared, paths) == expected

    assert at_once(work) == [True] * THREADS


def main() -> None:
    """Run `count` rounds; print the number and seed that reproduce a failure."""
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50, 2, 2)
    for number in range(count):
        try:
            stress(Random(f"{seed} {number}"))
        except BaseException:
            sys.stderr.write(f"round {number} of seed {seed} of {THREADS} threads\n")
            raise
    sys.stdout.write(f"{count} rounds of {THREADS} threads of seed {seed}: nothing breaks\n")


if __name__ == "__main__":
    main()
