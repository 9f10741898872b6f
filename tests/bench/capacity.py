"""The costs of a fleet by its size: `make bench NAME=capacity`, explained in docs/explanation/capacity.md.

Bytes are measured in the embedded Valkey, with the real files of protego's sdist. Fetches and ages are results of
`simulation`, run at several rates and added up over all origins of a fleet.
"""

import asyncio
import math
import platform
import statistics
import subprocess
import sys
import tarfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from secrets import token_bytes
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from redis.asyncio import Redis

from app.cache.codec import encode
from app.cache.freshness import DAY, HOUR, KEEP, Failing, Snapshot
from app.cache.recheck import MODELS, RFC9309_MODEL, SEZNAM_MODEL
from app.cache.redis_snapshots import RedisSnapshots
from app.cache.visits import RedisVisits, Tally
from app.history import versions as history
from app.history.redis_history import history_key
from app.store.connect import connect
from app.store.embedded import serve
from app.store.guarded_client import GuardedClient
from robots_core.origin import Origin
from robots_core.robots.access import (
    BODY_LIMIT,
    Access,
    Cause,
    Lifetime,
    Successful,
    Unavailable,
    Unreachable,
    Validators,
)
from tests.bench.simulation import AGES, WITHOUT_FILE, Account, Course, play

ROOT = Path(__file__).parents[2]
NOW = 1_790_000_000.0
SINCE = int(NOW - 400 * DAY)

BETWEEN = (Unavailable(404), Unreachable(Cause.CONNECTION))
"""The versions of an origin without a file before and during an outage."""

# Assumptions, which cannot be measured here.

ZIPF = 1.0
"""The exponent of the origins' visit rates by rank."""

MEAN_PACE = 1.0
"""Visits of an origin a day, on average."""

HIGHEST_PACE = 8640.0
"""The highest visit rate: once in 10 seconds."""

CACHING: Mapping[str, tuple[Lifetime, float]] = {
    "without caching headers": (Lifetime(), 0.8),
    "with an hour": (Lifetime(cache_control="max-age=3600"), 0.1),
    "with `no-cache`": (Lifetime(cache_control="no-cache"), 0.1),
}
"""The caching headers of responses, and the share of origins that send them."""

SIZES = (10**6, 10**8, 10**9)

PACES = tuple(10 ** (step / 2) for step in range(-4, 9))
"""Simulated rates, from 0.01 to 10,000 visits a day; values between them are interpolated log-linearly."""

EVENTS = 20_000
"""The approximate number of simulated visits at each rate, of at least 8 and at most 4,000 origins."""

MANY = 100.0
"""Visits a day from which on 6 weeks are simulated instead of 26, since they vary little."""


# Bytes.


@dataclass(frozen=True, slots=True)
class Bytes:
    """The memory of one origin in the server: with a file, without one, and its visit counts in addition.

    `changed` is the history of a file that has changed once, `again` that of each further change, `outage` the
    history of a 404 with an outage in between, and `empty` that of any history without the bytes of its versions.
    `resident` is the resident memory of the server per byte that it uses.
    """

    file: float
    missing: float
    visits: float
    changed: float = 0.0
    again: float = 0.0
    outage: float = 0.0
    empty: float = 0.0
    resident: float = 1.0


def real_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Hosts and their files, from the test data of protego's sdist. Raises SystemExit without it."""
    sdist = next(folder.glob("protego-*.tar.gz"), None)
    if sdist is None:
        raise SystemExit(f"{folder} has no sdist of protego; run `make bench NAME=capacity`, which downloads it")
    with tarfile.open(sdist) as archive:
        for member in archive:
            found = archive.extractfile(member) if "/tests/test_data/" in member.name and member.isfile() else None
            if found is not None:
                yield member.name.rpartition("/")[2], found.read(BODY_LIMIT)


AT_ONCE = 8
"""Writes at the same time; a client has a few connections."""

Put = Callable[[RedisSnapshots, RedisVisits, int], Any]


