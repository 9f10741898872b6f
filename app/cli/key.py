"""`python -m app key`: a new API key for its owner, and the lines of API_KEYS_FILE that admit it."""

import argparse
import sys

from app.auth.keys import Scope, new_key
from app.cli.exit_codes import Failed, Parser


def add(parser: Parser) -> None:
    """The id that the key is known by."""
    parser.description = "Make an API key. The key goes to its owner, the lines go into API_KEYS_FILE."
    parser.epilog = (
        "The key is printed on standard error, and its lines on standard output: key NAME >> keys.toml. "
        "Other users may not read the file: chmod 600 keys.toml."
    )
    parser.add_argument("id", metavar="ID", help="what the key is called in the file, in logs and in the audit")
    parser.add_argument("--admin", action="store_true", help="it may also use the routes of operators")


def run(arguments: argparse.Namespace) -> int:
    """Print them; always 0. Raises Failed for an id that cannot be one."""
    try:
        key, lines = new_key(arguments.id, Scope.ADMIN if arguments.admin else Scope.READ)
    except ValueError as error:
        raise Failed(str(error)) from None
    sys.stderr.write(f"{key}\n")
    sys.stdout.write(lines)
    return 0
