"""`robots-decisions bundle`: write the robots.txt of a list of origins into a Parquet file."""

import argparse
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from robots_decisions import AsyncClient, BundleRow, Unanswered
from robots_decisions.cli import list_work, rows
from robots_decisions.cli.asking import Ask
from robots_decisions.cli.bundle_file import Spool, Write, write_bundle, write_parquet
from robots_decisions.cli.entries import LISTED_LINE_LIMIT, UNREADABLE, Entry, Line, NotAsked, read_url
from robots_decisions.cli.failures import ALLOW, ERROR, INTERRUPTED, Failed, Parser
from robots_decisions.cli.instants import read_instant, rfc3339
from robots_decisions.cli.list_work import Work, add_common
from robots_decisions.cli.sinks import Sink

WITH_FILE, WITHOUT_FILE, MISSING = "with a file", "without a file", "missing"
"""How origins are counted: by what their rows have, and those of which the service knows nothing."""

_NOT_KNOWN = 404


def add(parser: Parser) -> None:
    """Add the arguments: lists, the service, and the file to write."""
    parser.description = (
        "Write the robots.txt of each origin of a list into a Parquet file, a bundle, by which robots_core.arrow "
        "decides URLs without a service. Origins of which the service knows nothing are counted, and have no row."
    )
    parser.epilog = (
        "Exit code: 0 if every origin has a row, 3 if some have none, or for an error, 130 if interrupted. Without an "
        "error, the bundle is written."
    )
    add_common(parser)
    parser.add_argument("--output", metavar="PATH", required=True, help="the file, in place of what it had")
    parser.add_argument(
        "--warc", action="store_true", help="write WARC instead, which archives keep and ingest reads; gzip per record"
    )
    parser.add_argument("--fetch", action="store_true", help="let the service fetch first what is missing or due")
    parser.add_argument(
        "--as-of", metavar="INSTANT", help="the versions that were stored at this RFC 3339 instant; nothing is fetched"
    )
    parser.add_argument("--profile", metavar="NAME", help="the fetch profile that the files were fetched with")
    parser.add_argument(
        "--missing", metavar="PATH", help="write the origins without a row into this file, one per line"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the bundle, and a summary on standard error; return the exit code. Raise Failed."""
    at = None if arguments.as_of is None else read_instant(arguments.as_of)
    if arguments.as_of is not None and at is None:
        raise Failed(f"--as-of: {arguments.as_of[:100]!r} is not an RFC 3339 instant, such as 2026-11-21T18:30:00Z.")
    if at is not None and arguments.fetch:
        raise Failed("--as-of and --fetch exclude each other: what was in use in the past is not fetched.")
    output = _writable("--output", arguments.output)
    if output.exists() and not output.is_file():
        raise Failed(
            f"--output: {arguments.output} is not a regular file, and a bundle replaces its file. Name another one."
        )
    write = _warc_writer() if arguments.warc else write_parquet
    missing = None if arguments.missing is None else _writable("--missing", arguments.missing)
    spool = Spool(output.with_name(output.name + ".unfinished"))

    def open_spool(_are_several: bool, position: int | None) -> Sink:
        spool.open(position)
        return spool

    work = Work(
        "origin",
        read_url,
        LISTED_LINE_LIMIT,
        _asking(arguments, at),
        _noting(spool),
        open_spool,
        lambda counts: ERROR if counts.of_kind(None) else ALLOW,
        pending=lambda answer: arguments.fetch and isinstance(answer, Unanswered) and answer.status == _NOT_KNOWN,
        per_origin=True,
    )
    finished = False
    try:
        code = list_work.run(arguments, work)
        if code != INTERRUPTED:
            instant = datetime.now(timezone.utc) if at is None else datetime.fromtimestamp(at, timezone.utc)
            write_bundle(spool.path, output, instant, missing, write)
            finished = True
    finally:
        if finished or arguments.state is None:
            spool.remove()
    return code


def _warc_writer() -> Write:
    try:
        from robots_decisions.cli.bundle_warc import write_warc
    except ImportError:
        raise Failed("--warc needs warcio: install robots-decisions[cli,parquet,warc].") from None
    return write_warc


def _writable(option: str, name: str) -> Path:
    """The path of a file that is written at the end, after hours of asking. Raise Failed if it cannot be."""
    path = Path(name).absolute()
    if path.is_dir():
        raise Failed(f"{option}: {name} is a directory. Name a file.")
    if not path.parent.is_dir():
        raise Failed(f"{option}: {path.parent} is not a directory.")
    return path


def _asking(arguments: argparse.Namespace, at: float | None) -> Ask:
    as_of = None if at is None else rfc3339(at)

    def ask(client: AsyncClient, entries: Sequence[Entry], _with_facts: bool, _wait: float | None) -> Any:
        return client.bundle([it.url for it in entries], profile=arguments.profile, as_of=as_of, fetch=arguments.fetch)

    return ask


def _noting(spool: Spool) -> Callable[[Line, BundleRow | Unanswered | NotAsked], rows.Outcome]:
    """Stores a row at once, since it may be long, and returns what is counted."""

    def note(line: Line, answer: BundleRow | Unanswered | NotAsked) -> rows.Outcome:
        if isinstance(answer, BundleRow):
            spool.add(line.origin, answer)
            return rows.Outcome({}, WITHOUT_FILE if answer.body is None else WITH_FILE, answer.outcome)
        if isinstance(answer, NotAsked):
            return rows.Outcome({"line": line.number, "detail": answer.detail}, None, answer.reason)
        if answer.status in rows.INVALID:
            return rows.Outcome({"line": line.number, "detail": answer.why}, None, UNREADABLE)
        spool.add_missing(line.origin)
        return rows.Outcome({}, None, MISSING if answer.status == _NOT_KNOWN else "unanswered")

    return note
