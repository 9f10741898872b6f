"""The speed of the core compared with its peers, in one run: `make bench NAME=core`.

Rounds alternate (ours, theirs, ours, theirs, ...) with the garbage collector off, and a figure is the median. Time is
CPU time of this thread, so other load hardly matters. Nothing here asserts: the figures are for people, and for
docs/explanation/performance.md.
"""

import gc
import importlib
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias
from urllib.robotparser import RobotFileParser

from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission
from tests.bench.bodies import body, paths
from tests.corpus import real_files

TOKEN = "ExampleBot"
AGENT = read_agent(TOKEN)
HOST = "https://www.example.com"
DIALECT = DIALECTS["rfc9309"]
_ALLOW = Permission.ALLOW
SIZES = (5, 60, 2000, 15_000)
SECONDS = 1.0
"""Approximate seconds of measurement per contestant; in at least 3 rounds, at most 200."""
TURN = 0.005

Work: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Contestant:
    """`parse` turns a body into what `decide` takes with a path; `holds` is False if it parses for every decision."""

    name: str
    parse: Callable[[bytes], Any]
    decide: Callable[[Any, str], bool]
    holds: bool = True


def _parse_ours(body: bytes) -> RobotsTxt:
    robots = RobotsTxt(body)
    robots.reading(DIALECT)
    return robots


def _decide_ours(robots: RobotsTxt, path: str) -> bool:
    return robots.judge(DIALECT, AGENT, path).permission is _ALLOW


OURS = Contestant("ours", _parse_ours, _decide_ours)


def _parse_urllib(body: bytes) -> RobotFileParser:
    parser = RobotFileParser()
    parser.parse(body.decode("utf-8", "replace").splitlines())
    return parser


def _protego() -> Contestant:
    protego = importlib.import_module("protego").Protego
    return Contestant(
        "protego",
        lambda body: protego.parse(body.decode("utf-8", "replace")),
        lambda parsed, path: bool(parsed.can_fetch(HOST + path, TOKEN)),
    )


def _fast_robotstxt() -> Contestant:
    matcher = importlib.import_module("robotstxt").RobotsMatcher()
    return Contestant(
        "fast-robotstxt",
        lambda body: body.decode("utf-8", "replace"),
        lambda text, path: bool(matcher.is_allowed(text, TOKEN, HOST + path)),
        holds=False,
    )


def _jwm_robotstxt() -> Contestant:
    matcher = importlib.import_module("jwm.robotstxt.googlebot").RobotsMatcher()
    return Contestant(
        "jwm-robotstxt",
        lambda body: body.decode("utf-8", "replace"),
        lambda text, path: bool(matcher.AllowedByRobots(text, (TOKEN,), HOST + path)),
        holds=False,
    )


PEERS: Mapping[str, Callable[[], Contestant]] = {
    "protego": _protego,
    "urllib": lambda: Contestant("urllib", _parse_urllib, lambda parser, path: parser.can_fetch(TOKEN, HOST + path)),
    "fast-robotstxt": _fast_robotstxt,
    "jwm-robotstxt": _jwm_robotstxt,
}


def _installed() -> Iterator[Contestant]:
    for name, make in PEERS.items():
        try:
            yield make()
        except (ImportError, OSError) as error:
            print(f"not measured: {name} ({error})")


def in_turns(works: Sequence[Work]) -> list[float]:
    """Seconds per call of each: the median over rounds in which each runs for at least TURN seconds."""
    taken: list[list[float]] = [[] for _ in works]
    times = [_times(work) for work in works]
    gc.collect()
    gc.disable()
    started = time.thread_time()
    try:
        for turn in range(200):
            if turn >= 3 and time.thread_time() - started > SECONDS * len(works):
                break
            for work, count, seconds in zip(works, times, taken, strict=True):
                seconds.append(_time(work, count) / count)
                gc.collect(0)
    finally:
        gc.enable()
    return [median(seconds) for seconds in taken]


