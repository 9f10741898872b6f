"""`python -m app why`: explain a decision from the URL to the verdict, and how it changed over time."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.cli.askers import Asker, ServiceAsker, add_question, ask, asking
from app.cli.client import add_server
from app.cli.colours import coloured
from app.cli.exit_codes import Parser, worst
from app.cli.formatting import printable, rate_text, rule_text, visit_text

SHOWN_VERSIONS = 5
"""Earlier versions of the file that are shown with their verdicts."""

_SOURCES = {
    "memory": "from memory",
    "store": "from the store",
    "fetched": "fetched for this answer",
    "revalidated": "revalidated for this answer, unchanged",
    "ingested": "sent by a crawler that fetched it",
    "history": "from the history",
    "none": "nothing cached",
}
_PRECEDENCE = {"draft1996": "the first in the file decides"}


def add(parser: Parser) -> None:
    """Add the arguments: a URL and an agent."""
    parser.description = "Explain a decision step by step."
    parser.epilog = (
        "Exit code, as for check: 0 for allow, 1 for disallow, 2 for defer, 3 for an error. "
        "With --server, it also shows the verdicts of earlier versions of the file."
    )
    parser.add_argument(
        "url", metavar="URL", help="the http or https URL of the page; without either, https, then http"
    )
    parser.add_argument(
        "agent", metavar="AGENT", nargs="+", help="a product token or a User-Agent header; further ones are fallbacks"
    )
    add_question(parser)
    parser.add_argument("--json", action="store_true", help="print the JSON, with its explanation and `before`")
    add_server(parser, None)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; return the exit code of the verdict. Raise Failed."""
    answer, before = asyncio.run(_answer(arguments))
    if arguments.json:
        lines = iter([json.dumps({**answer, "before": before}, separators=(",", ":"))])
    else:
        lines = _explanation(answer, before)
    sys.stdout.write("".join(f"{coloured(printable(line))}\n" for line in lines))
    return worst([answer["verdict"]])


async def _answer(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer, and the earlier versions if a service has them."""
    async with asking(arguments, [arguments.url], arguments.agent) as asker:
        answer = await ask(asker, arguments.url, arguments.agent, explain=True)
        return answer, await _before(asker, answer["url"], arguments.agent)


async def _before(asker: Asker, url: str, agents: Sequence[str]) -> list[dict[str, Any]]:
    """The last versions of the file, newest first, each with its verdict on this question; none without a service."""
    if not isinstance(asker, ServiceAsker):
        return []
    history = await asker.service.get_object("/v1/robots/history", {"url": url, "agent": agents}, expected="versions")
    versions = []
    for version in history["versions"][:SHOWN_VERSIONS]:
        answer = await asker.answer(url, agents, explain=False, as_of=version["from"])
        versions.append({**version, **{name: answer[name] for name in ("verdict", "reason", "rule")}})
    return versions


def _explanation(answer: Mapping[str, Any], before: list[dict[str, Any]]) -> Iterator[str]:
    explanation, override = answer["explanation"], answer["override"]
    yield f"{answer['verdict']} ({answer['reason']}): {explanation['summary']}"
    yield ""
    yield f"URL       {answer['url']}"
    yield f"agent     {answer['agent']}, read by the dialect {answer['dialect']}"
    yield from _file(answer["robots"])
    if "rules" in explanation:
        yield f"group     {explanation['group']}"
        yield from _rules(answer, explanation)
    if override is not None:
        effect = "would apply, but is in shadow mode" if override["shadow"] else "applies"
        until = f", until {override['expires_at']}" if override["expires_at"] else ""
        yield f"override  {override['id']} {effect}: {override['action']} for {override['scope']}{until}"
        yield f"          because {override['reason']}"
    rate = rate_text(answer["rate"], answer.get("next_rate"))
    if rate is not None:
        yield f"rate      {rate}"
    if answer["visit"] is not None:
        yield f"visit     {visit_text(answer['visit'])}"
    if before:
        yield ""
        yield from map(_version, before)


def _file(robots: Mapping[str, Any]) -> Iterator[str]:
    if robots["outcome"] is None:
        yield f"file      {robots['url']} has not been fetched yet"
        return
    outcome = ", ".join(str(robots[name]) for name in ("outcome", "status", "cause") if robots[name] is not None)
    yield f"file      {robots['url']}: {outcome}"
    if robots["final_url"]:
        yield f"          redirected to {robots['final_url']}"
    source = _SOURCES.get(robots["source"], robots["source"])
    yield f"          fetched at {robots['fetched_at']}, {robots['age']} s ago; {source}"
    if robots["failing_since"]:
        copy = "; the copy above is used meanwhile" if robots["outcome"] == "successful" else ""
        yield f"          fetches have failed since {robots['failing_since']}{copy}"
    if robots["truncated"]:
        yield "          the file is too long and was truncated"
    if robots["recheck_at"]:
        yield f"          due for a recheck at {robots['recheck_at']}"


def _rules(answer: Mapping[str, Any], explanation: Mapping[str, Any]) -> Iterator[str]:
    matched = explanation["matched"]
    precedence = _PRECEDENCE.get(answer["dialect"], "the longest decides; allow wins a tie")
    yield f"rules     {matched or 'none'} matched {explanation['path']}" + (f"; {precedence}" if matched > 1 else "")
    for number, rule in enumerate(explanation["rules"]):
        yield f"          {'decides: ' if number == 0 else 'and '}{rule_text(rule)} ({rule['length']} bytes)"
    if matched > len(explanation["rules"]):
        yield f"          and {matched - len(explanation['rules'])} more"


def _version(version: Mapping[str, Any]) -> str:
    until = version["until"] or "now"
    rule = f", {rule_text(version['rule'])}" if version["rule"] else ""
    what = version["outcome"] if version["size"] is None else f"version {version['id']}"
    return f"{version['from']} to {until}: {version['verdict']} ({version['reason']}{rule}), by {what}"
