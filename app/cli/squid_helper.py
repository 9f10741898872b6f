"""`python -m app squid-helper`: an external ACL helper of squid that asks a running service.

Squid writes lines of `[channel] URL agent` and reads `[channel] OK`, `ERR` or `BH`, each with `name=value`, in any
order if lines have channels (its directive external_acl_type). It %-encodes what a line cannot hold, but no `%`: so a
URL comes as it was written, and an agent is decoded.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from app.cli.client import DEFAULT_SERVER, Answer, ServiceClient, add_server, read_concurrency
from app.cli.exit_codes import Failed, Parser
from app.cli.line_reader import open_stdin, pieces
from app.origin import URL_LIMIT
from app.robots.verdict import Permission

CONCURRENCY = 50
"""Parallel requests to the service, by default."""

LINE_LIMIT = 8 * URL_LIMIT
"""Bytes of the longest line: a URL and an agent, and each byte may be written as three."""

MESSAGE_LIMIT = 400
"""Characters of a message; squid reads answers of 4 KiB."""

NOTE = "robots_"
"""The annotation with the verdict, for squid's ACL `note`."""

_CHANNEL = re.compile(rb"[0-9]{1,10}")
_ABSENT = b"-"


class HelperLine(NamedTuple):
    """What squid asks: `channel` is empty without concurrency, `agent` is None if the request has no User-Agent."""

    channel: str
    url: str
    agent: str | None


def add(parser: Parser) -> None:
    """Add the arguments: the service, the crawler, and how many questions are open at once."""
    parser.description = (
        "Answer squid's external_acl_type, whose FORMAT is `%URI %>{User-Agent}`: OK for allow, ERR for disallow and "
        f"defer, BH if there is no answer. The annotation {NOTE} has the verdict, and message says why."
    )
    add_server(parser, DEFAULT_SERVER)
    parser.add_argument("--agent", help="ask about this crawler, whatever the User-Agent of a request is")
    parser.add_argument(
        "--concurrency",
        type=read_concurrency,
        default=CONCURRENCY,
        metavar="N",
        help=f"parallel requests, 1 to 1000, for squid's concurrency=N; default {CONCURRENCY}",
    )


def run(arguments: argparse.Namespace) -> int:
    """Answer lines until standard input ends. Raise Failed for a line that is too long."""
    asyncio.run(_serve(arguments))
    return 0


async def _serve(arguments: argparse.Namespace) -> None:
    room = asyncio.Semaphore(arguments.concurrency)
    async with (
        ServiceClient(arguments.server, connections=arguments.concurrency) as service,
        asyncio.TaskGroup() as tasks,
    ):

        async def answer(line: HelperLine) -> None:
            try:
                sys.stdout.write(await answer_line(service, line, arguments.agent) + "\n")
                sys.stdout.flush()
            finally:
                room.release()

        async for written in _lines():
            line = read_line(written)
            await room.acquire()
            answering = tasks.create_task(answer(line))
            if not line.channel:
                await answering  # without channels, squid takes answers in the order of its lines


async def _lines() -> AsyncIterator[bytes]:
    """The lines of standard input. Raise Failed for one that is too long."""
    async for written in pieces(open_stdin(), "standard input", LINE_LIMIT):
        if len(written) == LINE_LIMIT:
            raise Failed(f"A line is longer than {LINE_LIMIT} bytes.")
        yield written


def read_line(written: bytes) -> HelperLine:
    """Read a line of squid; values after the agent are ignored."""
    channel, values = "", written.split()
    if values and _CHANNEL.fullmatch(values[0]):
        channel = values.pop(0).decode()
    url, agent = (*values, _ABSENT, _ABSENT)[:2]
    named = None if agent == _ABSENT else unquote_to_bytes(agent).decode("latin-1")
    return HelperLine(channel, _url(url), named)


async def answer_line(service: ServiceClient, line: HelperLine, agent: str | None) -> str:
    """The answer to a line; `agent` goes before its own."""
    asked = agent or line.agent
    if asked is None:
        return _answer(line, "BH", message="The request has no User-Agent, and the helper no --agent.")
    try:
        answer = await service.get("/v1/check", {"url": line.url, "agent": asked})
    except Failed as error:
        return _answer(line, "BH", message=str(error))
    verdict = answer.headers.get("robots-verdict")
    if verdict == Permission.ALLOW:
        return _answer(line, "OK", **{NOTE: verdict})
    if verdict in set(Permission):
        return _answer(line, "ERR", **{NOTE: verdict}, message=_why(answer.headers))
    return _answer(line, "BH", message=_failure(service, answer))


def _answer(line: HelperLine, result: str, **values: str) -> str:
    pairs = [f"{name}={quote(value[:MESSAGE_LIMIT], safe='')}" for name, value in values.items()]
    return " ".join([*([line.channel] if line.channel else []), result, *pairs])


def _why(headers: Mapping[str, str]) -> str:
    parts = (headers["robots-verdict"], headers.get("robots-reason"), headers.get("robots-rule"))
    return " ".join(part for part in parts if part is not None)


def _failure(service: ServiceClient, answer: Answer) -> str:
    try:
        service.object_in(answer, expected="detail")
    except Failed as error:
        return str(error)
    return str(service.not_this_service(answer))


def _url(raw: bytes) -> str:
    """The URL, with bytes that are not ASCII percent-encoded."""
    return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)
