"""`python -m app warm`: lets a running service fetch the files of many origins before crawlers ask about them."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from app.cli.client import SERVER, Service, add_server
from app.cli.crew import Crew
from app.cli.exit_codes import ERROR, INTERRUPTED, Failed, Parser
from app.cli.formatting import shown
from app.cli.progress_bar import Bar
from app.cli.state_file import Done
from app.origin import URL_LIMIT, BadUrl, Origin, read_target

ALL, SOME = 0, 1
"""What it ends with: every origin was asked; some were not, or lines could not be read."""

LINES_SHOWN = 10
"""How many of the lines that cannot be read are shown."""


def add(parser: Parser) -> None:
    """A list of origins, and the service to ask."""
    parser.description = "Let a running service fetch the files of many origins: each once, and as it fetches any."
    parser.epilog = (
        "Ends with 0 if every origin was asked, 1 if some were not or lines could not be read, 3 if the service cannot "
        "be asked, 130 if interrupted. What an origin answers is no failure: the service knows it now."
    )
    parser.add_argument(
        "file", metavar="FILE", help="origins or URLs, one per line, # for comments; - is standard input"
    )
    add_server(parser, SERVER)
    parser.add_argument("--concurrency", type=_number, default=50, metavar="N", help="origins asked about at once; 50")
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="remember there which origins are done, so that the same command goes on from it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask about every origin, with a bar on a terminal; a summary on standard error. Raises Failed."""
    with ExitStack() as stack:
        source = stack.enter_context(_open(arguments.file))
        done = stack.enter_context(Done(arguments.state))
        service = stack.enter_context(Service(arguments.server, connections=arguments.concurrency))
        bar = Bar(source, sys.stderr, time.monotonic)
        crew = Crew(service, done.add, arguments.concurrency)
        lines = _Lines(source, done)

        def look() -> None:
            bar.draw(crew.found.total())

        broken: Failed | None = None
        try:
            with crew:
                for origin in lines:
                    crew.give(origin, look)
                crew.finish(look)
            code = SOME if crew.not_asked or lines.unread else ALL
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Failed as error:
            code, broken = ERROR, error
        bar.clear()
        _sum_up(crew, lines, arguments.state if code in {INTERRUPTED, ERROR} else None)
        if broken is not None:
            raise broken
    return code


class _Lines:
    """The origins of a list, each once, without those that are done."""

    def __init__(self, source: BinaryIO, done: Done) -> None:
        self._source = source
        self._done = done
        self.skipped = 0
        self.unread = 0

    def __iter__(self) -> Iterator[Origin]:
        seen: set[str] = set()
        for number, text in enumerate(self._texts(), 1):
            url = text.strip()
            if not url or url.startswith("#"):
                continue
            try:
                origin = read_target(url).origin
            except BadUrl as error:
                self._note(number, str(error))
                continue
            if origin.key in seen:
                continue
            seen.add(origin.key)
            if origin.key in self._done:
                self.skipped += 1
            else:
                yield origin

    def _texts(self) -> Iterator[str]:
        # A line longer than any URL is read in pieces, of which the first is too long, and the others are dropped.
        within = False
        while line := self._source.readline(URL_LIMIT + 2):
            if not within:
                yield line.decode("utf-8-sig", "replace")
            within = not line.endswith(b"\n")

    def _note(self, number: int, wrong: str) -> None:
        self.unread += 1
        if self.unread <= LINES_SHOWN:
            more = "" if self.unread < LINES_SHOWN else " (no more of these are shown)"
            sys.stderr.write(f"line {number}: {shown(wrong)}{more}\n")


def _open(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise Failed(f"{name} cannot be read: {error.strerror}.") from None


def _number(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1000:
        raise ValueError
    return number


def _sum_up(crew: Crew, lines: _Lines, state: str | None) -> None:
    told = [f"{number} {what}" for what, number in sorted(crew.found.items())]
    extra = {"done before": lines.skipped, "not asked": crew.not_asked, "lines not read": lines.unread}
    told += [f"{number} {what}" for what, number in extra.items() if number]
    sys.stderr.write(f"{crew.found.total()} origins asked{': ' if told else ''}{', '.join(told)}\n")
    if state is not None:
        sys.stderr.write(f"Not all of the list was gone through; with --state {state}, the same command goes on.\n")
