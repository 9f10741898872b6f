"""`robots-decisions`, or `python -m robots_decisions`: run a command."""

import argparse
import os
import sys
import traceback

from robots_decisions.cli.failures import ERROR, INTERRUPTED, Failed, Parser


def main() -> int:
    """Run the command in the arguments and return its exit code; on failure print an error and return 3."""
    parser = Parser(prog="robots-decisions", description="Ask a robots.txt decision service.")
    try:
        from robots_decisions.cli import check
    except ImportError as error:
        parser.exit(ERROR, f"{parser.prog} needs {error.name}: install robots-decisions[cli].\n")
    parsers = parser.add_subparsers(metavar="COMMAND", parser_class=Parser, required=True)
    named = parsers.add_parser(
        "check",
        help="decide about the URLs of a list, or the fetches of a log",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add(named)
    parser.set_defaults(run=check.run)
    arguments = parser.parse_args()
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a terminal may not encode all text
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except Failed as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
    except BrokenPipeError:
        # The reader has closed the pipe. The output that is left must not fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - printed below; Python's own exit code 1 would read as disallow
        traceback.print_exc()
    return ERROR
