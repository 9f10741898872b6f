"""`python -m app key-directory`: the directory of public keys, for a static host."""

import argparse
import sys
import time

from app.cli.exit_codes import Failed, Parser
from app.main.operator_files import OperatorFiles
from app.main.settings import Settings


def add(parser: Parser) -> None:
    """Add the arguments: a host."""
    parser.description = (
        "Print the directory of public keys of a host that AGENTS_FILE names as a signature_agent, as the service "
        "answers it."
    )
    parser.epilog = "With --headers, run it at least once a day: its signatures expire after 24 hours."
    parser.add_argument("host", nargs="?", metavar="HOST", help="the host, if the file names several")
    parser.add_argument("--headers", action="store_true", help="print the header fields to send with it in its place")


def run(arguments: argparse.Namespace) -> int:
    """Print the directory or its header fields. Raise BadSetting for an unreadable AGENTS_FILE, and Failed."""
    identities = OperatorFiles(Settings.read()).agents.value.identities
    if not identities:
        raise Failed("AGENTS_FILE has no profile with a signature_agent.")
    host: str | None = arguments.host
    if host is None and len(identities) > 1:
        raise Failed(f"Name one of the hosts {', '.join(identities)}.")
    if host is not None and host not in identities:
        raise Failed(f"No profile has signature_agent = 'https://{host}'; the hosts are {', '.join(identities)}.")
    identity = identities[host] if host is not None else next(iter(identities.values()))
    body, headers = identity.directory.at(time.time())
    if arguments.headers:
        sys.stdout.writelines(f"{name}: {value}\n" for name, value in headers.items())
    else:
        sys.stdout.write(body.decode("ascii") + "\n")
    return 0
