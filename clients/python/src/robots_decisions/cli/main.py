"""`robots-decisions`, or `python -m robots_decisions`: run a command."""

import os
import sys
import traceback
from importlib import import_module

from robots_decisions.cli.failures import ERROR, INTERRUPTED, Failed, Parser

COMMANDS = {
    "check": ("decide about the URLs of a list, or the fetches of a log", "cli"),
    "why": ("explain an answer: the file, the group, the rules, and earlier versions", "cli"),
    "bundle": ("write the robots.txt of a list of origins into a Parquet file", "cli,parquet"),
    "ingest": ("send the robots.txt files of WARC files", "cli,warc"),
    "mcp": ("serve tools for agents by the Model Context Protocol", "mcp"),
    "overrides": ("list, set, remove, export or import the overrides of operators", "cli"),
}
"""The commands, each a module of this package; and the extras of the distribution that it needs."""


def main() -> int:
    """Run the command in the arguments and return its exit code; on failure print an error and return 3."""
    parser = Parser(prog="robots-decisions", description="Ask a robots.txt decision service.")
    parsers = parser.add_subparsers(metavar="COMMAND", parser_class=Parser, required=True)
    for name, (meaning, extras) in COMMANDS.items():
        named = parsers.add_parser(name, help=meaning)
        if not _is_named(name):
            continue
        try:
            command = import_module(f"robots_decisions.cli.{name}")
        except ImportError as error:
            parser.exit(ERROR, f"{parser.prog} {name} needs {error.name}: install robots-decisions[{extras}].\n")
        command.add(named)
        named.set_defaults(run=command.run)
    arguments = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a terminal may not encode all text
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


def _is_named(command: str) -> bool:
    """Whether the arguments name this command: only its module is imported, and only its extras are needed."""
    return next((it for it in sys.argv[1:] if not it.startswith("-")), None) == command
