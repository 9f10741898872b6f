"""`python -m app decide`: decide whether agents may fetch URLs, by the files of their sites, fetched from here."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from app.api.answers.serialize import answer_out
from app.cli.bare_host import candidates
from app.cli.exit_codes import Failed, Parser, worst
from app.cli.formatting import answer_lines
from app.cli.output import show_verdict, show_warnings
from app.cli.standalone import standalone
from app.decisions.evaluate import Decision, Question
from app.decisions.question import Asking, BadQuestion, instant_from
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from robots_core.agents.directory import AgentDirectory, UnknownCategory
from robots_core.lint.linter import lint
from robots_core.origin import Origin
from robots_core.purposes.policy import PURPOSES
from robots_core.robots.access import Access, Cause, Successful, Unreachable
from robots_core.robots.dialects import DIALECTS

_NO_HTTPS = frozenset({Cause.CONNECTION, Cause.PROXY, Cause.TIMEOUT, Cause.TLS})
"""Why a fetch by https fails at a host that has http only."""


def add(parser: Parser) -> None:
    """Add the arguments: URLs and agents."""
    parser.description = "Fetch the robots.txt of sites and decide whether agents may fetch URLs."
    parser.epilog = (
        "A URL without http:// or https:// means https, and http if the host cannot be reached by https. "
        "Exit code: 0 if all are allowed, 1 if any is disallowed, 2 if any is deferred (ask again later), 3 for an "
        "error. The settings of the service apply: ALLOW_ADDRESSES=127.0.0.0/8 permits fetches from this machine."
    )
    parser.add_argument("urls", metavar="URL", nargs="+", help="http or https URLs of pages")
    add_question(parser)
    parser.add_argument(
        "--fallback",
        action="append",
        default=[],
        metavar="AGENT",
        help="an agent to look up where the file has no group for --agent; may be repeated",
    )
    parser.add_argument("--dialect", choices=list(DIALECTS), help="the dialect; the default depends on the agent")
    parser.add_argument(
        "--warnings", action="store_true", help="also print warnings about each robots.txt, on standard error"
    )
    parser.add_argument("--json", action="store_true", help="print the JSON of GET /v1/allowed, one line per answer")


def add_question(parser: Parser) -> None:
    """Add the arguments that say who asks, and for what, as all commands that decide take them."""
    parser.add_argument(
        "--agent",
        action="append",
        help="a product token or User-Agent, or @category for all known crawlers of one; may be repeated",
    )
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant for which rates are computed; default now")
    parser.add_argument(
        "--purpose", action="append", choices=PURPOSES, help="what pages are wanted for; may be repeated"
    )
    parser.add_argument(
        "--explain", action="store_true", help="also print every matching rule, and how the group was found"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the answers; return the exit code of the worst verdict. Raise Failed."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    if not arguments.agent:
        raise Failed("Give at least one --agent.")
    settings = Settings.read()
    operators = OperatorFiles(settings)
    try:
        asked = list(_questions(arguments, settings, operators.agents.value.directory))
    except (BadQuestion, UnknownCategory) as error:
        raise Failed(str(error)) from None
    verdicts: list[str] = []
    warned: set[Origin] = set()
    async with standalone(settings, operators) as decide:
        for first, *others in asked:
            decision = await decide(first)
            for question in others if _lacks_https(decision) else ():
                other = await decide(question)
                decision = decision if _lacks_https(other) else other
            _print(decision, arguments, is_first=not verdicts)
            verdicts.append(decision.verdict.permission)
            if arguments.warnings and decision.question.origin not in warned:
                warned.add(decision.question.origin)
                _warn(decision)
    return worst(verdicts)


def _questions(
    arguments: argparse.Namespace, settings: Settings, known: AgentDirectory
) -> Iterator[Sequence[Question]]:
    """What is asked about each URL for each agent; of a bare host, by https and then by http. Raise BadQuestion."""
    asking = Asking(known, lambda: datetime.now(UTC), settings.purpose_policy)
    at = instant_from(arguments.at)
    agents = dict.fromkeys(token for name in arguments.agent for token in known.expand(name))
    for text in arguments.urls:
        for agent in agents:
            names = [agent, *arguments.fallback]
            yield [
                asking.question(url, names, arguments.dialect, purpose=arguments.purpose)._replace(at=at)
                for url in candidates(text)
            ]


def _access(decision: Decision) -> Access | None:
    return None if decision.cached.snapshot is None else decision.cached.snapshot.access


def _lacks_https(decision: Decision) -> bool:
    """Whether the fetch failed as those by https do at a host that may have http only."""
    access = _access(decision)
    return isinstance(access, Unreachable) and access.cause in _NO_HTTPS


def _print(decision: Decision, arguments: argparse.Namespace, *, is_first: bool) -> None:
    answer = answer_out(decision, explained=arguments.explain).model_dump(mode="json")
    if arguments.json:
        sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
        return
    if not is_first:
        sys.stdout.write("\n")
    show_verdict(*answer_lines(answer))


def _warn(decision: Decision) -> None:
    """Print the warnings about the file that decided."""
    access, origin = _access(decision), decision.question.target.origin
    if decision.robots is not None and isinstance(access, Successful):
        show_warnings(lint(decision.robots, access.content_type, origin.key), origin.robots_url)
