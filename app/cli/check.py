"""`python -m app check`: may this agent fetch this URL, asked of the site itself or of a running service."""

import argparse
import asyncio
import json
import sys
from typing import Any

from app.api.params import agent_from, dialect_from, instant_from, target_from
from app.api.problems import Problem
from app.api.serialize import answer_out
from app.cache.lease import MARGIN
from app.cli.client import Service, add_server
from app.cli.exit_codes import Failed, Parser, worst
from app.cli.formatting import answer_lines
from app.cli.standalone import alone
from app.evaluate import Question
from app.robots.access import Busy
from app.robots.dialects import DIALECTS
from app.settings import Settings


def add(parser: Parser) -> None:
    """One URL, one agent."""
    parser.description = "Fetch a site's robots.txt, and say whether the agent may fetch the URL."
    parser.epilog = (
        "Ends with 0 for allow, 1 for disallow, 2 for defer (ask again later), 3 where no answer could be had. "
        "The environment variables of the service hold here too: ALLOW_ADDRESSES=127.0.0.0/8 admits this machine."
    )
    parser.add_argument("url", metavar="URL", help="the page, absolute, http or https")
    parser.add_argument(
        "--agent",
        action="append",
        required=True,
        help="a product token or a whole User-Agent header; given several times, the first that has a group counts",
    )
    parser.add_argument("--dialect", choices=list(DIALECTS), help="how the file is read; by agent where none is named")
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant that rates are asked for; now")
    parser.add_argument(
        "--explain", action="store_true", help="also every rule that matched, and how the group was found"
    )
    parser.add_argument("--json", action="store_true", help="print the answer of GET /v1/allowed")
    add_server(parser, None)


def run(arguments: argparse.Namespace) -> int:
    """Print the answer; the code of its verdict. Raises Failed."""
    if arguments.server is None:
        answer = decided_here(arguments, explain=arguments.explain)
    else:
        with Service(arguments.server) as service:
            answer = decided_there(service, arguments, explain=arguments.explain)
    lines = [json.dumps(answer, separators=(",", ":"))] if arguments.json else answer_lines(answer)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return worst([answer["verdict"]])


def decided_here(arguments: argparse.Namespace, *, explain: bool) -> dict[str, Any]:
    """The answer to what the arguments ask (url, agent, dialect, at), by a fetch of this process; raises Failed."""
    text = asyncio.run(_decided(arguments, explain=explain))
    answer: dict[str, Any] = json.loads(text)
    return answer


def decided_there(
    service: Service, arguments: argparse.Namespace, *, explain: bool, as_of: str | None = None
) -> dict[str, Any]:
    """The same, by a running service, and as of an instant where one is named; raises Failed."""
    named = {
        "dialect": arguments.dialect,
        "at": arguments.at,
        "as_of": as_of,
        "explain": "true" if explain else None,
    }
    parameters = {name: value for name, value in named.items() if value is not None}
    parameters |= {"url": arguments.url, "agent": arguments.agent}
    return service.get_object("/v1/allowed", parameters, expected="verdict")


async def _decided(arguments: argparse.Namespace, *, explain: bool) -> str:
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
        async with alone(settings) as decider:
            answer = answer_out(await decider.decide(question), explained=explain)
    except Problem as problem:
        raise Failed(problem.detail) from None
    except Busy as error:
        raise Failed(str(error)) from None
    return answer.model_dump_json(exclude=None if explain else {"explanation"})
