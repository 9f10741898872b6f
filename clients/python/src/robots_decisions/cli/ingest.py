"""`robots-decisions ingest`: send the robots.txt files of WARC files to a running service."""

import argparse
import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from tqdm import tqdm

from robots_decisions._async.service import AsyncService
from robots_decisions._default_http import default_async_http
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
    unanswered,
)
from robots_decisions.cli.warc import Copy, WarcFiles
from robots_decisions.parsing import json_value
from robots_decisions.permits import (
    ANSWER_TIMEOUT,
    FIRST_RETRY_DELAY,
    LAST_RETRY_DELAY,
    InvalidQuestion,
    NoAnswer,
    RetryLater,
    Unavailable,
    encode,
    not_ours,
    refusal,
)

ALL_TAKEN, SOME_LEFT = 0, 1
"""Exit codes: the service has taken all; it has not taken some."""

_TEXTS = {
    "in use": "in use",
    "earlier": "earlier than what the service knows",
    "refused": "refused",
    "unreadable": "without a status",
    "unfollowed": "redirected to what the files lack",
    "repeated": "redirected to a large file that was sent often enough",
    "unchanged": "not modified, without a copy",
}
_LEFT = ("refused", "unreadable", "unfollowed", "repeated", "unchanged")


def add(parser: Parser) -> None:
    """Add the arguments: the files, and the service."""
    parser.description = (
        "Send each robots.txt that a crawl has stored in WARC files to a service, which answers by it from then on, "
        "and for the time of the crawl. The API key needs the scope ingest. To send a file again does no harm."
    )
    parser.epilog = (
        "Exit code: 0 if the service has taken all, 1 if it has not taken some, 3 for an error, 130 if interrupted."
    )
    parser.add_argument("inputs", metavar="FILE", nargs="+", help="WARC or ARC, gzip is read; - for standard input")
    add_server(parser)
    parser.add_argument("--profile", metavar="NAME", help="the fetch profile by which the crawl fetched")
    parser.add_argument(
        "--concurrency",
        type=concurrency,
        default=4,
        metavar="N",
        help=f"files that are sent at once, 1 to {MAX_CONCURRENCY}; default 4",
    )


def run(arguments: argparse.Namespace) -> int:
    """Send all, and write a summary on standard error; return the exit code. Raise Failed."""
    try:
        service = AsyncService(arguments.server, os.environ.get(API_KEY) or None, default_async_http())
    except ValueError as error:
        raise Failed(f"{error}.") from None
    sending = Sending(arguments, service)
    if asyncio.run(sending.run()):
        return INTERRUPTED
    return SOME_LEFT if any(sending.counts[kind] for kind in _LEFT) else ALL_TAKEN


class Sending:
    """Sends the copies of all files, `concurrency` at a time; the service orders them by when they were observed."""

    def __init__(self, arguments: argparse.Namespace, service: AsyncService) -> None:
        self._arguments = arguments
        self._service = service
        self._files = WarcFiles(arguments.inputs)
        self._profile = {} if arguments.profile is None else {"profile": arguments.profile}
        self._heard: float | None = None
        self.counts = self._files.counts

    async def run(self) -> bool:
        """Send all; return whether it was interrupted. Raise Failed."""
        try:
            with self._progress() as self._bar:
                return await until_interrupted(self._send_all())
        finally:
            sys.stderr.write(_summary(self.counts) + "\n")
            await self._service.aclose()

    def _progress(self) -> "tqdm[Any]":
        """A progress bar on standard error, if that is a terminal: by bytes of files, of a pipe by records."""
        size = self._files.size
        unit = " records" if size is None else "B"
        return tqdm(total=size, unit=unit, unit_scale=True, disable=None, leave=False, dynamic_ncols=True)

    def _show(self, done: int) -> None:
        """Show how many bytes or records are done, and what has become of the files so far."""
        self._bar.set_postfix_str(_said(self.counts), refresh=False)
        self._bar.update(done)

    async def _send_all(self) -> None:
        damage: list[Failed] = []
        copies = _until_damage(self._files.copies(), damage)
        tasks = [asyncio.ensure_future(self._send_some(copies)) for _ in range(self._arguments.concurrency)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if damage:
            raise damage[0]

    async def _send_some(self, copies: Iterator[Copy | None]) -> None:
        for copy in copies:
            self._show(copy is None if self._bar.total is None else self._files.position - self._bar.n)
            await asyncio.sleep(0)  # a crawl has few of them: Ctrl-C must not wait for the next one
            if copy is not None:
                await self._send(copy)

    async def _send(self, copy: Copy) -> None:
        path = f"/v1/robots?{urlencode({'url': copy.url, **self._profile})}"
        content = encode(copy.message)
        now = asyncio.get_running_loop().time
        began, pause = now(), FIRST_RETRY_DELAY
        while True:
            try:
                response = await self._service.request("PUT", path, content, ANSWER_TIMEOUT)
                message = json_value(response.body)
                if response.status == 200:
                    self._heard = now()
                    self.counts["in use" if _in_use(message) else "earlier"] += 1
                    return
                failure = refusal(response.status, response.fields, message).failure
            except Unavailable as error:
                failure = error.failure
            if isinstance(failure, InvalidQuestion):
                self._heard = now()
                self._refused(copy, failure.why)
                return
            busy = isinstance(failure, RetryLater)
            seconds = failure.seconds if isinstance(failure, RetryLater) else pause
            waits = busy or (isinstance(failure, NoAnswer) and failure.remedy is None and self._heard is not None)
            if not waits or now() + seconds > max(began, self._heard or began) + RESTART_WAIT:
                raise unanswered(self._arguments.server, failure)
            pause = min(2 * pause, LAST_RETRY_DELAY)
            await asyncio.sleep(seconds)

    def _refused(self, copy: Copy, why: str) -> None:
        self.counts["refused"] += 1
        if self.counts["refused"] <= REPORTED_LINES:
            more = "" if self.counts["refused"] < REPORTED_LINES else " (further ones are only counted)"
            tqdm.write(printable(f"{copy.place}: {copy.url}: {why}{more}"), file=sys.stderr)


def _until_damage(copies: Iterator[Copy | None], damage: list[Failed]) -> Iterator[Copy | None]:
    """The copies before a file that cannot be read, whose error is added to `damage`: what was read is still sent."""
    try:
        yield from copies
    except Failed as error:
        damage.append(error)


def _in_use(message: Any) -> bool:
    match message:
        case {"ingested": {"in_use": bool(in_use)}}:
            return in_use
        case _:
            pass
    raise Unavailable(not_ours("a 200 without 'ingested'"))


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {text}" for kind, text in _TEXTS.items() if counts[kind])


def _summary(counts: Counter[str]) -> str:
    total = sum(counts[kind] for kind in _TEXTS)
    said = _said(counts)
    return f"{total} response{'' if total == 1 else 's'} for robots.txt" + (f": {said}" if said else "")
