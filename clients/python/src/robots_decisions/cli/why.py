"""`robots-decisions why`: explain an answer of a running service, and what earlier versions of the file said."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from robots_decisions.cli.calls import Calls
from robots_decisions.cli.explanation import explanation
from robots_decisions.cli.failures import ALLOW, DEFER, DISALLOW, Failed, Parser
from robots_decisions.cli.options import PURPOSES, add_server, printable
from robots_decisions.cli.origins import candidates, lacks_https
from robots_decisions.permits import not_a_verdict

SHOWN_VERSIONS = 5
"""Earlier versions of the file that are shown with their verdicts."""

_CODES = {"allow": ALLOW, "disallow": DISALLOW, "defer": DEFER}
_COLOURS = {"allow": "32", "disallow": "31", "defer": "33"}


def add(parser: Parser) -> None:
    """Add the arguments: a URL, agents, and the service to ask."""
    parser.description = (
        "Explain the answer of a service about a page: the file, the group, the rules, and the verdicts of earlier "
        "versions of the file."
    )
    parser.epilog = "Exit code: 0 for allow, 1 for disallow, 2 for defer, 3 for an error."
    parser.add_argument(
        "url", metavar="URL", help="the http or https URL of the page; without either, https, then http"
    )
    parser.add_argument(
        "agent", metavar="AGENT", nargs="+", help="a product token or a User-Agent header; further ones are fallbacks"
    )
    add_server(parser)
    parser.add_argument("--dialect", help="the dialect; the default depends on the agent")
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant for which rates are computed; default now")
    parser.add_argument(
        "--purpose", action="append", choices=PURPOSES, help="what the page is wanted for; may be repeated"
    )
    parser.add_argument(
        "--enforce", action="store_true", default=None, help="disallow the page if its site refuses a --purpose"
    )
    parser.add_argument("--json", action="store_true", help="print the JSON, with its explanation and `before`")


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; return the exit code of the verdict. Raise Failed."""
    with Calls(arguments) as service:
        answer = _answer(service, arguments)
        before = _before(service, answer["url"], arguments)
    if arguments.json:
        sys.stdout.write(json.dumps({**answer, "before": before}, separators=(",", ":")) + "\n")
    else:
        first, *others = map(printable, explanation(answer, before))
        sys.stdout.writelines(f"{line}\n" for line in (_coloured(first, answer["verdict"]), *others))
    return _CODES[answer["verdict"]]


def _answer(service: Calls, arguments: argparse.Namespace) -> dict[str, Any]:
    """The explained answer; for a bare host, about the first of its URLs that can be reached."""
    first, *others = candidates(arguments.url)
    answer = _ask(service, arguments, first, explain="true")
    for url in others if lacks_https(answer["robots"]) else ():
        other = _ask(service, arguments, url, explain="true")
        if not lacks_https(other["robots"]):
            return other
    return answer


def _ask(service: Calls, arguments: argparse.Namespace, url: str, **more: str) -> dict[str, Any]:
    asked = {name: getattr(arguments, name) for name in ("agent", "dialect", "at", "purpose")}
    if arguments.enforce:
        asked["enforce"] = "true"
    answer = service.get("/v1/allowed", {"url": url, **asked, **more}, expected="robots")
    wrong = not_a_verdict(answer)
    if wrong is not None:
        raise Failed(f"{arguments.server} answers with {wrong}.")
    return answer


def _before(service: Calls, url: str, arguments: argparse.Namespace) -> Sequence[dict[str, Any]]:
    """The last versions of the file, newest first, each with its verdict on this question."""
    versions = []
    try:
        history = service.get("/v1/robots/history", {"url": url, "agent": arguments.agent}, expected="versions")
        for version in history["versions"][:SHOWN_VERSIONS]:
            answer = _ask(service, arguments, url, as_of=version["from"])
            versions.append({**version, **{name: answer[name] for name in ("verdict", "reason", "rule")}})
    except Failed as error:  # as while the store is down, when the answer of now matters most
        sys.stderr.write(f"Earlier versions are not shown: {error}\n")
    return versions


def _coloured(line: str, verdict: str) -> str:
    """The line, which begins with the verdict, with that in green, red or yellow on a terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return line
    return f"\x1b[{_COLOURS[verdict]}m{verdict}\x1b[0m{line.removeprefix(verdict)}"