def measure(files: Sequence[tuple[str, bytes]], binary: str | None = None) -> Bytes:
    """The memory that the server reports, keys and tables included, divided by the number of origins.

    `binary` is the server, instead of the embedded one, which allocates with the C library.
    """
    # The server's tables double as they grow: with this many origins they are about as full as on average.
    times = math.ceil(48_000 / len(files))
    origins = [
        Origin("https", f"{'www.' * (time > 0)}{host}", 443 + time) for time in range(times) for host, _ in files
    ]
    bodies = [body for _ in range(times) for _, body in files]
    validators = Validators('"5f3c2a1b-1a2b"', "Tue, 10 Nov 2026 10:00:00 GMT")

    def with_file(store: RedisSnapshots, _: RedisVisits, at: int) -> Any:
        access = Successful(200, bodies[at], content_type="text/plain; charset=utf-8")
        return store.put(origins[at], Snapshot(access, NOW, None, validators, since=SINCE), KEEP)

    def without_file(store: RedisSnapshots, _: RedisVisits, at: int) -> Any:
        return store.put(origins[at], Snapshot(Unavailable(404), NOW, since=SINCE), KEEP)

    def visited(_: RedisSnapshots, visits: RedisVisits, at: int) -> Any:
        return visits.add({origins[at]: Tally(123.456789, NOW, NOW - 60 * DAY)})

    def past(store: RedisSnapshots, at: int, *found: Access) -> Any:
        versions = [_version(access, SINCE + number * DAY) for number, access in enumerate(found)]
        kept = history.write(history.add((), versions, NOW), token_bytes(8))
        key = history_key(origins[at])
        return store.redis.command(key, "SET", key, kept, "EX", int(history.HISTORY_EXPIRY))

    def changed(store: RedisSnapshots, _: RedisVisits, at: int) -> Any:
        return past(store, at, Successful(200, bodies[at]))

    def changed_again(store: RedisSnapshots, _: RedisVisits, at: int) -> Any:
        return past(store, at, Successful(200, bodies[at]), Successful(200, bodies[at] + b"\nDisallow: /new/\n"))

    def interrupted(store: RedisSnapshots, _: RedisVisits, at: int) -> Any:
        return past(store, at, *BETWEEN)

    (file, resident), *others = (
        asyncio.run(_taken(binary, put, len(origins)))
        for put in (with_file, without_file, visited, changed, changed_again, interrupted)
    )
    missing, counted, once, twice, outage = (used for used, _ in others)
    history_bytes = len(history.write(tuple(_version(access, SINCE) for access in BETWEEN), bytes(8)))
    return Bytes(file, missing, counted, once, twice - once, outage, outage - history_bytes, resident / file)


def _version(access: Access, since: float) -> history.Version:
    failing = Failing(since, since + HOUR, 2, access) if isinstance(access, Unreachable) else None
    return history.version_of(Snapshot(access, since + HOUR, failing=failing, since=int(since)))


@contextmanager
def _server(binary: str | None) -> Iterator[str]:
    if binary is None:
        with serve(None) as url:
            yield url
        return
    with TemporaryDirectory() as folder:
        socket = Path(folder) / "server.sock"
        options = ["--port", "0", "--save", "", "--dir", folder, "--unixsocket", str(socket)]
        with subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL) as server:
            try:
                while not socket.exists():
                    if server.poll() is not None:
                        raise SystemExit(f"{binary} did not start")
                    time.sleep(0.05)
                yield f"unix://{socket}"
            finally:
                server.terminate()


async def _taken(binary: str | None, put: Put, number: int) -> tuple[float, float]:
    # A server for each: what one gives back when it is emptied, it gives back when it likes.
    with _server(binary) as url:
        client = connect(url)
        assert isinstance(client, Redis)
        store = RedisSnapshots(GuardedClient(client, monotonic=time.monotonic, timeout=5.0))
        visits = RedisVisits(GuardedClient(client, monotonic=time.monotonic, timeout=5.0), clock=lambda: NOW)
        await store.redis.ping()
        before = await client.info("memory")
        for start in range(0, number, AT_ONCE):
            await asyncio.gather(*(put(store, visits, at) for at in range(start, min(start + AT_ONCE, number))))
        after = await client.info("memory")
        await store.redis.aclose()
        await client.aclose()
    used, resident = (int(after[name]) - int(before[name]) for name in ("used_memory", "used_memory_rss"))
    return used / number, resident / number


