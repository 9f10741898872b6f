"""`python -m app warm`: let a running service fetch the files of many origins before crawlers ask about them."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from app.cli.bare_host import candidates
from app.cli.client import DEFAULT_SERVER, ServiceClient, add_server, read_concurrency
from app.cli.exit_codes import ERROR, INTERRUPTED, Failed, Parser
from app.cli.state_file import StateFile
from app.cli.unreadable import report_unreadable
from app.cli.warmer import Warmer
from robots_core.origin import URL_LIMIT, BadUrl, read_target

ALL_FETCHED, SOME_FAILED = 0, 1
"""Exit codes: every origin was fetched; some were not, or lines could not be read."""


def add(parser: Parser) -> None:
    """Add the arguments: a list of origins and the service to ask."""
    parser.description = "Let a running service fetch the robots.txt of many origins, each once."
    parser.epilog = (
        "Exit code: 0 if every origin was asked about, 1 if some were not or lines could not be read, 3 if the service "
        "cannot be used, 130 if interrupted. A failed fetch is not an error: the service has stored its outcome."
    )
    parser.add_argument(
        "file", metavar="FILE", help="hosts, origins or URLs, one per line, # for comments; - for standard input"
    )
    add_server(parser, DEFAULT_SERVER)
    parser.add_argument(
        "--concurrency", type=read_concurrency, default=50, metavar="N", help="parallel requests, 1 to 1000; default 50"
    )
    parser.add_argument(
        "--state", metavar="FILE", help="record finished origins in FILE, so that the same command can resume"
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask about every origin and print a summary on standard error; return the exit code. Raise Failed."""
    with ExitStack() as stack:
        source = stack.enter_context(_open(arguments.file))
        state = stack.enter_context(StateFile(arguments.state))
        origins, unreadable = _read_origins(source)
        remaining = {origin: by_http for origin, by_http in origins.items() if origin not in state}
        bar = stack.enter_context(tqdm(total=len(remaining), unit=" origins", disable=None, leave=False))

        def done(origin: str) -> None:
            state.add(origin)
            bar.update()

        service = ServiceClient(arguments.server, connections=arguments.concurrency)
        warmer = Warmer(service, done, arguments.concurrency)
        failed: Failed | None = None
        try:
            asyncio.run(_warm(service, warmer, remaining))
            code = SOME_FAILED if warmer.unanswered or unreadable else ALL_FETCHED
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Failed as error:
            code, failed = ERROR, error
        bar.close()
        others = {
            "done before": len(origins) - len(remaining),
            "without an answer": warmer.unanswered,
            "unreadable lines": unreadable,
        }
        sys.stderr.write(_summary(warmer.outcomes, others))
        if arguments.state is not None and code in {INTERRUPTED, ERROR}:
            sys.stderr.write(f"Not finished. Run the same command with --state {arguments.state} to resume.\n")
        if failed is not None:
            raise failed
    return code


async def _warm(service: ServiceClient, warmer: Warmer, origins: Mapping[str, str | None]) -> None:
    async with service:
        await warmer.run(origins)


def _open(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise Failed(f"Cannot read {name}: {error.strerror}.") from None


def _read_origins(source: BinaryIO) -> tuple[Mapping[str, str | None], int]:
    """The distinct origins of a list, in its order, and the number of unreadable lines, which are reported.

    Beside the https origin of a bare host is its http origin, to ask about if the first cannot be reached.
    """
    origins: dict[str, str | None] = {}
    unreadable = number = 0
    continued = False  # the line is longer than any URL: its first part was reported, and the rest is skipped
    while line := source.readline(URL_LIMIT + 2):
        skipped, continued = continued, not line.endswith(b"\n")
        if skipped:
            continue
        number += 1
        url = line.decode("utf-8-sig", "replace").strip()
        if not url or url.startswith("#"):
            continue
        try:
            first, *others = (read_target(candidate).origin.key for candidate in candidates(url))
            origins[first] = others[0] if others else origins.get(first)
        except BadUrl as error:
            unreadable += 1
            report_unreadable(unreadable, number, str(error))
    return origins, unreadable


def _summary(outcomes: Counter[str], others: dict[str, int]) -> str:
    counts = [f"{number} {name}" for name, number in sorted(outcomes.items())]
    counts += [f"{number} {name}" for name, number in others.items() if number]
    return f"{outcomes.total()} origins fetched{': ' if counts else ''}{', '.join(counts)}\n"
