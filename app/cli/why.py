"""`python -m app why`: the story of one answer, from the URL to the verdict, and how the answer came to change."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from app.cli.check import decided_here, decided_there
from app.cli.client import Service, add_server
from app.cli.exit_codes import Parser, worst
from app.cli.formatting import rate_text, rule_text, shown, visit_text
from app.robots.dialects import DIALECTS

VERSIONS = 5
"""How many versions of the file are asked what they said."""

_REASONS = {
    "rule": "a rule of the group decides",
    "no_match": "no rule of the group matches, and what no rule matches is allowed",
    "no_group": "no group speaks for this agent, so nothing is disallowed",
    "no_rules": "the group has no rules, so nothing is disallowed",
    "unavailable": "the origin has no robots.txt (a 4xx status), so nothing is disallowed",
    "forbidden": "robots.txt is forbidden (401 or 403), and this service takes that for a complete disallow",
    "unreachable": "robots.txt cannot be had, and no copy stands in: ask again later",
    "challenge": "the origin answers with a page for people in place of its robots.txt: ask again later",
    "pending": "robots.txt is still being fetched: ask again in a moment",
    "implicit": "/robots.txt itself is always allowed",
    "too_complex": "deciding would take too long: the file and the URL were made to be slow together",
    "blocked_address": "the host leads to an address that is not fetched from",
    "overridden": "an operator's override decides, whatever the file says",
}
_SOURCES = {
    "memory": "this answer comes from memory",
    "store": "this answer comes from the store",
    "fetched": "fetched for this answer",
    "revalidated": "checked for this answer, and unchanged",
    "history": "this answer comes from the history",
    "none": "nothing is held",
}
_PRECEDENCE = {"draft1996": "the first in the file decides"}


def add(parser: Parser) -> None:
    """One URL, one agent."""
    parser.description = "Tell how one answer came about, step by step."
    parser.epilog = (
        "Ends as `check` does: 0 for allow, 1 for disallow, 2 for defer, 3 where no answer could be had. "
        "With --server, it also tells what the last versions of the file said."
    )
    parser.add_argument("url", metavar="URL", help="the page, absolute, http or https")
    parser.add_argument(
        "agent", metavar="AGENT", nargs="+", help="a product token or a User-Agent header; more to fall back to"
    )
    parser.add_argument("--dialect", choices=list(DIALECTS), help="how the file is read; by agent where none is named")
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant that rates are asked for; now")
    parser.add_argument("--json", action="store_true", help="print the answer, with its explanation and `before`")
    add_server(parser, None)


def run(arguments: argparse.Namespace) -> int:
    """Print the story; the code of its verdict. Raises Failed."""
    before: list[dict[str, Any]] = []
    if arguments.server is None:
        answer = decided_here(arguments, explain=True)
    else:
        with Service(arguments.server) as service:
            answer = decided_there(service, arguments, explain=True)
            before = _before(service, arguments)
    story = (
        [json.dumps({**answer, "before": before}, separators=(",", ":"))] if arguments.json else _story(answer, before)
    )
    sys.stdout.write("".join(f"{shown(line)}\n" for line in story))
    return worst([answer["verdict"]])


def _before(service: Service, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The last versions of the file, the newest first, each with the verdict that it gave on this question."""
    history = service.get_object("/v1/robots/history", {"url": arguments.url}, expected="versions")
    told = []
    for version in history["versions"][:VERSIONS]:
        answer = decided_there(service, arguments, explain=False, as_of=version["from"])
        told.append({**version, **{name: answer[name] for name in ("verdict", "reason", "rule")}})
    return told


def _story(answer: Mapping[str, Any], before: list[dict[str, Any]]) -> Iterator[str]:
    explanation, override = answer["explanation"], answer["override"]
    yield f"{answer['verdict']}: {_REASONS.get(answer['reason'], answer['reason'])}."
    yield ""
    yield f"URL       {answer['url']}"
    yield f"agent     {answer['agent']}, read by the dialect {answer['dialect']}"
    yield from _file(answer["robots"])
    if explanation is not None:
        yield f"group     {explanation['group']}"
        yield from _rules(answer, explanation)
    if override is not None:
        effect = "would act, and is a shadow" if override["shadow"] else "acts"
        until = f", until {override['expires_at']}" if override["expires_at"] else ""
        yield f"override  {override['id']} {effect}: {override['action']} for {override['scope']}{until}"
        yield f"          because {override['reason']}"
    if answer["rate"] is not None:
        yield f"rate      {rate_text(answer['rate'])}"
    if answer["visit"] is not None:
        yield f"visit     {visit_text(answer['visit'])}"
    if answer["retry_at"] is not None:
        yield f"retry     at {answer['retry_at']}"
    if before:
        yield ""
        yield from map(_version, before)


def _file(robots: Mapping[str, Any]) -> Iterator[str]:
    if robots["outcome"] is None:
        yield f"file      {robots['url']} has not been fetched yet"
        return
    what = ", ".join(str(robots[name]) for name in ("outcome", "status", "cause") if robots[name] is not None)
    yield f"file      {robots['url']}: {what}"
    if robots["final_url"]:
        yield f"          redirected to {robots['final_url']}"
    source = _SOURCES.get(robots["source"], robots["source"])
    yield f"          found at {robots['fetched_at']}, {robots['age']} s ago; {source}"
    if robots["failing_since"]:
        copy = "; the copy above stands in" if robots["outcome"] == "successful" else ""
        yield f"          fetches have failed since {robots['failing_since']}{copy}"
    if robots["truncated"]:
        yield "          the file is too long: its end does not count"
    if robots["recheck_at"]:
        yield f"          due to be fetched again at {robots['recheck_at']}"


def _rules(answer: Mapping[str, Any], explanation: Mapping[str, Any]) -> Iterator[str]:
    matched = explanation["matched"]
    precedence = _PRECEDENCE.get(answer["dialect"], "the longest decides, and allow between equals")
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
