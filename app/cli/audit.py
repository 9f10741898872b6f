"""`python -m app audit`: name the pages in a crawler's log that should not have been fetched."""

import argparse
import asyncio
import json
import sys
from collections import Counter
from functools import partial
from typing import Any

from tqdm import tqdm

from app.cli.access_log import Defaults, numbered_lines, open_log
from app.cli.auditor import FORBIDDEN, UNDECIDED, UNREADABLE, Auditor, Finding
from app.cli.client import DEFAULT_SERVER, ServiceClient, add_server, read_concurrency
from app.cli.exit_codes import ERROR, INTERRUPTED, Failed, Parser
from app.cli.formatting import printable, rule_text
from app.cli.unreadable import report_unreadable
from robots_core.origin import BadUrl, read_target

NONE, SOME, INCOMPLETE = 0, 1, 2
"""Exit codes: nothing was wrong; a page should not have been fetched; nothing was wrong, but lines were not decided."""

CONCURRENCY = 32
"""Parallel requests, at most: each answer may take 16 MiB."""


def add(parser: Parser) -> None:
    """Add the arguments: a log and the service to ask."""
    parser.description = (
        "Decide every line of a crawler's log by the robots.txt that the service held at its time, and print those "
        "that should not have been fetched."
    )
    parser.epilog = (
        "Exit code: 0 if all were allowed, 1 if a page should not have been fetched, 2 if none was wrong but lines "
        "could not be decided, 3 for an error, or if lines could not be read and nothing else was wrong, 130 if "
        "interrupted."
    )
    parser.add_argument(
        "log",
        metavar="LOG",
        help="JSON lines with url, agent and time (or at: RFC 3339, or Unix seconds), such as the decision log, or "
        "the log of a proxy or web server in the common or combined format; may be compressed by gzip; - for "
        "standard input",
    )
    add_server(parser, DEFAULT_SERVER)
    parser.add_argument("--agent", help="the crawler of lines without an agent")
    parser.add_argument(
        "--origin", metavar="URL", help="the site of lines with a path alone, as web servers write: https://example.com"
    )
    parser.add_argument(
        "--concurrency",
        type=partial(read_concurrency, most=CONCURRENCY),
        default=4,
        metavar="N",
        help=f"parallel requests, 1 to {CONCURRENCY}; default 4",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one line per page")


def run(arguments: argparse.Namespace) -> int:
    """Print what should not have been fetched, and a summary on standard error; return the exit code. Raise Failed."""
    defaults = Defaults(arguments.agent, _origin(arguments.origin))
    service = ServiceClient(arguments.server, connections=arguments.concurrency)
    source = open_log(arguments.log)
    failed: Failed | None = None
    with tqdm(unit=" lines", disable=None, leave=False) as bar:
        unreadable = 0

        def found(finding: Finding) -> None:
            members = _members(finding)
            text = json.dumps(members, separators=(",", ":")) if arguments.json else printable(_text(members))
            tqdm.write(text, file=sys.stdout)

        def bad(number: int, message: str) -> None:
            nonlocal unreadable
            unreadable += 1
            report_unreadable(unreadable, number, message)

        def done(count: int) -> None:
            sys.stdout.flush()
            bar.update(count)

        auditor = Auditor(
            service, concurrency=arguments.concurrency, defaults=defaults, found=found, bad=bad, done=done
        )

        async def audit() -> None:
            async with service:
                await auditor.run(numbered_lines(source))

        interrupted = False
        try:
            asyncio.run(audit())
        except KeyboardInterrupt:
            interrupted = True
        except Failed as error:
            failed = error
    sys.stderr.write(_summary(auditor.counts))
    if failed is not None:
        raise failed
    return INTERRUPTED if interrupted else _code(auditor.counts)


def _origin(url: str | None) -> str | None:
    try:
        return None if url is None else read_target(url).origin.key
    except BadUrl as error:
        raise Failed(f"--origin: {error}.") from None


def _code(counts: Counter[str]) -> int:
    if counts[FORBIDDEN]:
        return SOME
    if counts[UNREADABLE]:
        return ERROR
    return INCOMPLETE if any(counts[name] for name in UNDECIDED) else NONE


def _members(finding: Finding) -> dict[str, Any]:
    number, entry, answer = finding
    return {
        "line": number,
        "url": entry.url,
        "agent": entry.agent,
        "time": entry.time,
        **{name: answer.get(name) for name in ("verdict", "reason", "rule", "version")},
        "override": entry.override,
    }


def _text(finding: dict[str, Any]) -> str:
    rule = f", {rule_text(finding['rule'])}" if finding["rule"] else ""
    override = f"; override {finding['override']} decided then" if finding["override"] else ""
    return (
        f"line {finding['line']}: {finding['time']} {finding['agent']} {finding['url']}: {finding['verdict']} "
        f"({finding['reason']}{rule}), by version {finding['version']}{override}"
    )


def _summary(counts: Counter[str]) -> str:
    parts = [f"{number} {name}" for name, number in sorted(counts.items()) if number]
    lines = f"{counts.total()} line{'' if counts.total() == 1 else 's'}"
    return f"{lines}{': ' if parts else ''}{', '.join(parts)}\n"