def tell_files(files: Sequence[tuple[str, bytes]]) -> None:
    plain = [len(body) for _, body in files]
    packed = [len(encode(Snapshot(Successful(200, body), NOW))) for _, body in files]
    print(f"\n{len(files)} real files, {sum(plain):,} bytes, cut at {BODY_LIMIT:,}; encoded {sum(packed):,} bytes\n")
    table(
        ["bytes", "mean", "median", "90 %", "99 %", "largest"],
        [[name, statistics.mean(sizes), *quantiles(sizes)] for name, sizes in (("file", plain), ("encoded", packed))],
    )


def quantiles(sizes: Sequence[int]) -> list[float]:
    ordered = sorted(sizes)
    return [ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in (0.5, 0.9, 0.99, 1)]


# One origin.


@dataclass(frozen=True, slots=True)
class Origins:
    """Results for origins of one visit rate, per origin and day; `ages` are shares of the decisions.

    `past` is the share of origins with a history; `history_bytes` is its mean length over all origins.
    """

    fetches: float
    age: float
    ages: tuple[float, ...]
    deferred: float
    kept: float
    counted: float
    past: float
    history_bytes: float


def watch(model: str, headers: Lifetime) -> list[Origins]:
    """The results of the simulation at each of PACES."""
    found = []
    for pace in PACES:
        account = Account()
        course = Course(pace, MODELS[model], headers)
        if pace >= MANY:
            course = replace(course, warm_up=14 * DAY, watched=42 * DAY)
        for seed in range(min(max(int(EVENTS / (pace * course.watched / DAY)), 8), 4000)):
            play(course, account, Random(f"{pace} {seed}"))
        known = account.decisions - account.deferred
        found.append(
            Origins(
                account.fetches / account.days,
                account.age_sum / known,
                tuple(number / known for number in account.ages),
                account.deferred / account.decisions,
                account.kept_days / account.days,
                account.counted_days / account.days,
                account.history_days / account.days,
                account.history_byte_days / account.days,
            )
        )
    return found


def mixed(parts: Sequence[tuple[Sequence[Origins], float]]) -> list[Origins]:
    """The mean over kinds of origins, weighted by their shares."""
    return [blend([(row[at], share) for row, share in parts]) for at in range(len(PACES))]


def blend(parts: Sequence[tuple[Origins, float]]) -> Origins:
    def mean(value: Callable[[Origins], float]) -> float:
        return sum(value(one) * share for one, share in parts)

    return Origins(
        mean(lambda one: one.fetches),
        mean(lambda one: one.age),
        tuple(sum(one.ages[at] * share for one, share in parts) for at in range(len(AGES) + 1)),
        mean(lambda one: one.deferred),
        mean(lambda one: one.kept),
        mean(lambda one: one.counted),
        mean(lambda one: one.past),
        mean(lambda one: one.history_bytes),
    )


def at_pace(rows: Sequence[Origins], pace: float) -> Origins:
    """The results at any rate, interpolated log-linearly between two simulated ones."""
    place = (math.log10(pace) - math.log10(PACES[0])) * 2
    low = min(max(int(place), 0), len(PACES) - 2)
    share = min(max(place - low, 0.0), 1.0)
    return blend([(rows[low], 1 - share), (rows[low + 1], share)])


# All origins.


@dataclass(frozen=True, slots=True)
class Fleet:
    """Totals over all origins, per second; ages are in seconds, memory in bytes.

    `kept`, `counted` and `past`: the shares of origins that have a snapshot, visits, and a history in the store at any
    time; `history_bytes`: of such a history, in the mean over all origins.
    """

    fetches: float
    decisions: float
    age: float
    median: float
    oldest: float
    deferred: float
    kept: float
    counted: float
    past: float
    history_bytes: float
    memory: float


