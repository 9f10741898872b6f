"""`python -m app audit`: name the pages in a crawler's log that should not have been fetched."""

import argparse
import asyncio
import json
import sys
from collections import Counter
from typing import Any

from tqdm import tqdm

from app.cli.access_log import numbered_lines, open_log
from app.cli.auditor import FORBIDDEN, UNANSWERED, UNREADABLE, Auditor
from app.cli.client import DEFAULT_SERVER, ServiceClient, add_server, read_concurrency
from app.cli.exit_codes import ERROR, INTERRUPTED, Failed, Parser
from app.cli.formatting import printable, rule_text

NONE, SOME = 0, 1
"""Exit codes: nothing was wrong; at least one page should not have been fetched."""

LINES_SHOWN = 10
"""Unreadable lines that are reported one by one."""


def add(parser: Parser) -> None:
    """Add the arguments: a log and the service to ask."""
    parser.description = (
        "Decide every line of a crawler's log by the robots.txt that the service held at its time, and print those "
        "that should not have been fetched."
    )
    parser.epilog = (
        "Exit code: 0 if nothing was wrong, 1 if a page should not have been fetched, 3 for an error, or if lines "
        "could not be read and nothing else was wrong, 130 if interrupted."
    )
    parser.add_argument(
        "log",
        metavar="LOG",
        help="JSON lines with url, agent and time (or at: RFC 3339, or Unix seconds), such as the decision log; "
        "- for standard input",
    )
    add_server(parser, DEFAULT_SERVER)
    parser.add_argument("--agent", help="the crawler of lines without an agent")
    parser.add_argument(
        "--concurrency", type=read_concurrency, default=50, metavar="N", help="parallel requests, 1 to 1000; default 50"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one line per page")


def run(arguments: argparse.Namespace) -> int:
    """Print what should not have been fetched, and a summary on standard error; return the exit code. Raise Failed."""
    source = open_log(arguments.log)
    service = ServiceClient(arguments.server, connections=arguments.concurrency)
    failed: Failed | None = None
    with tqdm(unit=" lines", disable=None, leave=False) as bar:
        unreadable = 0

        def found(finding: dict[str, Any]) -> None:
            text = json.dumps(finding, separators=(",", ":")) if arguments.json else printable(_text(finding))
            tqdm.write(text, file=sys.stdout)

        def bad(number: int, message: str) -> None:
            nonlocal unreadable
            unreadable += 1
            if unreadable <= LINES_SHOWN:
                more = "" if unreadable < LINES_SHOWN else " (further lines are only counted)"
                tqdm.write(f"line {number}: {printable(message)}{more}", file=sys.stderr)

        auditor = Auditor(
            service,
            concurrency=arguments.concurrency,
            agent=arguments.agent,
            found=found,
            bad=bad,
            done=lambda: bar.update() and None,
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


def _code(counts: Counter[str]) -> int:
    if counts[FORBIDDEN]:
        return SOME
    return ERROR if counts[UNREADABLE] or counts[UNANSWERED] else NONE


def _text(finding: dict[str, Any]) -> str:
    rule = f", {rule_text(finding['rule'])}" if finding["rule"] else ""
    override = f"; override {finding['override']} decided then" if finding["override"] else ""
    return (
        f"line {finding['line']}: {finding['time']} {finding['agent']} {finding['url']}: {finding['verdict']} "
        f"({finding['reason']}{rule}), by version {finding['version']}{override}"
    )


def _summary(counts: Counter[str]) -> str:
    parts = [f"{number} {name}" for name, number in sorted(counts.items()) if number]
    return f"{counts.total()} lines{': ' if parts else ''}{', '.join(parts)}\n"
