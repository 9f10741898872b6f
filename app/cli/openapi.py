"""`python -m app openapi`: print the OpenAPI document, as in openapi.json."""

import argparse
import sys

from app.api.openapi import as_text
from app.cli.exit_codes import Parser
from app.main.service import create
from app.main.settings import Settings


def add(parser: Parser) -> None:
    """Add no arguments."""
    parser.description = "Print the OpenAPI document of the service."


def run(_arguments: argparse.Namespace) -> int:
    """Print the document."""
    sys.stdout.write(as_text(create(Settings(redis_url="redis://localhost"))))
    return 0
