"""`python -m app`: picks the command; what each of them does is in app.commands."""

import argparse
import os
import sys
import traceback

from app.commands import check, key, openapi, serve, test, warm, why
from app.commands.ending import ERROR, INTERRUPTED, Failed, Parser
from app.settings import BadSetting
from app.store.embedded import EmbeddedServerFailed, NoEmbeddedServer

COMMANDS = {
    "serve": (serve, "serve, which is what no command means"),
    "check": (check, "may an agent fetch a URL: fetches the site's robots.txt and says why"),
    "why": (why, "the story of one answer: the file, the group, the rules, and what was said before"),
    "test": (test, "the same of a robots.txt that is at hand, for several URLs and agents"),
    "warm": (warm, "let a running service fetch the files of many origins"),
    "key": (key, "make an API key, and the lines of API_KEYS_FILE that admit it"),
    "openapi": (openapi, "print the OpenAPI document"),
}


def main() -> int:
    """Run the command that is named, and give its exit code; 3 where it could not do its work, and says why."""
    parser = Parser(prog="python -m app", description="A robots.txt decision service.")
    parser.set_defaults(run=serve.run)
    parsers = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name, (command, summary) in COMMANDS.items():
        named = parsers.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add(named)
        named.set_defaults(run=command.run)
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