def zipf(origins: int, exponent: float) -> list[tuple[float, float]]:
    """Visit rates and numbers of origins, by classes of ranks: a sixteenth of a decade each, single ranks first."""
    ranks = sorted({math.floor(10 ** (step / 16)) for step in range(int(16 * math.log10(origins)) + 1)} | {origins + 1})
    classes = [(math.sqrt(low * (high - 1)), high - low) for low, high in pairwise(ranks)]

    def paces(first: float) -> list[tuple[float, float]]:
        return [(min(first / rank**exponent, HIGHEST_PACE), number) for rank, number in classes]

    low, high = 0.0, 1e30
    for _ in range(200):  # find the rate of the first, so that the mean is MEAN_PACE despite the maximum
        middle = (low + high) / 2 if low else high / 2
        total = sum(pace * number for pace, number in paces(middle))
        low, high = (middle, high) if total < MEAN_PACE * origins else (low, middle)
    return paces(high)


def add_up(rows: Sequence[Origins], origins: int, size: Bytes, *, visits: bool, exponent: float = ZIPF) -> Fleet:
    fetches = decisions = age = deferred = kept = counted = past = history_bytes = 0.0
    ages = [0.0] * (len(AGES) + 1)
    for pace, number in zipf(origins, exponent):
        one = at_pace(rows, pace)
        fetches += one.fetches * number
        decisions += pace * number
        known = pace * number * (1 - one.deferred)
        deferred += pace * number - known
        age += one.age * known
        for at, share in enumerate(one.ages):
            ages[at] += share * known
        kept += one.kept * number
        counted += one.counted * number * visits
        past += one.past * number
        history_bytes += one.history_bytes * number
    known = decisions - deferred
    return Fleet(
        fetches / DAY,
        decisions / DAY,
        age / known,
        age_below(ages, 0.5),
        age_below(ages, 0.95),
        deferred / decisions,
        kept / origins,
        counted / origins,
        past / origins,
        history_bytes / origins,
        kept * (size.missing * WITHOUT_FILE + size.file * (1 - WITHOUT_FILE))
        + counted * size.visits
        + past * size.empty
        + history_bytes,
    )


def age_below(ages: Sequence[float], share: float) -> float:
    """The age below which this share lies."""
    sums = [sum(ages[: at + 1]) for at in range(len(ages))]
    return AGES[min(bisect_right(sums, share * sums[-1]), len(AGES) - 1)]


# Output.


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(cell if isinstance(cell, str) else number(cell) for cell in row) + " |")


def number(value: Any) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    if seconds < HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:.1f} d"


