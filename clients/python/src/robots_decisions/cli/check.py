"""`robots-decisions check`: decide about the pages of a list, or of the log of a crawl, by a running service."""

import argparse
from collections.abc import Mapping
from functools import partial

from robots_decisions import Question
from robots_decisions.cli import list_work, rows
from robots_decisions.cli.access_log import LOGGED_LINE_LIMIT, Defaults, read_entry
from robots_decisions.cli.asking import verdicts
from robots_decisions.cli.entries import LISTED_LINE_LIMIT, NO_URL, UNREADABLE, read_url
from robots_decisions.cli.failures import ALLOW, DEFER, DISALLOW, ERROR, Failed, Parser
from robots_decisions.cli.instants import rfc3339
from robots_decisions.cli.list_work import Work, add_common
from robots_decisions.cli.options import PURPOSES
from robots_decisions.cli.origins import origin_of
from robots_decisions.cli.sinks import FORMATS, Sink, open_sink

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
    add_common(parser)
    parser.add_argument(
        "--agent", type=_name, help="a product token or User-Agent; in a log, that of lines without one"
    )
    parser.add_argument(
        "--fallback",
        action="append",
        type=_name,
        default=[],
        metavar="AGENT",
        help="an agent for files without a group for --agent",
    )
    parser.add_argument("--dialect", type=_name, help="the dialect; the default depends on the agent")
    parser.add_argument(
        "--purpose", action="append", choices=PURPOSES, help="what the pages are wanted for; may be repeated"
    )
    parser.add_argument(
        "--enforce", action="store_true", default=None, help="disallow the pages whose sites refuse a --purpose"
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
        "--wait",
        type=_seconds,
        metavar="SECONDS",
        help="how long a line waits for a site whose robots.txt is not in the cache; then it is deferred as pending. "
        "By default until that was fetched, or its fetch timed out",
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


def run(arguments: argparse.Namespace) -> int:
    """Write a row for each line, and a summary on standard error; return the exit code. Raise Failed."""
    return list_work.run(arguments, _work(arguments))


def _work(arguments: argparse.Namespace) -> Work:
    if arguments.log and arguments.origins_only:
        raise Failed("--log and --origins-only exclude each other.")
    if arguments.log and arguments.column is not None:
        raise Failed("--column is for lists: a log has members of its own.")
    if arguments.log and arguments.wait is not None:
        raise Failed("--wait is for lists: a log is about the past, for which no site is asked.")
    sink = partial(_open, arguments)
    if arguments.origins_only:
        agent = arguments.agent or WARM_AGENT
        return Work(
            "origin",
            read_url,
            LISTED_LINE_LIMIT,
            verdicts(lambda it: Question(it.url, agent=agent), ("robots",)),
            rows.row_of_origin,
            partial(sink, rows.ORIGIN_COLUMNS),
            _code_of_origins,
            per_origin=True,
            cached_first=True,
            wait=arguments.wait,
        )
    only = frozenset(arguments.only) if arguments.only else None
    how = {name: getattr(arguments, name) for name in ("purpose", "enforce")}
    dialect = arguments.dialect
    if arguments.log:
        site = None if arguments.origin is None else origin_of(arguments.origin.encode("utf-8", "replace")).decode()
        if site == "" or (site and "://" not in arguments.origin):
            raise Failed(f"--origin: {arguments.origin!r} is not a URL: start it with http:// or https://.")
        defaults = Defaults(arguments.agent, site)
        if only is None and not arguments.all:
            only = frozenset({"disallow", "defer"})
        asked = verdicts(
            lambda it: Question(
                it.url,
                agent=it.agent,
                dialect=it.dialect or dialect,
                **how,
                as_of=None if it.at is None else rfc3339(it.at),
            ),
            ("agent",),
        )
        return Work(
            "line",
            lambda written: read_entry(written, defaults) if written.strip() else None,
            LOGGED_LINE_LIMIT,
            asked,
            rows.row_of_fetch,
            partial(sink, rows.LOG_COLUMNS),
            _code_of_log,
            only=only,
            early_too=not arguments.only,
            tolerance=arguments.tolerance,
            is_log=True,
        )
    if arguments.agent is None:
        raise Failed("--agent is missing: name the crawler to ask for.")
    agents = [arguments.agent, *arguments.fallback] if arguments.fallback else arguments.agent
    return Work(
        "line",
        read_url,
        LISTED_LINE_LIMIT,
        verdicts(lambda it: Question(it.url, agent=agents, dialect=dialect, **how)),
        rows.row_of_page,
        partial(sink, rows.COLUMNS),
        _code_of_list,
        only=only,
        cached_first=True,
        wait=arguments.wait,
    )


def _open(arguments: argparse.Namespace, columns: Mapping[str, type], are_several: bool, position: int | None) -> Sink:
    named = ({"file": str} if are_several else {}) | dict(columns)
    return open_sink(arguments.format, arguments.output, named, position)


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


def _name(text: str) -> str:
    if text.strip():
        return text
    raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a name")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if 0 <= seconds < float("inf"):
        return seconds
    raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a number of seconds")
