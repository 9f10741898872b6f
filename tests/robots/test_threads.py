"""A file asked by many threads at once: what is made when first it is needed is made whole, and for all of them."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest

from app.robots.agents import read_agent
from app.robots.compiled.patterns import PatternIndex
from app.robots.dialect import RobotsTxt, judge_file
from app.robots.dialects import DIALECTS
from tests.robots.test_paths import reference

THREADS = 6
AGENT = read_agent("FooBot")


@pytest.fixture(autouse=True)
def _turns_at_every_step() -> Iterator[None]:
    """Threads take turns as often as the interpreter can have them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(asking: Callable[[int], object]) -> list[object]:
    """What each thread is told, when all of them begin together."""
    barrier = Barrier(THREADS)

    def work(number: int) -> object:
        barrier.wait(10)
        return asking(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(work, range(THREADS)))


def patterns(random: Random) -> list[str]:
    """Enough to share heads, to branch and to end alike."""
    texts = ["".join(random.choices("abc", k=random.randrange(1, 6))) for _ in range(40)]
    return [
        random.choice(["/", "/a", "/b"]) + "*" + "*".join(random.choices(texts, k=random.randrange(1, 4))) + ending
        for ending in ["", "$", "*b$"] * 40
    ]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("length", [60, 3000])
def test_an_index_says_the_same_to_threads_that_ask_together(seed: int, length: int) -> None:
    random = Random(seed)
    written = patterns(random)
    subjects = ["/" + "".join(random.choices("abc", k=length)) for _ in range(4)]
    expected = [[at for at, pattern in enumerate(written) if reference(pattern, subject)] for subject in subjects]
    # Of the first few, what is needed when trying them is too much is made when it is needed.
    few = PatternIndex([f"/*{'ab' * 4000}c{text}" for text in "abc"])
    index = PatternIndex(written)

    def ask(number: int) -> list[list[int]]:
        turned = [*range(number % 4, 4), *range(number % 4)]
        found = {at: index.every(subjects[at]) for at in turned}
        assert few.first("/" + "ab" * 8000 + "cb") == 1
        return [found[at] for at in range(4)]

    assert at_once(ask) == [expected] * THREADS


@pytest.mark.parametrize("dialect", ["rfc9309", "google", "draft1996", "v2"])
def test_a_file_says_the_same_to_threads_that_are_first_together(dialect: str) -> None:
    random = Random(dialect)
    lines = [f"{random.choice(['Allow', 'Disallow'])}: {pattern}" for pattern in patterns(random)]
    body = "\n".join(["User-agent: *", "Robot-version: 2.0", *lines, "Disallow: /*?x:", ""]).encode()
    paths = ["/" + "".join(random.choices("abc", k=40)) + random.choice(["", "?x:a", "?b=:b"]) for _ in range(12)]
    expected = [judge_file(RobotsTxt(body), DIALECTS[dialect], AGENT, path)[:3] for path in paths]
    for _ in range(3):
        robots = RobotsTxt(body)

        def ask(number: int, robots: RobotsTxt = robots) -> list[object]:
            told = {at: judge_file(robots, DIALECTS[dialect], AGENT, paths[at])[:3] for at in (number, *range(12))}
            return [told[at] for at in range(12)]

        assert at_once(ask) == [expected] * THREADS


def test_threads_that_ask_a_file_together_have_its_rules_compiled_once() -> None:
    dialect = DIALECTS["rfc9309"]
    robots = RobotsTxt(b"User-agent: *\n" + b"".join(b"Disallow: /%d*x\n" % line for line in range(500)))

    def ask(_: int) -> object:
        reading = robots.reading(dialect)
        selection = reading.select(AGENT)
        assert selection is not None
        return reading.rules(selection)

    assert len(set(map(id, at_once(ask)))) == 1
