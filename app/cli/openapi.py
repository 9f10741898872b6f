"""`python -m app openapi`: print the OpenAPI document, as the service serves it."""

import argparse
import sys

from app.api.routes.pages import OPENAPI_FILE
from app.cli.exit_codes import Parser


def add(parser: Parser) -> None:
    """Add no arguments."""
    parser.description = "Print the OpenAPI document of the service."


def run(_arguments: argparse.Namespace) -> int:
    """Print the document."""
    sys.stdout.write(OPENAPI_FILE.read_text(encoding="utf-8"))
    return 0
