"""`python -m app test`: test a local robots.txt with several URLs and agents."""

import argparse
import base64
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.api.long_work import UNLIMITED
from app.api.problems import Problem
from app.api.routes.test_file import PastedFile, TestIn, tried
from app.api.what_if import SIMULATED_CAUSES, SimulatedOutcomeIn
from app.cli.exit_codes import Failed, Parser, worst
from app.cli.formatting import printable, row_details, row_line
from app.cli.standalone import own_models
from app.robots.access import BODY_LIMIT
from app.robots.dialects import DIALECTS
from app.settings import Settings

READ_LIMIT = 4 * BODY_LIMIT
"""Bytes of a file that are read; those past BODY_LIMIT only cause a warning."""


def add(parser: Parser) -> None:
    """Add the arguments: a file, URLs, agents, and an outcome to simulate."""
    parser.description = "Test a robots.txt file. Nothing is fetched."
    parser.epilog = (
        "Exit code: 0 if every URL is allowed for every agent, 1 if any is disallowed, 2 if any is deferred (only "
        "with a simulated outcome), 3 for an error."
    )
    parser.add_argument("file", metavar="FILE", help="the robots.txt; - for standard input")
    parser.add_argument("urls", metavar="URL", nargs="+", help="absolute http or https URLs of pages")
    parser.add_argument(
        "--agent", action="append", required=True, help="a product token or User-Agent; may be repeated"
    )
    parser.add_argument(
        "--dialect", action="append", choices=list(DIALECTS), help="may be repeated; the default depends on the agent"
    )
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant for which rates are computed; default now")
    parser.add_argument("--status", type=int, help="simulate that every fetch is answered with this status")
    parser.add_argument("--cause", choices=SIMULATED_CAUSES, help="simulate that every fetch fails for this cause")
    parser.add_argument("--retry-after", type=int, metavar="SECONDS", help="the Retry-After of the simulated response")
    parser.add_argument("--for", dest="lasting", metavar="TIME", help='how long the outcome has lasted: "90m", "3d"')
    parser.add_argument("--no-copy", action="store_true", help="simulate that there was no cached copy")
    parser.add_argument(
        "--explain", action="store_true", help="also print every matching rule, and how the group was found"
    )
    parser.add_argument("--json", action="store_true", help="print the JSON of POST /v1/test")


def run(arguments: argparse.Namespace) -> int:
    """Print a line per row on standard output and warnings on standard error. Raise Failed."""
    settings = Settings.read()
    test = _request(arguments, _read(arguments.file))
    forbidden = settings.on_forbidden == "deny"
    try:
        file = PastedFile.read(test.body())
        text = "".join(tried(test, file, datetime.now(UTC), own_models(settings), UNLIMITED, forbidden=forbidden))
    except Problem as problem:
        raise Failed(problem.detail) from None
    answer: dict[str, Any] = json.loads(text)
    if arguments.json:
        sys.stdout.write(text + "\n")
    else:
        for row in map(partial(_resolved, answer), answer["rows"]):
            sys.stdout.write(row_line(row) + "\n")
            sys.stdout.writelines(f"{line}\n" for line in row_details(row))
        for warning in answer["warnings"]:
            message = f"{arguments.file}:{warning['line']}: {warning['code']}: {warning['message']}"
            sys.stderr.write(printable(message) + "\n")
    return worst(row["verdict"] for row in answer["rows"])


def _resolved(answer: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row with its reader and rules in place of their indexes, as in an answer of `GET /v1/allowed`."""
    reader = {} if row["reader"] is None else answer["readers"][row["reader"]]
    rule = None if row["rule"] is None else answer["rules"][row["rule"]]
    explanation = row.get("explanation")
    if explanation is not None:
        rules = [{**answer["rules"][match["rule"]], **match} for match in explanation["rules"]]
        explanation = {**explanation, "rules": rules, "group": reader["found"], "schedule": reader["schedule"]}
    return {**row, "rate": reader.get("rate"), "rule": rule, "explanation": explanation}


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(READ_LIMIT)
        with Path(name).open("rb") as file:
            return file.read(READ_LIMIT)
    except OSError as error:
        raise Failed(f"Cannot read {name}: {error.strerror}.") from None


def _request(arguments: argparse.Namespace, body: bytes) -> TestIn:
    options = {
        "status": arguments.status,
        "cause": arguments.cause,
        "retry_after": arguments.retry_after,
        "lasting": arguments.lasting,
    }
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return TestIn(
            robots_base64=base64.b64encode(body).decode("ascii"),
            urls=arguments.urls,
            agents=arguments.agent,
            dialects=arguments.dialect or [],
            at=arguments.at,
            explain=arguments.explain,
            outcome=SimulatedOutcomeIn(**given, had_copy=not arguments.no_copy) if given or arguments.no_copy else None,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise Failed(f"{'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
