"""`robots-decisions check`: decide about the pages of a list, or of the log of a crawl, by a running service."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tqdm import tqdm

from robots_decisions import AsyncClient, Question
from robots_decisions.cli import rows
from robots_decisions.cli.access_log import LOGGED_LINE_LIMIT, Defaults, read_entry
from robots_decisions.cli.asking import Asking, Shape
from robots_decisions.cli.batches import Batch, Ranges, batches
from robots_decisions.cli.entries import NO_URL, UNREADABLE, URL_LIMIT, Entry, ReadEntry, read_url, record_of
from robots_decisions.cli.failures import ALLOW, DEFER, DISALLOW, ERROR, INTERRUPTED, Failed, Parser
from robots_decisions.cli.instants import rfc3339
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
from robots_decisions.cli.origins import origin_of
from robots_decisions.cli.pace_audit import PaceAudit
from robots_decisions.cli.sinks import FORMATS, Sink, open_sink
from robots_decisions.cli.sorting import Sorter, written
from robots_decisions.cli.sources import Sources
from robots_decisions.cli.state_file import StateFile

PURPOSES = ("search", "ai-input", "ai-train")
VERDICTS = ("allow", "disallow", "defer", "none")

WARM_AGENT = "*"
"""The agent of --origins-only, whose verdict does not matter."""


def add(parser: Parser) -> None:
    """Add the arguments: lists or logs, and the service to ask."""
    parser.description = (
        "Ask a service about every URL of a list, or every fetch of a log (--log), and write a row for each."
    )
    parser.epilog = (
        "Exit code: 0 if all were allowed, 1 if any was disallowed, 2 if any was deferred, 3 for an error, or if lines "
        "were not answered and nothing else was wrong, 130 if interrupted. With --log: 0 if all were allowed in time, "
        "1 if a page should not have been fetched, or came too early, 2 if nothing was wrong but lines could not be "
        "decided. With --origins-only: 0 if the file of every origin was fetched or failed, 3 if not."
    )
    parser.add_argument(
        "inputs",
        metavar="FILE",
        nargs="+",
        help="URLs or hosts, one per line, # for comments; - for standard input; gzip is read; or a URL itself",
    )
    add_server(parser)
    parser.add_argument("--agent", help="a product token or User-Agent; in a log, that of lines without one")
    parser.add_argument(
        "--fallback",
        action="append",
        default=[],
        metavar="AGENT",
        help="an agent for files without a group for --agent",
    )
    parser.add_argument("--dialect", help="the dialect; the default depends on the agent")
    parser.add_argument(
        "--purpose", action="append", choices=PURPOSES, help="what the pages are wanted for; may be repeated"
    )
    parser.add_argument(
        "--log",
        action="store_true",
        help="the files are logs of crawls: JSON lines with url, agent and time, or the common or combined format. "
        "Each line is decided by the robots.txt of its time, and fetches that came faster than its rate are found",
    )
    parser.add_argument("--origin", metavar="URL", help="with --log: the site of lines with a path alone")
    parser.add_argument(
        "--tolerance",
        type=_seconds,
        default=1.0,
        metavar="SECONDS",
        help="with --log: how wrong its times may be; default 1",
    )
    parser.add_argument(
        "--origins-only",
        action="store_true",
        help="let the service fetch the robots.txt of each origin once, and write a row for each",
    )
    parser.add_argument(
        "--output", metavar="PATH", help="where rows go, in place of what the file had; default standard output"
    )
    parser.add_argument("--format", choices=FORMATS, default="jsonl", help="default jsonl; parquet writes a directory")
    parser.add_argument(
        "--only",
        action="append",
        choices=VERDICTS,
        help="rows with this verdict alone, none for lines without one; may be repeated; with --log, by default "
        "disallow, defer, and fetches that came too early",
    )
    parser.add_argument("--all", action="store_true", help="with --log: rows for all lines")
    parser.add_argument("--state", metavar="FILE", help="record what is done in FILE, so that the same command resumes")
    parser.add_argument(
        "--concurrency",
        type=concurrency,
        default=4,
        metavar="N",
        help=f"batches that are asked at once, 1 to {MAX_CONCURRENCY}; default 4",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write a row for each line, and a summary on standard error; return the exit code. Raise Failed."""
    work = _work(arguments)
    sources = Sources(arguments.inputs)
    clients = [_client(arguments, unreachable) for unreachable in ("fail", "wait")]
    sorter = _sorted(sources, work)
    with StateFile(arguments.state) as state:
        checking = Checking(arguments, work, sources, sorter, state)
        interrupted = asyncio.run(checking.run(clients))
    return INTERRUPTED if interrupted else work.code(checking.counts)


class Work(NamedTuple):
    """What is done with lines: how they are read, asked and shown, and what the exit code says."""

    what: str
    read: ReadEntry
    line_limit: int
    question: Callable[[Entry], Question]
    shape: Shape
    columns: Mapping[str, type]
    only: frozenset[str] | None
    code: Callable[[rows.Counts], int]
    fields: Sequence[str] = ()
    is_log: bool = False
    per_origin: bool = False


