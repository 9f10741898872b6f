"""`python -m app agents`: the crawlers that are known by name."""

import argparse
import sys

from app.api.routes.agents import agents_out
from app.cli.exit_codes import Parser
from app.cli.output import show
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings
from robots_core.agents.directory import AgentCategory


def add(parser: Parser) -> None:
    """Add the arguments: a category."""
    parser.description = (
        "List the crawlers that are known by name, with those of AGENTS_FILE: token, operator, category and dialect."
    )
    parser.epilog = "check and test take @CATEGORY as an agent: all crawlers of that category."
    parser.add_argument("--category", choices=list(map(str, AgentCategory)), help="only the crawlers of this category")
    parser.add_argument("--json", action="store_true", help="print the JSON of GET /v1/agents")


def run(arguments: argparse.Namespace) -> int:
    """Print a line per crawler. Raise BadSetting for an unreadable AGENTS_FILE."""
    found = agents_out(OperatorFiles(Settings.read()).agents.value.directory, arguments.category)
    if arguments.json:
        sys.stdout.write(found.model_dump_json() + "\n")
        return 0
    rows = [(it.token, it.operator or "-", str(it.category), it.dialect) for it in found.agents]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        show("  ".join(map(str.ljust, row, widths)).rstrip())
    return 0
