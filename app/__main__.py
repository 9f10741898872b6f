"""`python -m app`: picks the command; what each of them does is in app.cli."""

import argparse
import importlib
import os
import sys
import traceback

from app.cli.exit_codes import ERROR, INTERRUPTED, Failed, Parser
from app.redis.embedded import EmbeddedServerFailed, NoEmbeddedServer
from app.settings import BadSetting

COMMANDS = {
    "serve": "start the service; the default when no command is given",
    "check": "ask whether an agent may fetch a URL: fetch the site's robots.txt and say why",
    "why": "explain one answer: the file, the group, the rules, and what the file said before",
    "test": "ask the same of a robots.txt that you have at hand, for several URLs and agents",
    "warm": "let a running service fetch the files of many origins",
    "key": "make an API key, and the lines of API_KEYS_FILE that admit it",
    "openapi": "print the OpenAPI document",
}


def main() -> int:
    """Run the command that is named and return its exit code; 3 if it failed, after an error message."""
    parser = Parser(prog="python -m app", description="A robots.txt decision service.")
    parsers = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    wanted = next((word for word in sys.argv[1:] if not word.startswith("-")), "serve")
    for name, summary in COMMANDS.items():
        named = parsers.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == wanted:
            # Only its own module: the service takes a second to import, which `key` and `warm` do not need.
            command = importlib.import_module(f"app.cli.{name}")
            command.add(named)
            parser.set_defaults(run=command.run)
    arguments = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # text is anybody's, a terminal's is not
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except Failed as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
    except (BadSetting, NoEmbeddedServer, EmbeddedServerFailed) as error:
        print(f"cannot start: {error}", file=sys.stderr)
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is left of it must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - nothing is swallowed: but Python's own exit code would read as a verdict
        traceback.print_exc()
    return ERROR


if __name__ == "__main__":
    sys.exit(main())
