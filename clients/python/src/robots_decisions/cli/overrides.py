"""`robots-decisions overrides`: list, set, remove, export and import the overrides of a running service."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

from robots_decisions.cli.calls import Calls
from robots_decisions.cli.failures import Failed, Parser
from robots_decisions.cli.options import add_server, printable

ACTIONS = ("allow", "deny", "delay", "budget", "robots")

READ_LIMIT = 512_001
"""Bytes of a robots.txt that are read: one more than the service accepts."""


LINE_LIMIT = 4 * 1024 * 1024
"""Bytes of the longest line that is imported: a robots.txt at its limit, escaped as JSON."""


def add(parser: Parser) -> None:
    """Add the arguments: what to do, and the override."""
    parser.description = (
        "List the overrides of a service, set or remove one, or export and import all. An override is an operator's "
        "decision in place of a robots.txt; the service must take the caller for an operator."
    )
    what = parser.add_subparsers(
        dest="what", metavar="list|set|remove|export|import", required=True, parser_class=Parser
    )
    listing = what.add_parser("list", help="list the overrides by id")
    listing.add_argument("--url", help="only those that match this URL, in the order in which they decide")
    setting = what.add_parser("set", help="set an override, or replace it")
    setting.add_argument("id", metavar="ID", help="you choose it: letters, digits, '.', '_' and '-'")
    setting.add_argument("--scope", required=True, help="an origin, https://www.example.com, or a host suffix")
    setting.add_argument("--action", required=True, choices=ACTIONS, help="what it does")
    setting.add_argument("--reason", required=True, help="why; answers quote it")
    setting.add_argument(
        "--agent", action="append", dest="agents", default=[], help="a crawler it holds for; default all"
    )
    setting.add_argument("--delay", type=float, metavar="SECONDS", help="with the action delay: least seconds")
    setting.add_argument(
        "--budget", type=int, metavar="DOCUMENTS", help="with the action budget: the most documents of a pool in a day"
    )
    setting.add_argument("--robots", metavar="FILE", help="with the action robots: the text to read; - for stdin")
    setting.add_argument("--expires-at", metavar="INSTANT", help="RFC 3339 instant at which it ends; default never")
    setting.add_argument("--shadow", action="store_true", help="count what it would change, but change nothing")
    removing = what.add_parser("remove", help="remove an override")
    removing.add_argument("id", metavar="ID", help="its id")
    exporting = what.add_parser("export", help="print those of the store as JSON, one a line, for a backup")
    importing = what.add_parser("import", help="set the overrides of an export; others stay")
    importing.add_argument("file", metavar="FILE", help="what export has printed; - for stdin")
    for each in (listing, setting, removing, exporting, importing):
        add_server(each)
    for each in (listing, setting):
        each.add_argument("--json", action="store_true", help="print the JSON of the service, one line per override")


def run(arguments: argparse.Namespace) -> int:
    """Do it, and print the overrides that are listed or set. Raise Failed."""
    with Calls(arguments) as service:
        match arguments.what:
            case "list":
                for record in _all(service, arguments.url):
                    _print(record, as_json=arguments.json)
            case "set":
                record = service.call("PUT", _path(arguments.id), _message(arguments), expected="id")
                _print(record, as_json=arguments.json)
            case "export":
                for record in _all(service, None):
                    if record.get("source") != "file":
                        _print(record, as_json=True)
            case "import":
                _import(service, arguments.file)
            case _:
                service.call("DELETE", _path(arguments.id), expected="")
    return 0


def _all(service: Calls, url: str | None) -> Iterator[dict[str, Any]]:
    """All overrides, page by page."""
    cursor = None
    while True:
        page = service.get("/v1/overrides", {"url": url, "cursor": cursor}, expected="overrides")
        yield from page["overrides"]
        if page["next"] in (None, cursor):
            return
        cursor = page["next"]


def _import(service: Calls, name: str) -> None:
    """Set the overrides of a file that have not expired, and say how many. Raise Failed, which names the line."""
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
            records = [_record(f"{name}:{number}", line) for number, line in _lines(file)]
    except OSError as error:
        raise Failed(f"Cannot read {name}: {error.strerror}.") from None
    expired = 0
    for where, record in records:
        if record.get("expired"):
            expired += 1
            continue
        try:
            service.call("PUT", _path(record["id"]), record, expected="id")
        except Failed as error:
            raise Failed(f"{where}: {error}") from None
    left_out = f"; {expired} had expired and are left out" if expired else ""
    sys.stderr.write(f"{len(records) - expired} overrides are set{left_out}.\n")


def _lines(file: Any) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; of one that is too long, the beginning."""
    for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT + 1), b""), 1):
        if line.strip() or len(line) > LINE_LIMIT:
            yield number, line


def _record(where: str, line: bytes) -> tuple[str, dict[str, Any]]:
    """An exported override, and where it is. Raise Failed."""
    if len(line) > LINE_LIMIT:
        raise Failed(f"{where} has more than {LINE_LIMIT} bytes; import what `overrides export` has printed.")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("id"), str):
        raise Failed(f"{where} is not an override; import what `overrides export` has printed.")
    return where, record


def _path(id_: str) -> str:
    return f"/v1/overrides/{quote(id_, safe='', errors='replace')}"


def _message(arguments: argparse.Namespace) -> Mapping[str, Any]:
    names = ("scope", "action", "reason", "agents", "delay", "budget", "expires_at", "shadow")
    message = {name: getattr(arguments, name) for name in names}
    message["robots"] = None if arguments.robots is None else _read(arguments.robots)
    return {name: value for name, value in message.items() if value is not None}


def _read(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.buffer.read(READ_LIMIT).decode()
        with Path(name).open("rb") as file:
            return file.read(READ_LIMIT).decode()
    except OSError as error:
        raise Failed(f"Cannot read {name}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Failed(f"{name} is not UTF-8, as the text of an override must be.") from None


def _print(record: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(record, separators=(",", ":")) + "\n")
        return
    delay = "" if record["delay"] is None else f" {record['delay']:g} s"
    # A service of an earlier release knows no budgets.
    budget = "" if record.get("budget") is None else f" {record['budget']} a day"
    agents = ", ".join(record["agents"]) or "all crawlers"
    until = "" if record["expires_at"] is None else f", until {record['expires_at']}"
    state = " (shadow)" if record["shadow"] else " (expired)" if record["expired"] else ""
    effect = f"{record['action']}{delay}{budget} for {agents} on {record['scope']}{until}{state}"
    # A service of an earlier release has no file of overrides.
    of_file = record.get("source") == "file"
    origin = "OVERRIDES_FILE" if of_file else f"{record['updated_by']}, {record['updated_at']}"
    line = f"{record['id']}  {effect}: {record['reason']} [{origin}]"
    sys.stdout.write(printable(line) + "\n")
