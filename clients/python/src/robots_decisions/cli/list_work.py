"""Work through the origins or lines of long lists: sorted, asked in batches, shown, and resumed."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from robots_decisions import AsyncClient
from robots_decisions.cli import rows
from robots_decisions.cli.asking import Ask, Asking, Shape, is_pending
from robots_decisions.cli.batches import Batch, Ranges, batches, ranges
from robots_decisions.cli.entries import UNREADABLE, ReadEntry, record_of
from robots_decisions.cli.failures import INTERRUPTED, Failed, Parser
from robots_decisions.cli.interrupts import until_interrupted
from robots_decisions.cli.options import (
    API_KEY,
    MAX_CONCURRENCY,
    REPORTED_LINES,
    RESTART_WAIT,
    add_server,
    concurrency,
    printable,
)
from robots_decisions.cli.pace_audit import PaceAudit
from robots_decisions.cli.sinks import Sink
from robots_decisions.cli.sorting import Sorter, written
from robots_decisions.cli.sources import Sources
from robots_decisions.cli.state_file import StateFile


def add_common(parser: Parser) -> None:
    """Add the arguments that all such commands have."""
    parser.add_argument(
        "inputs",
        metavar="FILE",
        nargs="+",
        help="URLs or hosts, one per line, # for comments, or Parquet; - for standard input; gzip is read; s3://... or "
        "@https://... for a list at a URL; or a URL itself",
    )
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="the files are tables: the column of CSV or Parquet, or the member of JSON lines or of a CDX index, that "
        "has the URL; default url for Parquet",
    )
    add_server(parser)
    parser.add_argument("--state", metavar="FILE", help="record what is done in FILE, so that the same command resumes")
    parser.add_argument(
        "--concurrency",
        type=concurrency,
        default=4,
        metavar="N",
        help=f"batches that are asked at once, 1 to {MAX_CONCURRENCY}; default 4",
    )


class Work(NamedTuple):
    """What is done with lines: how they are read, asked and shown, and what the exit code says.

    `open` makes the sink of the rows: it is told whether there are several files, which rows then name, and the
    position at which an earlier run ended, None if there was none. Rows of the verdicts in `only` are written, None for
    all, and with `early_too` those of fetches that came too early, by more than `tolerance` seconds. `wait`: how many
    seconds a line waits for its site, None until that was fetched.
    """

    what: str
    read: ReadEntry
    line_limit: int
    ask: Ask
    shape: Shape
    open: Callable[[bool, int | None], Sink]
    code: Callable[[rows.Counts], int]
    pending: Callable[[Any], bool] = is_pending
    only: frozenset[str] | None = None
    early_too: bool = False
    tolerance: float = 0.0
    is_log: bool = False
    per_origin: bool = False
    cached_first: bool = False
    wait: float | None = None


def run(arguments: argparse.Namespace, work: Work) -> int:
    """Do the work, and print a summary on standard error; return the exit code. Raise Failed."""
    _check_files(arguments)
    sources = Sources(arguments.inputs, arguments.column, tables=not work.is_log)
    clients = [_client(arguments, unreachable) for unreachable in ("fail", "wait")]
    sorter = _sorted(sources, work)
    with StateFile(arguments.state) as state:
        running = ListWork(arguments, work, sources, sorter, state)
        interrupted = asyncio.run(running.run(clients))
    return INTERRUPTED if interrupted else work.code(running.counts)


def _check_files(arguments: argparse.Namespace) -> None:
    """Raise Failed if a file would be written over another one of the command."""
    read = {Path(name).resolve() for name in arguments.inputs}
    written: dict[Path, str] = {}
    for option in ("output", "missing", "state"):
        name = getattr(arguments, option, None)
        if name is None:
            continue
        path = Path(name).resolve()
        if path.exists() and not path.is_file():  # a terminal, a pipe or /dev/null, which may be several of them
            continue
        also = written.get(path) or ("an input" if option != "state" and path in read else None)
        if also is not None:
            raise Failed(f"--{option}: {name} is also {also}. Choose another file.")
        written[path] = f"--{option}"


def _client(arguments: argparse.Namespace, unreachable: Any) -> AsyncClient:
    try:
        return AsyncClient(
            arguments.server, key=os.environ.get(API_KEY) or None, max_wait=RESTART_WAIT, unreachable=unreachable
        )
    except ValueError as error:
        raise Failed(f"{error}.") from None


def _sorted(sources: Sources, work: Work) -> Sorter:
    """The records of all lines, sorted; for origins, those of the first line of each."""
    sorter = Sorter()
    with _bar(None, "line", to_terminal=False) as bar:
        for number, text in sources.lines(work.line_limit):
            record = record_of(number, text, work.read)
            if record is not None:
                sorter.add(record)
            bar.update()
    return sorter


def _first_of_each(records: Iterator[bytes]) -> Iterator[bytes]:
    """The first record of each origin, and all records without one."""
    before = b""
    for record in records:
        origin = record[: record.index(b"\t")]
        if not origin or origin != before:
            yield record
        before = origin


def _counted(records: Iterator[bytes]) -> tuple[Iterator[bytes], int]:
    """The records and their number; they wait in a temporary file."""
    count = 0

    def each() -> Iterator[bytes]:
        nonlocal count
        for record in records:
            count += 1
            yield record

    return iter(written(each())), count


class ListWork:
    """Asks the sorted lines that an earlier run left, and writes their rows."""

    def __init__(
        self, arguments: argparse.Namespace, work: Work, sources: Sources, sorter: Sorter, state: StateFile
    ) -> None:
        self._arguments = arguments
        self._work = work
        self._sources = sources
        self._state = state
        self._sorter = sorter
        self._pace = PaceAudit(work.tolerance)
        self._ranges = Ranges()
        self._reported = 0
        self.counts = rows.Counts()
        self._uncommitted = rows.Counts()
        self._places: list[tuple[int, int]] = []

    async def run(self, clients: Sequence[AsyncClient]) -> bool:
        """Do all that is left. Return whether it was interrupted. Raise Failed."""
        position = self._resume()
        work, arguments = self._work, self._arguments
        self._sink = work.open(self._sources.are_several, position)
        records, count = self._sorter.sorted(), self._sorter.count
        if work.per_origin:
            records, count = _counted(_first_of_each(records))
        left = batches(records, self._ranges.gaps(count))
        asking = Asking(
            clients,
            work.ask,
            work.shape,
            self._done,
            pending=work.pending,
            concurrency=arguments.concurrency,
            in_order=work.is_log,
            cached_first=work.cached_first,
            wait=work.wait,
        )
        failed: Failed | None = None
        interrupted = False
        try:
            with _bar(count, work.what, to_terminal=arguments.output is None) as self._bar:
                self._bar.update(self.counts.total)
                try:
                    async with clients[0], clients[1]:
                        interrupted = await until_interrupted(asking.run(left))
                except Failed as error:
                    failed = error
            self._commit(self._sink.close())
        except BrokenPipeError:
            raise
        except OSError as error:
            failed = Failed(f"Cannot write {arguments.output or 'the output'}: {error.strerror}.")
        sys.stderr.write(self.counts.text(work.what) + "\n")
        if arguments.state is not None and (interrupted or failed):
            sys.stderr.write(f"Not finished. Run the same command with --state {arguments.state} to resume.\n")
        if failed is not None:
            raise failed
        return interrupted

    def _resume(self) -> int | None:
        """Load what an earlier run has done; return the position of its output, None if there was none."""
        given = {
            name: value
            for name, value in vars(self._arguments).items()
            if name not in {"inputs", "column", "run", "state", "concurrency", "server", "wait"}
        }
        done = self._state.load({"lines": self._sorter.digest if self._arguments.state else "", **given})
        if done is None:
            return None
        for record in done:
            for start, end in record["done"]:
                self._ranges.add(start, end)
            for kind, reason, number in record["counts"]:
                self.counts.add(kind, reason, number)
            self.counts.early += record["early"]
        if done:
            self._pace.restore(done[-1]["pace"])
        return int(done[-1]["position"]) if done else 0

    def _done(self, batch: Batch, outcomes: Sequence[rows.Outcome]) -> None:
        """Write the rows of a batch, and record that it is done."""
        found = []
        for outcome in outcomes:
            early = None
            if outcome.fetch is not None:
                early = self._pace.early(*outcome.fetch)
                outcome.row["early"] = early
            for counts in (self.counts, self._uncommitted):
                counts.add(outcome.kind, outcome.reason)
                counts.early += early is not None
            if outcome.kind is None and outcome.reason == UNREADABLE:
                self._report(outcome.row)
            only = self._work.only
            if only is None or (outcome.kind or "none") in only or (early is not None and self._work.early_too):
                found.append(self._placed(outcome.row))
        self._places += ranges(batch.places)
        position = self._sink.write(found)
        if position is not None:
            self._commit(position)
        self._bar.update(len(outcomes))

    def _commit(self, position: int | None) -> None:
        """Record what was done since the last time: its rows are stored."""
        if not self._places:
            return
        self._state.add(
            {
                "done": self._places,
                "position": position,
                "counts": self._uncommitted.saved(),
                "early": self._uncommitted.early,
                "pace": self._pace.saved(),
            }
        )
        self._places, self._uncommitted = [], rows.Counts()

    def _placed(self, row: rows.Row) -> rows.Row:
        """The row with the number that its line has in its file."""
        if not self._sources.are_several:
            return row
        file, number = self._sources.place(row["line"])
        return {"file": file, **row, "line": number}

    def _report(self, row: rows.Row) -> None:
        self._reported += 1
        if self._reported <= REPORTED_LINES:
            placed = self._placed(row)
            where = f"{placed['file']}, line" if "file" in placed else "line"
            more = "" if self._reported < REPORTED_LINES else " (further lines are only counted)"
            tqdm.write(f"{where} {placed['line']}: {printable(row['detail'])}{more}", file=sys.stderr)


def _bar(total: int | None, what: str, *, to_terminal: bool) -> "tqdm[Any]":
    """A progress bar with the rate on standard error, unless that is not a terminal or has the rows."""
    hidden = True if to_terminal and sys.stdout.isatty() else None
    return tqdm(total=total, unit=f" {what}s", disable=hidden, leave=False, dynamic_ncols=True)
