"""`python -m app`: run a command of app.cli."""

import argparse
import atexit
import gc
import importlib
import os
import sys
import traceback
from pathlib import Path

from app import __version__

COMMANDS = {
    "serve": "start the service (the default command)",
    "decide": "decide whether agents may fetch URLs, by fetching the site's robots.txt from here",
    "test": "test a local robots.txt with several URLs and agents",
    "audit": "verify a decision log by the archive alone",
    "archive": "check an archive of versions, or rebuild its index",
    "agents": "list the crawlers that are known by name",
    "settings": "list the settings with their values and defaults",
    "key": "generate an API key and its lines for API_KEYS_FILE",
    "key-directory": "print the public keys by which sites verify signed requests",
    "openapi": "print the OpenAPI document",
}


def module_of(command: str) -> str:
    """The name of the module that has a command."""
    return f"app.cli.{command.replace('-', '_')}"


def main() -> int:
    """Run the command in the arguments and return its exit code; on failure print an error and return 3."""
    # What is imported stays. To look for garbage among it would take a fifth of the time of the imports, and more than
    # that when the interpreter ends.
    gc.disable()
    atexit.register(gc.freeze)
    from app.cli.exit_codes import ERROR, INTERRUPTED, Failed, Parser
    from app.main.settings import BadSetting
    from app.store.embedded import EmbeddedServerFailed, NoEmbeddedServer

    parser = Parser(prog=_program(), description="A robots.txt decision service.")
    parser.add_argument("--version", action="version", version=f"robots-decisions-server {__version__}")
    parsers = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    words = sys.argv[1:]
    wanted = next((word for word in words if not word.startswith("-")), None if words else "serve")
    for name, summary in COMMANDS.items():
        named = parsers.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == wanted:
            # Import only this command: the service takes a second to import, and `key` does not need it.
            command = importlib.import_module(module_of(name))
            command.add(named)
            parser.set_defaults(run=command.run)
    gc.freeze()
    gc.enable()
    arguments = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a terminal may not encode all text of a site
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except Failed as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
    except (BadSetting, NoEmbeddedServer, EmbeddedServerFailed) as error:
        print(f"cannot start: {error}", file=sys.stderr)
    except BrokenPipeError:
        # The reader has closed the pipe. The output that is left must not fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - printed below; Python's own exit code 1 would read as disallow
        traceback.print_exc()
    return ERROR


def _program() -> str:
    name = Path(sys.argv[0]).name
    return "python -m app" if name == "__main__.py" else name


if __name__ == "__main__":
    sys.exit(main())
