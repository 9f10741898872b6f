"""What evidence costs: `python -m tests.bench.evidence [LINES]` writes a log of real files, and verifies it.

Prints the bytes of a version and of a line, the CPU time to link and to verify a line, and whether lines that are
changed, dropped or moved are found. Nothing is fetched for these, and there is no store. Then services answer in
turns, one of them with a log and an archive, while each fetches a file again every FETCH_EVERY seconds.
"""

import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

from app.cache.freshness import Snapshot
from app.cache.result import CacheResult, Source
from app.decision_log.chain import Chain
from app.decision_log.line import LineWriter
from app.decision_log.verify import LogVerifier
from app.decisions.evaluate import CachedFile, Question, evaluate
from app.history.archive.archive import Archive
from app.history.archive.folder import Folder
from app.history.archive.span import span_of
from robots_core.content import version_id
from robots_core.origin import Origin, Target
from robots_core.robots.access import Successful, readable_part
from robots_core.robots.agents import known_agents, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.bench.http import Contestant, Origins, Server, get, service
from tests.corpus import real_files

LINES = 1_000_000
ORIGINS = 2000
NOW = 1_790_000_000.0
BATCH = 500
RATE, ROUNDS, ROUND_SECONDS, FETCH_EVERY = 1000.0, 12, 5.0, 0.05


def lines_of(count: int, archive: Archive) -> Iterator[bytes]:
    """So many decisions about real files, without their links."""
    chance = random.Random(17)
    files: list[tuple[Origin, CachedFile, list[str]]] = []
    for number, body in enumerate(islice(real_files().values(), ORIGINS)):
        access = Successful(200, readable_part(body), len(body) > len(readable_part(body)), "text/plain")
        origin, snapshot = Origin("https", f"host-{number}.example", 443), Snapshot(access, NOW)
        archive.write([span_of(origin, snapshot)], "bench", "2026-09-21")
        robots = RobotsTxt(access.body, truncated=access.truncated)
        cached = CacheResult(snapshot, None, Source.MEMORY)
        values = [it.value for group in robots.reading(DIALECTS["rfc9309"]).groups for it in group.rules]
        paths = [value.decode("ascii", "ignore") for value in values if value.startswith(b"/")] or ["/"]
        files.append((origin, CachedFile(cached, robots, number, version_id(access)), paths))
    agents = [*known_agents().values(), read_agent("ExampleBot")]
    writer = LineWriter("whole")
    for number in range(count):
        origin, file, paths = chance.choice(files)
        agent = chance.choice(agents)
        path = chance.choice(paths) + chance.choice(["", "a", "?q=1", "b/c.html"])
        question = Question(Target(origin, path), agent, DIALECTS[agent.dialect])
        yield writer.write(evaluate(question, file, NOW, forbidden=False), f"r-{number}", "bench")


def write(path: Path, lines: Iterator[bytes]) -> float:
    """Link the lines and write them; return the seconds of CPU time to link them."""
    chain, seconds = Chain("bench", lambda: NOW), 0.0
    with path.open("wb") as file:
        while batch := list(islice(lines, BATCH)):
            begun = time.process_time()
            linked = chain.link(batch)
            seconds += time.process_time() - begun
            file.writelines(line + b"\n" for line in linked)
        file.write(chain.mark("end") + b"\n")
    return seconds


def faults(archive: Archive, path: Path) -> tuple[int, int, float]:
    """The faults of a log, the lines that were decided again, and the seconds of CPU time."""
    verifier, begun = LogVerifier(archive), time.process_time()
    with path.open("rb") as file:
        found = sum(1 for _ in verifier.verify(path.name, (line.rstrip(b"\n") for line in file)))
    found += sum(1 for _ in verifier.end())
    return found, verifier.counts["decided"], time.process_time() - begun


