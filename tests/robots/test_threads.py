"""A file shared by many threads: objects that are created on first use are correct for all of them."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest

from robots_core.lint.linter import lint
from robots_core.robots._native.matching import Matcher
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.robots.judging import AGENT
from tests.robots.matching import AS_WRITTEN, globs, path_patterns
from tests.robots.naive_matching import matches

THREADS = 6


@pytest.fixture(autouse=True)
def _turns_at_every_step() -> Iterator[None]:
    """Make the interpreter switch threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(asking: Callable[[int], object]) -> list[object]:
    """The results of threads that start together."""
    barrier = Barrier(THREADS)

    def work(number: int) -> object:
        barrier.wait(10)
        return asking(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(work, range(THREADS)))


def patterns(random: Random) -> list[str]:
    """Patterns that share prefixes and suffixes."""
    texts = ["".join(random.choices("abc", k=random.randrange(1, 6))) for _ in range(40)]
    return [
        random.choice(["/", "/a", "/b"]) + "*" + "*".join(random.choices(texts, k=random.randrange(1, 4))) + ending
        for ending in ["", "$", "*b$"] * 40
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [60, 3000])
def test_patterns_match_equally_in_concurrent_threads(seed: int, length: int) -> None:
    random = Random(seed)
    written = patterns(random)
    subjects = ["/" + "".join(random.choices("abc", k=length)) for _ in range(4)]
    expected = [[at for at, pattern in enumerate(written) if matches(pattern, subject)] for subject in subjects]
    matcher = Matcher(AS_WRITTEN, path_patterns(written))
    others = Matcher(AS_WRITTEN, globs(written))
    expected_globs = [others.every(subject) for subject in subjects]

    def ask(number: int) -> object:
        turned = [*range(number % 4, 4), *range(number % 4)]
        found = {at: (matcher.every(subjects[at]), others.every(subjects[at])) for at in turned}
        return [found[at] for at in range(4)]

    assert at_once(ask) == [list(zip(expected, expected_globs, strict=True))] * THREADS


@pytest.mark.parametrize("dialect", ["rfc9309", "google", "draft1996", "v2"])
def test_first_use_by_concurrent_threads_gives_equal_answers(dialect: str) -> None:
    random = Random(dialect)
    lines = [f"{random.choice(['Allow', 'Disallow'])}: {pattern}" for pattern in patterns(random)]
    body = "\n".join(["User-agent: *", "Robot-version: 2.0", *lines, "Disallow: /*?x:", ""]).encode()
    paths = ["/" + "".join(random.choices("abc", k=40)) + random.choice(["", "?x:a", "?b=:b"]) for _ in range(12)]
    expected = [RobotsTxt(body).judge(DIALECTS[dialect], AGENT, path)[:3] for path in paths]
    for _ in range(3):
        robots = RobotsTxt(body)

        def ask(number: int, robots: RobotsTxt = robots) -> object:
            found = {at: robots.judge(DIALECTS[dialect], AGENT, paths[at])[:3] for at in (number, *range(12))}
            return [found[at] for at in range(12)]

        assert at_once(ask) == [expected] * THREADS


def test_threads_share_the_groups_of_a_file() -> None:
    robots = RobotsTxt(b"".join(b"User-agent: a%d\nDisallow: /%d\n" % (line, line) for line in range(300)))

    def ask(number: int) -> object:
        return [id(group) for group in robots.reading(DIALECTS["rfc9309"]).groups]

    assert len(set(map(str, at_once(ask)))) == 1


def test_threads_that_evict_each_others_rules_get_right_answers() -> None:
    # More tokens than are cached, so rules are evicted while other threads use them.
    count = 250
    body = "".join(f"User-agent: a{at}\nDisallow: /{at}\nCrawl-delay: {at}\n\n" for at in range(count))
    robots, dialect = RobotsTxt(body.encode()), DIALECTS["rfc9309"]

    def ask(number: int) -> object:
        random = Random(number)
        for at in random.choices(range(count), k=600):
            agent = read_agent(f"a{at}")
            verdict = robots.judge(dialect, agent, f"/{at}")
            assert verdict.rule is not None
            assert verdict.rule.directive.value == f"/{at}".encode()
            assert verdict.selection is not None
            delay = robots.reading(dialect).terms(verdict.selection, agent).crawl_delay
            assert delay is not None
            assert delay.seconds == at
        return "right"

    assert at_once(ask) == ["right"] * THREADS


def test_concurrent_checks_give_equal_warnings() -> None:
    robots = RobotsTxt(b"Foo: bar\nCrawl-delay: x\n\nUser-agent: *\nDissalow: /\nSitemap: /s\n" * 50)
    assert len({str(found) for found in at_once(lambda _: lint(robots))}) == 1
