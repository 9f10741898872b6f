"""`python -m app key`: generate an API key and its lines for API_KEYS_FILE."""

import argparse
import sys

from app.auth.keys import Scope, new_key
from app.cli.exit_codes import Failed, Parser


def add(parser: Parser) -> None:
    """Add the arguments: the id of the key, and its scope."""
    parser.description = "Generate an API key. Give the key to its owner, and add the lines to API_KEYS_FILE."
    parser.epilog = (
        "The key goes to standard error and the lines to standard output: key ID >> keys.toml. "
        "The file must not be readable by other users: chmod 600 keys.toml."
    )
    parser.add_argument("id", metavar="ID", help="the name of the key in the file, in logs and in the audit")
    scope = parser.add_mutually_exclusive_group()
    for granted, use in ((Scope.ADMIN, "the routes of operators"), (Scope.INGEST, "a crawler's own copies")):
        summary = f"grant the scope {granted}, for {use}"
        scope.add_argument(f"--{granted}", dest="scope", action="store_const", const=granted, help=summary)


def run(arguments: argparse.Namespace) -> int:
    """Print the key and its lines. Raise Failed for an invalid id."""
    try:
        key, lines = new_key(arguments.id, arguments.scope or Scope.READ)
    except ValueError as error:
        raise Failed(str(error)) from None
    sys.stderr.write(f"{key}\n")
    sys.stdout.write(lines)
    return 0