def mutated(path: Path, at: int, change: Callable[[bytes, bytes], bytes]) -> Path:
    """A copy of the log, with two lines at an offset replaced."""
    other = path.with_suffix(".mutated")
    with path.open("rb") as file, other.open("wb") as out:
        lines = iter(file)
        out.writelines(islice(lines, at))
        out.write(change(next(lines), next(lines)))
        shutil.copyfileobj(file, out)  # the file's own buffer is that of `lines`
    return other


async def _fetch_again(server: Server, origins: Origins) -> None:
    """Have the files of the server fetched again, one after the other, until cancelled."""
    async with server.connected(1) as [connection]:
        while True:
            for url in origins.urls(60, 100):
                await connection.ask(get(url, max_age="0"))
                await asyncio.sleep(FETCH_EVERY)


async def answers(folder: Path) -> None:
    """Print the latency of hot answers in alternating rounds: without log and archive, twice, and with them."""
    origins = Origins()
    kept = {"DECISION_LOG": str(folder / "log"), "ARCHIVE": str(folder / "archive")}
    settings: Mapping[str, Mapping[str, str]] = {"without": {}, "without, again": {}, "with": kept}
    found: dict[str, list[list[float]]] = {name: [] for name in settings}
    with ExitStack() as stack:
        async with origins.serving():
            requests = [get(url) for url in origins.urls(60, 100)]
            contestants = [
                Contestant(name, stack.enter_context(service("false", None, MIN_REFETCH_SECONDS="0", **it)), requests)
                for name, it in settings.items()
            ]
            for number in range(ROUNDS + 1):
                for each in contestants if number % 2 else reversed(contestants):
                    fetching = asyncio.create_task(_fetch_again(each.server, origins))
                    times = await each.latencies(RATE, ROUND_SECONDS)
                    fetching.cancel()
                    await asyncio.gather(fetching, return_exceptions=True)
                    if number:  # the first round fetches all files
                        found[each.name].append(quantiles(times, n=1000))
    print(
        f"hot answers, {RATE:.0f} a second, milliseconds, medians of {ROUNDS} rounds, and the ratio to the first row:"
    )
    shares = {"p50": 500, "p90": 900, "p99": 990}
    first: dict[str, float] = {}
    for name, rounds in found.items():
        seconds = {share: median(one[at - 1] for one in rounds) for share, at in shares.items()}
        first = first or seconds
        shown = (f"{share} {it * 1e3:.3f} ({it / first[share]:.2f})" for share, it in seconds.items())
        print(f"  {name:<16}", *shown)
    lines = (folder / "log").read_bytes().count(b"\n")
    print(f"  {lines} lines in the log")


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name) / "archive", Path(name) / "log"
        folder.mkdir()
        archive = Archive(Folder(folder))
        linking = write(path, lines_of(count, archive))
        sizes = {it: sum(file.stat().st_size for file in (folder / it).rglob("*.*")) for it in ("spans", "index")}
        objects = [file.stat().st_size for file in (folder / "objects").rglob("*") if file.is_file()]
        size = path.stat().st_size
        print(f"{count} lines, {size / count:.0f} bytes each; linking takes {linking / count * 1e6:.2f} us of CPU each")
        print(f"{ORIGINS} versions: {sum(objects) / ORIGINS:.0f} bytes of files each; bytes of all spans: {sizes}")
        found, decided, seconds = faults(archive, path)
        print(f"verified: {decided} decided again, {found} faults, {seconds / count * 1e6:.1f} us of CPU a line")
        changes: dict[str, Callable[[bytes, bytes], bytes]] = {
            "changed": lambda one, other: one.replace(b'"verdict"', b'"Verdict"') + other,
            "dropped": lambda _one, other: other,
            "moved": lambda one, other: other + one,
        }
        for kind, change in changes.items():
            found, _, _ = faults(archive, mutated(path, random.randrange(count - 2), change))
            print(f"one line {kind}: {found} faults")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "archive").mkdir()
        asyncio.run(answers(Path(name)))


if __name__ == "__main__":
    main()