def memory(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def print_fleets(rows: Mapping[str, Sequence[Origins]], size: Bytes) -> None:
    print()
    cells = []
    for origins in SIZES:
        for model in (RFC9309_MODEL, SEZNAM_MODEL):
            fleet = add_up(rows[model], origins, size, visits=model == SEZNAM_MODEL)
            cells.append(
                [
                    f"{origins:,}",
                    model,
                    f"{fleet.kept:.1%}",
                    f"{fleet.counted:.1%}",
                    f"{fleet.past:.2%}",
                    fleet.history_bytes,
                    memory(fleet.memory),
                    fleet.decisions,
                    fleet.fetches,
                    fleet.decisions / fleet.fetches,
                    duration(fleet.age),
                    duration(fleet.median),
                    duration(fleet.oldest),
                    f"{fleet.deferred:.2%}",
                ]
            )
    head = [
        "origins",
        "model",
        "kept",
        "counted",
        "with history",
        "its bytes",
        "memory",
        "decisions/s",
        "fetches/s",
        "decisions a fetch",
    ]
    table([*head, "mean age", "median", "95 %", "deferred"], cells)


def print_sensitivity(
    kinds: Mapping[tuple[str, str], Sequence[Origins]], rows: Mapping[str, Sequence[Origins]]
) -> None:
    size = Bytes(0, 0, 0)
    print()
    cases: list[tuple[str, Callable[[str], Fleet]]] = [
        (f"all {headers}", lambda model, headers=headers: add_up(kinds[model, headers], 10**8, size, visits=False))  # type: ignore[misc]
        for headers in CACHING
    ]
    cases += [
        (f"exponent {e}", lambda model, e=e: add_up(rows[model], 10**8, size, visits=False, exponent=e))  # type: ignore[misc]
        for e in (0.8, 1.2)
    ]
    cells = []
    for name, fleet_of in cases:
        fleets = [fleet_of(model) for model in (RFC9309_MODEL, SEZNAM_MODEL)]
        cells.append([name, *(value for it in fleets for value in (number(it.fetches), duration(it.age)))])
    table(["100,000,000 origins", "rfc9309 fetches/s", "mean age", "seznam fetches/s", "mean age"], cells)


COLOURS = {RFC9309_MODEL: "#1b6ca8", SEZNAM_MODEL: "#c8553d"}


def draw(rows: Mapping[str, Sequence[Origins]], size: Bytes, path: Path) -> None:
    figure = Figure(figsize=(11, 8), layout="constrained")
    (fetches, ages), (rates, stored) = figure.subplots(2, 2)
    many = [10 ** (step / 2) for step in range(12, 19)]
    for model, row in rows.items():
        style: dict[str, Any] = {"color": COLOURS[model], "label": model, "linewidth": 2}
        fleets = [add_up(row, round(origins), size, visits=model == SEZNAM_MODEL) for origins in many]
        fetches.plot(PACES, [one.fetches for one in row], **style)
        ages.plot(PACES, [one.age / DAY for one in row], **style)
        rates.plot(many, [fleet.fetches for fleet in fleets], **style)
        stored.plot(many, [fleet.memory / 1e9 for fleet in fleets], **style)
    fetches.plot(PACES[:7], PACES[:7], color="#999999", linestyle=":", label="a fetch per visit")
    label(fetches, "Fetches of one origin", "visits a day", "fetches a day")
    label(ages, "Age of the copy at a decision", "visits a day", "mean age, days")
    ages.set_yscale("linear")
    label(rates, "Fetches of a fleet", "origins", "fetches a second")
    label(stored, "Memory of the store", "origins", "gigabytes")
    for axes in (rates, stored):
        axes.set_xticks([10**power for power in range(6, 10)], ["1 M", "10 M", "100 M", "1 G"])
    figure.savefig(path, dpi=110)


def label(axes: Axes, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=12)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False)


def main(folder: Path, picture: Path, binary: str | None = None) -> None:
    """Measure, simulate, print the tables of the page and draw its picture."""
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.python_implementation()} {platform.python_version()}")
    files = list(islice(real_files(folder), 100_000))
    tell_files(files)
    size = measure(files, binary)
    print()
    table(
        ["an origin in the store", "bytes"],
        [
            ["with a file", size.file],
            ["with a 404", size.missing],
            ["visits beside either", size.visits],
            ["the history of a file that has changed", size.changed],
            ["another change", size.again],
            ["the history of a 404, after an outage", size.outage],
            ["a history without its bytes", size.empty],
        ],
    )
    print(f"\nresident for each byte used: {size.resident:.2f}")
    kinds = {
        (model, name): watch(model, headers)
        for model in (RFC9309_MODEL, SEZNAM_MODEL)
        for name, (headers, _) in CACHING.items()
    }
    rows = {
        model: mixed([(kinds[model, name], share) for name, (_, share) in CACHING.items()])
        for model in (RFC9309_MODEL, SEZNAM_MODEL)
    }
    print_fleets(rows, size)
    print_sensitivity(kinds, rows)
    draw(rows, size, picture)


if __name__ == "__main__":
    main(ROOT / "build" / "corpus", ROOT / "docs" / "explanation" / "capacity.png", *sys.argv[1:])
