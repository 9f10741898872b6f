"""Rows per second of CPU time, of one core, in each engine: `make bench NAME=engines`, ARGS=ROWS (2,000,000).

Rows are in random order, over 20,000 origins by Zipf's law, by four agents. Rounds alternate; the best of each counts.
Spark's figures have the CPU time of its JVM and of its Python worker together.
"""

import gc
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from robots_core.arrow import Bundle, decide
from robots_core.origin import BadUrl, read_target
from tests.bulk.of_protego import OfProtego
from tests.core.library import AT
from tests.corpus import real_files

ORIGINS = 20_000
ROUNDS = 3
BATCH = 65_536
AGENTS = (
    "ExampleBot",
    "Googlebot",
    "GPTBot",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
)
PLAIN_PATHS = (
    "/",
    "/about",
    "/products/{}/a-long-name-of-a-product",
    "/blog/2024/05/{}/title.html",
    "/search?q={}&page=2",
)
_PATH = re.compile(rb"(?im)^(?:dis)?allow:[ \t]*(/[^\r\n#*$]*)")


def bundle() -> pa.Table:
    """Real files, repeated under other hosts with another last line; one origin in five has an outcome."""
    chosen, real = random.Random(1), list(real_files().values())
    outcomes = chosen.choices(["200", "404", "403", "503", "timeout"], [80, 15, 2, 2, 1], k=ORIGINS)
    bodies = [real[number % len(real)] + b"\n#%d\n" % number for number in range(ORIGINS)]
    found = [body if word == "200" else None for body, word in zip(bodies, outcomes, strict=True)]
    origins = [f"https://h{number:05}.example" for number in range(ORIGINS)]
    return pa.table({"origin": origins, "outcome": outcomes, "body": pa.array(found, pa.binary())})


def pages(table: pa.Table, count: int) -> Iterator[pa.RecordBatch]:
    """Rows about the origins of a bundle."""
    chosen = random.Random(2)
    origins, bodies = table["origin"].to_pylist(), table["body"].to_pylist()
    paths = [
        [
            *(path.decode("utf-8", "replace").strip() + "page{}.html" for path in _PATH.findall(body or b"")[:10]),
            *PLAIN_PATHS,
        ]
        for body in bodies
    ]
    order = chosen.sample(range(ORIGINS), ORIGINS)
    weights = list(accumulate(1 / rank for rank in range(1, ORIGINS + 1)))
    for start in range(0, count, BATCH):
        rows = min(BATCH, count - start)
        files = chosen.choices(order, cum_weights=weights, k=rows)
        urls = [
            origins[file] + chosen.choice(paths[file]).replace("{}", str(chosen.randrange(99_999))) for file in files
        ]
        yield pa.record_batch([urls, chosen.choices(AGENTS, [55, 25, 15, 5], k=rows)], names=["url", "agent"])


def plain(batch: pa.RecordBatch, files: Bundle) -> pa.Array:
    """The verdicts by one call of File.decide for each row."""
    found: list[str | None] = []
    for url, agent in zip(batch["url"].to_pylist(), batch["agent"].to_pylist(), strict=True):
        try:
            target = read_target(url)
        except BadUrl:
            found.append(None)
            continue
        row = files.row(target.origin)
        found.append("defer" if row < 0 else files._file(row).file.decide(target.path, agent, at=AT).verdict.value)
    return pa.array(found)


Work = tuple[Callable[[], Any], Callable[[Any, Any], Any]]
"""What makes the state, such as parsed files, and what decides a batch by it: answers, or their verdicts alone."""

OURS = "arrow.decide"


def verdicts_of(found: Any) -> Any:
    """The verdicts of what a Work has decided."""
    return found.column("verdict") if isinstance(found, pa.RecordBatch | pa.Table) else found


def say(name: str, count: int, seconds: float, more: str = "") -> None:
    """Print a line of results."""
    print(f"{name:60} {count / seconds / 1000:8,.0f} k rows/s/core {more}", flush=True)