def _work(arguments: argparse.Namespace) -> Work:
    if arguments.log and arguments.origins_only:
        raise Failed("--log and --origins-only exclude each other.")
    if arguments.origins_only:
        agent = arguments.agent or WARM_AGENT
        return Work(
            "origin", read_url, URL_LIMIT + 8, lambda it: Question(it.url, agent=agent), rows.row_of_origin,
            rows.ORIGIN_COLUMNS, None, _code_of_origins, fields=("robots",), per_origin=True,
        )  # fmt: skip
    only = frozenset(arguments.only) if arguments.only else None
    purpose, dialect = arguments.purpose, arguments.dialect
    if arguments.log:
        site = None if arguments.origin is None else origin_of(arguments.origin.encode("utf-8", "replace")).decode()
        if site == "" or (site and "://" not in arguments.origin):
            raise Failed(f"--origin: {arguments.origin!r} is not a URL: start it with http:// or https://.")
        defaults = Defaults(arguments.agent, site)
        if only is None and not arguments.all:
            only = frozenset({"disallow", "defer"})
        return Work(
            "line",
            lambda written: read_entry(written, defaults) if written.strip() else None,
            LOGGED_LINE_LIMIT,
            lambda it: Question(
                it.url,
                agent=it.agent,
                dialect=it.dialect or dialect,
                purpose=purpose,
                as_of=None if it.at is None else rfc3339(it.at),
            ),
            rows.row_of_fetch,
            rows.LOG_COLUMNS,
            only,
            _code_of_log,
            fields=("agent",),
            is_log=True,
        )
    if arguments.agent is None:
        raise Failed("--agent is missing: name the crawler to ask for.")
    agents = [arguments.agent, *arguments.fallback] if arguments.fallback else arguments.agent
    return Work(
        "line",
        read_url,
        URL_LIMIT + 8,
        lambda it: Question(it.url, agent=agents, dialect=dialect, purpose=purpose),
        rows.row_of_page,
        rows.COLUMNS,
        only,
        _code_of_list,
    )


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


class Checking:
    """Asks the sorted lines that an earlier run left, and writes their rows."""

    def __init__(
        self, arguments: argparse.Namespace, work: Work, sources: Sources, sorter: Sorter, state: StateFile
    ) -> None:
        self._arguments = arguments
        self._work = work
        self._sources = sources
        self._state = state
        self._sorter = sorter
        self._pace = PaceAudit(arguments.tolerance)
        self._ranges = Ranges()
        self._reported = 0
        self.counts = rows.Counts()
        self._uncommitted = rows.Counts()
        self._places: list[tuple[int, int]] = []

    async def run(self, clients: Sequence[AsyncClient]) -> bool:
        """Do all that is left. Return whether it was interrupted. Raise Failed."""
        position = self._resume()
        work, arguments = self._work, self._arguments
        columns = ({"file": str} if self._sources.are_several else {}) | dict(work.columns)
        self._sink: Sink = open_sink(arguments.format, arguments.output, columns, position)
        records, count = self._sorter.sorted(), self._sorter.count
        if work.per_origin:
            records, count = _counted(_first_of_each(records))
        left = batches(records, self._ranges.gaps(count))
        asking = Asking(
            clients,
            work.question,
            work.shape,
            self._done,
            fields=work.fields,
            concurrency=arguments.concurrency,
            in_order=work.is_log,
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
            if name not in {"inputs", "run", "state", "concurrency", "server"}
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
            if only is None or (outcome.kind or "none") in only or (early is not None and not self._arguments.only):
                found.append(self._placed(outcome.row))
        self._places.append((batch.start, batch.start + len(batch.records)))
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
    """A progress bar with the rate on standard error: not if that is no terminal, or rows are printed on it."""
    hidden = True if to_terminal and sys.stdout.isatty() else None
    return tqdm(total=total, unit=f" {what}s", disable=hidden, leave=False, dynamic_ncols=True)


def _code_of_list(counts: rows.Counts) -> int:
    codes = {"disallow": DISALLOW, "defer": DEFER, None: ERROR}
    return next((code for kind, code in codes.items() if counts.of_kind(kind)), ALLOW)


def _code_of_log(counts: rows.Counts) -> int:
    if counts.of_kind("disallow") or counts.of_kind("defer") or counts.early:
        return DISALLOW
    if counts.of_kind(None, UNREADABLE, "unanswered"):
        return ERROR
    return DEFER if counts.of_kind(None, rows.UNKNOWN, NO_URL) else ALLOW


def _code_of_origins(counts: rows.Counts) -> int:
    return ERROR if counts.of_kind(None) else ALLOW


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds < float("inf"):
        return seconds
    raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a number of seconds")
