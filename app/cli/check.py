"""`python -m app check`: decide whether an agent may fetch a URL, here or by a running service."""

import argparse
import asyncio
import json
import sys
from typing import Any

from app.api.params import agent_from, dialect_from, instant_from, target_from
from app.api.problems import Problem
from app.api.serialize import answer_out
from app.cache.lease import MARGIN
from app.cli.client import ServiceClient, add_server
from app.cli.exit_codes import Failed, Parser, worst
from app.cli.formatting import answer_lines
from app.cli.standalone import standalone
from app.evaluate import Question
from app.robots.access import Busy
from app.robots.dialects import DIALECTS
from app.settings import Settings


def add(parser: Parser) -> None:
    """Add the arguments: a URL and an agent."""
    parser.description = "Fetch a site's robots.txt and decide whether the agent may fetch the URL."
    parser.epilog = (
        "Exit code: 0 for allow, 1 for disallow, 2 for defer (ask again later), 3 for an error. "
        "The settings of the service apply: ALLOW_ADDRESSES=127.0.0.0/8 permits fetches from this machine."
    )
    parser.add_argument("url", metavar="URL", help="the absolute http or https URL of the page")
    parser.add_argument(
        "--agent",
        action="append",
        required=True,
        help="a product token or a User-Agent header; if repeated, the first with a group in the file decides",
    )
    parser.add_argument("--dialect", choices=list(DIALECTS), help="the dialect; the default depends on the agent")
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant for which rates are computed; default now")
    parser.add_argument(
        "--explain", action="store_true", help="also print every matching rule, and how the group was found"
    )
    parser.add_argument("--json", action="store_true", help="print the JSON of GET /v1/allowed")
    add_server(parser, None)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer; return the exit code of its verdict. Raise Failed."""
    answer = asyncio.run(_answer(arguments))
    lines = [json.dumps(answer, separators=(",", ":"))] if arguments.json else answer_lines(answer)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return worst([answer["verdict"]])


async def _answer(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.server is None:
        return await decide_here(arguments, explain=arguments.explain)
    async with ServiceClient(arguments.server) as service:
        return await ask_service(service, arguments, explain=arguments.explain)


async def ask_service(
    service: ServiceClient, arguments: argparse.Namespace, *, explain: bool, as_of: str | None = None
) -> dict[str, Any]:
    """Let a running service decide the question in the arguments (url, agent, dialect, at). Raise Failed."""
    optional = {
        "dialect": arguments.dialect,
        "at": arguments.at,
        "as_of": as_of,
        "explain": "true" if explain else None,
    }
    parameters = {name: value for name, value in optional.items() if value is not None}
    parameters |= {"url": arguments.url, "agent": arguments.agent}
    return await service.get_object("/v1/allowed", parameters, expected="verdict")


async def decide_here(arguments: argparse.Namespace, *, explain: bool) -> dict[str, Any]:
    """Decide the question in the arguments (url, agent, dialect, at) by a fetch of this process. Raise Failed."""
    settings = Settings.read()
    try:
        agent = agent_from(arguments.agent)
        question = Question(
            target=target_from(arguments.url),
            agent=agent,
            dialect=dialect_from(arguments.dialect, agent),
            at=instant_from(arguments.at),
            wait=settings.fetch_timeout + MARGIN,
        )
        async with standalone(settings) as decider:
            answer = answer_out(await decider.decide(question), explained=explain)
    except Problem as problem:
        raise Failed(problem.detail) from None
    except Busy as error:
        raise Failed(str(error)) from None
    text = answer.model_dump_json(exclude=None if explain else {"explanation"})
    decided: dict[str, Any] = json.loads(text)
    return decided