def measure(works: dict[str, Work], rows: list[pa.RecordBatch]) -> None:
    """Each work cold and warm, in alternating rounds."""
    count, best = sum(batch.num_rows for batch in rows), dict[str, float]()
    for _ in range(ROUNDS):
        for name, (make, work) in works.items():
            state = make()
            for turn in "cold", "warm":
                begun = time.process_time()
                for batch in rows:
                    work(batch, state)
                spent = time.process_time() - begun
                best[f"{name}, {turn}"] = min(spent, best.get(f"{name}, {turn}", spent))
            del state
            gc.collect()
    for name, seconds in best.items():
        say(name, count, seconds)


def in_duckdb(folder: Path, works: dict[str, Work], counts: dict[str, int]) -> None:
    """DuckDB with one thread: a function in SQL."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for number, (name, (make, work)) in enumerate(works.items()):
        function = _function(make(), work)
        types = ["VARCHAR", "VARCHAR"]
        connection.create_function(
            f"verdict{number}", function, types, "VARCHAR", type="arrow", null_handling="special"
        )
        for turn in "cold", "warm", "warm":
            begun = time.process_time()
            sql = f"SELECT verdict{number}(url, agent) AS v, count(*) FROM '{folder}/{name}.parquet' GROUP BY v"
            connection.sql(sql).fetchall()
            say(f"DuckDB {duckdb.__version__}, {name}, {turn}", counts[name], time.process_time() - begun)


def _function(state: Any, work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The verdicts of two columns, as DuckDB calls it."""

    def verdicts(url: Any, agent: Any) -> Any:
        return verdicts_of(work(pa.Table.from_arrays([url, agent], ["url", "agent"]), state))

    return verdicts


def in_spark(folder: Path, works: dict[str, Work], counts: dict[str, int]) -> None:
    """Spark with one task at a time."""
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "50000").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for name, (make, work) in works.items():
        decided = _mapping(spark.sparkContext.broadcast(make()), work)
        whole = ", reason string, rule string, line int, interval double, version string"
        columns = "verdict string" + (whole if name == OURS else "")
        for turn in "cold, with the start of the worker", "warm", "warm":
            before = _spent()
            rows = spark.read.parquet(f"{folder}/{name}.parquet").select("url", "agent").mapInArrow(decided, columns)
            rows.groupBy("verdict").count().collect()
            after = _spent()
            worker = f"the worker alone {counts[name] / (after[1] - before[1]) / 1000:,.0f}, {after[2] >> 20} MiB"
            say(f"Spark {spark.version}, {name}, {turn}", counts[name], after[0] - before[0], worker)
    spark.stop()


def _mapping(shared: Any, work: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """The answers of batches, as Spark calls it."""

    def decided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = work(batch, shared.value)
            yield found if isinstance(found, pa.RecordBatch) else pa.record_batch([found], names=["verdict"])

    return decided


def _spent() -> tuple[float, float, int]:
    """CPU seconds of all processes of Spark, those of its workers, and the bytes of the largest worker."""
    total = workers = 0.0
    largest = 0
    for process in psutil.Process().children(recursive=True):
        times = process.cpu_times()
        total += times.user + times.system
        if "java" not in process.name():
            workers += times.user + times.system
            largest = max(largest, process.memory_info().rss)
    return total, workers, largest


def main() -> None:
    """Make the data, and measure each engine."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    table = bundle()
    rows = list(pages(table, count))
    works: dict[str, Work] = {
        OURS: (lambda: Bundle(table), decide),
        "File.decide for each row": (lambda: Bundle(table), plain),
        "protego for each row": (lambda: OfProtego(table), lambda batch, peer: peer.decide(batch)),
    }
    some = rows[: max(1, len(rows) // 4)]  # for those that are slow
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "bundle.parquet", row_group_size=2000, compression="zstd")
        size = (folder / "bundle.parquet").stat().st_size
        print(f"{count:,} rows; the bundle has {size / ORIGINS:.0f} bytes an origin")
        counts = {}
        for work in works:
            chosen = rows if work == OURS else some
            pq.write_table(pa.Table.from_batches(chosen), folder / f"{work}.parquet", compression="zstd")
            counts[work] = sum(batch.num_rows for batch in chosen)
        measure(works, some)
        measure({f"{OURS}, all rows": works[OURS]}, rows)
        in_duckdb(folder, works, counts)
        in_spark(folder, works, counts)


if __name__ == "__main__":
    main()
