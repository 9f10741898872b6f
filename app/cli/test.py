"""`python -m app test`: what a robots.txt that is at hand says of several URLs to several agents."""

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
from app.cli.formatting import row_details, row_line, shown
from app.cli.standalone import own_models
from app.robots.access import BODY_LIMIT
from app.robots.dialects import DIALECTS
from app.settings import Settings

READ_LIMIT = 4 * BODY_LIMIT
"""Octets of a file that are read: past BODY_LIMIT, only for the warning that the rest does not count."""


def add(parser: Parser) -> None:
    """One file, some agents, some URLs; an outcome to pretend."""
    parser.description = "Say what a robots.txt permits. Nothing is fetched."
    parser.epilog = (
        "Ends with 0 if every URL is allowed to every agent, 1 if any is disallowed, 2 if none is but any is deferred "
        "(which only a pretended outcome can bring about), 3 where no answer could be had."
    )
    parser.add_argument("file", metavar="FILE", help="the robots.txt; - is standard input")
    parser.add_argument("urls", metavar="URL", nargs="+", help="the pages, absolute, http or https")
    parser.add_argument("--agent", action="append", required=True, help="a token or a User-Agent header; one or more")
    parser.add_argument(
        "--dialect", action="append", choices=list(DIALECTS), help="one or more; by agent where none is named"
    )
    parser.add_argument("--at", metavar="INSTANT", help="RFC 3339 instant that rates are asked for; now")
    parser.add_argument("--status", type=int, help="pretend that every fetch of the file is answered so")
    parser.add_argument("--cause", choices=SIMULATED_CAUSES, help="pretend that every fetch of the file fails so")
    parser.add_argument("--retry-after", type=int, metavar="SECONDS", help="what such an answer asks for")
    parser.add_argument("--for", dest="lasting", metavar="TIME", help='for how long that has lasted: "90m", "3d"')
    parser.add_argument("--no-copy", action="store_true", help="and the file was not held when it began")
    parser.add_argument(
        "--explain", action="store_true", help="also every rule that matched, and how the group was found"
    )
    parser.add_argument("--json", action="store_true", help="print the answer of POST /v1/test")


def run(arguments: argparse.Namespace) -> int:
    """Print a line per row on standard output, and warnings about the file on standard error. Raises Failed."""
    settings = Settings.read()
    trial = _trial(arguments, _read(arguments.file))
    forbidden = settings.on_forbidden == "deny"
    try:
        file = PastedFile.read(trial.body())
        text = "".join(tried(trial, file, datetime.now(UTC), own_models(settings), UNLIMITED, forbidden=forbidden))
    except Problem as problem:
        raise Failed(problem.detail) from None
    told: dict[str, Any] = json.loads(text)
    if arguments.json:
        sys.stdout.write(text + "\n")
    else:
        for row in map(partial(_whole, told), told["rows"]):
            sys.stdout.write(row_line(row) + "\n")
            sys.stdout.writelines(f"{line}\n" for line in row_details(row))
        for warning in told["warnings"]:
            message = f"{arguments.file}:{warning['line']}: {warning['code']}: {warning['message']}"
            sys.stderr.write(shown(message) + "\n")
    return worst(row["verdict"] for row in told["rows"])


def _whole(told: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row with what it refers to, as an answer of `GET /v1/allowed` has it."""
    reader = {} if row["reader"] is None else told["readers"][row["reader"]]
    rule = None if row["rule"] is None else told["rules"][row["rule"]]
    explanation = row.get("explanation")
    if explanation is not None:
        rules = [{**told["rules"][it["rule"]], **it} for it in explanation["rules"]]
        explanation = {**explanation, "rules": rules, "group": reader["found"], "schedule": reader["schedule"]}
    return {**row, "rate": reader.get("rate"), "rule": rule, "explanation": explanation}


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(READ_LIMIT)
        with Path(name).open("rb") as file:
            return file.read(READ_LIMIT)
    except OSError as error:
        raise Failed(f"{name} cannot be read: {error.strerror}.") from None


def _trial(arguments: argparse.Namespace, body: bytes) -> TestIn:
    said = {
        "status": arguments.status,
        "cause": arguments.cause,
        "retry_after": arguments.retry_after,
        "lasting": arguments.lasting,
    }
    given = {name: value for name, value in said.items() if value is not None}
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
