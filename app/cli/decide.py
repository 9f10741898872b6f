"""`python -m app decide`: decide whether agents may fetch URLs, here or by a running service."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from app.cli.askers import Asker, add_question, ask, asking, expanded
from app.cli.client import add_server
from app.cli.colours import coloured
from app.cli.exit_codes import Parser, worst
from app.cli.formatting import answer_lines, printable
from robots_core.origin import read_target


def add(parser: Parser) -> None:
    """Add the arguments: URLs and agents."""
    parser.description = "Fetch the robots.txt of sites and decide whether agents may fetch URLs."
    parser.epilog = (
        "A URL without http:// or https:// means https, and http if the host cannot be reached by https. "
        "Exit code: 0 if all are allowed, 1 if any is disallowed, 2 if any is deferred (ask again later), 3 for an "
        "error. The settings of the service apply: ALLOW_ADDRESSES=127.0.0.0/8 permits fetches from this machine."
    )
    parser.add_argument("urls", metavar="URL", nargs="+", help="http or https URLs of pages")
    parser.add_argument(
        "--agent",
        action="append",
        required=True,
        help="a product token or User-Agent, or @category for all known crawlers of one; may be repeated",
    )
    parser.add_argument(
        "--fallback",
        action="append",
        default=[],
        metavar="AGENT",
        help="an agent to look up where the file has no group for --agent; may be repeated",
    )
    add_question(parser)
    parser.add_argument(
        "--explain", action="store_true", help="also print every matching rule, and how the group was found"
    )
    parser.add_argument(
        "--warnings", action="store_true", help="also print warnings about each robots.txt, on standard error"
    )
    parser.add_argument("--json", action="store_true", help="print the JSON of GET /v1/allowed, one line per answer")
    add_server(parser, None)


def run(arguments: argparse.Namespace) -> int:
    """Print the answers; return the exit code of the worst verdict. Raise Failed."""
    return asyncio.run(_decide(arguments))


async def _decide(arguments: argparse.Namespace) -> int:
    verdicts: list[str] = []
    warned: set[tuple[str, str | None]] = set()
    async with asking(arguments, arguments.urls, [*arguments.agent, *arguments.fallback]) as asker:
        agents = await expanded(asker, arguments.agent)
        async for answer in _answers(asker, arguments, agents):
            if arguments.json:
                lines = [json.dumps(answer, separators=(",", ":"))]
            else:
                first, *others = answer_lines(answer)
                lines = [*([""] if verdicts else []), coloured(first), *others]
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            verdicts.append(answer["verdict"])
            if arguments.warnings:
                await _warn(asker, answer, warned)
    return worst(verdicts)


async def _answers(asker: Asker, arguments: argparse.Namespace, agents: Sequence[str]) -> AsyncIterator[dict[str, Any]]:
    for url in arguments.urls:
        for agent in agents:
            yield await ask(asker, url, [agent, *arguments.fallback], explain=arguments.explain)


async def _warn(asker: Asker, answer: dict[str, Any], warned: set[tuple[str, str | None]]) -> None:
    """Print the warnings about the file of an answer, unless they have been printed."""
    url, profile = answer["robots"]["url"], await asker.profile(answer["agent"])
    if (url, profile) in warned:
        return
    warned.add((url, profile))
    for warning in await asker.warnings(read_target(url).origin.key, profile):
        message = f"{url}:{warning['line']}: {warning['code']}: {warning['message']}"
        sys.stderr.write(printable(message) + "\n")