def _times(work: Work) -> int:
    """The number of calls in one round."""
    work()  # exclude what is created on first use
    return max(1, int(TURN / _time(work, 1)))


def _time(work: Work, count: int) -> float:
    begun = time.thread_time()
    for _ in range(count):
        work()
    return time.thread_time() - begun


def _row(title: str, works: Sequence[Work], count: int = 1) -> None:
    """One line: our time per item of `count`, and the ratio for each other contestant."""
    ours, *others = in_turns(works)
    print(f"  {title:<30}{ours / count * 1e6:>12.1f} us" + "".join(f"{seconds / ours:>10.1f}x" for seconds in others))


def _head(title: str, peers: Sequence[Contestant]) -> None:
    print(f"\n{title}")
    print(f"  {'':<30}{'ours':>15}" + "".join(f"{peer.name.removesuffix('-robotstxt')[:10]:>11}" for peer in peers))


def _parsing(peers: Sequence[Contestant]) -> None:
    peers = [peer for peer in peers if peer.holds]
    _head("Parsing, from the bytes to the groups of every agent", peers)
    for rules in SIZES:
        data = body(rules)
        _row(f"{rules:,} rules, {len(data):,} bytes", [partial(it.parse, data) for it in (OURS, *peers)])


def _deciding(peers: Sequence[Contestant]) -> None:
    for title, queries in (("half of them with a query", True), ("none with a query", False)):
        _head(f"A decision on a parsed file (the wheels parse every time); 64 paths of 80 characters, {title}", peers)
        for rules in SIZES:
            subjects = paths(rules, queries=queries)
            works = [partial(_ask, it, [it.parse(body(rules))], subjects) for it in (OURS, *peers)]
            _row(f"{rules:,} rules", works, len(subjects))


def _ask(contestant: Contestant, held: Sequence[Any], subjects: Sequence[str]) -> None:
    for file, path in product(held, subjects):
        contestant.decide(file, path)


def _parse_and_ask(contestant: Contestant, files: Sequence[bytes], path: str) -> None:
    for file in files:
        contestant.decide(contestant.parse(file), path)


def _parse_all(contestant: Contestant, files: Sequence[bytes]) -> None:
    for file in files:
        contestant.parse(file)


def _first_decision(peers: Sequence[Contestant]) -> None:
    _head("Parsing and one decision, where everything is done that is done lazily", peers)
    for rules in SIZES:
        data, path = body(rules), paths(rules, queries=True)[0]
        _row(f"{rules:,} rules", [partial(_parse_and_ask, it, [data], path) for it in (OURS, *peers)])


def _real(peers: Sequence[Contestant]) -> None:
    files = list(real_files().values())[::12]
    subjects = paths(60, queries=True)[:8]
    everybody, holding = (OURS, *peers), (OURS, *(peer for peer in peers if peer.holds))
    title = f"{len(files)} real files, {sum(map(len, files)):,} bytes; for one of them"
    _head(title, holding[1:])
    _row("parsing", [partial(_parse_all, it, files) for it in holding], len(files))
    _head(title, peers)
    _row("parsing and one decision", [partial(_parse_and_ask, it, files, subjects[0]) for it in everybody], len(files))
    works = [partial(_ask, it, [it.parse(data) for data in files], subjects) for it in everybody]
    _row("a decision", works, len(files) * len(subjects))


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _versions(peers: Sequence[Contestant]) -> Iterator[str]:
    for peer in peers:
        try:
            yield f"{peer.name} {version(peer.name)}"
        except PackageNotFoundError:
            yield peer.name


def main() -> None:
    """Print the whole comparison."""
    peers = list(_installed())
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"{datetime.now(UTC):%Y-%m-%d}, {python}, {processor()}; {', '.join(_versions(peers))}")
    print("A figure such as 5.0x says that it took five times as long as ours.")
    _parsing(peers)
    _deciding(peers)
    _first_decision(peers)
    _real(peers)


if __name__ == "__main__":
    main()
