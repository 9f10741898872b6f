"""`python -m app openapi`: the OpenAPI document, as openapi.json keeps it."""

import argparse
import sys

from app.api.openapi import as_text
from app.cli.exit_codes import Parser
from app.main.service import create
from app.settings import Settings


def add(parser: Parser) -> None:
    """It takes no arguments."""
    parser.description = "Print the OpenAPI document of the service."


def run(_arguments: argparse.Namespace) -> int:
    """Print it; always 0."""
    sys.stdout.write(as_text(create(Settings(redis_url="redis://localhost"))))
    return 0
