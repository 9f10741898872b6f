"""Rows per second of CPU time, of one core, in each engine: `make bench-engines`, with BENCH_ROWS rows (2,000,000).

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
from protego import Protego

from robots_core.arrow import Bundle, decide
from robots_core.origin import BadUrl, read_target
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


class OfProtego:
    """protego's parsers by host; what is no file is allowed."""

    def __init__(self, table: pa.Table) -> None:
        self._bodies = dict(zip(table["origin"].to_pylist(), table["body"].to_pylist(), strict=True))
        self._parsed: dict[str, Any] = {}

    def decide(self, batch: pa.RecordBatch) -> pa.Array:
        """The verdicts of a batch."""
        found = []
        for url, agent in zip(batch["url"].to_pylist(), batch["agent"].to_pylist(), strict=True):
            origin = url[: url.find("/", 8)]
            parsed = self._parsed.get(origin)
            if parsed is None:
                body = self._bodies.get(origin) or b""
                parsed = self._parsed[origin] = Protego.parse(body.decode("utf-8", "replace"))
            found.append("allow" if parsed.can_fetch(url, agent) else "disallow")
        return pa.array(found)


def say(name: str, count: int, seconds: float, more: str = "") -> None:
    """Print a line of results."""
    print(f"{name:40} {count / seconds / 1000:8,.0f} k rows/s/core {more}", flush=True)


def measure(
    works: dict[str, tuple[Callable[[], object], Callable[[pa.RecordBatch, Any], object]]], rows: list[pa.RecordBatch]
) -> None:
    """Each work cold and warm, in alternating rounds: what makes its state, and what decides a batch."""
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


def in_duckdb(folder: Path, table: pa.Table, count: int) -> None:
    """DuckDB with one thread: a function in SQL."""
    files = Bundle(table)

    def verdict(url: Any, agent: Any) -> Any:
        return decide(pa.Table.from_arrays([url, agent], ["url", "agent"]), files).column("verdict")

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.create_function(
        "verdict", verdict, ["VARCHAR", "VARCHAR"], "VARCHAR", type="arrow", null_handling="special"
    )
    for turn in "cold", "warm", "warm":
        begun = time.process_time()
        sql = f"SELECT verdict(url, agent) AS v, count(*) FROM '{folder}/pages.parquet' GROUP BY v"
        connection.sql(sql).fetchall()
        say(f"DuckDB {duckdb.__version__}, {turn}", count, time.process_time() - begun)


def in_spark(folder: Path, count: int) -> None:
    """Spark with one task at a time."""
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "50000").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    shared = spark.sparkContext.broadcast(Bundle.open(folder / "bundle.parquet"))

    def decided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield decide(batch, shared.value)

    columns = "verdict string, reason string, rule string, line int, interval double, version string"
    for turn in "cold, with the start of the worker", "warm", "warm":
        before = _spent()
        rows = spark.read.parquet(f"{folder}/pages.parquet").select("url", "agent").mapInArrow(decided, columns)
        rows.groupBy("verdict").count().collect()
        after = _spent()
        worker = f"the worker alone {count / (after[1] - before[1]) / 1000:,.0f}, {after[2] >> 20} MiB"
        say(f"Spark {spark.version}, {turn}", count, after[0] - before[0], worker)
    spark.stop()


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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "bundle.parquet", row_group_size=2000, compression="zstd")
        size = (folder / "bundle.parquet").stat().st_size
        print(f"{count:,} rows; the bundle has {size / ORIGINS:.0f} bytes an origin")
        with pq.ParquetWriter(folder / "pages.parquet", rows[0].schema, compression="zstd") as writer:
            for batch in rows:
                writer.write_batch(batch)
        measure(
            {
                "arrow.decide": (lambda: Bundle(table), lambda batch, files: decide(batch, files)),
                "File.decide for each row": (lambda: Bundle(table), lambda batch, files: plain(batch, files)),
                "protego for each row": (lambda: OfProtego(table), lambda batch, peer: peer.decide(batch)),
            },
            rows[: max(1, len(rows) // 4)],
        )
        measure({"arrow.decide, all rows": (lambda: Bundle(table), lambda batch, files: decide(batch, files))}, rows)
        in_duckdb(folder, table, count)
        in_spark(folder, count)


if __name__ == "__main__":
    main()
